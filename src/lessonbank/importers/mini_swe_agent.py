"""Reads mini-swe-agent trajectories (`.traj.json`), versions 1 and 2."""

from __future__ import annotations

from lessonbank.types import Json, Usage

from ._files import Source
from ._reading import (
    Data,
    Run,
    at,
    count,
    entries,
    environment_after_agent,
    issue_in,
    listing,
    mapping,
    messages_of,
    number,
    without,
    words,
)

NAME = "mini_swe_agent"
_BOOKKEEPING = ("extra", "provider_specific_fields", "annotations", "audio", "refusal", "timestamp")


def _matches(value: Json, name: str) -> bool:
    """Early versions wrote the bare list of messages, so there only the name tells."""
    if words(at(value, "trajectory_format")).startswith("mini-swe-agent"):
        return True
    if name.endswith(".traj.json") and isinstance(value, list) and value:
        return isinstance(at(value[0], "role"), str)
    info = mapping(at(value, "info"))
    return isinstance(at(value, "messages"), list) and ("mini_version" in info or "exit_status" in info)


def _build(entry: Json, source: Source, line: int) -> Run:
    whole: Data = entry if isinstance(entry, dict) else {"messages": entry}
    info = mapping(whole.get("info"))
    instance = words(whole.get("instance_id")) or source.stem
    messages = environment_after_agent([without(message, *_BOOKKEEPING) for message in messages_of(whole)])
    status = words(info.get("exit_status"))
    return Run(
        messages=messages,
        source="mini-swe-agent",
        run_id=_run_id(source, instance),
        task_id=instance,
        task=_task(messages),
        model=words(at(info, "config", "model", "model_name")) or None,
        error=status if status and status != "Submitted" else None,
        answer=_submission(info, messages),
        usage=Usage(
            requests=count(at(info, "model_stats", "api_calls")), cost=number(at(info, "model_stats", "instance_cost"))
        ),
    )


def _run_id(source: Source, instance: str) -> str:
    """The folder of the run: a run may keep one folder per instance, or all its instances in one."""
    folder = source.folder
    return (folder.parent if folder.name == instance else folder).name


def _task(messages: list[Json]) -> str | None:
    asked = (words(at(message, "content")) for message in messages if at(message, "role") == "user")
    return issue_in(next(asked, "")).strip() or None


def _submission(info: dict[str, Json], messages: list[Json]) -> str | None:
    """The patch, unless the last message shows it anyway."""
    patch = words(info.get("submission"))
    last = words(at(messages[-1], "content")) if messages else ""
    return patch if patch.strip() and patch.strip() not in last else None


def _split(value: Json) -> list[Json]:
    """A list of whole trajectories is unusual but plain; a list of messages is one trajectory."""
    several = listing(value)
    return several if several and isinstance(at(several[0], "messages"), list) else [value]


FORMAT = entries(NAME, "mini-swe-agent `.traj.json`", _matches, _build, split=_split)

"""Reads mini-swe-agent trajectories (`.traj.json`), versions 1 and 2."""

from __future__ import annotations

from functools import partial

from lessonbank.contracts.records import Json

from ._files import Source
from ._reading import (
    Data,
    Run,
    at,
    each_with,
    entries,
    environment_after_agent,
    issue_in,
    mapping,
    messages_of,
    spent_on,
    without,
    words,
)

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
    messages = environment_after_agent([_with_code(message) for message in messages_of(whole)])
    status, stats = words(info.get("exit_status")), mapping(info.get("model_stats"))
    return Run(
        messages=messages,
        source="mini-swe-agent",
        speakers="places",
        run_id=source.run_of(instance),
        task_id=instance,
        task=_task(messages),
        model=words(at(info, "config", "model", "model_name")) or None,
        error=status if status and status != "Submitted" else None,
        answer=_submission(info, messages),
        usage=spent_on([], "", "", requests=stats.get("api_calls"), cost=stats.get("instance_cost")),
    )


def _with_code(message: Json) -> Json:
    """A message without bookkeeping; of a command's result, whether its exit code says that it failed."""
    code, fields = at(message, "extra", "returncode"), without(message, *_BOOKKEEPING)
    if isinstance(code, bool) or not isinstance(code, int):
        return fields
    return {**mapping(fields), "is_error": code != 0, "is_success": code == 0}


def _task(messages: list[Json]) -> str | None:
    asked = (words(at(message, "content")) for message in messages if at(message, "role") == "user")
    return issue_in(next(asked, "")).strip() or None


def _submission(info: dict[str, Json], messages: list[Json]) -> str | None:
    """The patch, unless the last message shows it anyway."""
    patch = words(info.get("submission"))
    last = words(at(messages[-1], "content")) if messages else ""
    return patch if patch.strip() and patch.strip() not in last else None


FORMAT = entries(
    "mini_swe_agent", "mini-swe-agent `.traj.json`", _matches, _build, split=partial(each_with, "messages")
)

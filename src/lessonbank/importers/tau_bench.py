"""Reads tau-bench result files: a list of episodes with their reward."""

from __future__ import annotations

from lessonbank.contracts.records import Json

from ._files import Source
from ._reading import Run, at, entries, listing, mapping, without, words


def _matches(value: Json, name: str) -> bool:
    first = next(iter(_split(value)), None)
    return isinstance(mapping(first).get("traj"), list) and "task_id" in mapping(first)


def _split(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _build(entry: Json, source: Source, line: int) -> Run:
    """The user's script is the task; the actions that would have solved it stay out of the trajectory."""
    row = mapping(entry)
    crash = words(at(entry, "info", "error"))
    return Run(
        messages=[without(message) for message in listing(row.get("traj"))],
        source="tau-bench",
        run_id=f"{source.stem}/trial{words(row.get('trial')) or 0}",
        task_id=words(row.get("task_id")),
        task=words(at(entry, "info", "task", "instruction")).strip() or None,
        reward=None if crash else row.get("reward"),
        reason="tau-bench environment reward",
        error=crash or None,
    )


FORMAT = entries(
    "tau_bench", "tau-bench results: a JSON list of episodes with `traj` and `reward`", _matches, _build, split=_split
)

"""Reads tau2-bench results (1.0): one file, or a folder with a file for each simulation. The user has tools too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lessonbank.contracts.records import Json, Usage
from lessonbank.errors import FormatError

from ._files import Skipped, Source
from ._reading import (
    Data,
    Entry,
    Format,
    Run,
    at,
    each,
    listing,
    mapping,
    messages_of,
    spent_on,
    without,
    words,
)

NAME = "tau2"
RESULTS, SIMULATIONS = "results.json", "simulations"
_BOOKKEEPING = ("turn_idx", "timestamp", "cost", "usage", "raw_data", "generation_time_seconds")
_ENDED = {"user_stop", "agent_stop"}
_ENDINGS = (".json", ".json.gz")


def _matches(value: Json, name: str) -> bool:
    return isinstance(mapping(value).get("simulations"), list) or _is_index(value) or _is_simulation(value)


def _is_index(value: Json) -> bool:
    """Whether a file is the one that stands beside a folder of simulations."""
    row = mapping(value)
    return isinstance(row.get("tasks"), list) and bool({"simulation_index", "info"} & row.keys())


def _is_simulation(value: Json) -> bool:
    row = mapping(value)
    return {"task_id", "termination_reason", "trial"} <= row.keys() and bool({"messages", "ticks"} & row.keys())


def _split(value: Json, context: Data | None = None) -> Iterator[Json]:
    """Each simulation together with its task and the settings of the whole file."""
    whole = context or mapping(value)
    tasks = {words(mapping(task).get("id")): task for task in listing(whole.get("tasks"))}
    for run in listing(at(value, "simulations")) if context is None else [value]:
        yield {**mapping(run), "_task": tasks.get(words(at(run, "task_id"))), "_info": whole.get("info")}


def is_run(folder: Path, /) -> bool:
    """Whether a folder holds results with a file for each simulation."""
    return (folder / SIMULATIONS).is_dir() and _is_index(Source(folder / RESULTS, inside=folder).first())


def _read(source: Source) -> Iterator[Entry]:
    """`source` may be a folder, its file of results, one simulation of it, or a file that holds them all."""
    if source.path.is_dir():
        return _folder(source, source.path)
    first = source.first()
    if _is_simulation(first):
        return _simulation(source, mapping(source.beside(source.path.parent.parent / RESULTS).first()))
    if _is_index(first) and not listing(at(first, "simulations")) and (source.path.parent / SIMULATIONS).is_dir():
        return _folder(source, source.path.parent)
    return each(source, format=NAME, split=_split, build=_build)


def _folder(source: Source, folder: Path) -> Iterator[Entry]:
    index = mapping(source.beside(folder / RESULTS).first())
    missing = {words(at(simulation, "id")) for simulation in listing(index.get("simulation_index"))}
    for path in sorted(path for path in (folder / SIMULATIONS).iterdir() if path.name.endswith(_ENDINGS)):
        file = source.beside(path)
        missing.discard(file.stem)
        yield from _simulation(file, index)
    for id in sorted(missing):
        yield Skipped(folder / RESULTS, 1, f"simulation {id[:80]} is in the index, and has no file")


def _simulation(source: Source, index: Data) -> Iterator[Entry]:
    return each(source, format=NAME, split=lambda value: _split(value, index or {"tasks": []}), build=_build)


def _build(entry: Json, source: Source, line: int) -> Run:
    run = mapping(entry)
    if not listing(run.get("messages")) and listing(run.get("ticks")):
        raise FormatError("a spoken simulation, kept as ticks, is not read: only one with messages is")
    ended = words(run.get("termination_reason"))
    domain = words(at(entry, "_info", "environment_info", "domain_name"))
    return Run(
        messages=[without(message, *_BOOKKEEPING) for message in messages_of(run)],
        source=f"tau2-bench/{domain}" if domain else "tau2-bench",
        run_id=words(run.get("id")) or f"{source.name}/{line}",
        task_id=words(run.get("task_id")),
        task=_task(run.get("_task")),
        system=words(run.get("policy")) or words(at(entry, "_info", "environment_info", "policy")),
        model=words(at(entry, "_info", "agent_info", "llm")) or None,
        reward=at(run, "reward_info", "reward"),
        reason="tau2 environment assertions",
        error=None if not ended or ended in _ENDED else ended,
        usage=_usage(run),
    )


def _task(task: Json) -> str | None:
    reason = at(task, "user_scenario", "instructions", "reason_for_call")
    return (words(mapping(task).get("ticket")) or words(reason)).strip() or None


def _usage(run: dict[str, Json]) -> Usage:
    """What the agent's own turns cost; the simulated user's are not the agent's."""
    spent = [at(m, "usage") for m in listing(run.get("messages")) if at(m, "role") == "assistant"]
    usages = [usage for usage in spent if isinstance(usage, dict)]
    return spent_on(usages, "prompt_tokens", "completion_tokens", cost=run.get("agent_cost"))


FORMAT = Format(
    NAME,
    "tau2-bench results: one JSON object with `tasks` and `simulations`, or `results.json` beside `simulations/`",
    _matches,
    _read,
)

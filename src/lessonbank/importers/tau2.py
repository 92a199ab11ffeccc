"""Reads tau2-bench results: tasks, the policy, and simulations in which the user has tools too."""

from __future__ import annotations

from collections.abc import Iterator

from lessonbank.contracts.records import Json, Usage

from ._files import Source
from ._reading import (
    Run,
    at,
    count,
    entries,
    listing,
    mapping,
    messages_of,
    number,
    without,
    words,
)

_BOOKKEEPING = ("turn_idx", "timestamp", "cost", "usage", "raw_data", "generation_time_seconds")
_ENDED = {"user_stop", "agent_stop"}


def _matches(value: Json, name: str) -> bool:
    return isinstance(mapping(value).get("simulations"), list)


def _split(value: Json) -> Iterator[Json]:
    """Each simulation together with its task and the settings of the whole file."""
    tasks = {words(mapping(task).get("id")): task for task in listing(mapping(value).get("tasks"))}
    for run in listing(mapping(value).get("simulations")):
        yield {"run": run, "task": tasks.get(words(mapping(run).get("task_id"))), "info": mapping(value).get("info")}


def _build(entry: Json, source: Source, line: int) -> Run:
    run = mapping(mapping(entry).get("run"))
    ended = words(run.get("termination_reason"))
    domain = words(at(entry, "info", "environment_info", "domain_name"))
    return Run(
        messages=[without(message, *_BOOKKEEPING) for message in messages_of(run)],
        source=f"tau2-bench/{domain}" if domain else "tau2-bench",
        run_id=words(run.get("id")) or f"{source.name}/{line}",
        task_id=words(run.get("task_id")),
        task=_task(mapping(entry).get("task")),
        system=words(at(entry, "info", "environment_info", "policy")),
        model=words(at(entry, "info", "agent_info", "llm")) or None,
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
    return Usage(
        requests=sum(isinstance(one, dict) for one in spent),
        input_tokens=sum(count(at(one, "prompt_tokens")) for one in spent),
        output_tokens=sum(count(at(one, "completion_tokens")) for one in spent),
        cost=number(run.get("agent_cost")),
    )


FORMAT = entries(
    "tau2", "tau2-bench results: one JSON object with `tasks` and `simulations`", _matches, _build, split=_split
)

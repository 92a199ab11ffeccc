"""Reads LangSmith runs in its run data format: JSON, or JSON lines, as its API and its clients give them."""

from __future__ import annotations

from collections.abc import Iterable

from lessonbank.contracts.records import Json

from ._payloads import decoded
from ._reading import Data, at, listing, mapping, spent_on, words
from ._traces import Step, instant, traces


def _matches(value: Json, name: str) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return bool(_rows(first))


def _rows(value: Json) -> list[Data]:
    row = mapping(value)
    rows = value if isinstance(value, list) else listing(row.get("runs")) or [value]
    return [run for run in map(mapping, rows) if isinstance(run.get("run_type"), str) and "inputs" in run]


def _steps(value: Json) -> Iterable[Step]:
    for row in _rows(value):
        yield _step(row)
        yield from (step for child in listing(row.get("child_runs")) for step in _steps(child))


def _step(row: Data) -> Step:
    model = at(row, "extra", "metadata", "ls_model_name") or at(row, "extra", "invocation_params", "model")
    return Step(
        trace=words(row.get("trace_id")) or words(row.get("id")),
        start=words(row.get("dotted_order")) or instant(words(row.get("start_time"))),
        is_call=row.get("run_type") == "llm",
        is_root=not row.get("parent_run_id"),
        is_tool=row.get("run_type") == "tool",
        id=words(row.get("id")),
        parent=words(row.get("parent_run_id")),
        name=words(row.get("name")),
        call_id=words(at(row, "outputs", "output", "tool_call_id")),
        sent=decoded(row.get("inputs")),
        back=decoded(row.get("outputs")),
        model=words(model),
        usage=spent_on([row], "prompt_tokens", "completion_tokens"),
        error=words(row.get("error"))[:10_000],
    )


FORMAT = traces("langsmith", "LangSmith runs: JSON, or one run per line", _matches, _steps)

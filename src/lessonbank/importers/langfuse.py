"""Reads Langfuse traces: a trace as JSON (page, API), observations of the API, and observations of the blob export."""

from __future__ import annotations

from collections.abc import Iterable

from lessonbank.contracts.records import Json, Usage

from ._payloads import decoded
from ._reading import Data, count, first_of, listing, mapping, name_in
from ._traces import Step, instant, traces

_CALLS = ("GENERATION",)
_KINDS = {
    *("GENERATION", "SPAN", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL"),
}


def _matches(value: Json, name: str) -> bool:
    return bool(_observations(value[:1] if isinstance(value, list) else value))


def _observations(value: Json) -> list[tuple[Data, Data]]:
    """Each observation with the trace that it stands in, if it stands in one."""
    if isinstance(value, list):
        return [pair for entry in value for pair in _observations(entry)] if len(value) < 1_000_000 else []
    row = mapping(value)
    if _is_observation(row):
        return [(row, {})]
    inside = listing(row.get("observations")) or listing(row.get("data"))
    trace = mapping(row.get("trace")) or row
    return [(observation, trace) for observation in map(mapping, inside) if _is_observation(observation)]


def _is_observation(row: Data) -> bool:
    kind, trace = row.get("type"), first_of(row, "traceId", "trace_id")
    return isinstance(kind, str) and kind in _KINDS and isinstance(trace, str)


def _steps(value: Json) -> Iterable[Step]:
    seen = set[str]()
    for row, trace in _observations(value):
        step = _step(row)
        yield step
        if trace.get("id") == step.trace and step.trace not in seen and {"input", "output"} & trace.keys():
            seen.add(step.trace)
            yield _trace_step(step.trace, trace)


def _trace_step(id: str, trace: Data) -> Step:
    """The trace itself."""
    return Step(id, "", is_call=False, is_root=True, is_trace=True, sent=trace.get("input"), back=trace.get("output"))


def _step(row: Data) -> Step:
    failed = row.get("level") == "ERROR"
    spent = mapping(decoded(first_of(row, "usageDetails", "usage_details", "usage")))
    return Step(
        trace=name_in(row, "traceId", "trace_id"),
        start=instant(name_in(row, "startTime", "start_time")),
        is_call=row.get("type") in _CALLS,
        is_root=not first_of(row, "parentObservationId", "parent_observation_id"),
        is_tool=row.get("type") == "TOOL",
        id=name_in(row, "id"),
        parent=name_in(row, "parentObservationId", "parent_observation_id"),
        name=name_in(row, "name"),
        call_id=name_in(mapping(decoded(row.get("input"))), "tool_use_id", "tool_call_id"),
        sent=row.get("input"),
        back=row.get("output"),
        model=name_in(row, "model", "providedModelName", "provided_model_name"),
        usage=Usage(requests=1, input_tokens=count(spent.get("input")), output_tokens=count(spent.get("output"))),
        error=(name_in(row, "statusMessage", "status_message") or "error") if failed else "",
    )


FORMAT = traces(
    "langfuse",
    "Langfuse traces and observations: JSON or JSON lines of the page, the API or the export",
    _matches,
    _steps,
)

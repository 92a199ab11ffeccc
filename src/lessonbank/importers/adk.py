"""Reads sessions of Google ADK (2.13): an object with the app, the user and the events."""

from __future__ import annotations

from lessonbank.contracts.records import Json

from ._files import Source
from ._reading import Run, at, entries, first_of, listing, mapping, name_in, spent_on

_TOKENS = (("promptTokenCount", "prompt_token_count"), ("candidatesTokenCount", "candidates_token_count"))
_USAGE = ("usageMetadata", "usage_metadata")


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return isinstance(row.get("events"), list) and bool({"app_name", "appName"} & row.keys())


def _build(entry: Json, source: Source, line: int) -> Run:
    row = mapping(entry)
    events = listing(row.get("events"))
    spent = [mapping(first_of(mapping(event), *_USAGE)) for event in events if first_of(mapping(event), *_USAGE)]
    app = name_in(row, "app_name", "appName")
    return Run(
        messages=[event for event in events if at(event, "partial") is not True],
        source=f"adk/{app}" if app else "adk",
        run_id=name_in(row, "id") or f"{source.name}/{line}",
        model=next(
            (model for event in events if (model := name_in(mapping(event), "model_version", "modelVersion"))), None
        ),
        usage=spent_on(spent, *_TOKENS),
    )


FORMAT = entries("adk", "Google ADK sessions: an object with `events`, in either spelling", _matches, _build)

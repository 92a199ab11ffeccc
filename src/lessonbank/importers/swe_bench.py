"""Recognises SWE-bench predictions and reports, which look like runs and hold none."""

from __future__ import annotations

from collections.abc import Iterator

from lessonbank.contracts.records import Json

from ._files import Skipped, Source
from ._reading import Entry, Format, at, mapping

NAME = "swe_bench"
REASON = "SWE-bench predictions and reports hold no runs: import the trajectories, and reports beside them are used"


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    if isinstance(value, list) and value:
        return "model_patch" in mapping(value[0])
    if "model_patch" in row or {"resolved_ids", "completed_ids"} <= row.keys():
        return True
    first = next(iter(row.values()), None)
    return "model_patch" in mapping(first) or isinstance(at(first, "resolved"), bool)


def _read(source: Source) -> Iterator[Entry]:
    yield Skipped(source.path, 1, REASON)


FORMAT = Format(NAME, "SWE-bench predictions and reports: recognised, but they hold no runs", _matches, _read)

"""Reads what mem0 2.2 gives for `get_all`: an object with `results`, or the list of these."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.contracts.records import Json

from ._memory import Fields, Format, Memory, fields_of, memory


def _read(value: Json) -> Sequence[Memory] | None:
    whole = fields_of(value, "results")
    results = whole["results"] if whole else value if isinstance(value, list) else [value]
    rows = [row for entry in results if (row := _row(entry))] if isinstance(results, list) else []
    return [memory(row["memory"]) for row in rows] or None


def _row(value: Json) -> Fields | None:
    row = fields_of(value, "id", "memory")
    return row if row and isinstance(row["memory"], str) and not {"messages", "role"} <= row.keys() else None


FORMAT = Format("mem0", "mem0's `get_all` as JSON", of_value=_read)

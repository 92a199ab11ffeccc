"""Reads the memory of the paper's own code: JSON lines of google-research/reasoning-bank, as of commit ed80611."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from lessonbank.contracts.records import Json, Kind
from lessonbank.errors import ExtractionError
from lessonbank.learning.extraction.parsing import parse_lessons

from ._memory import Format, Memory, fields_of, memory, text_of

_MOST: Final = 5
"""Lessons of one run: what the paper takes from several runs of a task."""


def _read(value: Json) -> Sequence[Memory] | None:
    row = fields_of(value, "task_id", "query", "memory_items")
    pieces = row and row["memory_items"]
    if row is None or not isinstance(pieces, list):
        return None
    # The reply of the model, split at blank lines: a piece may be a heading, a lesson or half of one.
    reply = "\n\n".join(map(text_of, pieces))
    kind: Kind = "guardrail" if row.get("status") == "fail" else "strategy"
    try:
        drafts = parse_lessons(reply, limit=_MOST).lessons
    except ExtractionError:
        drafts = ()
    return [Memory(memory(row["query"]).task, tuple(replace(draft, kind=kind) for draft in drafts))]


FORMAT = Format("reasoning_bank", "memory of the paper's own code (`.jsonl`)", of_value=_read)

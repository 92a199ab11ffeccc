"""The journal as people read it: one sentence for each change, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lessonbank.contracts.records import JournalEntry

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_NAMED: Final = 20
"""Lessons that one line links to."""


@dataclass(frozen=True, slots=True)
class Line:
    """One change: what was done, to which lessons, and why."""

    entry: JournalEntry
    told: str
    lessons: tuple[str, ...] = ()
    reason: str = ""
    run: str = ""
    """The run that it is about, if it is about one."""


async def latest(bank: AsyncReasoningBank, count: int, /, *, before: int | None = None) -> Sequence[JournalEntry]:
    """The last changes, the newest first; `before`: those before that change."""
    end = (await bank.admin.counts()).changes + 1 if before is None else before
    first = max(end - 1 - count, 0)
    return (await bank.history.list(after=first, limit=max(end - 1 - first, 1)))[::-1] if end > 1 else ()


def line_of(entry: JournalEntry, /) -> Line:
    """What one change was."""
    said = entry.entry.sentence()
    return Line(entry, said.text, said.lessons[:_NAMED], said.reason, said.run)


TAKEN_BACK: Final = frozenset({"retire", "rollback"})


def is_taken_back(entry: JournalEntry, /) -> bool:
    """Whether a change took something back."""
    told: Any = entry.entry
    return told.kind in TAKEN_BACK or (told.kind == "trust" and told.state == "quarantined")

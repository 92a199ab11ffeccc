"""The journal as people read it: one sentence for each change, the newest first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lessonbank.contracts.records import JournalEntry

from .tables import MOST

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_AT_ONCE: Final = 200
"""Changes that are read at once."""
_NAMED: Final = 20
"""Lessons that one line links to."""


@dataclass(frozen=True, slots=True)
class Line:
    """One change: what was done, to which lessons, and why."""

    entry: JournalEntry
    sentence: str
    lessons: tuple[str, ...] = ()
    reason: str = ""
    run: str = ""
    """The run that it is about, if it is about one."""


async def latest(bank: AsyncReasoningBank, count: int, /, *, before: int | None = None) -> Sequence[JournalEntry]:
    """The last changes, the newest first; `before`: those before that change."""
    end = (await bank.admin.counts()).changes + 1 if before is None else before
    first = max(end - 1 - count, 0)
    return (await bank.history.list(after=first, limit=max(end - 1 - first, 1)))[::-1] if end > 1 else ()


@dataclass(frozen=True, slots=True)
class Looked:
    """The changes that somebody looks for; without a kind and a writer, all of them."""

    bank: AsyncReasoningBank
    kinds: Collection[str] = ()
    by: str = ""

    async def back(
        self, count: int, /, *, before: int | None = None, of: Sequence[str] | None = None
    ) -> tuple[Sequence[JournalEntry], int | None]:
        """The last `count` of them, the newest first, and before which change the next ones are.

        `of`: only changes to these lessons. At most `MOST` changes are read for one page.
        """
        if of is not None:
            story = {entry.sequence: entry for id in of for entry in await self.bank.history.list(lesson=id)}
            entries = [entry for at, entry in sorted(story.items(), reverse=True) if before is None or at < before]
            entries = [entry for entry in entries if self._is_meant(entry)]
            return entries[:count], entries[count - 1].sequence if len(entries) > count else None
        entries, looked = list[JournalEntry](), 0
        while len(entries) < count and looked < MOST and (read := await latest(self.bank, _AT_ONCE, before=before)):
            entries += [entry for entry in read if self._is_meant(entry)]
            looked, before = looked + len(read), read[-1].sequence
        last = entries[count - 1].sequence if len(entries) > count else before
        return entries[:count], last if last and last > 1 else None

    def _is_meant(self, entry: JournalEntry) -> bool:
        is_kind = not self.kinds or entry.entry.kind in self.kinds
        return is_kind and self.by.casefold() in entry.writer.casefold()


def line_of(entry: JournalEntry, /) -> Line:
    """What one change was."""
    sentence = entry.entry.sentence()
    return Line(entry, sentence.text, sentence.lessons[:_NAMED], sentence.reason, sentence.run)


TAKEN_BACK: Final = frozenset({"retire", "rollback"})


def is_taken_back(entry: JournalEntry, /) -> bool:
    """Whether a change took something back."""
    change: Any = entry.entry
    return change.kind in TAKEN_BACK or (change.kind == "trust" and change.state == "quarantined")

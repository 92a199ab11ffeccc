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
            story = {one.sequence: one for id in of for one in await self.bank.history.list(lesson=id)}
            found = [one for at, one in sorted(story.items(), reverse=True) if before is None or at < before]
            found = [one for one in found if self._is_meant(one)]
            return found[:count], found[count - 1].sequence if len(found) > count else None
        found, looked = list[JournalEntry](), 0
        while len(found) < count and looked < MOST and (read := await latest(self.bank, _AT_ONCE, before=before)):
            found += [one for one in read if self._is_meant(one)]
            looked, before = looked + len(read), read[-1].sequence
        last = found[count - 1].sequence if len(found) > count else before
        return found[:count], last if last and last > 1 else None

    def _is_meant(self, entry: JournalEntry) -> bool:
        is_kind = not self.kinds or entry.entry.kind in self.kinds
        return is_kind and self.by.casefold() in entry.writer.casefold()


def line_of(entry: JournalEntry, /) -> Line:
    """What one change was."""
    said = entry.entry.sentence()
    return Line(entry, said.text, said.lessons[:_NAMED], said.reason, said.run)


TAKEN_BACK: Final = frozenset({"retire", "rollback"})


def is_taken_back(entry: JournalEntry, /) -> bool:
    """Whether a change took something back."""
    told: Any = entry.entry
    return told.kind in TAKEN_BACK or (told.kind == "trust" and told.state == "quarantined")

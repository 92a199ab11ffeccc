"""What a write appends to the journal, and tells of it to whoever wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Final, overload

from lessonbank.stores._records import microseconds, moment
from lessonbank.types import Experience, JournalEntry
from lessonbank.types.ids import now
from lessonbank.types.timeline import Entry

from ._checks import checksum
from ._rows import ScopeRow, among, journal_number

if TYPE_CHECKING:
    from lessonbank.protocols import Vectors

AS_BEFORE: Final = (0, 0)
"""By how many documents and words a scope grows that does not."""
_NOTHING: Final[Mapping[int, bool]] = {}


@dataclass(frozen=True, slots=True)
class Batch:
    """The arguments of one `apply`, ready to be written: lone surrogates gone, entries packed."""

    scope: str
    writer: str
    entries: Sequence[tuple[Entry, bytes]]
    """What happens, in order, each as it is kept."""
    vectors: Mapping[str, Vectors] = field(default_factory=dict[str, "Vectors"])
    space: str | None = None
    unlearned: Sequence[str] = ()
    unchanged: Sequence[Experience] = ()
    """What the entries were decided upon, see `Store.apply`."""
    one_wording: bool = False


@dataclass(frozen=True, slots=True)
class Journalled(Sequence[JournalEntry]):
    """What a batch appended to the journal; an entry is made when it is looked at, because most never are."""

    scope: str
    writer: str
    at: datetime
    first: int
    entries: Sequence[Entry]

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> JournalEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[JournalEntry]: ...
    def __getitem__(self, index: int | slice) -> JournalEntry | list[JournalEntry]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return JournalEntry(
            sequence=self.first + at, at=self.at, scope=self.scope, writer=self.writer, entry=self.entries[at]
        )


def journal(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    batch: Batch,
    /,
    *,
    touched: Iterable[Mapping[int, bool]],
    grown: tuple[int, int] = AS_BEFORE,
) -> Sequence[JournalEntry]:
    """Append the entries of a batch; `touched` has for each change the numbers of the experiences it wrote.

    The number maps to whether the change holds the whole record. `grown`: by how many documents and words the scope.
    """
    # Through microseconds and back, so that the entry returned equals the entry read later.
    at = microseconds(now())
    first = scope.sequence + 1
    places = chain(touched, repeat(_NOTHING))
    connection.executemany(
        "INSERT INTO journal (number, at, kind, writer, whole, part, entry, sum) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (number, at, entry.kind, batch.writer, *_parted(t), blob, checksum(number, at, batch.writer))
            for number, (entry, blob), t in zip(
                count(journal_number(scope.number, first)), batch.entries, places, strict=False
            )
        ),
    )
    connection.execute(
        "UPDATE scopes SET sequence = sequence + ?, documents = documents + ?, words = words + ? WHERE number = ?",
        (len(batch.entries), *grown, scope.number),
    )
    return Journalled(batch.scope, batch.writer, moment(at), first, [entry for entry, _ in batch.entries])


def _parted(touched: Mapping[int, bool]) -> tuple[str | None, str | None]:
    """What an entry holds whole, and what it changes without holding it, as the journal's columns have them."""
    if not touched:
        return None, None
    if len(touched) == 1:
        ((number, held),) = touched.items()
        return (f"[{number}]", None) if held else (None, f"[{number}]")
    whole = [number for number, held in touched.items() if held]
    part = [number for number, held in touched.items() if not held]
    return among(whole) if whole else None, among(part) if part else None

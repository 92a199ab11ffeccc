"""What a write appends to the journal, and tells of it to whoever wrote."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, repeat
from typing import Final

from lessonbank.contracts.records import JournalEntry
from lessonbank.contracts.records.ids import now
from lessonbank.stores._entries import Batch as Batch
from lessonbank.stores._entries import Journalled
from lessonbank.stores._records import microseconds

from ._checks import checksum
from ._rows import ScopeRow, among, journal_number

AS_BEFORE: Final = (0, 0)
"""By how many documents and words a scope grows that does not."""


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
    at = microseconds(now())
    first = scope.sequence + 1
    places = chain(map(_parted, touched), repeat((None, None)))
    connection.executemany(
        "INSERT INTO journal (number, at, kind, writer, whole, part, entry, entry_sum, sum)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (number, at, entry.kind, batch.writer, *parts, *columns, checksum(number, at, batch.writer))
            for number, (entry, columns), parts in zip(
                count(journal_number(scope.number, first)), batch.entries, places, strict=False
            )
        ),
    )
    connection.execute(
        "UPDATE scopes SET sequence = sequence + ?, documents = documents + ?, words = words + ? WHERE number = ?",
        (len(batch.entries), *grown, scope.number),
    )
    return Journalled(batch.scope, batch.writer, at, first, [entry for entry, _ in batch.entries])


def _parted(touched: Mapping[int, bool]) -> tuple[str | None, str | None]:
    """What an entry holds whole, and what it changes without holding it, as the journal's columns have them."""
    if len(touched) == 1:
        ((number, held),) = touched.items()
        return (f"[{number}]", None) if held else (None, f"[{number}]")
    whole = [number for number, held in touched.items() if held]
    part = [number for number, held in touched.items() if not held]
    return among(whole) if whole else None, among(part) if part else None


def read_writes(
    connection: sqlite3.Connection, scope: int, first: int, last: int, /
) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
    """The entries of a scope from `first` to `last`: number, and the experiences held whole and changed in part."""
    sql = "SELECT number, whole, part FROM journal WHERE number BETWEEN ? AND ?"
    for number, whole, part in connection.execute(sql, (journal_number(scope, first), journal_number(scope, last))):
        yield number, json.loads(whole) if whole else (), json.loads(part) if part else ()

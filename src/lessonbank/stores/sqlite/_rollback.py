"""A rollback in the tables: moves experiences out and back whole, and writes anew only those whose record differs."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Experience, JournalEntry, Rollback
from lessonbank.contracts.records.timeline import Entry, folded, live
from lessonbank.errors import StoreDamaged
from lessonbank.stores._changes import check_target, handed_on, held_again, held_back, planned
from lessonbank.stores._texts import checked, records_with_sums

from ._checks import stored
from ._derived import recount, settle_all, underive
from ._journal import read_writes
from ._rows import (
    AMONG,
    AMONG_IDS,
    ScopeRow,
    among,
    among_ids,
    entry_of,
    experience_at,
    find_scope,
    journal_number,
    make_scope,
    sequence_of,
)
from ._write import Batch, Present, Written, apply, journal, rows_for, write


@dataclass(frozen=True, slots=True)
class _Version:
    """An experience as the journal left it: its last entry, and whether that entry holds it as it is."""

    entry: int
    whole: bool


def roll_back(connection: sqlite3.Connection, batch: Batch, rollback: Rollback, /) -> Sequence[JournalEntry]:
    """Make the experiences of a scope what they were after entry `rollback.to`; what is in quarantine stays there.

    Raises:
        NotFound: there is no such entry.
        Conflict: what it was decided upon is not so any more.
    """
    scope = make_scope(connection, batch.scope)
    check_target(rollback, sequence=scope.sequence)
    planned(batch, Present(connection, scope), ())
    rollbacks = _entries_of(connection, scope, "rollback")
    jumps = {sequence: entry.to for sequence, entry in rollbacks.items() if isinstance(entry, Rollback)}
    now, then = live(jumps, scope.sequence), live(jumps, rollback.to)
    if now != then:
        change_over(connection, scope, batch.scope, then)
    entries = journal(connection, find_scope(connection, batch.scope), batch, touched=[{}])
    read = partial(_entries_of, connection, find_scope(connection, batch.scope))
    held = held_back(read("trust").values())
    if left := handed_on(read, then, Present(connection, scope), held):
        entries = [*entries, *apply(connection, Batch(batch.scope, batch.writer, records_with_sums(left)))]
    if not (again := held_again(_owners(connection, scope, held), held)):
        return entries
    return [*entries, *apply(connection, Batch(batch.scope, batch.writer, records_with_sums([again])))]


def _owners(connection: sqlite3.Connection, scope: ScopeRow, held: Collection[str]) -> Iterator[Experience]:
    """The experiences that hold these lessons."""
    homes: set[int] = set()
    for some in batches(sorted(held)):
        sql = f"SELECT experience FROM lessons WHERE scope = ? AND id {AMONG_IDS}"
        homes.update(number for (number,) in connection.execute(sql, (scope.number, among_ids(some))))
    return (experience_at(connection, number) for number in sorted(homes))


def change_over(connection: sqlite3.Connection, scope: ScopeRow, name: str, then: Sequence[range], /) -> None:
    """Make the experiences of a scope what the entries of `then` left.

    An experience's record follows from the last entry that wrote it, so only other versions are written anew.
    """
    wanted = _versions(connection, scope, then)
    cursor = connection.execute(
        "SELECT number, scope, entry FROM experiences WHERE scope IN (?, ?)", (scope.number, -scope.number)
    )
    rows = list(cursor)
    shown = [number for number, where, _ in rows if where > 0]
    hidden = {number for number, where, _ in rows if where < 0}
    other = {n: wanted[n] for n, _, entry in rows if n in wanted and wanted[n].entry != entry}
    # Before anything comes back: a lesson may have gone from one experience to another.
    for number in other:
        underive(connection, -number if number in hidden else scope.number, number, experience_at(connection, number))
    _take_out(connection, scope, [number for number in shown if number not in wanted])
    _bring_back(connection, scope, [number for number in hidden if number in wanted])
    if other:
        experiences = _records(connection, scope, other, then)
        entries = {experiences[n].id: (version.entry, version.whole) for n, version in other.items()}
        written = Written({e.id: e for e in experiences.values()}, (), entries)
        here = find_scope(connection, name)
        write(connection, here, rows_for(connection, here, written))
    recount(connection, scope=scope.number)
    settle_all(connection, scope=scope.number)


def _entries_of(connection: sqlite3.Connection, scope: ScopeRow, *kinds: str) -> dict[int, Entry]:
    """The journal entries of these kinds by sequence, oldest first."""
    rows = connection.execute(
        f"SELECT number, {stored('entry')} FROM journal WHERE kind {AMONG_IDS} AND number BETWEEN ? AND ?"
        " ORDER BY number",
        (among_ids(kinds), journal_number(scope.number, 1), journal_number(scope.number, scope.sequence)),
    )
    return {sequence_of(number): entry_of(checked(blob)) for number, blob in rows}


def _versions(connection: sqlite3.Connection, scope: ScopeRow, spans: Sequence[range]) -> dict[int, _Version]:
    """The last entry that wrote each experience, for those that the entries of `spans` leave in being."""
    last: dict[int, _Version] = {}
    for span in spans:
        for number, whole, part in read_writes(connection, scope.number, span[0], span[-1]):
            last.update((experience, _Version(number, True)) for experience in whole)
            last.update((experience, _Version(number, False)) for experience in part if experience in last)
    return last


def _records(
    connection: sqlite3.Connection, scope: ScopeRow, other: Mapping[int, _Version], spans: Sequence[range]
) -> dict[int, Experience]:
    """Experiences by number, as the entries of `spans` left them."""
    ids: dict[str, int] = {}
    for some in batches(other):
        ids.update(connection.execute(f"SELECT id, number FROM experiences WHERE number {AMONG}", (among(some),)))
    experiences = folded(entry_of(checked(blob)) for blob in _entries(connection, scope, other, spans))
    records = {number: experiences[id] for id, number in ids.items() if id in experiences}
    if len(records) < len(other):
        raise StoreDamaged("the journal no longer tells what the bank was then")
    return records


def _entries(
    connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int], spans: Sequence[range]
) -> list[bytes]:
    """The journal entries of `spans` that wrote one of the experiences, oldest first."""
    named = [
        entry
        for span in spans
        for entry, whole, part in read_writes(connection, scope.number, span[0], span[-1])
        if any(experience in numbers for experience in chain(whole, part))
    ]
    sql = f"SELECT {stored('entry')} FROM journal WHERE number {AMONG} ORDER BY number"
    return [blob for some in batches(sorted(named)) for (blob,) in connection.execute(sql, (among(some),))]


def _take_out(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int]) -> None:
    for those in map(among, batches(numbers)):
        connection.execute(f"UPDATE experiences SET scope = -scope WHERE number {AMONG}", (those,))
        for table in ("lessons", "attempts"):
            connection.execute(
                f"UPDATE {table} SET scope = -experience WHERE scope = ? AND experience {AMONG}", (scope.number, those)
            )


def _bring_back(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int]) -> None:
    for some in batches(numbers):
        connection.execute(f"UPDATE experiences SET scope = -scope WHERE number {AMONG}", (among(some),))
        those = among(-number for number in some)
        for table in ("lessons", "attempts"):
            connection.execute(f"UPDATE {table} SET scope = ? WHERE scope {AMONG}", (scope.number, those))

"""A rollback in the tables: takes experiences out and back, and writes anew only those whose record differs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import chain

from lessonbank.contracts.records import Experience, JournalEntry, Rollback
from lessonbank.contracts.records.timeline import Entry, folded, live
from lessonbank.errors import StoreDamaged
from lessonbank.stores._changes import check_target, handed_on, held_again, held_back, planned
from lessonbank.stores._entries import Batch, entry_of
from lessonbank.stores._texts import checked, records_with_sums

from ._database import Connection, do, rows, stored
from ._derived import derive, recount, refresh_shown, settle_pending, underive
from ._postings import index_words, unindex_words
from ._present import Present
from ._rows import ScopeRow, experiences_at, find_scope, make_scope
from ._write import Written, apply, journal, write


def roll_back(connection: Connection, batch: Batch, rollback: Rollback, /) -> Sequence[JournalEntry]:
    """Make the experiences of a scope what they were after entry `rollback.to`; what is in quarantine stays there.

    Raises:
        NotFound: there is no such entry.
        Conflict: what it was decided upon is not so any more.
    """
    scope = make_scope(connection, batch.scope)
    check_target(rollback, sequence=scope.sequence)
    planned(batch, Present(connection, batch.scope), ())
    rollbacks = _entries_of(connection, scope.name, "rollback")
    jumps = {sequence: entry.to for sequence, entry in rollbacks.items() if isinstance(entry, Rollback)}
    then = live(jumps, rollback.to)
    if live(jumps, scope.sequence) != then:
        change_over(connection, scope, then)
    entries = journal(connection, find_scope(connection, batch.scope), batch)
    read = partial(_entries_of, connection, batch.scope)
    held = held_back(read("trust").values())
    if left := handed_on(read, then, Present(connection, batch.scope), held):
        entries = [*entries, *apply(connection, Batch(batch.scope, batch.writer, records_with_sums(left)))]
    if not (again := held_again(_owners(connection, batch.scope, held), held)):
        return entries
    return [*entries, *apply(connection, Batch(batch.scope, batch.writer, records_with_sums([again])))]


def _owners(connection: Connection, scope: str, held: Collection[str]) -> Collection[Experience]:
    """The experiences that hold these lessons."""
    sql = "SELECT DISTINCT experience FROM lessonbank.lessons WHERE scope = %s AND id = ANY(%s)"
    homes = sorted(number for (number,) in rows(connection, sql, scope, list(held))) if held else []
    return experiences_at(connection, scope, homes).values()


def change_over(connection: Connection, scope: ScopeRow, then: Sequence[range], /) -> None:
    """Make the experiences of a scope what the entries of `then` left.

    An experience's record follows from the last entry that wrote it, so only other versions are written anew.
    """
    wanted = versions(connection, scope.name, then)
    sql = "SELECT number, gone, entry FROM lessonbank.experiences WHERE scope = %s"
    states = {number: (is_removed, entry) for number, is_removed, entry in rows(connection, sql, scope.name)}
    other = {n for n, (_, entry) in states.items() if n in wanted and wanted[n] != entry}
    leaving = [n for n, (is_removed, _) in states.items() if not is_removed and n not in wanted]
    coming = [n for n, (is_removed, _) in states.items() if is_removed and n in wanted and n not in other]
    present = [n for n in other if not states[n][0]]
    # Before anything comes back: a lesson may have gone from one experience to another.
    again = _take_out(connection, scope.name, leaving, present)
    back = experiences_at(connection, scope.name, coming)
    do(connection, "UPDATE lessonbank.experiences SET gone = false WHERE scope = %s AND number = ANY(%s)",
       scope.name, coming)  # fmt: skip
    derive(connection, scope.name, back)
    index_words(connection, scope.name, {number: e.task for number, e in back.items()})
    if other:
        records = _records(connection, scope.name, other, then)
        entries = {records[n].id: wanted[n] for n in other}
        now = Present(connection, scope.name)
        write(connection, scope, Written({e.id: e for e in records.values()}, (), entries), now)
    again |= {lesson.id for e in back.values() for lesson in e.lessons}
    refresh_shown(connection, scope.name, [*leaving, *coming], lessons=again)
    recount(connection, scope.name)
    settle_pending(connection, scope.name, None)


def _take_out(connection: Connection, scope: str, leaving: Sequence[int], changing: Sequence[int]) -> set[str]:
    """Have nothing find these experiences any more; the lessons they held. `changing` ones are about to be written."""
    old = experiences_at(connection, scope, [*leaving, *changing])
    _, lessons = underive(connection, scope, old)
    unindex_words(connection, scope, {number: old[number].task for number in leaving})
    do(connection, "UPDATE lessonbank.experiences SET gone = true, shown = false WHERE scope = %s AND number = ANY(%s)",
       scope, [*leaving])  # fmt: skip
    return lessons


def _entries_of(connection: Connection, scope: str, *kinds: str) -> dict[int, Entry]:
    """The journal entries of these kinds by sequence, oldest first."""
    sql = f"SELECT sequence, {stored('entry')} FROM lessonbank.journal WHERE scope = %s AND kind = ANY(%s)"
    records = rows(connection, f"{sql} ORDER BY sequence", scope, [*kinds])
    return {sequence: entry_of(checked(blob)) for sequence, blob in records}


def versions(connection: Connection, scope: str, spans: Sequence[range], /) -> dict[int, int]:
    """The last entry that wrote each experience, for those that the entries of `spans` leave in being."""
    last: dict[int, int] = {}
    for sequence, whole, part in _touched(connection, scope, spans):
        last.update(dict.fromkeys(whole, sequence))
        last.update((number, sequence) for number in part if number in last)
    return last


def _touched(connection: Connection, scope: str, spans: Sequence[range]) -> list[tuple[int, list[int], list[int]]]:
    """Sequence, whole and part of the entries of `spans`, oldest first."""
    sql = "SELECT sequence, whole, part FROM lessonbank.journal WHERE scope = %s AND sequence BETWEEN %s AND %s"
    pages = [rows(connection, f"{sql} ORDER BY sequence", scope, span[0], span[-1]) for span in spans]
    return [(sequence, whole, part) for sequence, whole, part in chain.from_iterable(pages)]


def _records(
    connection: Connection, scope: str, other: Collection[int], spans: Sequence[range]
) -> Mapping[int, Experience]:
    """Experiences by number, as the entries of `spans` left them."""
    sql = "SELECT id, number FROM lessonbank.experiences WHERE scope = %s AND number = ANY(%s)"
    ids: dict[str, int] = dict(rows(connection, sql, scope, list(other)))
    named = [s for s, whole, part in _touched(connection, scope, spans) if not {*whole, *part}.isdisjoint(other)]
    sql = f"SELECT {stored('entry')} FROM lessonbank.journal WHERE scope = %s AND sequence = ANY(%s) ORDER BY sequence"
    experiences = folded(entry_of(checked(blob)) for (blob,) in rows(connection, sql, scope, named))
    records = {number: experiences[id] for id, number in ids.items() if id in experiences}
    if len(records) < len(other):
        raise StoreDamaged("the journal no longer tells what the bank was then", remedy=": restore a backup")
    return records

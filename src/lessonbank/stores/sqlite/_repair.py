"""Making the derived tables anew from the records, and saying what is wrong with a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from lessonbank.bm25 import words
from lessonbank.errors import StoreUnavailable
from lessonbank.stores._packing import unpacked
from lessonbank.stores._records import microseconds
from lessonbank.stores._vectors import keys_from_blob
from lessonbank.timeline import Entry, live, named_items
from lessonbank.types import Add, Experience, Merge, Rejudge, Replace, Rollback

from ._derived import derive, recount, reindex_words, settle_all
from ._placing import rejoin
from ._purging import UNFINISHED
from ._rows import PARTS, among, entry_of, experience_of, journal_number, sequence_of

_PORTION: Final = 500

_ORPHANS: Final = {
    "items without an experience": (
        "FROM items x LEFT JOIN experiences e ON e.number = x.experience"
        " AND x.scope = CASE WHEN e.scope > 0 THEN e.scope ELSE -e.number END"
    ),
    "attempts without an experience": (
        "FROM attempts x LEFT JOIN experiences e ON e.number = x.experience"
        " AND x.scope = CASE WHEN e.scope > 0 THEN e.scope ELSE -e.number END"
    ),
    "experiences without their task": "FROM experiences x LEFT JOIN tasks e ON e.number = x.number",
    "tasks without an experience": "FROM tasks x LEFT JOIN experiences e ON e.number = x.number",
    "experiences without a scope": "FROM experiences x LEFT JOIN scopes e ON e.number = abs(x.scope)",
    "trajectories without a scope": "FROM trajectories x LEFT JOIN scopes e ON e.number = x.scope",
    "recalls without a scope": "FROM recalls x LEFT JOIN scopes e ON e.number = x.scope",
    "settlements without a recall": "FROM settlements x LEFT JOIN recalls e ON e.id = x.recall AND e.scope = x.scope",
    "settlements without a journal entry": "FROM settlements x LEFT JOIN journal e ON e.number = x.entry",
    "experiences without the journal entry that wrote them": (
        "FROM experiences x LEFT JOIN journal e ON e.number = x.entry"
    ),
}

_FAULTS: Final = {
    "scopes have a gap in their journal": (
        "SELECT count(*) FROM scopes s WHERE s.sequence <> (SELECT count(*) FROM journal j"
        f" WHERE j.number BETWEEN s.number * {1 << 32} + 1 AND s.number * {1 << 32} + s.sequence)"
        f" OR EXISTS (SELECT 1 FROM journal j WHERE j.number > s.number * {1 << 32} + s.sequence"
        f" AND j.number < (s.number + 1) * {1 << 32})"
    ),
    "scopes have wrong word counts": (
        "SELECT count(*) FROM scopes s WHERE (s.documents, s.words) <>"
        " (SELECT count(*), coalesce(sum(words), 0) FROM experiences e WHERE e.scope = s.number)"
    ),
    "experiences are missing from the word index": (
        "SELECT count(*) FROM experiences WHERE words > 0 AND number <= (SELECT upto FROM indexed)"
        " AND number NOT IN (SELECT DISTINCT doc FROM word_places)"
    ),
    "experiences in the word index do not exist": (
        "SELECT count(*) FROM (SELECT DISTINCT doc FROM word_places) WHERE doc NOT IN (SELECT number FROM experiences)"
    ),
    "runs have the wrong pending mark": (
        "SELECT count(*) FROM trajectories t WHERE t.pending = EXISTS (SELECT 1 FROM attempts a"
        " WHERE a.scope = t.scope AND a.trajectory = t.id AND a.waiting = 0)"
    ),
}


def rebuild(connection: sqlite3.Connection, /) -> None:
    """Fill items, attempts, the word index and all sums from the records; drop vectors that belong to nothing."""
    for table in ("items", "attempts", "tasks"):
        connection.execute(f"DELETE FROM {table}")
    for portion in _portions(connection):
        for number, scope, experience in portion:
            _rebuild_one(connection, scope, number, experience)
    _rename(connection)
    reindex_words(connection)
    rejoin(connection)
    recount(connection)
    settle_all(connection)


def _portions(connection: sqlite3.Connection) -> Iterator[list[tuple[int, int, Experience]]]:
    last = -1
    while True:
        rows = connection.execute(
            "SELECT e.number, e.scope, e.record, j.entry FROM experiences e LEFT JOIN journal j ON j.number = e.entry"
            " WHERE e.number > ? ORDER BY e.number LIMIT ?",
            (last, _PORTION),
        ).fetchall()
        if not rows:
            return
        last = rows[-1][0]
        yield [(number, scope, experience_of(record, entry)) for number, scope, record, entry in rows]


def _rebuild_one(connection: sqlite3.Connection, scope: int, number: int, experience: Experience) -> None:
    connection.execute(
        "UPDATE experiences SET id = ?, created_at = ?, active = ?, words = ? WHERE number = ?",
        (
            experience.id,
            microseconds(experience.created_at),
            bool(experience.active_items),
            len(words(experience.task)),
            number,
        ),
    )
    connection.execute("INSERT OR REPLACE INTO tasks (number, task) VALUES (?, ?)", (number, experience.task))
    derive(connection, scope if scope > 0 else -number, {number: experience})


def _rename(connection: sqlite3.Connection) -> None:
    """Say anew, beside every journal entry, which experiences it wrote."""
    for (scope,) in connection.execute("SELECT number FROM scopes").fetchall():
        ids: dict[str, int] = dict(
            connection.execute("SELECT id, number FROM experiences WHERE scope IN (?, ?)", (scope, -scope)).fetchall()
        )
        entries = connection.execute(
            "SELECT number, entry FROM journal WHERE number BETWEEN ? AND ? ORDER BY number",
            (journal_number(scope, 0), journal_number(scope + 1, 0)),
        ).fetchall()
        connection.executemany("UPDATE journal SET whole = ?, part = ? WHERE number = ?", _named(entries, ids))


def _named(
    entries: Iterable[tuple[int, bytes]], ids: Mapping[str, int]
) -> Iterator[tuple[str | None, str | None, int]]:
    holders: dict[str, str] = {}
    given: dict[int, dict[str, str]] = {}
    jumps: dict[int, int] = {}
    for number, blob in entries:
        entry = entry_of(unpacked(blob))
        if isinstance(entry, Rollback):
            jumps[sequence_of(number)] = entry.to
            past = chain.from_iterable(live(jumps, sequence_of(number)))
            holders = {item: holder for sequence in past for item, holder in given.get(sequence, {}).items()}
        whole, part = wrote(entry, holders)
        if isinstance(entry, Add | Replace | Merge):
            given[sequence_of(number)] = {item.id: entry.experience.id for item in entry.experience.items}
        held, flipped = ([ids[id] for id in sorted(some) if id in ids] for some in (whole, part))
        yield among(held) if held else None, among(flipped) if flipped else None, number


def wrote(entry: Entry, holders: dict[str, str], /) -> tuple[set[str], set[str]]:
    """Ids of the experiences that an entry holds whole, and of those it changes in part.

    `holders` says which experience each item belongs to, and is kept up to date.
    """
    part = {holders[id] for id in named_items(entry) if id in holders}
    if isinstance(entry, Rejudge):
        part.add(entry.experience_id)
    if not isinstance(entry, Add | Replace | Merge):
        return set(), part
    holders.update((item.id, entry.experience.id) for item in entry.experience.items)
    return {entry.experience.id}, part - {entry.experience.id}


def problems(connection: sqlite3.Connection, /) -> list[str]:
    """What is wrong, one sentence each; empty when the file is sound."""
    found = [f"SQLite says: {text}" for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
    if found:
        return found
    for what, source in _ORPHANS.items():
        (count,) = connection.execute(f"SELECT count(*) {source} WHERE e.rowid IS NULL").fetchone()
        if count:
            found.append(f"{count} {what}")
    if unfinished(connection):
        found.append("a purge was interrupted before its bytes were gone from the file: rebuild finishes it")
    for what, question in _FAULTS.items():
        (count,) = connection.execute(question).fetchone()
        if count:
            found.append(f"{count} {what}")
    return [*found, *_vectors_of_nothing(connection), *_disagreeing(connection)]


def _vectors_of_nothing(connection: sqlite3.Connection) -> list[str]:
    known = {number for (number,) in connection.execute("SELECT number FROM experiences")}
    keys = {key for (key,) in connection.execute("SELECT key FROM fresh")}
    for (blob,) in connection.execute("SELECT keys FROM blocks"):
        keys.update(keys_from_blob(blob).tolist())
    lost = sum(key // PARTS not in known for key in keys)
    return [f"{lost} vectors without an experience"] if lost else []


def _disagreeing(connection: sqlite3.Connection) -> list[str]:
    items: dict[int, list[tuple[str, bool]]] = {}
    for number, id, retired in connection.execute("SELECT experience, id, retired FROM items ORDER BY place"):
        items.setdefault(number, []).append((id, bool(retired)))
    lost = wrong = 0
    rows = connection.execute(
        "SELECT e.number, e.id, e.record, j.entry FROM experiences e LEFT JOIN journal j ON j.number = e.entry"
    )
    for number, id, record, entry in rows:
        try:
            experience = experience_of(record, entry)
        except StoreUnavailable:
            lost += 1
            continue
        wrong += experience.id != id or items.get(number, []) != [(i.id, i.retired) for i in experience.items]
    found = [f"{lost} experiences have lost their record"] if lost else []
    return [*found, f"{wrong} experiences disagree with their items"] if wrong else found


def unfinished(connection: sqlite3.Connection, /) -> bool:
    """Whether a purge was interrupted before its bytes were gone."""
    return connection.execute("SELECT 1 FROM settings WHERE key = ?", (UNFINISHED,)).fetchone() is not None

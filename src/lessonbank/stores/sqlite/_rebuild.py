"""Rebuilds the derived tables from the records."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Final

from lessonbank.contracts.records import Experience, Settle
from lessonbank.stores._entries import link_experiences as link_experiences
from lessonbank.stores._records import microseconds
from lessonbank.stores._texts import checked
from lessonbank.text.bm25 import words

from . import _lesson_words
from ._checks import checksum, stored
from ._derived import derive, recount, reindex_words, relist, settle_all
from ._purge import UNFINISHED
from ._read import setting
from ._rows import PARTS, among, entry_of, experience_of, journal_number
from ._vectors import drop

_BATCH: Final = 64
"""Rows read at once, between which others are written: few, because even to forget many records takes milliseconds."""


def rebuild(connection: sqlite3.Connection, /) -> None:
    """Fill lessons, attempts, settlements, the word index and all sums from the records; drop vectors of nothing."""
    for table in ("lessons", "repeats", "attempts", "tasks", "settlements", "tags"):
        connection.execute(f"DELETE FROM {table}")
    for batch in _batches(connection):
        for number, scope, experience in batch:
            _rebuild_one(connection, scope, number, experience)
    _read_journal(connection)
    relist(connection)
    reindex_words(connection)
    _lesson_words.reindex(connection)
    _drop_unsound(connection)
    recount(connection)
    settle_all(connection)


def _batches(connection: sqlite3.Connection) -> Iterator[list[tuple[int, int, Experience]]]:
    last = -1
    while True:
        rows = connection.execute(
            f"SELECT e.number, e.scope, {stored('e.record')}, {stored('j.entry')} FROM experiences e"
            " LEFT JOIN journal j ON j.number = e.entry WHERE e.number > ? ORDER BY e.number LIMIT ?",
            (last, _BATCH),
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
            bool(experience.active_lessons),
            len(words(experience.task)),
            number,
        ),
    )
    connection.execute("INSERT OR REPLACE INTO tasks (number, task) VALUES (?, ?)", (number, experience.task))
    derive(connection, scope if scope > 0 else -number, {number: experience})


def _read_journal(connection: sqlite3.Connection) -> None:
    """Say anew, beside every journal entry, which experiences it wrote; and which entry settled each receipt last."""
    for (scope,) in connection.execute("SELECT number FROM scopes").fetchall():
        entries = ((number, entry_of(checked(blob))) for number, *_, blob in journal_of(connection, scope))
        ids, settled = ids_of(connection, scope), dict[str, int]()
        for number, entry, whole, part in link_experiences(entries, ids):
            if isinstance(entry, Settle):
                settled[entry.settlement.recall_id] = number
            connection.execute(
                "UPDATE journal SET kind = ?, whole = ?, part = ? WHERE number = ?",
                (entry.kind, among(whole) if whole else None, among(part) if part else None, number),
            )
        connection.executemany(
            "INSERT INTO settlements (scope, recall, entry) VALUES (?, ?, ?)",
            ((scope, recall, number) for recall, number in settled.items()),
        )


def journal_of(
    connection: sqlite3.Connection, scope: int, /
) -> Iterator[tuple[int, str, str | None, str | None, bytes]]:
    """Number, kind, whole, part and entry of a scope's journal, oldest first."""
    last, end = journal_number(scope, 0), journal_number(scope + 1, 0)
    while True:
        rows = connection.execute(
            f"SELECT number, kind, whole, part, {stored('entry')} FROM journal WHERE number > ? AND number < ?"
            " ORDER BY number LIMIT ?",
            (last, end, _BATCH),
        ).fetchall()
        if not rows:
            return
        last = rows[-1][0]
        yield from rows


def ids_of(connection: sqlite3.Connection, scope: int, /) -> dict[str, int]:
    """Id to number of a scope's experiences, those that a rollback took out included."""
    sql = "SELECT id, number FROM experiences WHERE scope IN (?, ?)"
    return dict(connection.execute(sql, (scope, -scope)))


def unfinished(connection: sqlite3.Connection, /) -> bool:
    """Whether a purge was interrupted before its bytes were gone."""
    return setting(connection, UNFINISHED) is not None


def _drop_unsound(connection: sqlite3.Connection) -> None:
    """Take out the vectors that are damaged, or of nothing, and those of a space that is damaged."""
    for space, total, *columns in connection.execute(
        "SELECT number, sum, scope, name, dimensions FROM spaces"
    ).fetchall():
        if total != checksum(*columns):
            drop(connection, space)
    every = connection.execute("SELECT number, sum, space, key, vector FROM vectors")
    damaged = [(number,) for number, total, *columns in every if total != checksum(*columns)]
    connection.executemany("DELETE FROM vectors WHERE number = ?", damaged)
    connection.execute(f"DELETE FROM vectors WHERE number IN ({OF_NOTHING})")


OF_NOTHING: Final = (
    "SELECT v.number FROM vectors v LEFT JOIN spaces s ON s.number = v.space LEFT JOIN (SELECT e.number AS experience,"
    " coalesce(l.last, 0) AS last FROM experiences e LEFT JOIN (SELECT experience, max(place) AS last FROM lessons"
    f" GROUP BY experience) l ON l.experience = e.number) t ON t.experience = v.key / {PARTS}"
    f" WHERE v.key % {PARTS} > coalesce(t.last, -1)"
    " OR length(v.vector) IS NOT 4 + 2 * s.dimensions"
    " OR v.number NOT BETWEEN 1 AND (SELECT seq FROM sqlite_sequence WHERE name = 'vectors')"
)
"""The vectors of no experience or lesson, those that do not fit their space, and those that no catching up reads."""

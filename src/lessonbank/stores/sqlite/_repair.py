"""Making the derived tables anew from the records, and saying what is wrong with a file."""

from __future__ import annotations

import sqlite3
from typing import Final

from lessonbank.stores._lexical import words
from lessonbank.stores._records import loaded, microseconds
from lessonbank.types import Experience

from ._derived import derive, recount, reindex_words, settle_all
from ._purging import UNFINISHED
from ._schema import FILL_TOUCHED, migrations, statements

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
    "vectors without an experience": (
        "FROM vectors x LEFT JOIN spaces s ON s.number = x.space"
        " LEFT JOIN experiences e ON e.number = x.experience AND abs(e.scope) = s.scope"
    ),
    "experiences without a scope": "FROM experiences x LEFT JOIN scopes e ON e.number = abs(x.scope)",
    "trajectories without a scope": "FROM trajectories x LEFT JOIN scopes e ON e.number = x.scope",
    "recalls without a scope": "FROM recalls x LEFT JOIN scopes e ON e.number = x.scope",
    "settlements without a recall": ("FROM settlements x LEFT JOIN recalls e ON e.id = x.recall AND e.scope = x.scope"),
}

_FAULTS: Final = {
    "experiences disagree with their items": (
        "SELECT count(*) FROM experiences e WHERE json_array_length(e.record, '$.items')"
        " <> (SELECT count(*) FROM items i WHERE i.experience = e.number)"
    ),
    "experiences are missing from the word index": (
        "SELECT count(*) FROM experiences WHERE words > 0 AND number NOT IN (SELECT DISTINCT doc FROM word_places)"
    ),
    "experiences in the word index do not exist": (
        "SELECT count(*) FROM (SELECT DISTINCT doc FROM word_places) WHERE doc NOT IN (SELECT number FROM experiences)"
    ),
    "experiences are neither in their scope nor known to be taken out": (
        "SELECT count(*) FROM experiences e WHERE (scope < 0) <> EXISTS"
        " (SELECT 1 FROM removed r WHERE r.experience = e.number)"
    ),
    "scopes have a gap in their journal": (
        "SELECT count(*) FROM scopes s WHERE s.sequence <> (SELECT count(*) FROM journal j WHERE j.scope = s.number)"
        " OR s.sequence <> (SELECT coalesce(max(sequence), 0) FROM journal j WHERE j.scope = s.number)"
    ),
    "scopes have wrong word counts": (
        "SELECT count(*) FROM scopes s WHERE (s.documents, s.words) <>"
        " (SELECT count(*), coalesce(sum(words), 0) FROM experiences e WHERE e.scope = s.number)"
    ),
    "runs have the wrong pending mark": (
        "SELECT count(*) FROM trajectories t WHERE t.pending = EXISTS (SELECT 1 FROM attempts a"
        " WHERE a.scope = t.scope AND a.trajectory = t.id AND a.waiting = 0)"
    ),
}


def rebuild(connection: sqlite3.Connection, /) -> None:
    """Fill items, attempts, the word index and all sums from the records; drop vectors that belong to nothing."""
    for table in ("items", "attempts", "touched"):
        connection.execute(f"DELETE FROM {table}")
    last = -1
    while portion := _portion(connection, after=last):
        for scope, number, experience in portion:
            _rebuild_one(connection, scope, number, experience)
            last = number
    connection.execute(
        "DELETE FROM vectors WHERE NOT EXISTS (SELECT 1 FROM experiences e JOIN spaces s ON s.scope = abs(e.scope)"
        " WHERE e.number = vectors.experience AND s.number = vectors.space)"
    )
    reindex_words(connection)
    for statement in statements(migrations()[FILL_TOUCHED - 1]):
        connection.execute(statement)
    recount(connection)
    settle_all(connection)


def _portion(connection: sqlite3.Connection, *, after: int) -> list[tuple[int, int, Experience]]:
    rows = connection.execute(
        "SELECT scope, number, record FROM experiences WHERE number > ? ORDER BY number LIMIT ?", (after, _PORTION)
    )
    return [(scope, number, loaded(Experience, record)) for scope, number, record in rows.fetchall()]


def _rebuild_one(connection: sqlite3.Connection, scope: int, number: int, experience: Experience) -> None:
    connection.execute(
        "UPDATE experiences SET id = ?, task = ?, created_at = ?, active = ?, words = ? WHERE number = ?",
        (
            experience.id,
            experience.task,
            microseconds(experience.created_at),
            bool(experience.active_items),
            len(words(experience.task)),
            number,
        ),
    )
    derive(connection, scope if scope > 0 else -number, {number: experience})


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
    return found


def unfinished(connection: sqlite3.Connection, /) -> bool:
    """Whether a purge was interrupted before its bytes were gone."""
    return connection.execute("SELECT 1 FROM settings WHERE key = ?", (UNFINISHED,)).fetchone() is not None

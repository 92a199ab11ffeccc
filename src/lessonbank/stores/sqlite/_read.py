"""What can be asked of a scope without ranking; each function runs inside one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Any, Final

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Counts, Experience, JournalEntry, Recall, Settle, Settlement, Trajectory
from lessonbank.errors import NotFound, StoreDamaged
from lessonbank.stores._entries import may_name
from lessonbank.stores._listing import UNFINISHED_TAG
from lessonbank.stores._records import encodable, loaded, moment
from lessonbank.stores._texts import checked

from ._checks import checksum, stored
from ._connection import Connection
from ._rows import AMONG_IDS, OF_SCOPE, among_ids, entry_of, experience_at, find_scope, sequence_of
from ._rows import experience_of as experience_of

_SCOPES: Final = 1_000
"""Of so many scopes at most one connection remembers how many lessons they hold."""
# Sorted without the records: LIMIT keeps SQLite from sorting what is joined to it, too.
SCAN: Final = (
    f"SELECT {stored('e.record')}, {stored('j.entry')} FROM (SELECT number FROM experiences WHERE scope ="
    " (SELECT number FROM scopes WHERE name = ?) ORDER BY created_at, number LIMIT -1) o"
    " CROSS JOIN experiences e ON e.number = o.number LEFT JOIN journal j ON j.number = e.entry"
)
RECEIPTS: Final = (
    f"SELECT {stored('r.record')} FROM recalls r WHERE r.scope = (SELECT number FROM scopes WHERE name = ?1)"
    " AND (?2 IS NULL OR ?2 = EXISTS (SELECT 1 FROM settlements s WHERE s.scope = r.scope AND s.recall = r.id))"
    " ORDER BY r.created_at, r.number"
)
FAILED: Final = "t.due IS NULL AND t.error IS NOT NULL"
"""Which of the runs that nothing was learned from are given up."""
UNSETTLED: Final = (
    "t.pending = 1 AND NOT EXISTS (SELECT 1 FROM tags g WHERE g.kind = 1 AND g.tag = ?2 AND g.record = t.number)"
)
"""From which trajectories something can still be learned; the second parameter is `UNFINISHED_TAG`."""
PENDING: Final = f"{UNSETTLED} AND NOT ({FAILED})"
"""Which of them wait."""
JOURNAL: Final = (
    f"SELECT j.number, j.at, j.writer, {stored('j.entry')} FROM scopes s JOIN journal j"
    f" ON j.number > s.number * {1 << 32} + ?2 AND j.number < (s.number + 1) * {1 << 32} WHERE s.name = ?1"
    " AND (?3 IS NULL OR j.kind IN (SELECT value FROM json_each(?3))) ORDER BY j.number"
)


def learned(connection: sqlite3.Connection, scope_name: str, ids: Collection[str], /) -> set[str]:
    """Those of the ids that an experience has settled."""
    rows = connection.execute(
        f"SELECT DISTINCT trajectory FROM attempts WHERE {OF_SCOPE} AND waiting = 0 AND trajectory {AMONG_IDS}",
        (scope_name, among_ids(map(encodable, ids))),
    )
    settled = {id for (id,) in rows}
    return {id for id in ids if encodable(id) in settled}


def holding(connection: sqlite3.Connection, scope_name: str, ids: Collection[str], /) -> Experience | None:
    """The newest experience that one of the runs belongs to."""
    row = connection.execute(
        f"SELECT e.number FROM attempts a JOIN experiences e ON e.number = a.experience WHERE a.{OF_SCOPE}"
        f" AND a.trajectory {AMONG_IDS} ORDER BY e.created_at DESC, e.number DESC LIMIT 1",
        (scope_name, among_ids(map(encodable, ids))),
    ).fetchone()
    return experience_at(connection, row[0]) if row else None


def trajectory(connection: sqlite3.Connection, scope_name: str, id: str, /) -> Trajectory:
    """One kept run. Raises NotFound."""
    sql = f"SELECT {stored('record')} FROM trajectories WHERE {OF_SCOPE} AND id = ?"
    return loaded(Trajectory, checked(_found(connection, sql, scope_name, id, "trajectory")))


def experience(connection: sqlite3.Connection, scope_name: str, id: str, /) -> Experience:
    """One experience. Raises NotFound."""
    sql = f"SELECT number FROM experiences WHERE {OF_SCOPE} AND id = ?"
    return experience_at(connection, _found(connection, sql, scope_name, id, "experience"))


def owner(connection: sqlite3.Connection, scope_name: str, lesson_id: str, /) -> Experience:
    """The experience of a lesson. Raises NotFound."""
    sql = f"SELECT experience FROM lessons WHERE {OF_SCOPE} AND id = ?"
    return experience_at(connection, _found(connection, sql, scope_name, lesson_id, "lesson"))


def owners(connection: sqlite3.Connection, scope_name: str, lesson_ids: Collection[str], /) -> list[Experience]:
    """The experiences of lessons, oldest first."""
    rows = connection.execute(
        f"SELECT DISTINCT experience FROM lessons WHERE {OF_SCOPE} AND id {AMONG_IDS} ORDER BY experience",
        (scope_name, among_ids(map(encodable, lesson_ids))),
    ).fetchall()
    return [experience_at(connection, number) for (number,) in rows]


def worded(connection: sqlite3.Connection, scope_name: str, wordings: Collection[str], /) -> list[Experience]:
    """The experiences with a lesson of one of these wordings, oldest first."""
    rows = connection.execute(
        "SELECT DISTINCT experience FROM lessons INDEXED BY lessons_by_wording"
        f" WHERE {OF_SCOPE} AND wording {AMONG_IDS} ORDER BY experience",
        (scope_name, among_ids(wordings)),
    ).fetchall()
    return [experience_at(connection, number) for (number,) in rows]


def repeating(connection: sqlite3.Connection, scope_name: str, lesson_ids: Sequence[str], /) -> list[Experience]:
    """The experiences that taught one of these lessons again, oldest first."""
    found = set[int]()
    sql = (
        "SELECT e.number FROM repeats r JOIN experiences e ON e.number = r.experience"
        f" WHERE e.{OF_SCOPE} AND r.lesson {AMONG_IDS}"
    )
    for some in batches(lesson_ids):
        values = scope_name, among_ids(map(encodable, some))
        found.update(number for (number,) in connection.execute(sql, values))
    return [experience_at(connection, number) for number in sorted(found)]


def recall(connection: sqlite3.Connection, scope_name: str, id: str, /) -> Recall:
    """A receipt. Raises NotFound."""
    sql = f"SELECT {stored('record')} FROM recalls WHERE {OF_SCOPE} AND id = ?"
    return loaded(Recall, checked(_found(connection, sql, scope_name, id, "recall")))


def settlement(connection: sqlite3.Connection, scope_name: str, recall_id: str, /) -> Settlement | None:
    """The latest settlement of a recall."""
    row = connection.execute(
        f"SELECT {stored('j.entry')} FROM settlements s JOIN journal j ON j.number = s.entry"
        f" WHERE s.{OF_SCOPE} AND s.recall = ?",
        (scope_name, encodable(recall_id)),
    ).fetchone()
    held = entry_of(checked(row[0])) if row else None
    return held.settlement if isinstance(held, Settle) else None


def counts(connection: sqlite3.Connection, scope_name: str, /) -> Counts:
    """How much a scope holds."""
    scope = find_scope(connection, scope_name)
    found = connection.execute(
        "SELECT ?3, ?5,"
        " (SELECT count(*) FROM lessons WHERE scope = ?1 AND state = 'retired'),"
        " (SELECT count(*) FROM lessons WHERE scope = ?1 AND state = 'quarantined'),"
        " (SELECT count(*) FROM trajectories WHERE scope = ?1),"
        f" (SELECT count(*) FROM trajectories t WHERE scope = ?1 AND {PENDING}),"
        " (SELECT count(*) FROM recalls WHERE scope = ?1),"
        " (SELECT count(*) FROM settlements WHERE scope = ?1), ?4",
        (scope.number, UNFINISHED_TAG, scope.documents, scope.sequence, _lessons_in(connection, scope.number)),
    ).fetchone()
    return Counts(**dict(zip(Counts.model_fields, found, strict=True)))


def _lessons_in(connection: sqlite3.Connection, scope: int) -> int:
    """How many lessons a scope holds: counted again only after something was written, by whomever."""
    content = connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes
    held = connection.lessons if isinstance(connection, Connection) else None
    counted = held[1] if held and held[0] == content and len(held[1]) < _SCOPES else dict[int, int]()
    if scope not in counted:
        (counted[scope],) = connection.execute("SELECT count(*) FROM lessons WHERE scope = ?", (scope,)).fetchone()
    if isinstance(connection, Connection):
        connection.lessons = content, counted
    return counted[scope]


def scopes(connection: sqlite3.Connection, /) -> list[str]:
    """Every scope, sorted as Python sorts text."""
    return sorted(name for (name,) in connection.execute("SELECT name FROM scopes"))


def setting(connection: sqlite3.Connection, key: str, /) -> str | None:
    """A choice kept with the file. Raises StoreDamaged."""
    row = connection.execute("SELECT value, sum FROM settings WHERE key = ?", (key,)).fetchone()
    if row and row[1] != checksum(key, row[0]):
        raise StoreDamaged(f"the setting {key!r} is not what was written")
    return row[0] if row else None


def settings(connection: sqlite3.Connection, prefix: str, /) -> dict[str, str]:
    """The choices whose name begins with `prefix`."""
    where = "substr(key, 1, length(?)) = ?"
    return dict(connection.execute(f"SELECT key, value FROM settings WHERE {where} ORDER BY key", (prefix, prefix)))


def journal_entry(scope: str, row: Sequence[Any], /, *, naming: Collection[str] | None = None) -> JournalEntry | None:
    """A row of `JOURNAL` as a record; `None` where it names none of the ids asked for."""
    number, at, writer, blob = row
    text = checked(blob)
    if not may_name(text, naming):
        return None
    return JournalEntry(sequence=sequence_of(number), at=moment(at), scope=scope, writer=writer, entry=entry_of(text))


def _found(connection: sqlite3.Connection, sql: str, scope_name: str, id: str, kind: str) -> Any:
    row = connection.execute(sql, (scope_name, encodable(id))).fetchone()
    if row is None:
        raise NotFound(f"no {kind} {id!r} in this scope")
    return row[0]

"""What can be asked of a scope without ranking; each function runs inside one snapshot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from lessonbank.errors import NotFound, StoreUnavailable
from lessonbank.stores._records import encodable, loaded, moment
from lessonbank.timeline import Entry
from lessonbank.types import Counts, Experience, JournalEntry, Recall, Settlement, Trajectory

from ._rows import experience_at, find_scope, find_space, unpacked

SCAN: Final = (
    "SELECT record FROM experiences WHERE scope = (SELECT number FROM scopes WHERE name = ?)"
    " ORDER BY created_at, number"
)
RECEIPTS: Final = (
    "SELECT record FROM recalls WHERE scope = (SELECT number FROM scopes WHERE name = ?) ORDER BY created_at, number"
)
JOURNAL: Final = (
    "SELECT sequence, at, writer, entry FROM journal WHERE scope = (SELECT number FROM scopes WHERE name = ?)"
    " AND sequence > ? ORDER BY sequence"
)


def learned(connection: sqlite3.Connection, scope_name: str, ids: Collection[str], /) -> set[str]:
    """Those of the ids that an experience has settled."""
    rows = connection.execute(
        "SELECT DISTINCT trajectory FROM attempts WHERE scope = ? AND waiting = 0"
        " AND trajectory IN (SELECT value FROM json_each(?))",
        (find_scope(connection, scope_name).number, json.dumps([encodable(id) for id in ids])),
    )
    settled = {id for (id,) in rows}
    return {id for id in ids if encodable(id) in settled}


def holding(connection: sqlite3.Connection, scope_name: str, ids: Collection[str], /) -> Experience | None:
    """The newest experience that one of the runs belongs to."""
    row = connection.execute(
        "SELECT e.record FROM attempts a JOIN experiences e ON e.number = a.experience WHERE a.scope = ?"
        " AND a.trajectory IN (SELECT value FROM json_each(?)) ORDER BY e.created_at DESC, e.number DESC LIMIT 1",
        (find_scope(connection, scope_name).number, json.dumps([encodable(id) for id in ids])),
    ).fetchone()
    return loaded(Experience, row[0]) if row else None


def pending(connection: sqlite3.Connection, scope_name: str, limit: int, /) -> list[bytes]:
    """Packed trajectories that wait, oldest first; a negative limit means all."""
    rows = connection.execute(
        "SELECT record FROM trajectories WHERE scope = ? AND pending = 1 ORDER BY number LIMIT ?",
        (find_scope(connection, scope_name).number, limit),
    )
    return [record for (record,) in rows]


def trajectory(connection: sqlite3.Connection, scope_name: str, id: str, /) -> Trajectory:
    """One kept run. Raises NotFound."""
    sql = "SELECT record FROM trajectories WHERE scope = ? AND id = ?"
    return unpacked(_found(connection, sql, scope_name, id, "trajectory"))


def experience(connection: sqlite3.Connection, scope_name: str, id: str, /) -> Experience:
    """One experience. Raises NotFound."""
    sql = "SELECT record FROM experiences WHERE scope = ? AND id = ?"
    return loaded(Experience, _found(connection, sql, scope_name, id, "experience"))


def owner(connection: sqlite3.Connection, scope_name: str, item_id: str, /) -> Experience:
    """The experience of an item. Raises NotFound."""
    sql = "SELECT experience FROM items WHERE scope = ? AND id = ?"
    return experience_at(connection, _found(connection, sql, scope_name, item_id, "item"))


def recall(connection: sqlite3.Connection, scope_name: str, id: str, /) -> Recall:
    """A receipt. Raises NotFound."""
    sql = "SELECT record FROM recalls WHERE scope = ? AND id = ?"
    return loaded(Recall, _found(connection, sql, scope_name, id, "recall"))


def settlement(connection: sqlite3.Connection, scope_name: str, recall_id: str, /) -> Settlement | None:
    """The latest settlement of a recall."""
    scope = find_scope(connection, scope_name)
    row = connection.execute(
        "SELECT record FROM settlements WHERE scope = ? AND recall = ?", (scope.number, encodable(recall_id))
    ).fetchone()
    return loaded(Settlement, row[0]) if row else None


def unindexed(connection: sqlite3.Connection, scope_name: str, space_name: str, limit: int, /) -> list[tuple[str, str]]:
    """(experience id, task) without a vector in the space, oldest first."""
    scope = find_scope(connection, scope_name)
    space = find_space(connection, scope, space_name)
    return connection.execute(
        "SELECT id, task FROM experiences e WHERE scope = ? AND NOT EXISTS"
        " (SELECT 1 FROM vectors v WHERE v.space = ? AND v.experience = e.number)"
        " ORDER BY created_at, number LIMIT ?",
        (scope.number, space.number if space else 0, max(limit, 0)),
    ).fetchall()


def counts(connection: sqlite3.Connection, scope_name: str, /) -> Counts:
    """How much a scope holds."""
    scope = find_scope(connection, scope_name)
    found = connection.execute(
        "SELECT (SELECT count(*) FROM experiences WHERE scope = ?1),"
        " (SELECT count(*) FROM items WHERE scope = ?1),"
        " (SELECT count(*) FROM items WHERE scope = ?1 AND retired = 1),"
        " (SELECT count(*) FROM trajectories WHERE scope = ?1),"
        " (SELECT count(*) FROM trajectories WHERE scope = ?1 AND pending = 1),"
        " (SELECT count(*) FROM recalls WHERE scope = ?1),"
        " (SELECT count(*) FROM settlements WHERE scope = ?1)",
        (scope.number,),
    ).fetchone()
    return Counts(**dict(zip(Counts.model_fields, found, strict=True)))


def scopes(connection: sqlite3.Connection, /) -> list[str]:
    """Every scope, sorted as Python sorts text."""
    return sorted(name for (name,) in connection.execute("SELECT name FROM scopes"))


def setting(connection: sqlite3.Connection, key: str, /) -> str | None:
    """A choice kept with the file."""
    row = connection.execute("SELECT value FROM settings WHERE key = ?", (key,)).fetchone()
    return row[0] if row else None


def journal_entry(scope: str, row: Sequence[Any], /) -> JournalEntry:
    """A row of `JOURNAL` as a record."""
    sequence, at, writer, text = row
    return JournalEntry(sequence=sequence, at=moment(at), scope=scope, writer=writer, entry=entry_of(text))


_Entry: Final[TypeAdapter[Entry]] = TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


def entry_of(text: str, /) -> Entry:
    """What happened, from the text of its journal entry.

    Raises:
        StoreUnavailable: the text is no entry; the file was damaged or edited.
    """
    try:
        return _Entry.validate_json(text)
    except ValidationError:
        pass
    try:
        # Deeper nesting than pydantic's own JSON reader takes.
        return _Entry.validate_python(json.loads(text))
    except (ValueError, RecursionError):
        raise StoreUnavailable("a journal entry cannot be read: the file is damaged; restore a backup") from None


def _found(connection: sqlite3.Connection, sql: str, scope_name: str, id: str, kind: str) -> Any:
    row = connection.execute(sql, (find_scope(connection, scope_name).number, encodable(id))).fetchone()
    if row is None:
        raise NotFound(f"no {kind} {id!r} in this scope")
    return row[0]

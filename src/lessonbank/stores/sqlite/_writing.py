"""What a write does to the tables; each function runs inside one transaction and is all or nothing with it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lessonbank._ids import now
from lessonbank.errors import NotFound
from lessonbank.stores._changes import planned
from lessonbank.stores._lexical import words
from lessonbank.stores._records import loaded, microseconds, moment
from lessonbank.stores._vectors import placeable, to_blob
from lessonbank.timeline import Entry
from lessonbank.types import Erased, Experience, JournalEntry, Purge, Recall, Settle, Settlement

from ._derived import derive, index_words, settle_pending, unindex_words
from ._rows import NOWHERE, ScopeRow, find_scope, find_space, make_scope, numbers_of

if TYPE_CHECKING:
    from lessonbank.protocols import Vectors


@dataclass(frozen=True, slots=True)
class Batch:
    """The arguments of one `apply`, ready to be written: lone surrogates gone, JSON made."""

    scope: str
    writer: str
    entries: Sequence[tuple[Entry, str]]
    """What happens, in order, each with its JSON."""
    vectors: Mapping[str, Vectors]
    space: str | None


class Present:
    """A scope's state as this transaction sees it; the `View` that changes are planned on."""

    def __init__(self, connection: sqlite3.Connection, scope: ScopeRow, /) -> None:
        self._connection = connection
        self._scope = scope

    def knows(self, id: str, /) -> bool:
        """See `View.knows`."""
        return self._one("SELECT 1 FROM experiences WHERE scope = ? AND id = ?", id) is not None

    def experience(self, id: str, /) -> Experience | None:
        """See `View.experience`."""
        record = self._one("SELECT record FROM experiences WHERE scope = ? AND id = ?", id)
        return None if record is None else loaded(Experience, record)

    def owner(self, item_id: str, /) -> str | None:
        """See `View.owner`."""
        return self._one(
            "SELECT e.id FROM items i JOIN experiences e ON e.number = i.experience WHERE i.scope = ? AND i.id = ?",
            item_id,
        )

    def _one(self, sql: str, id: str) -> Any:
        row = self._connection.execute(sql, (self._scope.number, id)).fetchone()
        return row[0] if row else None


def keep(connection: sqlite3.Connection, scope_name: str, rows: Sequence[tuple[str, bytes]], /) -> list[str]:
    """Insert packed trajectories by id; the ids that were new."""
    scope = make_scope(connection, scope_name)
    at = microseconds(now())
    new = [id for id, blob in rows if _insert_trajectory(connection, scope, id, blob, at)]
    settle_pending(connection, scope.number, new)
    return new


def _insert_trajectory(connection: sqlite3.Connection, scope: ScopeRow, id: str, blob: bytes, at: int) -> bool:
    done = connection.execute(
        "INSERT OR IGNORE INTO trajectories (scope, kept_at, pending, id, record) VALUES (?, ?, 1, ?, ?)",
        (scope.number, at, id, blob),
    )
    return done.rowcount == 1


def apply(connection: sqlite3.Connection, batch: Batch, /) -> list[JournalEntry]:
    """Make the changes, place the vectors, settle the recall, write the journal.

    Raises:
        NotFound, Conflict, SpaceMismatch, UsageError: see `Store.apply`.
    """
    scope = make_scope(connection, batch.scope)
    changes = [entry for entry, _ in batch.entries if not isinstance(entry, Settle | Purge | Erased)]
    draft = planned(changes, Present(connection, scope), scope=batch.scope)
    space = find_space(connection, scope, batch.space or "")
    rows = placeable(
        batch.vectors, space=batch.space, dimensions=space.dimensions if space else None, known=draft.knows
    )
    if draft.written:
        write(connection, scope, draft.written, added=draft.added)
    if rows:
        _place(connection, scope, rows, batch.space or "")
    for entry, _ in batch.entries:
        if isinstance(entry, Settle):
            _settle(connection, scope, entry.settlement)
    numbers = numbers_of(connection, scope, draft.written)
    return journal(connection, scope, batch, touched=[{numbers[i]: w for i, w in t.items()} for t in draft.touched])


def index(connection: sqlite3.Connection, scope_name: str, vectors: Mapping[str, Vectors], space_name: str, /) -> None:
    """Set vectors of existing experiences."""
    scope = find_scope(connection, scope_name)
    space = find_space(connection, scope, space_name)
    rows = placeable(
        vectors,
        space=space_name,
        dimensions=space.dimensions if space else None,
        known=Present(connection, scope).knows,
    )
    if rows:
        _place(connection, scope, rows, space_name)


def drop_index(connection: sqlite3.Connection, scope_name: str, space_name: str, /) -> None:
    """Forget the vectors of a space, and how many numbers they had."""
    space = find_space(connection, find_scope(connection, scope_name), space_name)
    if space is not None:
        connection.execute("DELETE FROM vectors WHERE space = ?", (space.number,))
        connection.execute("UPDATE spaces SET dimensions = NULL, epoch = epoch + 1 WHERE number = ?", (space.number,))


def record(connection: sqlite3.Connection, recall: Recall, text: str, /) -> None:
    """Keep a receipt; a known one stays as it is."""
    scope = find_scope(connection, recall.scope)
    if scope is NOWHERE:
        scope = make_scope(connection, recall.scope)
    connection.execute(
        "INSERT OR IGNORE INTO recalls (scope, created_at, id, record) VALUES (?, ?, ?, ?)",
        (scope.number, microseconds(recall.created_at), recall.id, text),
    )


def set_setting(connection: sqlite3.Connection, key: str, value: str, /) -> None:
    """Keep a choice with the file."""
    connection.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?, ?)", (key, value))


def _settle(connection: sqlite3.Connection, scope: ScopeRow, settlement: Settlement) -> None:
    known = connection.execute(
        "SELECT 1 FROM recalls WHERE scope = ? AND id = ?", (scope.number, settlement.recall_id)
    ).fetchone()
    if known is None:
        raise NotFound(f"no recall {settlement.recall_id!r} in this scope")
    connection.execute(
        "INSERT OR REPLACE INTO settlements (scope, recall, record) VALUES (?, ?, ?)",
        (scope.number, settlement.recall_id, settlement.model_dump_json()),
    )


def journal(
    connection: sqlite3.Connection, scope: ScopeRow, batch: Batch, /, *, touched: Sequence[Mapping[int, bool]]
) -> list[JournalEntry]:
    """Append the entries of a batch; `touched` has for each change the numbers of the experiences it wrote.

    The number maps to whether the change holds the whole record.
    """
    # Through microseconds and back, so that the entry returned equals the entry read later.
    at = microseconds(now())
    first = scope.sequence + 1
    connection.executemany(
        "INSERT INTO journal (scope, sequence, at, writer, entry) VALUES (?, ?, ?, ?, ?)",
        [(scope.number, s, at, batch.writer, text) for s, (_, text) in enumerate(batch.entries, first)],
    )
    connection.executemany(
        "INSERT INTO touched (scope, sequence, experience, whole) VALUES (?, ?, ?, ?)",
        [(scope.number, s, number, whole) for s, t in enumerate(touched, first) for number, whole in t.items()],
    )
    connection.execute("UPDATE scopes SET sequence = sequence + ? WHERE number = ?", (len(batch.entries), scope.number))
    return [
        JournalEntry(sequence=s, at=moment(at), scope=batch.scope, writer=batch.writer, entry=entry)
        for s, (entry, _) in enumerate(batch.entries, first)
    ]


def write(
    connection: sqlite3.Connection, scope: ScopeRow, written: Mapping[str, Experience], /, *, added: Collection[str]
) -> None:
    """Put experiences by id in the place of what has their ids, with all that follows from them."""
    back = _readmit(connection, scope, added)
    old = _old_rows(connection, scope, [id for id in written if id not in added or id in back])
    trajectories = _clear(connection, scope, old, written)
    (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM experiences").fetchone()
    numbers = {id: row.number for id, row in old.items()}
    numbers.update((id, last + place) for place, id in enumerate((id for id in written if id not in old), 1))
    fresh = {
        numbers[id]: experience
        for id, experience in written.items()
        if id not in old or old[id].task != experience.task
    }
    for id, experience in written.items():
        _put_row(connection, scope, numbers[id], experience, new=id not in old)
    derive(connection, scope.number, {numbers[id]: experience for id, experience in written.items()})
    index_words(connection, scope.number, fresh)
    _count(connection, scope, written, added=added, before=sum(r.words for id, r in old.items() if id not in added))
    trajectories.update(attempt.trajectory_id for e in written.values() for attempt in e.attempts)
    settle_pending(connection, scope.number, trajectories)


def _readmit(connection: sqlite3.Connection, scope: ScopeRow, ids: Collection[str]) -> set[str]:
    """Give back their rows to those of the ids that a rollback took out, to be written over."""
    rows: list[tuple[str, int]] = connection.execute(
        "SELECT id, number FROM experiences WHERE scope = ? AND id IN (SELECT value FROM json_each(?))",
        (-scope.number, json.dumps(list(ids))),
    ).fetchall()
    for _, number in rows:
        connection.execute("UPDATE experiences SET scope = ? WHERE number = ?", (scope.number, number))
        connection.execute("DELETE FROM removed WHERE experience = ?", (number,))
    return {id for id, _ in rows}


@dataclass(frozen=True, slots=True)
class _OldRow:
    number: int
    words: int
    task: str


def _old_rows(connection: sqlite3.Connection, scope: ScopeRow, ids: Sequence[str]) -> dict[str, _OldRow]:
    sql = "SELECT number, words, task FROM experiences WHERE scope = ? AND id = ?"
    return {id: _OldRow(*connection.execute(sql, (scope.number, id)).fetchone()) for id in ids}


def _clear(
    connection: sqlite3.Connection, scope: ScopeRow, old: Mapping[str, _OldRow], written: Mapping[str, Experience]
) -> set[str]:
    """Take away what earlier versions left in other tables. Returns the trajectories they spoke of."""
    touched: set[str] = set()
    for id, row in old.items():
        attempts = connection.execute("SELECT trajectory FROM attempts WHERE experience = ?", (row.number,))
        touched.update(trajectory for (trajectory,) in attempts)
        connection.execute("DELETE FROM attempts WHERE experience = ?", (row.number,))
        connection.execute("DELETE FROM items WHERE experience = ?", (row.number,))
        if row.task != written[id].task:
            unindex_words(connection, scope.number, row.number, row.task)
            connection.execute("DELETE FROM vectors WHERE experience = ?", (row.number,))
    return touched


def _put_row(
    connection: sqlite3.Connection, scope: ScopeRow, number: int, experience: Experience, *, new: bool
) -> None:
    values = (
        microseconds(experience.created_at),
        bool(experience.active_items),
        len(words(experience.task)),
        scope.revision + 1,
        experience.task,
        experience.model_dump_json(),
        number,
    )
    if not new:
        connection.execute(_UPDATE, values)
        return
    connection.execute(_INSERT, (*values, scope.number, experience.id))


def _count(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    written: Mapping[str, Experience],
    *,
    added: Collection[str],
    before: int,
) -> None:
    after = sum(len(words(experience.task)) for experience in written.values())
    connection.execute(
        "UPDATE scopes SET revision = ?, documents = documents + ?, words = words + ? WHERE number = ?",
        (scope.revision + 1, len(added), after - before, scope.number),
    )


_UPDATE = (
    "UPDATE experiences SET created_at = ?, active = ?, words = ?, revision = ?, task = ?, record = ? WHERE number = ?"
)
_INSERT = (
    "INSERT INTO experiences (created_at, active, words, revision, task, record, number, scope, id)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _place(connection: sqlite3.Connection, scope: ScopeRow, rows: Mapping[str, Vectors], space_name: str) -> None:
    dimensions = int(next(iter(rows.values())).size)
    connection.execute("INSERT OR IGNORE INTO spaces (scope, name) VALUES (?, ?)", (scope.number, space_name))
    connection.execute(
        "UPDATE spaces SET dimensions = ? WHERE scope = ? AND name = ?", (dimensions, scope.number, space_name)
    )
    space = find_space(connection, scope, space_name)
    numbers = numbers_of(connection, scope, rows)
    revision = scope.revision + 1
    connection.executemany(
        "INSERT OR REPLACE INTO vectors (space, experience, vector) VALUES (?, ?, ?)",
        [(space.number if space else 0, numbers[id], to_blob(row)) for id, row in rows.items()],
    )
    connection.executemany(
        "UPDATE experiences SET revision = ? WHERE number = ? AND revision <> ?",
        [(revision, number, revision) for number in numbers.values()],
    )
    connection.execute("UPDATE scopes SET revision = ? WHERE number = ?", (revision, scope.number))

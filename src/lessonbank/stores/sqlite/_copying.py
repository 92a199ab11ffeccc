"""The rows of a scope as another store takes them, and those of another store as a file keeps them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Rollback
from lessonbank.contracts.records.timeline import live
from lessonbank.stores._texts import checked, kept_again

from ._arrays import row_type
from ._checks import checksum, stored
from ._rebuild import journal_of, rebuild
from ._rollback import change_over
from ._rows import PARTS, entry_of, experience_at, find_scope, journal_number, make_scope, sequence_of
from ._vectors import place

if TYPE_CHECKING:
    from lessonbank.stores._copying import Row, Table

_READ: Final[dict[Table, str]] = {
    "runs": (
        "SELECT t.number, t.id, t.kept_at, t.due, t.worker, t.tries, t.error, l.id,"
        f" {stored('t.record')} FROM trajectories t"
        " LEFT JOIN trajectories l ON l.number = t.leader AND l.scope = t.scope WHERE t.scope = ?1 AND t.number > ?2"
        " ORDER BY t.number LIMIT ?3"
    ),
    "recalls": (
        f"SELECT number, id, created_at, {stored('record')} FROM recalls WHERE scope = ?1 AND number > ?2"
        " ORDER BY number LIMIT ?3"
    ),
    "order": ("SELECT number, id FROM experiences WHERE scope IN (?1, -?1) AND number > ?2 ORDER BY number LIMIT ?3"),
}


def read_rows(connection: sqlite3.Connection, name: str, table: Table, after: int, limit: int, /) -> Sequence[Row]:
    """See `Copyable.read_rows`."""
    scope = find_scope(connection, name).number
    if table == "journal":
        entries = connection.execute(
            f"SELECT number, at, kind, writer, {stored('entry')} FROM journal WHERE number > ? AND number < ?"
            " ORDER BY number LIMIT ?",
            (journal_number(scope, max(after, 0)), journal_number(scope + 1, 0), limit),
        )
        return [(sequence_of(number), *columns) for number, *columns in entries]
    if table == "vectors":
        return list(islice(_vectors(connection, scope, after), limit))
    return connection.execute(_READ[table], (scope, after, limit)).fetchall()


def _vectors(connection: sqlite3.Connection, scope: int, after: int) -> Iterator[Row]:
    """The vectors of a scope that are sound, of all spaces, in the order in which they were placed."""
    sql = (
        "SELECT v.number, v.sum, v.space, v.key, v.vector, s.name, s.dimensions FROM vectors v"
        " JOIN spaces s ON s.number = v.space WHERE s.scope = ? AND v.number > ? ORDER BY v.number"
    )
    for number, total, space, key, blob, name, dimensions in connection.execute(sql, (scope, after)):
        if total == checksum(space, key, blob) and (id := _id(connection, scope, key)) is not None:
            row = np.frombuffer(blob, row_type(dimensions))[0]
            yield number, name, id, (row["row"] * row["factor"]).astype("<f4").tobytes()


def _id(connection: sqlite3.Connection, scope: int, key: int) -> str | None:
    sql = "SELECT id FROM experiences WHERE number = ? AND scope = ?"
    row = connection.execute(sql, (key // PARTS, scope)).fetchone()
    if row is None or key % PARTS == 0:
        return row[0] if row else None
    lessons = experience_at(connection, key // PARTS).lessons
    return lessons[key % PARTS - 1].id if key % PARTS <= len(lessons) else None


def write_rows(connection: sqlite3.Connection, name: str, table: Table, given: Sequence[Row], /) -> None:
    """See `Copyable.write_rows`."""
    scope = make_scope(connection, name)
    if table == "vectors":
        for space in dict.fromkeys(space for _, space, *_ in given):
            units = {id: np.frombuffer(data, dtype="<f4") for _, of, id, data in given if of == space}
            place(connection, scope, units, space)
        return
    for row in given:
        sql, values = _written(scope.number, table, row)
        connection.execute(sql, values)


def _written(scope: int, table: Table, row: Row) -> tuple[str, tuple[object, ...]]:
    if table == "journal":
        sequence, at, kind, writer, entry = row
        number = journal_number(scope, sequence)
        columns = "number, at, kind, writer, entry, entry_sum, sum"
        sql = f"INSERT OR IGNORE INTO journal ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)"
        return sql, (number, at, kind, writer, *kept_again(entry), checksum(number, at, writer))
    if table == "runs":
        _, id, at, due, worker, tries, error, leader, record = row
        sql = (
            "INSERT OR IGNORE INTO trajectories (scope, id, kept_at, due, worker, tries, error, leader, record,"
            " record_sum, sum, pending) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
            " (SELECT number FROM trajectories WHERE scope = ?1 AND id = ?8), ?9, ?10, ?11, 1)"
        )
        return sql, (scope, id, at, due, worker, tries, error, leader, *kept_again(record), checksum(scope, at, id))
    if table == "recalls":
        _, id, at, record = row
        sql = "INSERT OR IGNORE INTO recalls (scope, id, created_at, record, record_sum) VALUES (?, ?, ?, ?, ?)"
        return sql, (scope, id, at, *kept_again(record))
    # Taken out for now, and written by no entry: the right record is written over it.
    sql = (
        "INSERT OR IGNORE INTO experiences (scope, created_at, active, words, entry, id, sum)"
        " VALUES (-?1, 0, 0, 0, 0, ?2, 0)"
    )
    return sql, (scope, row[1])


def finish_copy(connection: sqlite3.Connection, name: str, /) -> None:
    """See `Copyable.finish_copy`. A record that the journal no longer holds has no experience."""
    scope = make_scope(connection, name)
    held, jumps, last = dict[str, int](), dict[int, int](), 0
    for number, *_, blob in journal_of(connection, scope.number):
        entry, last = entry_of(checked(blob)), sequence_of(number)
        if (brought := entry.brings) is not None:
            held[brought.id] = number
        elif isinstance(entry, Rollback):
            jumps[last] = entry.to
    sql = "SELECT number, id FROM experiences WHERE scope = ?"
    for some in batches(connection.execute(sql, (-scope.number,)).fetchall()):
        for number, id in some:
            if id in held:
                values = held[id], checksum(number, held[id]), number
                connection.execute("UPDATE experiences SET entry = ?, sum = ? WHERE number = ?", values)
            else:
                connection.execute("DELETE FROM experiences WHERE number = ?", (number,))
    connection.execute("UPDATE scopes SET sequence = ? WHERE number = ?", (last, scope.number))
    rebuild(connection)
    change_over(connection, find_scope(connection, name), name, live(jumps, last))

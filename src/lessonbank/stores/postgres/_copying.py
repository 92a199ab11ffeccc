"""The rows of a scope as another store takes them, and those of another store as this one keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lessonbank.contracts.records import Rollback
from lessonbank.contracts.records.timeline import live
from lessonbank.stores._entries import entry_of
from lessonbank.stores._records import json_of
from lessonbank.stores._texts import TextWithSum, checked, kept_again, with_sum

from ._database import Connection, do, many, rows, stored
from ._rebuild import rebuild
from ._rollback import change_over
from ._rows import find_scope, make_scope, reserve_numbers
from ._vectors import place

if TYPE_CHECKING:
    from lessonbank.stores._copying import Row, Table

_READ: Final[dict[Table, str]] = {
    "journal": (
        f"SELECT sequence, at, kind, writer, {stored('entry')} FROM lessonbank.journal WHERE scope = %s"
        " AND sequence > %s ORDER BY sequence LIMIT %s"
    ),
    "runs": (
        f"SELECT t.number, t.id, t.kept_at, t.due, t.worker, t.tries, t.error, l.id, {stored('t.record')}"
        " FROM lessonbank.trajectories t LEFT JOIN lessonbank.trajectories l ON l.scope = t.scope"
        " AND l.number = t.leader WHERE t.scope = %s AND t.number > %s ORDER BY t.number LIMIT %s"
    ),
    "recalls": (
        f"SELECT number, id, created_at, {stored('record')} FROM lessonbank.recalls WHERE scope = %s AND number > %s"
        " ORDER BY number LIMIT %s"
    ),
    "order": (
        "SELECT number, id FROM lessonbank.experiences WHERE scope = %s AND number > %s ORDER BY number LIMIT %s"
    ),
    "vectors": (
        "SELECT * FROM (SELECT row_number() OVER (ORDER BY v.space, v.experience, v.place) AS number, v.space,"
        " coalesce(l.id, e.id) AS id, vector_send(v.unit) FROM lessonbank.vectors v JOIN lessonbank.experiences e"
        " ON e.scope = v.scope AND e.number = v.experience AND NOT e.gone LEFT JOIN lessonbank.lessons l"
        " ON l.scope = v.scope AND l.experience = v.experience AND l.place = v.place WHERE v.scope = %s"
        " AND (v.place = 0 OR l.id IS NOT NULL)) every WHERE number > %s ORDER BY number LIMIT %s"
    ),
}


def read_rows(connection: Connection, scope: str, table: Table, after: int, limit: int, /) -> Sequence[Row]:
    """See `Copyable.read_rows`."""
    page = rows(connection, _READ[table], scope, after, limit)
    return [(n, space, id, _floats(sent)) for n, space, id, sent in page] if table == "vectors" else page


def _floats(sent: bytes) -> bytes:
    """pgvector sends how many numbers there are, and then these with the greatest byte first."""
    return np.frombuffer(sent, dtype=">f4", offset=4).astype("<f4").tobytes()


def write_rows(connection: Connection, scope: str, table: Table, given: Sequence[Row], /) -> None:
    """See `Copyable.write_rows`."""
    here = make_scope(connection, scope)
    if table == "vectors":
        for space in dict.fromkeys(space for _, space, *_ in given):
            units = {id: np.frombuffer(data, dtype="<f4") for _, of, id, data in given if of == space}
            place(connection, scope, units, space, numbers={})
    elif table == "order":
        numbers = reserve_numbers(connection, here, len(given))
        many(connection, _WRITE[table], ((scope, n, id) for n, (_, id) in zip(numbers, given, strict=True)))
    else:
        many(connection, _WRITE[table], (_values(scope, table, row) for row in given))


_WRITE: Final[dict[Table, str]] = {
    "journal": (
        "INSERT INTO lessonbank.journal (scope, sequence, at, kind, writer, entry_json, entry_sum)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
    ),
    "runs": (
        "INSERT INTO lessonbank.trajectories (scope, id, kept_at, due, worker, tries, error, leader, record_json,"
        " record_sum, pending, tags) VALUES (%s, %s, %s, %s, %s, %s, %s,"
        " (SELECT number FROM lessonbank.trajectories WHERE scope = %s AND id = %s), %s, %s, true, '{}')"
        " ON CONFLICT DO NOTHING"
    ),
    "recalls": (
        "INSERT INTO lessonbank.recalls (scope, id, created_at, record_json, record_sum, tags)"
        " VALUES (%s, %s, %s, %s, %s, '{}') ON CONFLICT DO NOTHING"
    ),
    # The record is that of any entry for now: entry 0 is none, so that the right one is written over it.
    "order": (
        "INSERT INTO lessonbank.experiences (scope, number, id, created_at, shown, gone, words, entry, tags,"
        " record_json, record_sum) VALUES (%s, %s, %s, 0, false, true, 0, 0, '{}', '', 0) ON CONFLICT DO NOTHING"
    ),
}


def _values(scope: str, table: Table, row: Row) -> tuple[Any, ...]:
    if table == "runs":
        *columns, leader, record = row[1:]
        return (scope, *columns, scope, leader, *kept_again(record))
    *columns, record = row if table == "journal" else row[1:]
    return (scope, *columns, *kept_again(record))


def finish_copy(connection: Connection, scope: str, /) -> None:
    """See `Copyable.finish_copy`. A record that the journal no longer holds has no experience."""
    held, jumps, last = dict[str, TextWithSum](), dict[int, int](), 0
    sql = f"SELECT sequence, {stored('entry')} FROM lessonbank.journal WHERE scope = %s ORDER BY sequence"
    for sequence, blob in rows(connection, sql, scope):
        entry, last = entry_of(checked(blob)), sequence
        if (brought := entry.brings) is not None:
            held[brought.id] = with_sum(json_of(brought))
        elif isinstance(entry, Rollback):
            jumps[sequence] = entry.to
    sql = "UPDATE lessonbank.experiences SET record_json = %s, record_sum = %s WHERE scope = %s AND id = %s"
    many(connection, sql, ((*record, scope, id) for id, record in held.items()))
    do(connection, "DELETE FROM lessonbank.experiences WHERE scope = %s AND record_json = ''", scope)
    do(connection, "UPDATE lessonbank.scopes SET sequence = %s WHERE scope = %s", last, scope)
    rebuild(connection, scope)
    change_over(connection, find_scope(connection, scope), live(jumps, last))

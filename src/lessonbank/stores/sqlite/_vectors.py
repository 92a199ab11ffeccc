"""Vectors of a file: a row for each, by the key of its text."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from lessonbank.errors import NotFound
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import unit

from ._checks import checksum
from ._rows import AMONG_IDS, PARTS, ScopeRow, among_ids, find_space

if TYPE_CHECKING:
    from ._arrays import Array


def place(connection: sqlite3.Connection, scope: ScopeRow, vectors: Mapping[str, Array], name: str, /) -> None:
    """Set the vectors of experiences or lessons, by id.

    Raises:
        NotFound: an id is not of this scope.
        UsageError, SpaceMismatch: see `unit`.
    """
    from ._arrays import to_blobs  # noqa: PLC0415 - loads numpy

    rows, dimensions = dict[str, "Array"](), find_space(connection, scope, name).dimensions
    for id, vector in vectors.items():
        row = unit(vector, what=f"the experience {id!r}", space=name, dimensions=dimensions)
        rows[encodable(id)], dimensions = row, row.size
    keys = _keys_of(connection, scope, rows)
    sql = (
        "INSERT INTO spaces (scope, name, dimensions, sum) VALUES (?, ?, ?, ?) ON CONFLICT (scope, name)"
        " DO UPDATE SET dimensions = excluded.dimensions, sum = excluded.sum RETURNING number"
    )
    values = scope.number, name, dimensions, checksum(scope.number, name, dimensions)
    ((space,),) = connection.execute(sql, values).fetchall()
    forget(connection, scope.number, keys, space=space)
    blobs = zip(keys, to_blobs(rows.values()), strict=True)
    sql = "INSERT INTO vectors (space, key, vector, sum) VALUES (?, ?, ?, ?)"
    connection.executemany(sql, ((space, key, blob, checksum(space, key, blob)) for key, blob in blobs))


def _keys_of(connection: sqlite3.Connection, scope: ScopeRow, ids: Collection[str]) -> list[int]:
    sql = (
        f"SELECT id, experience * {PARTS} + place FROM lessons WHERE scope = ?1 AND place < {PARTS} AND id {AMONG_IDS}"
        f" UNION ALL SELECT id, number * {PARTS} FROM experiences WHERE scope = ?1 AND id {AMONG_IDS}"
    )
    keys = dict(connection.execute(sql, (scope.number, among_ids(ids), among_ids(ids))).fetchall())
    if unknown := [id for id in ids if id not in keys]:
        raise NotFound(f"no experience or lesson {unknown[0]!r} in this scope to keep a vector of")
    return [keys[id] for id in ids]


def forget(
    connection: sqlite3.Connection, scope: int, keys: Collection[int], /, *, parts: int = 1, space: int | None = None
) -> None:
    """Take out the vectors of these keys, or of so many `parts` from each on. Readers of the space begin again."""
    sql = "SELECT number FROM spaces WHERE scope = ? AND number = coalesce(?, number)"
    for (number,) in connection.execute(sql, (scope, space)).fetchall() if keys else ():
        ends = ((number, key, key + parts - 1) for key in keys)
        if connection.executemany("DELETE FROM vectors WHERE space = ? AND key BETWEEN ? AND ?", ends).rowcount > 0:
            connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE number = ?", (number,))


def drop(connection: sqlite3.Connection, space: int, /) -> None:
    """Forget the vectors of a space, and how many numbers they had."""
    connection.execute("DELETE FROM vectors WHERE space = ?", (space,))
    scope, name = connection.execute("SELECT scope, name FROM spaces WHERE number = ?", (space,)).fetchone()
    sql = "UPDATE spaces SET dimensions = NULL, epoch = epoch + 1, sum = ? WHERE number = ?"
    connection.execute(sql, (checksum(scope, name, None), space))

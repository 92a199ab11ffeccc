"""Where vectors lie in the file: new ones row by row, older ones joined to blocks that are quick to read."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lessonbank.errors import NotFound, UsageError
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import check_dimensions, unit

from ._checks import checksum
from ._rows import AMONG, AMONG_IDS, PARTS, ScopeRow, SpaceRow, among, among_ids, find_space, numbers_of

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors

FRESH: Final = 256
"""Vectors that lie in rows of their own before they are joined."""
_BLOCK: Final = 1024
"""Vectors in a block at most."""


@lru_cache(maxsize=16)
def row_type(dimensions: int, /) -> np.dtype[Any]:
    """A row as bytes: what its numbers are multiplied with to have length 1, then the numbers, the largest 32767."""
    return np.dtype([("factor", "<f4"), ("row", "<i2", (dimensions,))])


def to_blobs(rows: Iterable[Vectors], /) -> list[bytes]:
    """Unit rows in two bytes a number. A cosine is off by about 2e-6 in 384 dimensions, by 1e-5 in eight."""
    floats = np.stack(list(rows))
    whole = np.rint(floats / np.abs(floats).max(axis=1)[:, None] * 32767)
    made = np.empty(len(floats), row_type(floats.shape[1]))
    made["row"], made["factor"] = whole, 1.0 / np.sqrt(np.vecdot(whole, whole))
    return [row.tobytes() for row in made]


def place(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    vectors: Mapping[str, Vectors],
    name: str | None,
    /,
    *,
    numbers: Mapping[str, int],
) -> None:
    """Set the vectors of experiences or lessons, by id; `numbers` has the rows of some experiences.

    Raises:
        NotFound: an id is not of this scope.
        UsageError: no space is named, or a vector is not one row of finite numbers, or zero.
        SpaceMismatch: a vector has another dimension than the space.
    """
    if not name:
        raise UsageError("these vectors come without the name of their space: pass space=")
    space = find_space(connection, scope, name)
    dimensions, rows = space.dimensions if space else None, list["Vectors"]()
    for id, vector in vectors.items():
        rows.append(unit(vector, what=f"the experience {id!r}"))
        dimensions = check_dimensions(rows[-1], space=name, dimensions=dimensions)
    keys = _keys_of(connection, scope, [encodable(id) for id in vectors], numbers)
    if space is None or space.dimensions is None:
        space = _make_space(connection, scope, name, dimensions)
    revision = space.revision + len(keys)
    connection.execute("UPDATE spaces SET revision = ? WHERE number = ?", (revision, space.number))
    connection.executemany(
        "INSERT OR REPLACE INTO fresh (space, key, revision, vector, sum) VALUES (?, ?, ?, ?, ?)",
        [
            (space.number, key, revision, vector, checksum(space.number, key, vector))
            for key, vector in zip(keys, to_blobs(rows), strict=True)
        ],
    )
    if revision // FRESH > space.revision // FRESH:
        rows_of = "SELECT key, vector FROM fresh WHERE space = ? ORDER BY key"
        _join(connection, space.number, connection.execute(rows_of, (space.number,)).fetchall())


def _make_space(connection: sqlite3.Connection, scope: ScopeRow, name: str, dimensions: int | None) -> SpaceRow:
    connection.execute(
        "INSERT INTO spaces (scope, name, dimensions, sum) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (scope, name) DO UPDATE SET dimensions = ?3, sum = ?4",
        (scope.number, name, dimensions, checksum(scope.number, name, dimensions)),
    )
    made = find_space(connection, scope, name)
    assert made is not None
    return made


def _keys_of(
    connection: sqlite3.Connection, scope: ScopeRow, ids: Sequence[str], numbers: Mapping[str, int]
) -> list[int]:
    """The key of each id: its experience's number times `PARTS`, plus 0 for the task or 1, 2, 3, … for a lesson."""
    keys = {id: numbers[id] * PARTS for id in ids if id in numbers}
    if others := [id for id in ids if id not in keys]:
        keys.update((id, number * PARTS) for id, number in numbers_of(connection, scope, others).items())
    if others := [id for id in others if id not in keys]:
        sql = f"SELECT id, experience, place FROM lessons WHERE scope = ? AND id {AMONG_IDS}"
        for id, experience, at in connection.execute(sql, (scope.number, among_ids(others))):
            if at >= PARTS:
                raise UsageError(f"the lesson {id!r} is number {at} of its experience: vectors are kept of {PARTS - 1}")
            keys[id] = experience * PARTS + at
    unknown = next((id for id in others if id not in keys), None)
    if unknown is not None:
        raise NotFound(f"no experience or lesson {unknown!r} in this scope to keep a vector of")
    return [keys[id] for id in ids]


def _join(connection: sqlite3.Connection, space: int, rows: Sequence[tuple[int, bytes]]) -> None:
    """Make blocks of these rows, in place of the fresh ones."""
    connection.execute("DELETE FROM fresh WHERE space = ?", (space,))
    for at in range(0, len(rows), _BLOCK):
        connection.execute(
            "INSERT INTO blocks (space, keys, vectors, sum) VALUES (?, ?, ?, ?)",
            (space, *_block(space, rows[at : at + _BLOCK])),
        )


def joined(rows: Sequence[tuple[int, bytes]], /) -> tuple[bytes, bytes]:
    """Keys and vectors of several rows as a block has them."""
    keys, vectors = zip(*rows, strict=True)
    return np.array(keys, "<i8").tobytes(), b"".join(vectors)


def _block(space: int, rows: Sequence[tuple[int, bytes]]) -> tuple[bytes, bytes, int]:
    keys, vectors = joined(rows)
    return keys, vectors, checksum(space, keys, vectors)


def forget(
    connection: sqlite3.Connection, scope: int, /, *, numbers: Collection[int] = (), keys: Collection[int] = ()
) -> None:
    """Take out the vectors of these experiences with all their lessons, and of these keys, in all spaces of a scope."""
    if not numbers and not keys:
        return
    spaces = connection.execute("SELECT number FROM spaces WHERE scope = ?", (scope,)).fetchall()
    for (space,) in spaces:
        sql = f"DELETE FROM fresh WHERE space = ? AND (key / {PARTS} {AMONG} OR key {AMONG})"
        found = connection.execute(sql, (space, among(numbers), among(keys))).rowcount
        for block, blob in connection.execute("SELECT number, keys FROM blocks WHERE space = ?", (space,)).fetchall():
            gone = {key for key in keys_in(blob) if key // PARTS in numbers or key in keys}
            if gone:
                _shrink(connection, space, block, gone)
                found += 1
        if found:
            connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE number = ?", (space,))


def _shrink(connection: sqlite3.Connection, space: int, block: int, gone: Collection[int]) -> None:
    found = connection.execute("SELECT keys, vectors FROM blocks WHERE number = ?", (block,)).fetchone()
    left = [(key, vector) for key, vector in _split(*found) if key not in gone]
    if not left:
        connection.execute("DELETE FROM blocks WHERE number = ?", (block,))
        return
    sql = "UPDATE blocks SET keys = ?, vectors = ?, sum = ? WHERE number = ?"
    connection.execute(sql, (*_block(space, left), block))


def keys_in(blob: bytes, /) -> list[int]:
    """The keys of a block."""
    return np.frombuffer(blob, "<i8").tolist()


def _split(keys: bytes, vectors: bytes) -> Iterator[tuple[int, bytes]]:
    each = keys_in(keys)
    size = len(vectors) // len(each)
    return ((key, vectors[at * size : at * size + size]) for at, key in enumerate(each))


def drop(connection: sqlite3.Connection, space: int, /) -> None:
    """Forget the vectors of a space, and how many numbers they had."""
    for table in ("fresh", "blocks"):
        connection.execute(f"DELETE FROM {table} WHERE space = ?", (space,))
    scope, name = connection.execute("SELECT scope, name FROM spaces WHERE number = ?", (space,)).fetchone()
    sql = "UPDATE spaces SET dimensions = NULL, epoch = epoch + 1, sum = ? WHERE number = ?"
    connection.execute(sql, (checksum(scope, name, None), space))


def rejoin(connection: sqlite3.Connection, /) -> None:
    """Lay the vectors of every space anew, in the order of their keys, without those that are damaged or of nothing."""
    for table in ("fresh", "blocks"):
        connection.execute(f"DELETE FROM {table} WHERE space NOT IN (SELECT number FROM spaces)")
    places = last_places(connection)
    spaces = connection.execute("SELECT number, scope, name, dimensions, sum FROM spaces").fetchall()
    for space, scope, name, dimensions, kept in spaces:
        if kept != checksum(scope, name, dimensions):
            drop(connection, space)
        numbers = connection.execute("SELECT number FROM experiences WHERE scope IN (?, ?)", (scope, -scope))
        known = {number: places[number] for (number,) in numbers}
        rows = sorted(vectors_of(connection, space, dimensions or 0).items())
        connection.execute("DELETE FROM blocks WHERE space = ?", (space,))
        _join(connection, space, [row for row in rows if row[0] % PARTS <= known.get(row[0] // PARTS, -1)])


def last_places(connection: sqlite3.Connection, /) -> dict[int, int]:
    """Number of every experience to the place of its last lesson, or 0: whatever has a larger key is nobody's."""
    found = dict.fromkeys((number for (number,) in connection.execute("SELECT number FROM experiences")), 0)
    lessons = dict(connection.execute("SELECT experience, max(place) FROM lessons GROUP BY experience").fetchall())
    return found | {number: lessons[number] for number in found.keys() & lessons.keys()}


def vectors_of(connection: sqlite3.Connection, space: int, dimensions: int, /) -> dict[int, bytes]:
    """Every sound vector of a space by its key, as bytes of a `row_type`."""
    found, size = dict[int, bytes](), row_type(dimensions).itemsize
    sql = "SELECT keys, vectors, sum FROM blocks WHERE space = ? ORDER BY number"
    for keys, vectors, kept in connection.execute(sql, (space,)):
        if len(vectors) * 8 == len(keys) * size and kept == checksum(space, keys, vectors):
            found.update(_split(keys, vectors))
    for key, vector, kept in connection.execute("SELECT key, vector, sum FROM fresh WHERE space = ?", (space,)):
        if len(vector) == size and kept == checksum(space, key, vector):
            found[key] = vector
    return found

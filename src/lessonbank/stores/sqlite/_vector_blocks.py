"""Where vectors lie: new ones row by row, older ones joined to blocks that are quick to read."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from lessonbank.errors import NotFound, UsageError
from lessonbank.stores._vectors import keys_from_blob, keys_to_blob, placeable, row_size, to_blobs

from ._checks import checksum
from ._rows import AMONG, AMONG_IDS, PARTS, ScopeRow, SpaceRow, among, among_ids, find_space, numbers_of

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors

FRESH: Final = 256
"""Vectors that lie in rows of their own before they are joined."""
_BLOCK: Final = 1024
"""Vectors in a block at most."""


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
        UsageError, SpaceMismatch: see `placeable`.
    """
    found = find_space(connection, scope, name or "")
    ids, rows = placeable(vectors, space=name, dimensions=found.dimensions if found else None)
    keys = keys_of(connection, scope, ids, numbers)
    if found is None or found.dimensions is None:
        found = _made(connection, scope, name or "", dimensions=rows[0].shape[1])
    space, revision = found, found.revision + len(ids)
    connection.execute("UPDATE spaces SET revision = ? WHERE number = ?", (revision, space.number))
    placed = zip((keys[id] for id in ids), to_blobs(rows), strict=True)
    if len(ids) < FRESH:
        connection.executemany(
            "INSERT OR REPLACE INTO fresh (space, key, revision, vector, sum) VALUES (?, ?, ?, ?, ?)",
            [(space.number, key, revision, vector, checksum(space.number, key, vector)) for key, vector in placed],
        )
        placed = iter(())
    if revision // FRESH > space.revision // FRESH:
        join(connection, space.number, placed)


def join(connection: sqlite3.Connection, space: int, more: Iterable[tuple[int, bytes]] = (), /) -> None:
    """Make blocks of the fresh rows of a space, and of `more` (key and vector), which supersede them."""
    rows = connection.execute("SELECT key, vector FROM fresh WHERE space = ?", (space,)).fetchall()
    every = dict(chain(rows, more))
    connection.execute("DELETE FROM fresh WHERE space = ?", (space,))
    connection.executemany(
        "INSERT INTO blocks (space, keys, vectors, sum) VALUES (?, ?, ?, ?)",
        ((space, *_block(space, part, b"".join(every[key] for key in part))) for part in _batches(sorted(every))),
    )


def _block(space: int, keys: Sequence[int], vectors: bytes) -> tuple[bytes, bytes, int]:
    packed = keys_to_blob(keys)
    return packed, vectors, checksum(space, packed, vectors)


def _batches(keys: Sequence[int]) -> Iterable[Sequence[int]]:
    return (keys[at : at + _BLOCK] for at in range(0, len(keys), _BLOCK))


def keys_of(
    connection: sqlite3.Connection, scope: ScopeRow, ids: Collection[str], numbers: Mapping[str, int], /
) -> dict[str, int]:
    """Id of an experience or a lesson to the key of its vector; `numbers` has the rows of some experiences.

    Raises:
        NotFound: an id is neither's.
        UsageError: a lesson stands beyond the last place a vector can have.
    """
    keys = {id: numbers[id] * PARTS for id in ids if id in numbers}
    others = [id for id in ids if id not in keys]
    if not others:
        return keys
    keys.update((id, number * PARTS) for id, number in numbers_of(connection, scope, others).items())
    others = [id for id in others if id not in keys]
    if not others:
        return keys
    rows = connection.execute(
        f"SELECT id, experience, place FROM lessons WHERE scope = ? AND id {AMONG_IDS}",
        (scope.number, among_ids(others)),
    )
    for id, experience, at in rows:
        if at >= PARTS:
            raise UsageError(f"the lesson {id!r} is number {at} of its experience: vectors are kept of {PARTS - 1}")
        keys[id] = experience * PARTS + at
    unknown = next((id for id in others if id not in keys), None)
    if unknown is not None:
        raise NotFound(f"no experience or lesson {unknown!r} in this scope to keep a vector of")
    return keys


def forget(
    connection: sqlite3.Connection, scope: int, /, *, numbers: Collection[int] = (), keys: Collection[int] = ()
) -> None:
    """Take out the vectors of these experiences with all their lessons, and of these keys, in all spaces of a scope."""
    if not numbers and not keys:
        return
    spaces = connection.execute("SELECT number, dimensions FROM spaces WHERE scope = ?", (scope,)).fetchall()
    for space, dimensions in spaces:
        found = connection.execute(
            f"DELETE FROM fresh WHERE space = ? AND (key / {PARTS} {AMONG} OR key {AMONG})",
            (space, among(numbers), among(keys)),
        ).rowcount
        blocks = connection.execute("SELECT number, keys FROM blocks WHERE space = ?", (space,)).fetchall()
        for block, blob in blocks:
            there = keys_from_blob(blob).tolist()
            left = [at for at, key in enumerate(there) if key // PARTS not in numbers and key not in keys]
            if len(left) < len(there):
                _shrink(connection, block, [there[at] for at in left], left, row_size(dimensions))
                found += 1
        if found:
            connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE number = ?", (space,))


def _shrink(connection: sqlite3.Connection, block: int, keys: Sequence[int], left: Sequence[int], size: int) -> None:
    if not keys:
        connection.execute("DELETE FROM blocks WHERE number = ?", (block,))
        return
    sql = "SELECT space, vectors FROM blocks WHERE number = ?"
    space, vectors = connection.execute(sql, (block,)).fetchone()
    connection.execute(
        "UPDATE blocks SET keys = ?, vectors = ?, sum = ? WHERE number = ?",
        (*_block(space, keys, b"".join(vectors[at * size : at * size + size] for at in left)), block),
    )


def drop(connection: sqlite3.Connection, space: int, /) -> None:
    """Forget the vectors of a space, and how many numbers they had."""
    for table in ("fresh", "blocks"):
        connection.execute(f"DELETE FROM {table} WHERE space = ?", (space,))
    scope, name = connection.execute("SELECT scope, name FROM spaces WHERE number = ?", (space,)).fetchone()
    connection.execute(
        "UPDATE spaces SET dimensions = NULL, epoch = epoch + 1, sum = ? WHERE number = ?",
        (checksum(scope, name, None), space),
    )


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
        found = _rows(connection, space, dimensions)
        rows = {key: vector for key, vector in found if key % PARTS <= known.get(key // PARTS, -1)}
        connection.execute("DELETE FROM fresh WHERE space = ?", (space,))
        connection.execute("DELETE FROM blocks WHERE space = ?", (space,))
        join(connection, space, rows.items())


def last_places(connection: sqlite3.Connection, /) -> dict[int, int]:
    """Number of every experience to the place of its last lesson, or 0: whatever has a larger key is nobody's."""
    found = dict.fromkeys((number for (number,) in connection.execute("SELECT number FROM experiences")), 0)
    for number, place in connection.execute("SELECT experience, max(place) FROM lessons GROUP BY experience"):
        if number in found:
            found[number] = place
    return found


def vectors_of(connection: sqlite3.Connection, space: int, dimensions: int, /) -> dict[int, bytes]:
    """Every sound vector of a space by its key."""
    return dict(_rows(connection, space, dimensions))


def _rows(connection: sqlite3.Connection, space: int, dimensions: int | None) -> Iterable[tuple[int, bytes]]:
    size = row_size(dimensions or 0)
    blocks = connection.execute(
        "SELECT keys, vectors, sum FROM blocks WHERE space = ? AND length(vectors) * 8 = length(keys) * ?"
        " ORDER BY number",
        (space, size),
    )
    for keys, vectors, kept in blocks:
        if kept != checksum(space, keys, vectors):
            continue
        for at, key in enumerate(keys_from_blob(keys).tolist()):
            yield key, vectors[at * size : at * size + size]
    fresh = connection.execute(
        "SELECT key, vector, sum FROM fresh WHERE space = ? AND length(vector) = ?", (space, size)
    )
    yield from ((key, vector) for key, vector, kept in fresh if kept == checksum(space, key, vector))


def _made(connection: sqlite3.Connection, scope: ScopeRow, name: str, *, dimensions: int) -> SpaceRow:
    connection.execute(
        "INSERT INTO spaces (scope, name, dimensions, sum) VALUES (?1, ?2, ?3, ?4)"
        " ON CONFLICT (scope, name) DO UPDATE SET dimensions = ?3, sum = ?4 WHERE dimensions IS NULL",
        (scope.number, name, dimensions, checksum(scope.number, name, dimensions)),
    )
    return SpaceRow(
        *connection.execute(
            "SELECT number, dimensions, epoch, revision FROM spaces WHERE scope = ? AND name = ?", (scope.number, name)
        ).fetchone()
    )

"""Finding the closest experiences of one scope by vector, from a matrix kept current."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from lessonbank.contracts.ports import Nearest
from lessonbank.contracts.records import Experience, Match
from lessonbank.errors import StoreUnavailable
from lessonbank.stores._matrix import Matrix, MatrixSnapshot, ranked
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import check_dimensions, from_blob, keys_from_blob, row_size

from ._matrices import Matrices, Slot
from ._rows import (
    AMONG,
    PARTS,
    SHOWS,
    ScopeRow,
    SpaceRow,
    among,
    experience_at,
    find_scope,
    find_space,
    found_at,
    journal_number,
    numbers_of,
)

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors

_BATCH: Final = 64
"""Rows that are read from a block at a time."""
_LOADING_CACHE: Final = 128
"""KiB of the file's pages that are kept while a matrix is loaded."""


def nearest(
    connection: sqlite3.Connection,
    matrices: Matrices,
    query: Vectors,
    /,
    *,
    scope: str,
    space: str,
    limit: int,
    exclude: Collection[str],
    lessons: bool,
) -> Nearest:
    """See `Index.nearest`; `query` is a unit row. With a limit of 0 no matrix is loaded.

    Raises:
        SpaceMismatch: the query has another dimension than the space.
    """
    if not limit:
        there = find_space(connection, find_scope(connection, scope), space)
        if there is not None:
            check_dimensions(query, space=space, dimensions=there.dimensions)
        return Nearest()
    with matrices.slot(scope, space) as slot:
        here, there = _brought_up(connection, slot, scope, space)
        snapshot = _snapshot(slot, query, there, space)
        is_complete = not _missing(connection, slot, here, there, limit=1, lessons=lessons)
    if snapshot is None:
        return Nearest([], is_complete)
    left_out = numbers_of(connection, here, map(encodable, exclude)).values() if exclude else ()
    return Nearest(_matches(connection, here, snapshot, query, limit=limit, exclude=left_out), is_complete)


def unindexed(
    connection: sqlite3.Connection, matrices: Matrices, /, *, scope: str, space: str, limit: int, lessons: bool
) -> list[tuple[str, str]]:
    """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first."""
    with matrices.slot(scope, space) as slot:
        here, there = _brought_up(connection, slot, scope, space)
        missing = _missing(connection, slot, here, there, limit=limit, lessons=lessons)
    return list(_named(connection, missing))


def _brought_up(connection: sqlite3.Connection, slot: Slot, scope: str, space: str) -> tuple[ScopeRow, SpaceRow | None]:
    """Scope and space as they are now, the slot brought up to them."""
    here = find_scope(connection, scope)
    there = find_space(connection, here, space)
    if there is None or there.dimensions is None:
        slot.start_afresh()
    else:
        refresh(connection, slot, here, there)
    return here, there


def _snapshot(slot: Slot, query: Vectors, there: SpaceRow | None, space: str) -> MatrixSnapshot | None:
    if there is None or there.dimensions is None:
        return None
    check_dimensions(query, space=space, dimensions=there.dimensions)
    return slot.matrix.snapshot()


def _matches(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    snapshot: MatrixSnapshot,
    query: Vectors,
    *,
    limit: int,
    exclude: Collection[int],
) -> list[Match]:
    found = snapshot.nearest(query, limit=limit, exclude=exclude)
    best = ranked(found, limit=limit, age=lambda numbers: _ages(connection, numbers))
    experiences = found_at(connection, scope, list(dict.fromkeys(key // PARTS for key, _ in best)))
    return [_match(experiences[key // PARTS], key % PARTS, score) for key, score in best]


def _missing(
    connection: sqlite3.Connection, slot: Slot, scope: ScopeRow, space: SpaceRow | None, *, limit: int, lessons: bool
) -> list[int]:
    """Keys without a row in the slot, which is up to date."""
    slot.look_for(lessons=lessons)
    if slot.checked == scope.sequence and not slot.lacking:
        return []
    numbers = None
    if slot.checked >= 0:
        numbers = _touched(connection, scope, slot.checked) | {key // PARTS for key in slot.lacking}
    wanted: list[int] = (_lesson_keys if lessons else _task_keys)(connection, scope, numbers)
    places: list[int] = slot.matrix.missing(wanted).tolist()
    missing = [wanted[at] for at in places]
    if space is not None:
        slot.checked, slot.lacking = scope.sequence, missing
    return missing[: max(limit, 0)]


def _task_keys(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int] | None) -> list[int]:
    return [number * PARTS for number, _ in _oldest_first(connection, scope, numbers)]


def _lesson_keys(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int] | None) -> list[int]:
    return [
        number * PARTS + place
        for number, active in _oldest_first(connection, scope, numbers)
        if active
        for place, lesson in enumerate(experience_at(connection, number).lessons[: PARTS - 1], 1)
        if not lesson.hidden
    ]


def _oldest_first(
    connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int] | None
) -> list[tuple[int, int]]:
    if numbers is None:
        where, values = "scope = ?", (scope.number,)
    else:
        where, values = f"number {AMONG} AND +scope = ?", (among(numbers), scope.number)
    sql = f"SELECT number, active FROM experiences WHERE {where} ORDER BY created_at, number"
    return connection.execute(sql, values).fetchall()


def _named(connection: sqlite3.Connection, keys: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Id and text of each. The keys of one experience lie together, so that it is read once."""
    for number, those in groupby(keys, lambda key: key // PARTS):
        experience = experience_at(connection, number)
        for place in (key % PARTS for key in those):
            lesson = experience.lessons[place - 1] if place else None
            yield (lesson.id, lesson.text) if lesson else (experience.id, experience.task)


def _ages(connection: sqlite3.Connection, numbers: Sequence[int]) -> Mapping[int, int]:
    rows = connection.execute(
        f"SELECT number, created_at FROM experiences WHERE number {AMONG}", (among(set(numbers)),)
    )
    return dict(rows.fetchall())


def _match(experience: Experience, place: int, score: float) -> Match:
    return Match(experience=experience, score=score, lesson_id=experience.lessons[place - 1].id if place else None)


def refresh(connection: sqlite3.Connection, slot: Slot, scope: ScopeRow, space: SpaceRow, /) -> None:
    """Bring a slot up to the state of the file that `scope` and `space` were read from."""
    if slot.epoch != space.epoch or slot.matrix.wasted or slot.matrix.dimensions != space.dimensions:
        slot.start_afresh()
        with _small_cache(connection):
            slot.matrix, slot.block = _loaded(connection, scope, space)
        _hide(connection, slot.matrix, scope)
    elif slot.sequence < scope.sequence or slot.revision < space.revision:
        numbers = {*_touched(connection, scope, slot.sequence), *_add_new(connection, slot, scope, space)}
        _mark(connection, slot.matrix, scope, numbers)
    slot.epoch, slot.sequence, slot.revision = space.epoch, scope.sequence, space.revision


@contextmanager
def _small_cache(connection: sqlite3.Connection) -> Generator[None]:
    """What is read once, and is then in the matrix, does not fill the cache besides."""
    (size,) = connection.execute("PRAGMA cache_size").fetchone()
    connection.execute(f"PRAGMA cache_size = -{_LOADING_CACHE}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA cache_size = {size}")


def _loaded(connection: sqlite3.Connection, scope: ScopeRow, space: SpaceRow) -> tuple[Matrix, int]:
    """Every row of the space but those of experiences that a rollback took out; and the last block among them."""
    dimensions, where = space.dimensions or 1, (space.number,)
    (count,) = connection.execute(
        "SELECT (SELECT coalesce(sum(length(keys)), 0) FROM blocks WHERE space = ?1) / 8"
        " + (SELECT count(*) FROM fresh WHERE space = ?1)",
        where,
    ).fetchone()
    keys, factors = np.empty(count, np.int64), np.empty(count, np.float32)
    rows = np.empty((count, dimensions), np.int16)
    last, end = 0, 0
    for number, block, vectors in _batches(connection, space.number, row_size(dimensions)):
        start, end, last = end, end + len(block) // 8, number or last
        keys[start:end] = keys_from_blob(block)
        rows[start:end], factors[start:end] = _rows(vectors, dimensions, len(block) // 8)
    hidden = connection.execute("SELECT number FROM experiences WHERE scope = ?", (-scope.number,)).fetchall()
    if hidden:
        shown = ~np.isin(keys // PARTS, np.array(hidden).ravel())
        keys, rows, factors = keys[shown], rows[shown], factors[shown]
    return Matrix.of(keys, rows, factors), last


def _batches(connection: sqlite3.Connection, space: int, size: int) -> Iterator[tuple[int, bytes, bytes]]:
    """Number of the block, or 0, keys and vectors of all rows of a space.

    A block comes in batches: what it took as a whole would not be given back to the system.
    """
    blocks = connection.execute("SELECT number, keys FROM blocks WHERE space = ? ORDER BY number", (space,))
    for number, keys in blocks:
        with connection.blobopen("blocks", "vectors", number, readonly=True) as blob:
            if len(blob) * 8 != len(keys) * size:
                raise _wrong_length()
            for at in range(0, len(keys), 8 * _BATCH):
                yield number, keys[at : at + 8 * _BATCH], blob.read(_BATCH * size)
    fresh = connection.execute("SELECT key, vector FROM fresh WHERE space = ? ORDER BY key", (space,))
    yield from ((0, _one(key), vector) for key, vector in fresh)


def _wrong_length() -> StoreUnavailable:
    return StoreUnavailable("a kept vector has the wrong length: the file is damaged; rebuild its vectors")


def _one(key: int) -> bytes:
    return key.to_bytes(8, "little")


def _rows(blob: bytes, dimensions: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    if len(blob) != count * row_size(dimensions):
        raise _wrong_length()
    return from_blob(blob, dimensions=dimensions)


def _hide(connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow) -> None:
    """Mark the rows that must not be found."""
    for (number,) in connection.execute(
        f"SELECT e.number FROM experiences e WHERE e.scope = ? AND e.active = 0 AND NOT {SHOWS}", (scope.number,)
    ):
        matrix.activate(number * PARTS, active=False)
    if matrix.parts:
        for number, place in connection.execute(
            f"SELECT experience, place FROM lessons WHERE scope = ? AND retired != 0 AND place < {PARTS}",
            (scope.number,),
        ):
            matrix.activate(number * PARTS + place, active=False)


def _touched(connection: sqlite3.Connection, scope: ScopeRow, since: int) -> set[int]:
    """The experiences that the journal's later entries wrote."""
    rows = connection.execute(
        "SELECT whole, part FROM journal WHERE number BETWEEN ? AND ?",
        (journal_number(scope.number, since + 1), journal_number(scope.number, scope.sequence)),
    )
    return {number for text in chain.from_iterable(rows) if text for number in json.loads(text)}


def _add_new(connection: sqlite3.Connection, slot: Slot, scope: ScopeRow, space: SpaceRow) -> set[int]:
    """Put in the rows that were placed later; the experiences they are of. What a rollback took out is passed over:
    its rows may be joined to a block long after it went."""
    blocks = connection.execute(
        "SELECT number, keys, vectors FROM blocks WHERE space = ? AND number > ? ORDER BY number",
        (space.number, slot.block),
    )
    fresh = connection.execute(
        "SELECT key, vector FROM fresh WHERE space = ? AND revision > ?", (space.number, slot.revision)
    )
    both = chain(blocks, ((0, _one(key), vector) for key, vector in fresh))
    found = [(number, keys_from_blob(block).tolist(), vectors) for number, block, vectors in both]
    numbers = _present(connection, scope, {key // PARTS for _, keys, _ in found for key in keys})
    for number, keys, vectors in found:
        rows, factors = _rows(vectors, space.dimensions or 1, len(keys))
        for at, key in enumerate(keys):
            if key // PARTS in numbers:
                slot.matrix.put(key, (rows[at : at + 1], factors[at : at + 1]))
        slot.block = number or slot.block
    return numbers


def _present(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int]) -> set[int]:
    rows = connection.execute(
        f"SELECT number FROM experiences WHERE number {AMONG} AND +scope = ?", (among(numbers), scope.number)
    )
    return {number for (number,) in rows}


def _mark(connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, numbers: Iterable[int]) -> None:
    rows = connection.execute(
        f"SELECT e.number, {SHOWS} FROM experiences e WHERE e.number {AMONG} AND +e.scope = ?",
        (among(numbers), scope.number),
    ).fetchall()
    for number, shows in rows:
        matrix.activate(number * PARTS, active=bool(shows))
        if matrix.parts:
            for place, lesson in enumerate(experience_at(connection, number).lessons[: PARTS - 1], 1):
                matrix.activate(number * PARTS + place, active=not lesson.hidden)

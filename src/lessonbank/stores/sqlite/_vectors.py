"""Vectors of a file: where they lie, and the closest of one scope by cosine, from memory kept current with the file.

New vectors lie row by row, older ones in blocks that are quick to read. Up to 192 bits a row tell which rows may be
close to a query. These are compared exactly.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, groupby
from math import ceil, sqrt
from typing import Any, Final, TypeAlias

import numpy as np

from lessonbank.contracts.ports import Nearest
from lessonbank.contracts.records import Match
from lessonbank.errors import NotFound, StoreUnavailable, UsageError
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import check_dimensions, unit

from . import _rows
from ._checks import checksum
from ._rows import AMONG, AMONG_IDS, PARTS, ScopeRow, SpaceRow, among, find_scope, find_space, numbers_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

FRESH: Final = 256
"""Vectors that lie in rows of their own before they are joined."""
_BLOCK: Final = 1024
"""Vectors in a block at most."""
_BUDGET: Final = 1 << 30
"""Bytes of matrices held between queries; the one in use may be larger."""
_EXACT: Final = 1024
"""Up to so many rows are all compared exactly."""
_LEAST: Final = 128
"""Rows compared exactly after the bits; in a large matrix one in `_SHARE`."""
_SHARE: Final = 400
_BITS: Final = 192
"""Dimensions that have a bit, spread over all of them; every one where there are fewer. A byte counts so many."""
_SAMPLED: Final = 16
"""One row in so many tells how many rows differ in how many bits."""
_TOGETHER: Final = 512
"""Rows worked on at a time: what is needed for them fits the processor's cache."""
_COUNTED: Final = 16_384
"""The same where only bits are counted."""


@lru_cache(maxsize=16)
def row_type(dimensions: int, /) -> np.dtype[Any]:
    """A row as bytes: what its numbers are multiplied with to have length 1, then the numbers, the largest 32767."""
    return np.dtype([("factor", "<f4"), ("row", "<i2", (dimensions,))])


def to_blobs(rows: Iterable[Array], /) -> list[bytes]:
    """Unit rows in two bytes a number. A cosine is off by about 2e-6 in 384 dimensions, by 1e-5 in eight."""
    floats = np.stack(list(rows))
    whole = np.rint(floats / np.abs(floats).max(axis=1)[:, None] * 32767)
    made = np.empty(len(floats), row_type(floats.shape[1]))
    made["row"], made["factor"] = whole, 1.0 / np.sqrt(np.vecdot(whole, whole))
    return [row.tobytes() for row in made]


def place(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    vectors: Mapping[str, Array],
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
    dimensions, rows = space.dimensions if space else None, list[Array]()
    for id, vector in vectors.items():
        rows.append(unit(vector, what=f"the experience {id!r}"))
        dimensions = check_dimensions(rows[-1], space=name, dimensions=dimensions)
    keys = _keys_of(connection, scope, [encodable(id) for id in vectors], numbers)
    if space is None or space.dimensions is None:
        connection.execute(
            "INSERT INTO spaces (scope, name, dimensions, sum) VALUES (?1, ?2, ?3, ?4)"
            " ON CONFLICT (scope, name) DO UPDATE SET dimensions = ?3, sum = ?4",
            (scope.number, name, dimensions, checksum(scope.number, name, dimensions)),
        )
        space = find_space(connection, scope, name)
        assert space is not None
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
        sql = "SELECT key, vector FROM fresh WHERE space = ? ORDER BY key"
        _join(connection, space.number, connection.execute(sql, (space.number,)).fetchall())


def _keys_of(
    connection: sqlite3.Connection, scope: ScopeRow, ids: Sequence[str], numbers: Mapping[str, int]
) -> list[int]:
    """The key of each id: its experience's number times `PARTS`, plus 0 for the task or 1, 2, 3, … for a lesson."""
    keys = {id: numbers[id] * PARTS for id in ids if id in numbers}
    if others := [id for id in ids if id not in keys]:
        keys |= {id: number * PARTS for id, number in numbers_of(connection, scope, others).items()}
    if others := [id for id in others if id not in keys]:
        sql = f"SELECT id, experience, place FROM lessons WHERE scope = ? AND id {AMONG_IDS}"
        for id, experience, at in connection.execute(sql, (scope.number, _rows.among_ids(others))):
            if at >= PARTS:
                raise UsageError(f"the lesson {id!r} is number {at} of its experience: vectors are kept of {PARTS - 1}")
            keys[id] = experience * PARTS + at
    if unknown := [id for id in others if id not in keys]:
        raise NotFound(f"no experience or lesson {unknown[0]!r} in this scope to keep a vector of")
    return [keys[id] for id in ids]


def _join(connection: sqlite3.Connection, space: int, rows: Sequence[tuple[int, bytes]]) -> None:
    """Make blocks of these rows, in place of the fresh ones."""
    connection.execute("DELETE FROM fresh WHERE space = ?", (space,))
    for at in range(0, len(rows), _BLOCK):
        held = joined(rows[at : at + _BLOCK])
        sql = "INSERT INTO blocks (space, keys, vectors, sum) VALUES (?, ?, ?, ?)"
        connection.execute(sql, (space, *held, checksum(space, *held)))


def joined(rows: Sequence[tuple[int, bytes]], /) -> tuple[bytes, bytes]:
    """Keys and vectors of several rows as a block has them."""
    keys, vectors = zip(*rows, strict=True)
    return np.array(keys, "<i8").tobytes(), b"".join(vectors)


def forget(
    connection: sqlite3.Connection, scope: int, /, *, numbers: Collection[int] = (), keys: Collection[int] = ()
) -> None:
    """Take out the vectors of these experiences with all their lessons, and of these keys, in all spaces of a scope."""
    if not numbers and not keys:
        return
    for (space,) in connection.execute("SELECT number FROM spaces WHERE scope = ?", (scope,)).fetchall():
        sql = f"DELETE FROM fresh WHERE space = ? AND (key / {PARTS} {AMONG} OR key {AMONG})"
        changed = connection.execute(sql, (space, among(numbers), among(keys))).rowcount
        for block, held in connection.execute("SELECT number, keys FROM blocks WHERE space = ?", (space,)).fetchall():
            there = np.frombuffer(held, "<i8")
            left = ~(np.isin(there // PARTS, list(numbers)) | np.isin(there, list(keys)))
            if not left.all():
                (vectors,) = connection.execute("SELECT vectors FROM blocks WHERE number = ?", (block,)).fetchone()
                rows = np.frombuffer(vectors, f"V{len(vectors) // len(there)}", len(there))
                kept = there[left].tobytes(), rows[left].tobytes()
                sql = "UPDATE blocks SET keys = ?, vectors = ?, sum = ? WHERE number = ?"
                connection.execute(sql, (*kept, checksum(space, *kept), block))
                changed += 1
        if changed:
            connection.execute("DELETE FROM blocks WHERE space = ? AND length(keys) = 0", (space,))
            connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE number = ?", (space,))


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
    places = dict(connection.execute("SELECT experience, max(place) FROM lessons GROUP BY experience").fetchall())
    return {number: places.get(number, 0) for (number,) in connection.execute("SELECT number FROM experiences")}


def vectors_of(connection: sqlite3.Connection, space: int, dimensions: int, /) -> dict[int, bytes]:
    """Every sound vector of a space by its key, as bytes of a `row_type`."""
    found, size = dict[int, bytes](), row_type(dimensions).itemsize
    sql = "SELECT keys, vectors, sum FROM blocks WHERE space = ? ORDER BY number"
    for keys, vectors, kept in connection.execute(sql, (space,)):
        if len(vectors) * 8 == len(keys) * size and kept == checksum(space, keys, vectors):
            each = (vectors[at : at + size] for at in range(0, len(vectors), size))
            found.update(zip(np.frombuffer(keys, "<i8").tolist(), each, strict=True))
    for key, vector, kept in connection.execute("SELECT key, vector, sum FROM fresh WHERE space = ?", (space,)):
        if len(vector) == size and kept == checksum(space, key, vector):
            found[key] = vector
    return found


class Matrix:
    """The rows of one scope and space as one state of the file has them. For one thread at a time."""

    def __init__(self, dimensions: int = 1, room: int = 0, *, epoch: int = -1) -> None:
        self.epoch, self.revision, self.block = epoch, 0, 0
        self.checked: dict[bool, tuple[int, list[int]]] = {}
        """Of tasks (False) or lessons: up to this journal entry nothing but these keys lacks a vector."""
        self.size = self.weighed = self._coded = self._sampled = 0
        self._largest, self._is_mixed = -1, False
        self.keys, self.rows = np.empty(room, np.int64), np.empty(room, row_type(dimensions))
        self._dimensions = np.linspace(0, dimensions - 1, min(dimensions, _BITS)).astype(np.intp)
        self._codes = [np.empty(room, np.uint64) for _ in range(0, len(self._dimensions), 64)]
        self._middle, self._factor = np.zeros(len(self._dimensions), np.int16), 1.0

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        return sum(each.nbytes for each in (self.keys, self.rows, *self._codes))

    def put(self, keys: Array, rows: Array, /) -> None:
        """Add packed rows by key; of several with one key the last one counts."""
        start, self.size = self.size, self.size + len(keys)
        if self.size > len(self.keys):
            for each in (self.keys, self.rows, *self._codes):
                each.resize(self.size + self.size // 4 + 16, refcheck=False)
        self.keys[start : self.size], self.rows[start : self.size] = keys, rows
        self._is_mixed |= bool(keys[0] <= self._largest or (np.diff(keys) <= 0).any())
        self._largest = max(self._largest, int(keys.max()))

    def closest(self, query: Array, /, *, count: int) -> tuple[Array, Array]:
        """Keys and cosines (to five digits) of the closest rows, best first; at least `count` and all that tie with it.

        Up to 1,024 rows the answer is exact. Above, one in a few hundred of the five closest is missed.
        """
        count = min(count, self.size)
        if not count:
            return np.empty(0, np.int64), np.empty(0)
        if self._is_mixed:
            last = self.size - 1 - np.unique(self.keys[: self.size][::-1], return_index=True)[1]
            others = np.delete(np.arange(self.size), last)
            self.keys[others], self.rows["factor"][others], self._is_mixed = -1, 0.0, False
        places, scores = self._compared(query, count)
        rounded = np.clip(np.round(scores.astype(np.float64), 5), -1.0, 1.0)
        order = np.argsort(-rounded)
        return self.keys[places[order]], rounded[order]

    def _compared(self, query: Array, count: int) -> tuple[Array, Array]:
        """Places of rows, and their cosines. What differs in hardly more bits than the best rows do is among them."""
        most = max(_LEAST, self.size // _SHARE, 8 * count)
        if self.size <= max(_EXACT, most):
            places = np.arange(self.size)
            return places, self._cosines(places, query)
        self._code()
        differ, asked = np.zeros(self.size, np.uint8), self._bits((query / self._factor)[None])[0]
        for at in range(0, self.size, _COUNTED):
            some = slice(at, min(at + _COUNTED, self.size))
            for word, bits in zip(self._codes, asked, strict=True):
                differ[some] += np.bitwise_count(word[some] ^ bits)
        every, seen = len(self._dimensions), -1
        reach = int(np.partition(differ[::_SAMPLED], most // _SAMPLED)[most // _SAMPLED])
        places, scores = np.empty(0, np.intp), np.empty(0, np.float32)
        while reach > seen:
            near = differ <= reach
            more = np.flatnonzero(near if seen < 0 else near & (differ > seen))
            places, scores = np.concatenate([places, more]), np.concatenate([scores, self._cosines(more, query)])
            seen, reach = reach, every
            if len(places) >= count:
                worst = int(differ[places[np.argpartition(scores, -count)[-count:]]].max())
                share = min(max(worst, 1) / every, 0.5)
                # As if each bit were drawn: two standard deviations more than the worst of the best rows has.
                reach = ceil(worst + 2.0 * sqrt(every * share * (1.0 - share)))
        return places, scores

    def _cosines(self, places: Array, query: Array) -> Array:
        products = np.empty(len(places), np.float32)
        for at in range(0, len(places), _TOGETHER):
            some = self.rows[places[at : at + _TOGETHER]]
            products[at : at + _TOGETHER] = some["row"].astype(np.float32) @ query * some["factor"]
        return products

    def _code(self) -> None:
        """Bring the bits up to the rows: on which side of the middle each lies. The middle is of about 4,096 rows."""
        if self.size > 2 * self._sampled:
            some = self.rows[: self.size : self.size // 4096 + 1]
            self._factor = float(some["factor"].mean())
            middle = some["factor"] @ some["row"].take(self._dimensions, axis=1).astype(np.float32)
            self._middle = np.rint(np.clip(middle / len(some) / self._factor, -32767, 32767)).astype(np.int16)
            self._sampled, self._coded = self.size, 0
        for at in range(self._coded, self.size, _TOGETHER):
            some = slice(at, min(at + _TOGETHER, self.size))
            for word, bits in zip(self._codes, self._bits(self.rows["row"][some]).T, strict=True):
                word[some] = bits
        self._coded = self.size

    def _bits(self, rows: Array) -> Array:
        bits = np.packbits(rows.take(self._dimensions, axis=1) > self._middle, axis=1)
        return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)


class Matrices:
    """The matrices of a store by scope and space. A forked process goes on with those of its parent."""

    def __init__(self) -> None:
        # By process: a child must not wait for a lock that a thread it does not have may have held.
        self._turns: dict[int, threading.Lock] = {}
        self.held: OrderedDict[tuple[str, str], Matrix] = OrderedDict()
        """By scope and space, the one used last at the end."""

    @contextmanager
    def current(
        self, connection: sqlite3.Connection, scope: str, space: str, /
    ) -> Generator[tuple[Matrix, ScopeRow, SpaceRow | None]]:
        """The matrix as the file is now, and its scope and space; for one thread at a time."""
        with self._turns.setdefault(os.getpid(), threading.Lock()):
            here = find_scope(connection, scope)
            there = find_space(connection, here, space)
            matrix = self.held.pop((scope, space), None)
            if there is None or there.dimensions is None:
                matrix = Matrix()
            else:
                if matrix is None or matrix.epoch != there.epoch:
                    matrix = None  # so that two of them are never held at once
                    sql = "SELECT coalesce(sum(length(keys)), 0) / 8 + ? FROM blocks WHERE space = ?"
                    (room,) = connection.execute(sql, (FRESH, there.number)).fetchone()
                    matrix = Matrix(there.dimensions, room, epoch=there.epoch)
                _catch_up(connection, matrix, there)
                self.hold((scope, space), matrix)
            yield matrix, here, there

    def hold(self, name: tuple[str, str], matrix: Matrix) -> None:
        """Hold it as the last one used; the oldest go where all of them weigh too much."""
        self.held[name] = matrix
        if matrix.weighed != matrix.bytes:
            matrix.weighed = matrix.bytes
            weight = sum(each.weighed for each in self.held.values())
            while weight > _BUDGET and len(self.held) > 1:
                weight -= self.held.popitem(last=False)[1].weighed


def _catch_up(connection: sqlite3.Connection, matrix: Matrix, space: SpaceRow) -> None:
    """Put in the rows that were placed later than those it has."""
    if matrix.revision == space.revision:
        return
    kind, last = matrix.rows.dtype, matrix.block
    sql = "SELECT number, keys, vectors FROM blocks WHERE space = ? AND number > ? ORDER BY number"
    blocks = connection.execute(sql, (space.number, last))
    sql = "SELECT key, vector FROM fresh WHERE space = ? AND revision > ? ORDER BY key"
    fresh = connection.execute(sql, (space.number, matrix.revision)).fetchall()
    for block, keys, vectors in chain(blocks, [(last, *joined(fresh))] if fresh else ()):
        if len(vectors) * 8 != len(keys) * kind.itemsize:
            raise StoreUnavailable("a kept vector has the wrong length: the file is damaged; rebuild its vectors")
        matrix.put(np.frombuffer(keys, "<i8"), np.frombuffer(vectors, kind))
        matrix.block = max(matrix.block, block)
    matrix.revision = space.revision


def nearest(
    connection: sqlite3.Connection,
    matrices: Matrices,
    query: Array,
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
        check_dimensions(query, space=space, dimensions=there.dimensions if there else None)
        return Nearest()
    with matrices.current(connection, scope, space) as (matrix, here, there):
        check_dimensions(query, space=space, dimensions=there.dimensions if there else None)
        is_complete = not _missing(connection, matrix, here, lessons=lessons)
        left_out = set(numbers_of(connection, here, map(encodable, exclude)).values()) if exclude else set[int]()
        best = _best(connection, matrix, here, query, limit, left_out)
    matches, known = list[Match](), _rows.found_at(connection, here, {key // PARTS for key, _ in best})
    for key, score in best:
        experience, at = known[key // PARTS], key % PARTS
        lesson_id = experience.lessons[at - 1].id if at else None
        matches.append(Match(experience=experience, score=score, lesson_id=lesson_id))
    return Nearest(matches, is_complete)


def _best(
    connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, query: Array, limit: int, left_out: Collection[int]
) -> list[tuple[int, float]]:
    """Key and score of the best that may be found, equal scores newest first; more are asked for until they are."""
    count = limit + min(len(left_out), limit)
    while True:
        keys, scores = matrix.closest(query, count=count)
        # Others may be closer than what comes after these, except where every row was compared.
        sure = matrix.size if len(keys) == matrix.size else 4 * count
        found, ages, end = list[tuple[int, float]](), dict[int, int](), 0
        while end < len(keys) and (end < sure if len(found) < limit else scores[end] == found[limit - 1][1]):
            some = slice(end, end := end + max(count, end))
            near = zip(keys[some].tolist(), scores[some].tolist(), strict=True)
            near = [(key, score) for key, score in near if key // PARTS not in left_out]
            ages |= _ages(connection, scope, [key for key, _ in near])
            found += [(key, score) for key, score in near if key in ages]
        if len(found) >= limit or len(keys) == matrix.size:
            return sorted(found, key=lambda one: (-one[1], -ages[one[0]], -one[0]))[:limit]
        count *= 8


def _ages(connection: sqlite3.Connection, scope: ScopeRow, keys: Sequence[int]) -> dict[int, int]:
    """When the experience was made, for each of these keys that may be found. A matrix may have others, too."""
    sql = f"SELECT e.number, e.created_at, {_rows.SHOWS} FROM experiences e WHERE e.number {AMONG} AND +e.scope = ?"
    rows = connection.execute(sql, (among({key // PARTS for key in keys}), scope.number))
    there = {number: (created, shows) for number, created, shows in rows}
    parts = {key // PARTS for key in keys if key % PARTS} & there.keys()
    hidden = {
        number * PARTS + at: lesson.hidden
        for number, kept in _rows.stored_at(connection, parts).items()
        for at, lesson in enumerate(_rows.experience_of(*kept).lessons, 1)
    }
    hidden |= {number * PARTS: not shows for number, (_, shows) in there.items()}
    return {key: there[key // PARTS][0] for key in keys if not hidden.get(key, True)}


def unindexed(
    connection: sqlite3.Connection, matrices: Matrices, /, *, scope: str, space: str, limit: int, lessons: bool
) -> list[tuple[str, str]]:
    """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first."""
    with matrices.current(connection, scope, space) as (matrix, here, _):
        missing = _missing(connection, matrix, here, lessons=lessons)[: max(limit, 0)]
    found = list[tuple[str, str]]()
    for number, keys in groupby(missing, lambda key: key // PARTS):
        experience = _rows.experience_at(connection, number)
        each = (experience.lessons[key % PARTS - 1] if key % PARTS else None for key in keys)
        found += [(lesson.id, lesson.text) if lesson else (experience.id, experience.task) for lesson in each]
    return found


def _missing(connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, *, lessons: bool) -> list[int]:
    """Keys without a row in the matrix, oldest first; looked for among what was written since the last time."""
    upto, missing = matrix.checked.get(lessons, (-1, list[int]()))
    if upto == scope.sequence and not missing:
        return []
    where, values = "scope = ?", [scope.number]
    if upto >= 0:
        sql = "SELECT whole, part FROM journal WHERE number BETWEEN ? AND ?"
        ends = _rows.journal_number(scope.number, upto + 1), _rows.journal_number(scope.number, scope.sequence)
        written = chain.from_iterable(connection.execute(sql, ends))
        touched = {number for text in written if text for number in json.loads(text)}
        where = f"number {AMONG} AND +scope = ?"
        values = [among(touched | {key // PARTS for key in missing}), scope.number]
    sql = f"SELECT number, active FROM experiences WHERE {where} ORDER BY created_at, number"
    wanted = np.array(list(_wanted(connection, connection.execute(sql, values).fetchall(), lessons)), np.int64)
    # Without `assume_unique` numpy hashes both, and loads its masked arrays to do so.
    missing = wanted[~np.isin(wanted, matrix.keys[: matrix.size], assume_unique=True)].tolist()
    matrix.checked[lessons] = scope.sequence, missing
    return missing


def _wanted(connection: sqlite3.Connection, rows: Iterable[tuple[int, bool]], lessons: bool) -> Iterator[int]:
    """The keys that should have a row, of these experiences."""
    for number, active in rows:
        if not lessons:
            yield number * PARTS
        elif active:
            held = _rows.experience_at(connection, number).lessons[: PARTS - 1]
            yield from (number * PARTS + at for at, lesson in enumerate(held, 1) if not lesson.hidden)

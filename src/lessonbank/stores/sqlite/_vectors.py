"""Vectors of a file: where they lie, and the closest of one scope by cosine, from memory kept current with the file.

New vectors lie row by row, older ones in blocks that are quick to read. A bit for each of up to 256 numbers of a row
tells which rows may be close to a query. These are compared exactly; where the bits tell little, every row is.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from math import ceil, sqrt
from typing import Any, Final, TypeAlias

import numpy as np

from lessonbank._base.iterate import batches
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
"""Vectors that lie in rows of their own before they are joined; a block has four times as many at most."""
_BUDGET: Final = 1 << 30
"""Bytes of matrices held between queries; the one in use may be larger."""
_TOGETHER: Final = 256
"""Rows worked on at a time: what is needed for them fits the processor's cache."""


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


def place(connection: sqlite3.Connection, scope: ScopeRow, vectors: Mapping[str, Array], name: str | None, /) -> None:
    """Set the vectors of experiences or lessons, by id.

    Raises:
        NotFound: an id is not of this scope.
        UsageError: no space is named, or a vector is not one row of finite numbers, or zero.
        SpaceMismatch: a vector has another dimension than the space.
    """
    if not name:
        raise UsageError("these vectors come without the name of their space: pass space=")
    space, rows = find_space(connection, scope, name), list[Array]()
    dimensions = space.dimensions if space else None
    for id, vector in vectors.items():
        rows.append(unit(vector, what=f"the experience {id!r}"))
        dimensions = check_dimensions(rows[-1], space=name, dimensions=dimensions)
    keys = _keys_of(connection, scope, [encodable(id) for id in vectors])
    sql = (
        "INSERT INTO spaces (scope, name, dimensions, sum, revision) VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope, name)"
        " DO UPDATE SET dimensions = excluded.dimensions, sum = excluded.sum, revision = revision + excluded.revision"
        " RETURNING number, revision"
    )
    values = scope.number, name, dimensions, checksum(scope.number, name, dimensions), len(keys)
    ((number, revision),) = connection.execute(sql, values)
    packed = zip(keys, to_blobs(rows), strict=True)
    connection.executemany(
        "INSERT OR REPLACE INTO fresh (space, key, revision, vector, sum) VALUES (?, ?, ?, ?, ?)",
        [(number, key, revision, row, checksum(number, key, row)) for key, row in packed],
    )
    if revision % FRESH < len(keys):
        sql = "SELECT key, vector FROM fresh WHERE space = ? ORDER BY key"
        _join(connection, number, connection.execute(sql, (number,)).fetchall())


def _keys_of(connection: sqlite3.Connection, scope: ScopeRow, ids: Sequence[str]) -> list[int]:
    """The key of each id: its experience's number times `PARTS`, plus 0 for the task or 1, 2, 3, … for a lesson."""
    keys = {id: number * PARTS for id, number in numbers_of(connection, scope, ids).items()}
    others = [id for id in ids if id not in keys]
    sql = f"SELECT id, experience, place FROM lessons WHERE scope = ? AND id {AMONG_IDS}"
    for id, experience, at in connection.execute(sql, (scope.number, _rows.among_ids(others))) if others else ():
        if at >= PARTS:
            raise UsageError(f"the lesson {id!r} is number {at} of its experience: vectors are kept of {PARTS - 1}")
        keys[id] = experience * PARTS + at
    if unknown := [id for id in others if id not in keys]:
        raise NotFound(f"no experience or lesson {unknown[0]!r} in this scope to keep a vector of")
    return [keys[id] for id in ids]


def _join(connection: sqlite3.Connection, space: int, rows: Iterable[tuple[int, bytes]]) -> None:
    """Make blocks of these rows, in place of the fresh ones."""
    connection.execute("DELETE FROM fresh WHERE space = ?", (space,))
    for some in batches(rows, size=4 * FRESH):
        held = joined(some)
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
                columns = there[left].tobytes(), rows[left].tobytes()
                sql = "UPDATE blocks SET keys = ?, vectors = ?, sum = ? WHERE number = ?"
                changed += connection.execute(sql, (*columns, checksum(space, *columns), block)).rowcount
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
    places, sql = last_places(connection), "SELECT number, scope, name, dimensions, sum FROM spaces"
    for space, scope, name, dimensions, total in connection.execute(sql).fetchall():
        if total != checksum(scope, name, dimensions):
            drop(connection, space)
        rows = sorted(vectors_of(connection, space, dimensions or 0).items())
        connection.execute("DELETE FROM blocks WHERE space = ?", (space,))
        _join(connection, space, [row for row in rows if row[0] % PARTS <= places.get(row[0] // PARTS, -1)])


def last_places(connection: sqlite3.Connection, /) -> dict[int, int]:
    """Number of every experience to the place of its last lesson, or 0: whatever has a larger key is nobody's."""
    places = dict(connection.execute("SELECT experience, max(place) FROM lessons GROUP BY experience").fetchall())
    return {number: places.get(number, 0) for (number,) in connection.execute("SELECT number FROM experiences")}


def vectors_of(connection: sqlite3.Connection, space: int, dimensions: int, /) -> dict[int, bytes]:
    """Every sound vector of a space by its key, as bytes of a `row_type`."""
    rows, size = dict[int, bytes](), row_type(dimensions).itemsize
    sql = "SELECT keys, vectors, sum FROM blocks WHERE space = ? ORDER BY number"
    for keys, vectors, total in connection.execute(sql, (space,)):
        if len(vectors) * 8 == len(keys) * size and total == checksum(space, keys, vectors):
            each = (vectors[at : at + size] for at in range(0, len(vectors), size))
            rows.update(zip(np.frombuffer(keys, "<i8").tolist(), each, strict=True))
    for key, vector, total in connection.execute("SELECT key, vector, sum FROM fresh WHERE space = ?", (space,)):
        if len(vector) == size and total == checksum(space, key, vector):
            rows[key] = vector
    return rows


class Matrix:
    """The rows of one scope and space as one state of the file has them. For one thread at a time."""

    def __init__(self, dimensions: int = 1, room: int = 0, *, epoch: int = -1) -> None:
        self.epoch, self.revision, self.block = epoch, 0, 0
        self.checked: dict[bool, tuple[int, list[int]]] = {}
        """Of tasks (False) or lessons: up to this journal entry nothing but these keys lacks a vector."""
        self.size = self.weighed = self._coded = 0
        self._largest, self._is_mixed = -1, False
        self.keys, self.rows = np.empty(room, np.int64), np.empty(room, row_type(dimensions))
        self._picked = slice(None, None, -(-dimensions // 256))
        self._middle, self._factor, self._codes = np.empty(0), 1.0, np.empty((0, 0), np.uint64)

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        return self.keys.nbytes + self.rows.nbytes + self._codes.nbytes

    def put(self, keys: Array, rows: Array, /) -> None:
        """Add packed rows by key; of several with one key the last one counts."""
        start, self.size = self.size, self.size + len(keys)
        if self.size > len(self.keys):
            for each in (self.keys, self.rows):
                each.resize(self.size + self.size // 4 + 16, refcheck=False)
        self.keys[start : self.size], self.rows[start : self.size] = keys, rows
        self._is_mixed |= int(keys.min()) <= self._largest
        self._largest = max(self._largest, int(keys.max()))

    def closest(self, query: Array, /, *, count: int) -> tuple[Array, Array]:
        """Keys and cosines (to five digits) of the closest rows, best first; at least `count` and all that tie with it.

        Up to 1,024 rows the answer is exact. Above, one in a few hundred of the five closest is missed.
        """
        count = min(count, self.size)
        if self._is_mixed:
            last = self.size - 1 - np.unique(self.keys[: self.size][::-1], return_index=True)[1]
            others = np.delete(np.arange(self.size), last)
            self.keys[others], self.rows["factor"][others], self._is_mixed = -1, 0.0, False
        places, scores = self._near(query, count) or (np.arange(self.size), _cosines(self.rows[: self.size], query))
        if 0 < 4 * count < len(scores):
            # Equal once they are rounded are those that differ by no more than that.
            best = np.flatnonzero(scores >= np.partition(scores, -4 * count)[-4 * count] - 1e-5)
            places, scores = places[best], scores[best]
        rounded = np.clip(np.round(scores.astype(np.float64), 5), -1.0, 1.0)
        order = np.argsort(-rounded)
        return self.keys[places[order]], rounded[order]

    def _near(self, query: Array, count: int) -> tuple[Array, Array] | None:
        """Places and cosines of the rows whose bits differ hardly more than those of the best do; None: of too many."""
        most = max(128, self.size // 400, 8 * count)
        if self.size <= max(1024, 8 * most):
            return None
        self._code()
        asked, differ = self._bits(query[None] / self._factor), np.empty(self.size, np.uint8)
        for at in range(0, self.size, 64 * _TOGETHER):
            some = slice(at, min(at + 64 * _TOGETHER, self.size))
            differ[some] = np.bitwise_count(self._codes[:, some] ^ asked).sum(axis=0, dtype=np.uint8)
        every, reach, seen = len(self._middle), int(np.partition(differ[::16], most // 16)[most // 16]), -1
        places, scores = np.empty(0, np.intp), np.empty(0, np.float32)
        while reach > seen:
            more = np.flatnonzero((differ > seen) & (differ <= reach))
            places, seen = np.concatenate([places, more]), reach
            if not count <= len(places) <= self.size // 8:
                return None
            scores = np.concatenate([scores, _cosines(self.rows[more], query)])
            worst = int(differ[places[np.argpartition(scores, -count)[-count:]]].max())
            share = min(max(worst, 1) / every, 0.5)
            # As if each bit were drawn: two standard deviations more than the worst of the best rows has.
            reach = ceil(worst + 2.0 * sqrt(every * share * (1.0 - share)))
        return places, scores

    def _code(self) -> None:
        """Bring the bits up to the rows: on which side of the middle each lies. The middle is of about 4,096 rows."""
        if self.size > self._codes.shape[1]:
            some = self.rows[: self.size : self.size // 4096 + 1]
            self._factor = float(some["factor"].mean())
            self._middle = np.rint(some["row"][:, self._picked].mean(axis=0)).astype(np.int16)
            self._codes, self._coded = np.empty((-(-len(self._middle) // 64), len(self.rows)), np.uint64), 0
        for at in range(self._coded, self.size, _TOGETHER):
            some = slice(at, min(at + _TOGETHER, self.size))
            self._codes[:, some] = self._bits(self.rows["row"][some])
        self._coded = self.size

    def _bits(self, rows: Array) -> Array:
        bits = np.packbits(rows[:, self._picked] > self._middle, axis=1)
        return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64).T


def _cosines(rows: Array, query: Array) -> Array:
    cosines = np.empty(len(rows), np.float32)
    for at in range(0, len(rows), _TOGETHER):
        some = rows[at : at + _TOGETHER]
        cosines[at : at + _TOGETHER] = some["row"].astype(np.float32) @ query * some["factor"]
    return cosines


class Matrices:
    """The matrices of a store by scope and space. A forked process goes on with those of its parent."""

    def __init__(self) -> None:
        # By process: a child must not wait for a lock that a thread it does not have may have held.
        self._turns: dict[int, threading.Lock] = {}
        self.held: OrderedDict[tuple[str, str], Matrix] = OrderedDict()
        """By scope and space, the one used last at the end."""

    @contextmanager
    def current(self, connection: sqlite3.Connection, scope: str, space: str, /) -> Generator[tuple[Matrix, ScopeRow]]:
        """The matrix as the file is now, and its scope; for one thread at a time."""
        with self._turns.setdefault(os.getpid(), threading.Lock()):
            here = find_scope(connection, scope)
            there, matrix = find_space(connection, here, space), self.held.pop((scope, space), None)
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
            yield matrix, here

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
    there = find_space(connection, find_scope(connection, scope), space)
    check_dimensions(query, space=space, dimensions=there.dimensions if there else None)
    if limit <= 0:
        return Nearest()
    with matrices.current(connection, scope, space) as (matrix, here):
        is_complete = not _missing(connection, matrix, here, lessons=lessons)
        return Nearest(_best(connection, matrix, here, query, limit, exclude), is_complete)


def _best(
    connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, query: Array, limit: int, exclude: Collection[str]
) -> list[Match]:
    """The best that may be found, equal scores newest first; more are asked for until they are."""
    sql = f"SELECT e.number, e.created_at FROM experiences e WHERE e.number {AMONG} AND +e.scope = ? AND {_rows.SHOWS}"
    left_out = set(numbers_of(connection, scope, map(encodable, exclude)).values()) if exclude else set[int]()
    count = limit + min(len(left_out), limit)
    while True:
        keys, scores = (each.tolist() for each in matrix.closest(query, count=count))
        ages = dict(connection.execute(sql, (among({key // PARTS for key in keys} - left_out), scope.number)))
        scored = zip(scores, keys, strict=True)
        near, matches = (
            [(score, ages[key // PARTS], key) for score, key in scored if key // PARTS in ages],
            list[Match](),
        )
        for some in batches(sorted(near, reverse=True), size=limit):
            matches += _matches(connection, scope, some)
            if len(matches) >= limit:
                return matches[:limit]
        if count >= matrix.size:
            return matches
        count *= 8


def _matches(
    connection: sqlite3.Connection, scope: ScopeRow, near: Sequence[tuple[float, int, int]]
) -> Iterator[Match]:
    """The matches of these scores, ages and keys; without lessons that are hidden or gone."""
    known = _rows.found_at(connection, scope, {key // PARTS for *_, key in near})
    for score, _, key in near:
        experience, at = known[key // PARTS], key % PARTS
        lesson = experience.lessons[at - 1] if 0 < at <= len(experience.lessons) else None
        if at == 0 or (lesson and not lesson.hidden):
            yield Match(experience=experience, score=score, lesson_id=lesson.id if lesson else None)


def unindexed(
    connection: sqlite3.Connection, matrices: Matrices, /, *, scope: str, space: str, limit: int, lessons: bool
) -> list[tuple[str, str]]:
    """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first."""
    with matrices.current(connection, scope, space) as (matrix, here):
        missing = _missing(connection, matrix, here, lessons=lessons)[: max(limit, 0)]
    pairs = list[tuple[str, str]]()
    for number, keys in groupby(missing, lambda key: key // PARTS):
        experience = _rows.experience_at(connection, number)
        each = (experience.lessons[key % PARTS - 1] if key % PARTS else None for key in keys)
        pairs += [(lesson.id, lesson.text) if lesson else (experience.id, experience.task) for lesson in each]
    return pairs


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
    sql = f"SELECT number FROM experiences WHERE {where} AND (active OR ?) ORDER BY created_at, number"
    numbers = [number for (number,) in connection.execute(sql, (*values, not lessons))]
    wanted = [number * PARTS for number in numbers]
    if lessons:
        held = ((number, _rows.experience_at(connection, number).lessons[: PARTS - 1]) for number in numbers)
        wanted = [number * PARTS + at for number, some in held for at, i in enumerate(some, 1) if not i.hidden]
    # Without `assume_unique` numpy hashes both, and loads its masked arrays to do so.
    is_known = np.isin(keys := np.array(wanted, np.int64), matrix.keys[: matrix.size], assume_unique=True)
    missing = keys[~is_known].tolist()
    matrix.checked[lessons] = scope.sequence, missing
    return missing

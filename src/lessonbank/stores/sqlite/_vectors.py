"""Vectors of a file: a row for each, and the closest of one scope by cosine, from a matrix kept current with the file.

A bit for each of up to 256 numbers of a row tells which rows may be close to a query. These are compared exactly;
where the bits tell little, every row is.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby, islice
from math import sqrt
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
from ._rows import (
    AMONG,
    AMONG_IDS,
    PARTS,
    ScopeRow,
    among,
    find_scope,
    find_space,
    journal_number,
    numbers_in,
    numbers_of,
)

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

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
        "INSERT INTO spaces (scope, name, dimensions, sum) VALUES (?, ?, ?, ?) ON CONFLICT (scope, name)"
        " DO UPDATE SET dimensions = excluded.dimensions, sum = excluded.sum RETURNING number"
    )
    values = scope.number, name, dimensions, checksum(scope.number, name, dimensions)
    ((number,),) = connection.execute(sql, values).fetchall()
    _take_out(connection, number, ((key, key) for key in keys))
    connection.executemany(
        "INSERT INTO vectors (space, key, vector, sum) VALUES (?, ?, ?, ?)",
        ((number, key, row, checksum(number, key, row)) for key, row in zip(keys, to_blobs(rows), strict=True)),
    )


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


def forget(
    connection: sqlite3.Connection, scope: int, /, *, numbers: Iterable[int] = (), keys: Iterable[int] = ()
) -> None:
    """Take out the vectors of these experiences with all their lessons, and of these keys, in all spaces of a scope."""
    ends = [(number * PARTS, number * PARTS + PARTS - 1) for number in numbers] + [(key, key) for key in keys]
    if ends:
        for (space,) in connection.execute("SELECT number FROM spaces WHERE scope = ?", (scope,)).fetchall():
            _take_out(connection, space, ends)


def _take_out(connection: sqlite3.Connection, space: int, ends: Iterable[tuple[int, int]]) -> None:
    """Take out the vectors from the first to the last key of each; whoever has read them reads the space again."""
    sql = "DELETE FROM vectors WHERE space = ? AND key BETWEEN ? AND ?"
    if connection.executemany(sql, ((space, *each) for each in ends)).rowcount > 0:
        connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE number = ?", (space,))


def drop(connection: sqlite3.Connection, space: int, /) -> None:
    """Forget the vectors of a space, and how many numbers they had."""
    connection.execute("DELETE FROM vectors WHERE space = ?", (space,))
    scope, name = connection.execute("SELECT scope, name FROM spaces WHERE number = ?", (space,)).fetchone()
    sql = "UPDATE spaces SET dimensions = NULL, epoch = epoch + 1, sum = ? WHERE number = ?"
    connection.execute(sql, (checksum(scope, name, None), space))


def drop_unsound(connection: sqlite3.Connection, /) -> None:
    """Take out the vectors that are damaged, or of nothing, and those of a space that is damaged."""
    for space, total, *columns in connection.execute(
        "SELECT number, sum, scope, name, dimensions FROM spaces"
    ).fetchall():
        if total != checksum(*columns):
            drop(connection, space)
    every = connection.execute("SELECT number, sum, space, key, vector FROM vectors")
    damaged = [(number,) for number, total, *columns in every if total != checksum(*columns)]
    connection.executemany("DELETE FROM vectors WHERE number = ?", damaged)
    connection.execute(f"DELETE FROM vectors WHERE number IN ({OF_NOTHING})")


OF_NOTHING: Final = (
    "SELECT v.number FROM vectors v LEFT JOIN spaces s ON s.number = v.space LEFT JOIN (SELECT e.number AS experience,"
    " coalesce(l.last, 0) AS last FROM experiences e LEFT JOIN (SELECT experience, max(place) AS last FROM lessons"
    f" GROUP BY experience) l ON l.experience = e.number) t ON t.experience = v.key / {PARTS}"
    f" WHERE v.key % {PARTS} > coalesce(t.last, -1)"
    " OR length(v.vector) IS NOT 4 + 2 * s.dimensions"
    " OR v.number NOT BETWEEN 1 AND (SELECT seq FROM sqlite_sequence WHERE name = 'vectors')"
)
"""The vectors of no experience or lesson, those that do not fit their space, and those that no catching up reads."""


class Matrix:
    """The rows of one scope and space as one state of the file has them. For one thread at a time."""

    def __init__(self, dimensions: int = 1, room: int = 0, *, epoch: int = -1) -> None:
        self.epoch, self.last = epoch, 0
        """Of the space as it was read, and the number of the last vector."""
        self.checked: dict[bool, tuple[int, list[int]]] = {}
        """Of tasks (False) or lessons: up to this journal entry nothing but these keys lacks a vector."""
        self.size = self._coded = 0
        self.keys, self.rows = np.empty(room, np.int64), np.empty(room, row_type(dimensions))
        self._picked = slice(None, None, -(-dimensions // 256))
        self._middle, self._factor = np.empty(len(range(dimensions)[self._picked])), 1.0
        self._codes = np.empty((-(-len(self._middle) // 64), 0), np.uint64)

    @property
    def bytes(self) -> int:
        """Memory held once there are bits, in bytes."""
        return self.keys.nbytes + self.rows.nbytes + len(self._codes) * self.keys.nbytes

    def put(self, keys: Array, rows: Array, /) -> None:
        """Add packed rows by key; none of them is there."""
        start, self.size = self.size, self.size + len(keys)
        if self.size > len(self.keys):
            for each in (self.keys, self.rows):
                each.resize(self.size + self.size // 4 + 16, refcheck=False)
        self.keys[start : self.size], self.rows[start : self.size] = keys, rows

    def closest(self, query: Array, /, *, count: int) -> tuple[Array, Array]:
        """Keys and cosines (to five digits) of the closest rows, best first; at least `count` and all that tie with it.

        Up to 1,024 rows the answer is exact. Above, one in a few hundred of the five closest is missed.
        """
        count = min(count, self.size)
        some = self._near(query, count)
        keys, scores = self.keys[: self.size][some], _cosines(self.rows[: self.size][some], query)
        if 0 < 4 * count < len(scores):
            # Equal once they are rounded are those that differ by no more than that.
            best = np.flatnonzero(scores >= np.partition(scores, -4 * count)[-4 * count] - 1e-5)
            keys, scores = keys[best], scores[best]
        rounded = np.clip(np.round(scores.astype(np.float64), 5), -1.0, 1.0)
        order = np.argsort(-rounded)
        return keys[order], rounded[order]

    def _near(self, query: Array, count: int) -> Array | slice:
        """The rows whose bits differ hardly more than those of the best do; every row where these are too many."""
        first, every = max(128, self.size // 400, 8 * count), slice(None)
        if self.size <= max(1024, 8 * first):
            return every
        self._code()
        asked = self._bits(query[None] / self._factor)
        differ = np.empty(self.size, np.uint16)
        for at in range(0, self.size, 64 * _TOGETHER):
            part = slice(at, min(at + 64 * _TOGETHER, self.size))
            differ[part] = np.bitwise_count(self._codes[:, part] ^ asked).sum(axis=0, dtype=np.uint16)
        places = np.flatnonzero(differ <= np.partition(differ, first)[first])
        if len(places) > self.size // 8:
            return every
        best = np.argpartition(_cosines(self.rows[places], query), -count)[-count:]
        bits, worst = len(self._middle), int(differ[places[best]].max())
        share = min(max(worst, 1) / bits, 0.5)
        # As if each bit were drawn: three standard deviations more than the worst of the best rows has.
        places = np.flatnonzero(differ <= worst + 3.0 * sqrt(bits * share * (1.0 - share)))
        return places if len(places) <= self.size // 8 else every

    def _code(self) -> None:
        """Bring the bits up to the rows: on which side of the middle each lies. The middle is of about 4,096 rows."""
        if self.size > self._codes.shape[1]:
            some = self.rows[: self.size : self.size // 4096 + 1]
            self._factor = float(some["factor"].mean())
            self._middle = np.rint(some["row"][:, self._picked].mean(axis=0)).astype(np.int16)
            self._codes, self._coded = np.empty((len(self._codes), len(self.rows)), np.uint64), 0
        for at in range(self._coded, self.size, _TOGETHER):
            some = slice(at, min(at + _TOGETHER, self.size))
            self._codes[:, some] = self._bits(self.rows["row"][some])
        self._coded = self.size

    def _bits(self, rows: Array) -> Array:
        bits = np.zeros((len(rows), 8 * len(self._codes)), np.uint8)
        bits[:, : -(-len(self._middle) // 8)] = np.packbits(rows[:, self._picked] > self._middle, axis=1)
        return bits.view(np.uint64).T


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
        self._weight = 0

    @contextmanager
    def current(self, connection: sqlite3.Connection, scope: str, space: str, /) -> Generator[tuple[Matrix, ScopeRow]]:
        """The matrix as the file is now, and its scope; for one thread at a time."""
        with self._turns.setdefault(os.getpid(), threading.Lock()):
            here = find_scope(connection, scope)
            there, matrix = find_space(connection, here, space), self.held.pop((scope, space), None)
            self._weight -= matrix.bytes if matrix else 0
            if there is None or there.dimensions is None:
                matrix = Matrix()
            else:
                if matrix is None or matrix.epoch != there.epoch:
                    matrix = None  # so that two of them are never held at once
                    sql = "SELECT count(*) FROM vectors WHERE space = ?"
                    (room,) = connection.execute(sql, (there.number,)).fetchone()
                    matrix = Matrix(there.dimensions, room, epoch=there.epoch)
                _catch_up(connection, matrix, there.number)
                self.hold((scope, space), matrix)
            yield matrix, here

    def hold(self, name: tuple[str, str], matrix: Matrix) -> None:
        """Hold it as the last one used; the oldest go where all of them weigh too much."""
        self.held[name] = matrix
        self._weight += matrix.bytes
        while self._weight > _BUDGET and len(self.held) > 1:
            self._weight -= self.held.popitem(last=False)[1].bytes


def _catch_up(connection: sqlite3.Connection, matrix: Matrix, space: int) -> None:
    """Put in the rows that were placed later than those it has."""
    kind, sql = (
        matrix.rows.dtype,
        "SELECT number, key, vector FROM vectors WHERE space = ? AND number > ? ORDER BY number",
    )
    for some in batches(connection.execute(sql, (space, matrix.last)), size=4 * _TOGETHER):
        numbers, keys, vectors = zip(*some, strict=True)
        joined = b"".join(vectors)
        if len(joined) != len(keys) * kind.itemsize:
            raise StoreUnavailable("a kept vector has the wrong length: the file is damaged; rebuild its vectors")
        matrix.put(np.array(keys), np.frombuffer(joined, kind))
        matrix.last = numbers[-1]


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
        left_out = set(numbers_of(connection, here, map(encodable, exclude)).values()) if exclude else set[int]()
        count = limit
        while True:
            scored = zip(*(each.tolist() for each in matrix.closest(query, count=count)), strict=True)
            matches = list(islice(_matches(connection, here, scored, left_out, limit), limit))
            if len(matches) == limit or count >= matrix.size:
                return Nearest(matches, is_complete)
            count *= 8


def _matches(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    scored: Iterable[tuple[int, float]],
    left_out: Collection[int],
    together: int,
) -> Iterator[Match]:
    """What may be found of these keys and scores, equal scores newest first; so many are read at a time.

    Not found are experiences that are left out, and lessons that are hidden or gone.
    """
    sql = f"SELECT e.number, e.created_at FROM experiences e WHERE e.number {AMONG} AND +e.scope = ? AND {_rows.SHOWS}"
    near = [(score, key) for key, score in scored if key // PARTS not in left_out]
    ages = dict(connection.execute(sql, (among({key // PARTS for _, key in near}), scope.number)))
    best = sorted(((score, ages[key // PARTS], key) for score, key in near if key // PARTS in ages), reverse=True)
    for some in batches(best, size=together):
        known = _rows.found_at(connection, scope, {key // PARTS for *_, key in some})
        for score, _, key in some:
            experience, at = known[key // PARTS], key % PARTS
            lesson = experience.lessons[at - 1] if 0 < at <= len(experience.lessons) else None
            if at == 0 or (lesson and not lesson.hidden):
                yield Match(experience=experience, score=score, lesson_id=lesson.id if lesson else None)


def unindexed(
    connection: sqlite3.Connection, matrices: Matrices, /, *, scope: str, space: str, limit: int, lessons: bool
) -> list[tuple[str, str]]:
    """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first."""
    with matrices.current(connection, scope, space) as (matrix, here):
        missing = _missing(connection, matrix, here, lessons=lessons)
    sql = (
        f"SELECT e.number, k.value % {PARTS} FROM json_each(?) k JOIN experiences e ON e.number = k.value / {PARTS}"
        " ORDER BY e.created_at, k.value LIMIT ?"
    )
    rows: list[tuple[int, int]] = connection.execute(sql, (among(missing), min(max(limit, 0), len(missing)))).fetchall()
    pairs = list[tuple[str, str]]()
    for number, places in groupby(rows, lambda row: row[0]):
        experience = _rows.experience_at(connection, number)
        each = (experience.lessons[at - 1] if at else None for _, at in places)
        pairs += [(lesson.id, lesson.text) if lesson else (experience.id, experience.task) for lesson in each]
    return pairs


def _missing(connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, *, lessons: bool) -> list[int]:
    """Keys without a row in the matrix; looked for among what was written since the last time."""
    upto, missing = matrix.checked.get(lessons, (-1, list[int]()))
    if upto == scope.sequence and not missing:
        return []
    sql, values = (_LESSONS if lessons else _TASKS).format("" if upto < 0 else "+"), [scope.number]
    if upto >= 0:
        ends = journal_number(scope.number, upto + 1), journal_number(scope.number, scope.sequence)
        sql, values = f"{sql} AND {_WRITTEN}", [scope.number, *ends, *ends, among(missing)]
    wanted = numbers_in(connection.execute(sql, values).fetchone()[0])
    # Without `assume_unique` numpy hashes both, and loads its masked arrays to do so.
    missing = wanted[~np.isin(wanted, matrix.keys[: matrix.size], assume_unique=True)].tolist()
    matrix.checked[lessons] = scope.sequence, missing
    return missing


_TASKS: Final = f"SELECT group_concat(number * {PARTS}) FROM experiences WHERE {{}}scope = ?"
_LESSONS: Final = (
    f"SELECT group_concat(number * {PARTS} + place) FROM (SELECT experience AS number, place FROM lessons"
    f" WHERE scope = ? AND retired = 0 AND place < {PARTS}) WHERE true"
)
_WRITTEN: Final = (
    "number IN (SELECT w.value FROM journal j, json_each(j.whole) w WHERE j.number BETWEEN ? AND ?"
    " UNION SELECT p.value FROM journal j, json_each(j.part) p WHERE j.number BETWEEN ? AND ?"
    f" UNION SELECT value / {PARTS} FROM json_each(?))"
)
"""Of experiences that journal entries wrote, or of keys."""

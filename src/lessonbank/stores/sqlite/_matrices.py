"""The closest rows of one scope by cosine, from a matrix kept current with the file.

A bit for each of up to 256 numbers of a row tells which may be close. These are compared, all where bits tell little.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Final

import numpy as np

from lessonbank._base.iterate import batches
from lessonbank.contracts.ports import Nearest
from lessonbank.contracts.records import Match
from lessonbank.errors import StoreUnavailable
from lessonbank.stores._vectors import text_at, unit

from . import _rows
from ._arrays import Array, numbers_in, row_type
from ._journal import read_writes
from ._rows import AMONG, PARTS, ScopeRow, SpaceRow, find_scope, find_space

_BUDGET: Final = 1 << 30
"""Bytes of rows held beside those of the space that is searched."""


class Matrix:
    """The rows of a space as one state of the file has them. For one thread at a time."""

    def __init__(self, space: SpaceRow, room: int = 0, /) -> None:
        self.space, self.last, self.size, self._coded = space, 0, 0, 0
        """The space and the number of its last vector as they were read; how many rows there are, and have bits."""
        self.checked: dict[bool, tuple[int, list[int]]] = {}
        """Of tasks (False) or lessons: up to this journal entry nothing but these keys lacks a vector."""
        dimensions = space.dimensions or 1
        self.keys, self.rows = np.empty(room, np.int64), np.empty(room, row_type(dimensions))
        step = -(-dimensions // 256)
        words = dimensions // step // 64
        self._picked, self._middle = slice(0, 64 * words * step, step), np.empty(64 * words, np.int16)
        self._codes = np.empty((words, 0), np.uint64)

    def put(self, keys: Array, rows: Array, /) -> None:
        """Add packed rows by key; none of them is there."""
        start, self.size = self.size, self.size + len(keys)
        if self.size > len(self.keys):
            for each in (self.keys, self.rows):
                each.resize(self.size + self.size // 4 + 16, refcheck=False)
        self.keys[start : self.size], self.rows[start : self.size] = keys, rows

    def closest(self, query: Array, /, *, count: int) -> dict[int, float]:
        """Cosines (to five digits) of the closest rows by key, four times `count` and more: their equals too.

        Up to 1,024 rows, or below 64 dimensions, all are compared. Else one in hundreds of the five closest is missed.
        """
        keys, rows = self.keys[: self.size], self.rows[: self.size]
        if len(self._codes) and self.size > max(1024, 64 * count):
            near = self._near(query, count)
            if len(near) <= self.size // 8:
                keys, rows = keys[near], rows[near]
        scores = _cosines(rows, query)
        if 4 * count < len(scores):
            # Equal once they are rounded are those that differ by no more than that.
            best = np.flatnonzero(scores >= np.partition(scores, -4 * count)[-4 * count] - 1e-5)
            keys, scores = keys[best], scores[best]
        rounded = np.clip(np.round(scores.astype(np.float64), 5), -1.0, 1.0)
        return dict(zip(keys.tolist(), rounded.tolist(), strict=True))

    def _near(self, query: Array, count: int) -> Array:
        """Places of the rows whose bits differ hardly more than those of the best do: sides of the middle of all."""
        rows = self.rows["row"][: self.size, self._picked]
        if self.size > self._codes.shape[1]:
            self._middle = rows[:: self.size // 4096 + 1].mean(axis=0).astype(np.int16)
            self._codes, self._coded = np.empty((len(self._codes), len(self.rows)), np.uint64), 0
        codes = self._codes[:, : self.size]
        for at in range(self._coded, self.size, 4096):
            codes[:, at : at + 4096] = _bits(rows[at : at + 4096], self._middle)
        self._coded = self.size
        asked = _bits(query[None, self._picked] * (32767 / np.abs(query).max()), self._middle)
        differ = np.zeros(self.size, np.uint16)
        for code, bits in zip(codes, asked, strict=True):
            differ += np.bitwise_count(code ^ bits)
        first = max(128, self.size // 400, 8 * count)
        near = np.flatnonzero(differ <= np.partition(differ, first)[first])[: 2 * first]
        best = np.argpartition(_cosines(self.rows[near], query), -count)[-count:]
        worst = max(int(differ[near[best]].max()), 1)
        # As if each bit were drawn: three standard deviations more than the worst of the best rows has.
        return np.flatnonzero(differ <= worst + 3.0 * worst**0.5)


def _bits(rows: Array, middle: Array) -> Array:
    return np.packbits(rows > middle, axis=1).view(np.uint64).T


def _cosines(rows: Array, query: Array) -> Array:
    cosines = np.empty(len(rows), np.float32)
    for at in range(0, len(rows), 256):  # so many fit the processor's cache
        some = rows[at : at + 256]
        cosines[at : at + 256] = some["row"].astype(np.float32) @ query * some["factor"]
    return cosines


class Matrices:
    """The matrices of a store by scope and space, for one thread at a time. No process forks while one is used."""

    def __init__(self) -> None:
        self._turn, self.held = threading.Lock(), OrderedDict[tuple[int, str], Matrix]()

    def nearest(
        self, connection: sqlite3.Connection, query: Array, /, *, scope: str, space: str, limit: int, lessons: bool
    ) -> Nearest:
        """See `Index.nearest`. With a limit of 0 no matrix is loaded."""
        with self._turn:
            here = find_scope(connection, scope)
            there = find_space(connection, here, space)
            row = unit(query, what="the query", space=space, dimensions=there.dimensions)
            if limit <= 0:
                return Nearest()
            matrix, count = self.current(connection, there), limit
            is_complete = not _missing(connection, matrix, here, lessons=lessons)
            while True:
                matches = list(islice(_matches(connection, here, matrix.closest(row, count=count), limit), limit))
                if len(matches) == limit or count >= matrix.size:
                    return Nearest(matches, is_complete)
                count *= 8

    def unindexed(
        self, connection: sqlite3.Connection, /, *, scope: str, space: str, limit: int, lessons: bool
    ) -> list[tuple[str, str]]:
        """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first."""
        with self._turn:
            here = find_scope(connection, scope)
            matrix = self.current(connection, find_space(connection, here, space))
            missing = _missing(connection, matrix, here, lessons=lessons)
        sql = (
            f"SELECT e.number, k.value % {PARTS} FROM json_each(?) k JOIN experiences e ON e.number = k.value / {PARTS}"
            " ORDER BY e.created_at, k.value LIMIT ?"
        )
        places = connection.execute(sql, (_rows.among(missing), min(max(limit, 0), len(missing)))).fetchall()
        held = _rows.experiences_at(connection, {number for number, _ in places})
        return [text_at(held[number], at) for number, at in places]

    def current(self, connection: sqlite3.Connection, space: SpaceRow, /) -> Matrix:
        """The matrix as the file is now. Those used longest ago go where all of them weigh too much."""
        matrix = self.held.pop((space.scope, space.name), None)
        if matrix is None or matrix.space != space:
            matrix = None  # so that two of them are never held at once
            while sum(each.rows.nbytes for each in self.held.values()) > _BUDGET:
                self.held.popitem(last=False)
            (room,) = connection.execute("SELECT count(*) FROM vectors WHERE space = ?", (space.number,)).fetchone()
            matrix = Matrix(space, room)
        sql = "SELECT number, key, vector FROM vectors WHERE space = ? AND number > ? ORDER BY number"
        for some in batches(connection.execute(sql, (space.number, matrix.last)), size=1024):
            numbers, keys, vectors = zip(*some, strict=True)
            joined = b"".join(vectors)
            if len(joined) != len(keys) * matrix.rows.itemsize:
                raise StoreUnavailable("a kept vector has the wrong length: the file is damaged; rebuild its vectors")
            matrix.put(np.array(keys), np.frombuffer(joined, matrix.rows.dtype))
            matrix.last = numbers[-1]
        self.held[space.scope, space.name] = matrix
        return matrix


def _matches(connection: sqlite3.Connection, scope: ScopeRow, near: Mapping[int, float], size: int) -> Iterator[Match]:
    """What may be found of these keys with their scores, equal scores newest first; so many are read at a time."""
    age = _rows.shown_at(connection, scope, {key // PARTS for key in near})
    best = sorted(((score, age[key // PARTS], key) for key, score in near.items() if key // PARTS in age), reverse=True)
    for some in batches(best, size=size):
        held = _rows.found_at(connection, scope, {key // PARTS for *_, key in some})
        for score, _, key in some:
            experience, at = held[key // PARTS], key % PARTS
            lesson = experience.lessons[at - 1] if 0 < at <= len(experience.lessons) else None
            if at == 0 or (lesson and not lesson.hidden):
                yield Match(experience=experience, score=score, lesson_id=lesson.id if lesson else None)


def _missing(connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, *, lessons: bool) -> list[int]:
    """Keys without a row in the matrix; looked for among what was written since the last time."""
    upto, missing = matrix.checked.get(lessons, (-1, list[int]()))
    if upto == scope.sequence and not missing:
        return []
    sql, values = _LESSONS if lessons else _TASKS, [scope.number]
    if upto >= 0:
        entries = read_writes(connection, scope.number, upto + 1, scope.sequence)
        numbers = {n for _, *parts in entries for n in chain(*parts)}.union(key // PARTS for key in missing)
        sql, values = f"{sql.replace('scope', '+scope')} AND number {AMONG}", [scope.number, _rows.among(numbers)]
    wanted = numbers_in(connection.execute(sql, values).fetchone()[0])
    # Without `assume_unique` numpy hashes both, and loads its masked arrays to do so.
    missing = wanted[~np.isin(wanted, matrix.keys[: matrix.size], assume_unique=True)].tolist()
    matrix.checked[lessons] = scope.sequence, missing
    return missing


_TASKS: Final = f"SELECT group_concat(number * {PARTS}) FROM experiences WHERE scope = ?"
_LESSONS: Final = (
    f"SELECT group_concat(number * {PARTS} + place) FROM (SELECT experience AS number, place FROM lessons"
    f" WHERE scope = ? AND retired = 0 AND place < {PARTS}) WHERE true"
)

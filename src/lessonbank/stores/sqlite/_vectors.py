"""Vectors of a file: a row for each, and the closest of one scope by cosine, from a matrix kept current with the file.

A bit for each of up to 256 numbers of a row tells which rows may be close to a query. These are compared exactly;
where the bits tell little, every row is.
"""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from math import sqrt
from typing import Any, Final, TypeAlias

import numpy as np

from lessonbank._base.iterate import batches
from lessonbank.contracts.ports import Nearest
from lessonbank.contracts.records import Match
from lessonbank.errors import NotFound, StoreUnavailable, UsageError
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import text_at, unit

from . import _rows
from ._checks import checksum
from ._rows import AMONG_IDS, PARTS, ScopeRow, SpaceRow, among, among_ids, find_scope, find_space

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_BUDGET: Final = 1 << 30
"""Bytes of rows held beside those of the space that is searched."""


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
        UsageError, SpaceMismatch: no space is named, or see `unit`.
    """
    if not name:
        raise UsageError("these vectors come without the name of their space: pass space=")
    rows, dimensions = dict[str, Array](), find_space(connection, scope, name).dimensions
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
    connection.executemany(
        "INSERT INTO vectors (space, key, vector, sum) VALUES (?, ?, ?, ?)",
        ((space, key, row, checksum(space, key, row)) for key, row in zip(keys, to_blobs(rows.values()), strict=True)),
    )


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
    """Take out the vectors of these keys, and of so many `parts` from each on: of one space, or of all of a scope."""
    sql = "SELECT number FROM spaces WHERE scope = ? AND number = coalesce(?, number)"
    for (number,) in connection.execute(sql, (scope, space)).fetchall() if keys else ():
        ends = ((number, key, key + parts - 1) for key in keys)
        if connection.executemany("DELETE FROM vectors WHERE space = ? AND key BETWEEN ? AND ?", ends).rowcount > 0:
            # Whoever has read them reads the space again.
            connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE number = ?", (number,))


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
        """Cosines (to five digits) of the closest rows by key: at least `count`, and all that tie with these.

        Up to 1,024 rows, or below 64 dimensions, the answer is exact. Else one in a few hundred of the five closest
        is missed.
        """
        keys, rows = self.keys[: self.size], self.rows[: self.size]
        if len(self._codes) and self.size > max(1024, 16 * count):
            near = self._near(query, count)
            if len(near) <= self.size // 8:
                keys, rows = keys[near], rows[near]
        scores = _cosines(rows, query)
        if count < len(scores):
            # Equal once they are rounded are those that differ by no more than that.
            best = np.flatnonzero(scores >= np.partition(scores, -count)[-count] - 1e-5)
            keys, scores = keys[best], scores[best]
        rounded = np.clip(np.round(scores.astype(np.float64), 5), -1.0, 1.0)
        return dict(zip(keys.tolist(), rounded.tolist(), strict=True))

    def _near(self, query: Array, count: int) -> Array:
        """Places of the rows whose bits differ hardly more than those of the best do."""
        self._code()
        asked = _bits(np.frombuffer(to_blobs([query])[0], self.rows.dtype)["row"][:, self._picked], self._middle)
        differ = np.bitwise_count(self._codes[:, : self.size] ^ asked).sum(axis=0, dtype=np.uint16)
        first = max(128, self.size // 400, 2 * count)
        near = np.flatnonzero(differ <= np.partition(differ, first)[first])[: 2 * first]
        best = np.argpartition(_cosines(self.rows[near], query), -count)[-count:]
        bits, worst = len(self._middle), max(int(differ[near[best]].max()), 1)
        share = min(worst / bits, 0.5)
        # As if each bit were drawn: three standard deviations more than the worst of the best rows has.
        return np.flatnonzero(differ <= worst + 3.0 * sqrt(bits * share * (1.0 - share)))

    def _code(self) -> None:
        """Bring the bits up to the rows: on which side of the middle each lies. The middle is of about 4,096 rows."""
        rows = self.rows["row"][: self.size, self._picked]
        if self.size > self._codes.shape[1]:
            self._middle = rows[:: self.size // 4096 + 1].mean(axis=0).astype(np.int16)
            self._codes, self._coded = np.empty((len(self._codes), len(self.rows)), np.uint64), 0
        self._codes[:, self._coded : self.size] = _bits(rows[self._coded :], self._middle)
        self._coded = self.size


def _bits(rows: Array, middle: Array) -> Array:
    return np.packbits(rows > middle, axis=1).view(np.uint64).T


def _cosines(rows: Array, query: Array) -> Array:
    cosines = np.empty(len(rows), np.float32)
    for at in range(0, len(rows), 256):  # so many fit the processor's cache
        some = rows[at : at + 256]
        cosines[at : at + 256] = some["row"].astype(np.float32) @ query * some["factor"]
    return cosines


class Matrices:
    """The matrices of a store by scope and space. Whoever uses one has the `turn`; no process forks meanwhile."""

    def __init__(self) -> None:
        self.turn, self.held = threading.Lock(), OrderedDict[tuple[int, str], Matrix]()

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
    """See `Index.nearest`. With a limit of 0 no matrix is loaded."""
    with matrices.turn:
        here = find_scope(connection, scope)
        there = find_space(connection, here, space)
        row = unit(query, what="the query", space=space, dimensions=there.dimensions)
        if limit <= 0:
            return Nearest()
        matrix, count = matrices.current(connection, there), 4 * limit
        is_complete = not _missing(connection, matrix, here, lessons=lessons)
        while True:
            matches = _matches(connection, here, matrix.closest(row, count=count), exclude, limit)
            if len(matches) == limit or count >= matrix.size:
                return Nearest(matches, is_complete)
            count *= 8


def _matches(
    connection: sqlite3.Connection, scope: ScopeRow, near: Mapping[int, float], exclude: Collection[str], limit: int
) -> list[Match]:
    """The best of these keys with their scores, equal scores newest first.

    Not of experiences that are left out or not shown, nor of lessons that are hidden or gone.
    """
    age = _rows.shown_at(connection, scope, {key // PARTS for key in near}, exclude)
    matches = list[Match]()
    best = sorted(((score, age[key // PARTS], key) for key, score in near.items() if key // PARTS in age), reverse=True)
    for some in batches(best, size=limit):
        known = _rows.found_at(connection, scope, {key // PARTS for *_, key in some})
        for score, _, key in some:
            experience, at = known[key // PARTS], key % PARTS
            lesson = experience.lessons[at - 1] if 0 < at <= len(experience.lessons) else None
            if at == 0 or (lesson and not lesson.hidden):
                matches.append(Match(experience=experience, score=score, lesson_id=lesson.id if lesson else None))
        if len(matches) >= limit:
            break
    return matches[:limit]


def unindexed(
    connection: sqlite3.Connection, matrices: Matrices, /, *, scope: str, space: str, limit: int, lessons: bool
) -> list[tuple[str, str]]:
    """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first."""
    with matrices.turn:
        here = find_scope(connection, scope)
        matrix = matrices.current(connection, find_space(connection, here, space))
        missing = _missing(connection, matrix, here, lessons=lessons)
    sql = (
        f"SELECT e.number, k.value % {PARTS} FROM json_each(?) k JOIN experiences e ON e.number = k.value / {PARTS}"
        " ORDER BY e.created_at, k.value LIMIT ?"
    )
    places = connection.execute(sql, (among(missing), min(max(limit, 0), len(missing)))).fetchall()
    known = _rows.stored_at(connection, {number for number, _ in places})
    experiences = {number: _rows.experience_of(*row) for number, row in known.items()}
    return [text_at(experiences[number], at) for number, at in places]


def _missing(connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, *, lessons: bool) -> list[int]:
    """Keys without a row in the matrix; looked for among what was written since the last time."""
    upto, missing = matrix.checked.get(lessons, (-1, list[int]()))
    if upto == scope.sequence and not missing:
        return []
    sql, values = (_LESSONS if lessons else _TASKS).format("" if upto < 0 else "+"), [scope.number]
    if upto >= 0:
        ends = _rows.journal_number(scope.number, upto + 1), _rows.journal_number(scope.number, scope.sequence)
        sql, values = f"{sql} AND {_WRITTEN}", [scope.number, *ends, among(missing)]
    wanted = _rows.numbers_in(connection.execute(sql, values).fetchone()[0])
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
    "number IN (SELECT w.atom FROM journal j, json_tree(json_array(json(j.whole), json(j.part))) w"
    f" WHERE j.number BETWEEN ? AND ? AND w.type = 'integer' UNION SELECT value / {PARTS} FROM json_each(?))"
)
"""Of experiences that journal entries wrote, or of keys."""

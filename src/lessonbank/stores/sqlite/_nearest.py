"""The closest rows of one scope by cosine, and what lacks a row: from memory, kept current with the file.

Up to 256 bits a row tell which rows may be close to a query. These are compared exactly.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, groupby
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from lessonbank.contracts.ports import Nearest
from lessonbank.contracts.records import Experience, Lesson, Match
from lessonbank.errors import StoreUnavailable
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import check_dimensions

from ._rows import (
    AMONG,
    PARTS,
    SHOWS,
    ScopeRow,
    SpaceRow,
    among,
    experience_at,
    experience_of,
    find_scope,
    find_space,
    found_at,
    journal_number,
    numbers_of,
    stored_at,
)
from ._vectors import FRESH, joined, row_type

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lessonbank.contracts.ports import Vectors

    Ints: TypeAlias = NDArray[np.int64]
    Scores: TypeAlias = NDArray[np.float64]
    Places: TypeAlias = NDArray[np.intp]

_BUDGET: Final = 1 << 30
"""Bytes of matrices held between queries; the one in use may be larger."""
_EXACT: Final = 1024
"""Up to so many rows are all compared exactly."""
_LEAST: Final = 128
"""Rows compared exactly after the bits; in a large matrix one in `_SHARE`."""
_SHARE: Final = 400
_BITS: Final = 256
"""Dimensions that have a bit, spread over all of them; every one where there are fewer."""
_SAMPLED: Final = 16
"""One row in so many tells how many rows differ in how many bits."""
_TOGETHER: Final = 512
"""Rows worked on at a time: what is needed for them fits the processor's cache."""


class Matrix:
    """The rows of one scope and space as one state of the file has them. For one thread at a time."""

    def __init__(self, dimensions: int = 1, room: int = 0, *, epoch: int = -1) -> None:
        self.epoch, self.revision, self.block = epoch, 0, 0
        self.checked: dict[bool, tuple[int, list[int]]] = {}
        """Of tasks (False) or lessons: up to this journal entry nothing but these keys lacks a vector."""
        self.size = self.coded = self.sampled = self.weighed = 0
        self.keys, self.factors = np.empty(room, np.int64), np.empty(room, np.float32)
        self.rows = np.empty((room, dimensions), np.int16)
        self.dimensions = np.linspace(0, dimensions - 1, min(dimensions, _BITS)).astype(np.intp)
        self.codes = [np.empty(0, np.uint64)] * -(-len(self.dimensions) // 64)
        self.middle, self.factor = np.zeros(len(self.dimensions), np.int16), 1.0

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        return sum(each.nbytes for each in (self.keys, self.factors, self.rows, *self.codes))

    def put(self, keys: Ints, rows: NDArray[Any], /) -> None:
        """Set packed rows by key; of several with one key the last one counts."""
        size = self.size
        places: slice | list[int]
        if (np.diff(keys) > 0).all() and keys[0] > self.keys[:size].max(initial=-1):
            places, size = slice(size, size + len(keys)), size + len(keys)
        else:
            there = np.flatnonzero(np.isin(self.keys[:size], keys))
            known = dict(zip(self.keys[there].tolist(), there.tolist(), strict=True))
            places = [known.setdefault(key, size + len(known) - len(there)) for key in keys.tolist()]
            size += len(known) - len(there)
            self.coded = min(self.coded, *places)
        if size > len(self.keys):
            room = size + size // 4 + 16
            self.keys, self.factors, self.rows = (_extended(a, room) for a in (self.keys, self.factors, self.rows))
        self.keys[places], self.rows[places], self.factors[places] = keys, rows["row"], rows["factor"]
        self.size = size

    def closest(self, query: Vectors, /, *, count: int) -> tuple[Ints, Scores]:
        """Keys and cosines (to five digits) of the closest rows, best first; at least `count` and all that tie with it.

        Up to 1,024 rows the answer is exact. Above, one in a few hundred of the five closest is missed.
        """
        count = min(count, self.size)
        if not count:
            return self.keys[:0], np.empty(0)
        places, scores = self._compared(query, count)
        rounded = np.clip(np.round(scores.astype(np.float64), 5), -1.0, 1.0)
        order = np.argsort(-rounded)
        return self.keys[places[order]], rounded[order]

    def _compared(self, query: Vectors, count: int) -> tuple[Places, NDArray[np.float32]]:
        """Places of rows, and their cosines. What differs in hardly more bits than the best rows do is among them."""
        most = max(_LEAST, self.size // _SHARE, 8 * count)
        if self.size <= max(_EXACT, most):
            places = np.arange(self.size)
            return places, self._cosines(places, query)
        self._code()
        asked = self._bits((query / self.factor)[None])[0]
        differ = np.zeros(self.size, np.uint16)
        for word, bits in zip(self.codes, asked, strict=True):
            differ += np.bitwise_count(word[: self.size] ^ bits)
        reach = int(np.partition(differ[::_SAMPLED], most // _SAMPLED)[most // _SAMPLED])
        while len(places := np.flatnonzero(differ <= reach)) < most // 2:
            reach += 1  # the sample was unlucky
        every, scores = len(self.dimensions), self._cosines(places, query)
        while True:
            worst = int(differ[places[np.argpartition(scores, -count)[-count:]]].max())
            share = min(max(worst, 1) / every, 0.5)
            # As if each bit were drawn: two standard deviations more than the worst of the best rows has.
            seen, reach = reach, ceil(worst + 2.0 * sqrt(every * share * (1.0 - share)))
            if reach <= seen:
                return places, scores
            more = np.flatnonzero((differ > seen) & (differ <= reach))
            places, scores = np.concatenate([places, more]), np.concatenate([scores, self._cosines(more, query)])

    def _cosines(self, places: Places, query: Vectors) -> NDArray[np.float32]:
        products = np.empty(len(places), np.float32)
        for at in range(0, len(places), _TOGETHER):
            products[at : at + _TOGETHER] = self.rows[places[at : at + _TOGETHER]].astype(np.float32) @ query
        return products * self.factors[places]

    def _code(self) -> None:
        """Bring the bits up to the rows: on which side of the middle each lies. The middle is of about 4,096 rows."""
        if self.size > 2 * self.sampled:
            some = slice(None, self.size, self.size // 4096 + 1)
            rows, factors = self.rows[: self.size][some], self.factors[: self.size][some]
            self.factor = float(factors.mean())
            middle = factors @ rows.take(self.dimensions, axis=1).astype(np.float32) / len(rows) / self.factor
            self.middle = np.rint(np.clip(middle, -32767, 32767)).astype(np.int16)
            self.sampled, self.coded = self.size, 0
        if len(self.codes[0]) < self.size:
            self.codes = [_extended(word, len(self.keys)) for word in self.codes]
        for at in range(self.coded, self.size, _TOGETHER):
            end = min(at + _TOGETHER, self.size)
            for word, bits in zip(self.codes, self._bits(self.rows[at:end]).T, strict=True):
                word[at:end] = bits
        self.coded = self.size

    def _bits(self, rows: NDArray[Any]) -> NDArray[np.uint64]:
        bits = np.packbits(rows.take(self.dimensions, axis=1) > self.middle, axis=1)
        return np.pad(bits, ((0, 0), (0, -bits.shape[1] % 8))).view(np.uint64)


def _extended(array: NDArray[Any], room: int) -> NDArray[Any]:
    wider = np.empty((room, *array.shape[1:]), array.dtype)
    wider[: len(array)] = array
    return wider


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
                    matrix = _load(connection, there)
                elif matrix.revision != there.revision:
                    _add(connection, matrix, there)
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


def _load(connection: sqlite3.Connection, space: SpaceRow) -> Matrix:
    count = "SELECT coalesce(sum(length(keys)), 0) / 8 + ? FROM blocks WHERE space = ?"
    (room,) = connection.execute(count, (FRESH, space.number)).fetchone()
    matrix = Matrix(space.dimensions or 1, room, epoch=space.epoch)
    _add(connection, matrix, space)
    return matrix


def _add(connection: sqlite3.Connection, matrix: Matrix, space: SpaceRow) -> None:
    """Put in the rows that were placed later than those it has."""
    kind, block = row_type(space.dimensions or 1), matrix.block
    sql = "SELECT number, keys, vectors FROM blocks WHERE space = ? AND number > ? ORDER BY number"
    for number, keys, vectors in connection.execute(sql, (space.number, block)):
        _put(matrix, keys, vectors, kind)
        block = number
    sql = "SELECT key, vector FROM fresh WHERE space = ? AND revision > ? ORDER BY key"
    if fresh := connection.execute(sql, (space.number, matrix.revision)).fetchall():
        _put(matrix, *joined(fresh), kind)
    matrix.block, matrix.revision = block, space.revision


def _put(matrix: Matrix, keys: bytes, vectors: bytes, kind: np.dtype[Any]) -> None:
    if len(vectors) * 8 != len(keys) * kind.itemsize:
        raise StoreUnavailable("a kept vector has the wrong length: the file is damaged; rebuild its vectors")
    matrix.put(np.frombuffer(keys, "<i8"), np.frombuffer(vectors, kind))


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
        check_dimensions(query, space=space, dimensions=there.dimensions if there else None)
        return Nearest()
    with matrices.current(connection, scope, space) as (matrix, here, there):
        check_dimensions(query, space=space, dimensions=there.dimensions if there else None)
        is_complete = not _missing(connection, matrix, here, lessons=lessons)
        left_out = numbers_of(connection, here, map(encodable, exclude)).values() if exclude else ()
        best = _best(connection, matrix, here, query, limit=limit, exclude=frozenset(left_out))
    experiences = found_at(connection, here, list(dict.fromkeys(key // PARTS for key, _ in best)))
    return Nearest([_match(experiences[key // PARTS], key % PARTS, score) for key, score in best], is_complete)


def _best(
    connection: sqlite3.Connection,
    matrix: Matrix,
    scope: ScopeRow,
    query: Vectors,
    *,
    limit: int,
    exclude: Collection[int],
) -> list[tuple[int, float]]:
    """Key and score of the best that may be found, equal scores newest first; more are asked for until they are."""
    count = limit + min(len(exclude), limit)
    while True:
        keys, scores = matrix.closest(query, count=count)
        # Others may be closer than what comes after these, except where every row was compared.
        sure = matrix.size if len(keys) == matrix.size else 4 * count
        found, ages, end = list[tuple[int, float]](), dict[int, int](), 0
        while end < len(keys) and (end < sure if len(found) < limit else scores[end] == found[limit - 1][1]):
            some = slice(end, end := end + max(count, end))
            near = zip(keys[some].tolist(), scores[some].tolist(), strict=True)
            near = [(key, score) for key, score in near if key // PARTS not in exclude]
            ages |= _shown(connection, scope, [key for key, _ in near])
            found += [(key, score) for key, score in near if key in ages]
        if len(found) >= limit or len(keys) == matrix.size:
            return sorted(found, key=lambda one: (-one[1], -ages[one[0]], -one[0]))[:limit]
        count *= 8


def _shown(connection: sqlite3.Connection, scope: ScopeRow, keys: Sequence[int]) -> dict[int, int]:
    """When the experience was made, for each of these keys that may be found. A matrix may have others, too."""
    sql = f"SELECT e.number, e.created_at, {SHOWS} FROM experiences e WHERE e.number {AMONG} AND +e.scope = ?"
    rows = connection.execute(sql, (among({key // PARTS for key in keys}), scope.number))
    there = {number: (created, shows) for number, created, shows in rows}
    parts = {key // PARTS for key in keys if key % PARTS} & there.keys()
    held = {number: experience_of(*kept).lessons for number, kept in stored_at(connection, parts).items()}
    return {
        key: there[key // PARTS][0]
        for key in keys
        if key // PARTS in there and _is_shown(key % PARTS, there[key // PARTS][1], held.get(key // PARTS, ()))
    }


def _is_shown(place: int, shows: int, lessons: Sequence[Lesson]) -> bool:
    return not lessons[place - 1].hidden if 0 < place <= len(lessons) else not place and bool(shows)


def _match(experience: Experience, place: int, score: float) -> Match:
    return Match(experience=experience, score=score, lesson_id=experience.lessons[place - 1].id if place else None)


def unindexed(
    connection: sqlite3.Connection, matrices: Matrices, /, *, scope: str, space: str, limit: int, lessons: bool
) -> list[tuple[str, str]]:
    """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first."""
    with matrices.current(connection, scope, space) as (matrix, here, _):
        missing = _missing(connection, matrix, here, lessons=lessons)[: max(limit, 0)]
    found = list[tuple[str, str]]()
    for number, keys in groupby(missing, lambda key: key // PARTS):
        experience = experience_at(connection, number)
        each = (experience.lessons[key % PARTS - 1] if key % PARTS else None for key in keys)
        found += [(lesson.id, lesson.text) if lesson else (experience.id, experience.task) for lesson in each]
    return found


def _missing(connection: sqlite3.Connection, matrix: Matrix, scope: ScopeRow, *, lessons: bool) -> list[int]:
    """Keys without a row in the matrix, oldest first; looked for among what was written since the last time."""
    upto, lacking = matrix.checked.get(lessons, (-1, []))
    if upto == scope.sequence and not lacking:
        return []
    numbers = None if upto < 0 else _touched(connection, scope, upto) | {key // PARTS for key in lacking}
    wanted = np.array(list(_wanted(connection, scope, numbers, lessons=lessons)), np.int64)
    # Without `assume_unique` numpy hashes both, and loads its masked arrays to do so.
    there = np.isin(wanted, matrix.keys[: matrix.size], assume_unique=True)
    missing: list[int] = wanted[~there].tolist()
    matrix.checked[lessons] = scope.sequence, missing
    return missing


def _touched(connection: sqlite3.Connection, scope: ScopeRow, since: int) -> set[int]:
    """The experiences that the journal's later entries wrote."""
    rows = connection.execute(
        "SELECT whole, part FROM journal WHERE number BETWEEN ? AND ?",
        (journal_number(scope.number, since + 1), journal_number(scope.number, scope.sequence)),
    )
    return {number for text in chain.from_iterable(rows) if text for number in json.loads(text)}


def _wanted(
    connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int] | None, *, lessons: bool
) -> Iterator[int]:
    """The keys that should have a row, of these experiences or of all; oldest first."""
    where, values = (
        ("scope = ?", (scope.number,))
        if numbers is None
        else (f"number {AMONG} AND +scope = ?", (among(numbers), scope.number))
    )
    sql = f"SELECT number, active FROM experiences WHERE {where} ORDER BY created_at, number"
    for number, active in connection.execute(sql, values).fetchall():
        if not lessons:
            yield number * PARTS
        elif active:
            held = experience_at(connection, number).lessons[: PARTS - 1]
            yield from (number * PARTS + at for at, lesson in enumerate(held, 1) if not lesson.hidden)

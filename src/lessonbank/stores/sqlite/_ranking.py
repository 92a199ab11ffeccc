"""Finding the closest experiences of one scope by vector, from a matrix kept current."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lessonbank.errors import StoreUnavailable
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import Matrix, check_dimensions, from_blob
from lessonbank.types import Match

from ._rows import ScopeRow, SpaceRow, experience_at, find_scope, find_space, numbers_of

if TYPE_CHECKING:
    from lessonbank.protocols import Vectors

_BUDGET: Final = 1 << 29
"""Bytes of matrices kept between queries; the one in use may be larger."""

_EVERY: Final = (
    "SELECT e.number, e.created_at, e.active, v.vector FROM vectors v JOIN experiences e ON e.number = v.experience"
    " WHERE v.space = ? AND e.scope = ? ORDER BY v.experience"
)
_CHANGED: Final = (
    "SELECT e.number, e.created_at, e.active, v.vector FROM experiences e"
    " LEFT JOIN vectors v ON v.space = ? AND v.experience = e.number WHERE e.scope = ? AND e.revision > ?"
)


@dataclass(slots=True)
class _Slot:
    """The matrix of one scope and space, and the state of the file it shows."""

    turn: threading.Lock = field(default_factory=threading.Lock)
    matrix: Matrix = field(default_factory=lambda: Matrix(1))
    epoch: int = -1
    revision: int = -1


class Matrices:
    """Matrices by scope and space, brought up to the present by what the file says has changed."""

    def __init__(self) -> None:
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        self._process = os.getpid()
        self._turn = threading.Lock()
        self._slots: OrderedDict[tuple[str, str], _Slot] = OrderedDict()

    @contextmanager
    def slot(self, scope: str, space: str, /) -> Generator[_Slot]:
        """The slot, for one thread at a time. The snapshot must be taken inside, so that slots never go back."""
        if self._process != os.getpid():
            self._begin_afresh()
        with self._turn:
            slot = self._slots.setdefault((scope, space), _Slot())
            self._slots.move_to_end((scope, space))
        with slot.turn:
            yield slot
        with self._turn:
            self._trim()

    def _trim(self) -> None:
        total = sum(slot.matrix.bytes for slot in self._slots.values())
        while total > _BUDGET and len(self._slots) > 1:
            _, oldest = self._slots.popitem(last=False)
            total -= oldest.matrix.bytes


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
) -> list[Match]:
    """The closest active experiences by cosine; `query` is a unit row.

    Raises:
        SpaceMismatch: the query has another dimension than the space.
    """
    with matrices.slot(scope, space) as slot:
        here = find_scope(connection, scope)
        there = find_space(connection, here, space)
        if there is None or there.dimensions is None:
            return []
        check_dimensions(query, space=space, dimensions=there.dimensions)
        _refresh(connection, slot, here, there, dimensions=there.dimensions)
        sight = slot.matrix.sight()
    left_out = numbers_of(connection, here, map(encodable, exclude)) if exclude else {}
    found = sight.nearest(query, limit=limit, exclude=left_out.values())
    return [Match(experience=experience_at(connection, number), score=score) for number, score in found]


def _refresh(connection: sqlite3.Connection, slot: _Slot, scope: ScopeRow, space: SpaceRow, *, dimensions: int) -> None:
    if slot.epoch != space.epoch or slot.matrix.wasted or slot.matrix.dimensions != dimensions:
        slot.matrix, slot.epoch = Matrix(dimensions), -1
        rows = connection.execute(_EVERY, (space.number, scope.number))
    elif slot.revision < scope.revision:
        rows = connection.execute(_CHANGED, (space.number, scope.number, slot.revision))
    else:
        return
    for number, created, active, blob in rows:
        if blob is None:
            slot.matrix.drop(number)
        elif len(blob) != 4 * dimensions:
            raise StoreUnavailable("a kept vector has the wrong length: the file is damaged; rebuild its vectors")
        else:
            slot.matrix.put(number, from_blob(blob), created=created, active=bool(active))
    slot.epoch, slot.revision = space.epoch, scope.revision

"""Exact nearest neighbours by cosine: one contiguous matrix per scope and space."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from lessonbank.errors import NotFound, SpaceMismatch, UsageError

from ._records import encodable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

_SLACK = 1e-5
"""More than a float32 sum of a few thousand products can be off; rows this close to the last place are rescored."""


def unit(vector: Any, /, *, what: str) -> Floats:
    """`vector` as one float32 row of length 1; `what` names it in errors.

    Raises:
        UsageError: not one row of finite numbers, or all zero: it has no direction to compare.
    """
    try:
        row = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"the vector of {what} is not a row of numbers") from None
    if row.ndim != 1 or not row.size:
        raise UsageError(f"the vector of {what} has the shape {row.shape}: one row of numbers is needed")
    if not np.isfinite(row).all():
        raise UsageError(f"the vector of {what} holds NaN or infinity: the embedder is broken")
    largest = float(np.abs(row).max())
    if largest == 0.0:
        raise UsageError(f"the vector of {what} is all zeros and points nowhere: the embedder is broken")
    row = row / largest
    return (row / np.linalg.norm(row)).astype(np.float32)


def placeable(
    vectors: Mapping[str, Any], /, *, space: str | None, dimensions: int | None, known: Callable[[str], bool]
) -> dict[str, Floats]:
    """Every vector as a unit row by experience id, all of one length: that of the space, where it has one already.

    Raises:
        UsageError: no space is named, or a vector is not one row of finite numbers, or zero.
        NotFound: an id is not `known`.
        SpaceMismatch: a vector has another dimension than the space.
    """
    if not vectors:
        return {}
    if not space:
        raise UsageError("vectors need the name of their space")
    rows: dict[str, Floats] = {}
    for id, vector in vectors.items():
        row = unit(vector, what=f"the experience {id!r}")
        dimensions = check_dimensions(row, space=space, dimensions=dimensions)
        rows[encodable(id)] = row
    unknown = next((id for id in rows if not known(id)), None)
    if unknown is not None:
        raise NotFound(f"no experience {unknown!r} in this scope to keep a vector of")
    return rows


def check_dimensions(row: Floats, /, *, space: str, dimensions: int | None) -> int:
    """The dimensions of `row`, which must be those of the space where they are known.

    Raises:
        SpaceMismatch: they are not.
    """
    if dimensions is not None and row.size != dimensions:
        raise SpaceMismatch(
            f"a vector of {row.size} dimensions does not fit the space {space!r} of {dimensions}: "
            "name the embedder that filled it, or re-embed the scope"
        )
    return int(row.size)


def to_blob(row: Floats, /) -> bytes:
    """Little-endian float32, four bytes a dimension."""
    return row.astype("<f4", copy=False).tobytes()


def from_blob(blob: bytes, /) -> Floats:
    """The inverse of `to_blob`; a read-only view, not a copy."""
    return np.frombuffer(blob, dtype="<f4")


@dataclass(frozen=True, slots=True)
class Sight:
    """A matrix as one moment saw it; later changes to the matrix do not reach it."""

    rows: Floats
    keys: Ints
    created: Ints
    active: Bools

    def nearest(self, query: Floats, /, *, limit: int, exclude: Collection[int] = ()) -> list[tuple[int, float]]:
        """The closest active rows as (key, cosine), best first, equal scores newest first.

        Scores are rounded to six digits: float32 rows carry no more, and rows that differ by less are ties.
        """
        usable = self._usable(exclude)
        # Row by row in one thread: a threaded matrix product waits for a second core that is often busy.
        rough = np.vecdot(self.rows, query)
        if usable is not None:
            rough[~usable] = -np.inf
        count = len(rough) if usable is None else int(usable.sum())
        limit = min(limit, count)
        if limit <= 0:
            return []
        floor = np.partition(rough, len(rough) - limit)[len(rough) - limit] - _SLACK
        places = np.flatnonzero(rough >= floor)
        # Rescored in double precision, in one fixed order, so that equal rows tie exactly.
        exact = (self.rows[places].astype(np.float64) * query).sum(axis=1)
        exact = np.clip(exact.round(6), -1.0, 1.0)
        order = np.lexsort((-self.keys[places], -self.created[places], -exact))[:limit]
        return [(int(self.keys[places[i]]), float(exact[i])) for i in order]

    def _usable(self, exclude: Collection[int]) -> Bools | None:
        if not exclude:
            return None if self.active.all() else self.active
        return self.active & ~np.isin(self.keys, np.fromiter(exclude, dtype=np.int64))


class Matrix:
    """The unit rows of one scope and space, with what ranking must know of each. Rows are only ever appended."""

    __slots__ = ("_active", "_created", "_keys", "_places", "_rows", "_size")

    def __init__(self, dimensions: int, *, capacity: int = 16) -> None:
        self._size = 0
        self._rows: Floats = np.empty((capacity, dimensions), dtype=np.float32)
        self._keys: Ints = np.empty(capacity, dtype=np.int64)
        self._created: Ints = np.empty(capacity, dtype=np.int64)
        self._active: Bools = np.zeros(capacity, dtype=np.bool_)
        self._places: dict[int, int] = {}

    @property
    def dimensions(self) -> int:
        """Numbers in a row."""
        return self._rows.shape[1]

    @property
    def bytes(self) -> int:
        """Memory held, in bytes, the bookkeeping in Python apart."""
        return self._rows.nbytes + self._keys.nbytes + self._created.nbytes + self._active.nbytes

    @property
    def wasted(self) -> bool:
        """Whether most rows were superseded and the matrix is worth building anew."""
        return self._size > 1024 and self._size > 2 * len(self._places)

    def put(self, key: int, row: Floats, /, *, created: int, active: bool) -> None:
        """Set the row of `key`. `created` orders ties, newest first; an inactive row is never found."""
        place = self._places.get(key)
        if place is not None:
            # Also appends when the age changed: an older sight must keep what it saw.
            if self._created[place] == created and np.array_equal(self._rows[place], row):
                self._activate(place, active)
                return
            self._activate(place, False)
        self._append(key, row, created=created, active=active)

    def drop(self, key: int, /) -> None:
        """Forget the row of `key`, where there is one."""
        place = self._places.pop(key, None)
        if place is not None:
            self._activate(place, False)

    def sight(self) -> Sight:
        """What the matrix holds now; cheap, nothing is copied."""
        end = self._size
        return Sight(self._rows[:end], self._keys[:end], self._created[:end], self._active[:end])

    def _append(self, key: int, row: Floats, *, created: int, active: bool) -> None:
        if self._size == len(self._keys):
            self._grow()
        place = self._size
        self._rows[place] = row
        self._keys[place] = key
        self._created[place] = created
        self._active[place] = active
        self._places[key] = place
        self._size += 1

    def _activate(self, place: int, active: bool) -> None:
        if bool(self._active[place]) != active:
            self._active = self._active.copy()
            self._active[place] = active

    def _grow(self) -> None:
        more = 2 * self._size
        self._rows = _extended(self._rows, more)
        self._keys = _extended(self._keys, more)
        self._created = _extended(self._created, more)
        self._active = _extended(self._active, more)


def _extended(array: NDArray[Any], length: int) -> NDArray[Any]:
    wider = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    wider[: len(array)] = array
    return wider

"""Nearest neighbours by cosine in one scope: the signs of all rows are compared first, then the best rows exactly."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ._signs import Signs, level
from ._vectors import PARTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._vectors import Floats, Ints, Rows, Shorts

    Bools: TypeAlias = NDArray[np.bool_]
    Places: TypeAlias = NDArray[np.intp]

_SLACK: Final = 1e-5
"""Scores that are equal once they are rounded differ by no more."""
_EXACT: Final = 1024
"""Up to so many rows are all compared exactly: it is quicker than choosing among them."""
_LEAST: Final = 128
"""Rows compared exactly after the signs; more in a large matrix, and wherever their signs tell less: see `_reach`."""
_PER_CANDIDATE: Final = 400
_SAMPLE: Final = 4096
"""About so many rows whose mean is taken for the middle of the space: signs are of the difference to it."""
_FEW: Final = 1000
"""So many keys are looked up one by one: comparing them with all rows would take longer."""
_TOGETHER: Final = 512
"""Rows compared exactly at a time: they fit the processor's cache as floats."""


@dataclass(frozen=True, slots=True)
class MatrixSnapshot:
    """A matrix as one moment saw it; later changes to the matrix do not reach it."""

    keys: Ints
    rows: Shorts
    factors: Floats
    active: Bools
    signs: Signs | None

    def nearest(self, query: Floats, /, *, limit: int, exclude: Collection[int] = ()) -> list[tuple[int, float]]:
        """The closest active rows as (key, cosine), best first; every row that ties with the last place is among them.

        `exclude` names experiences by number. Scores are rounded to five digits: packed rows carry no more, and rows
        that differ by less are ties. Up to 1,024 rows the answer is exact; above, rows are chosen by their signs,
        and one in a few hundred of the five closest is missed. Where signs tell little, as among thousands of rows
        that are all alike, many rows are compared.
        """
        usable = self._usable(exclude)
        count = len(self.keys) if usable is None else int(np.count_nonzero(usable))
        limit = min(limit, count)
        if limit <= 0:
            return []
        places, scores = self._compared(query, usable, count=count, limit=limit)
        least = np.partition(scores, len(scores) - limit)[len(scores) - limit]
        best = np.flatnonzero(scores >= least - _SLACK)
        rounded = sorted(zip(scores[best].tolist(), self.keys[places[best]].tolist(), strict=True), reverse=True)
        exact = [(key, min(max(round(score, 5), -1.0), 1.0)) for score, key in rounded]
        return [(key, score) for key, score in exact if score >= exact[limit - 1][1]]

    def _usable(self, exclude: Collection[int]) -> Bools | None:
        if not exclude:
            return None if self.active.all() else self.active
        return self.active & ~np.isin(self.keys // PARTS, np.fromiter(exclude, dtype=np.int64))

    def _compared(
        self, query: Floats, usable: Bools | None, *, count: int, limit: int
    ) -> tuple[Places, NDArray[np.float32]]:
        """Places of rows, and their cosines. Signs tell less where rows are alike or dimensions few: whatever differs
        in hardly more of them than the best rows do is compared, too."""
        most = min(max(_LEAST, len(self.keys) // _PER_CANDIDATE, 8 * limit), count)
        if self.signs is None or len(self.keys) <= most:
            places = np.arange(len(self.keys)) if usable is None else np.flatnonzero(usable)
            return places, self._cosines(places, query)
        look = self.signs.look(query, size=len(self.keys), usable=usable)
        look.take(most)
        reach = int(look.differ.max()) if len(look.short) <= 2 * _LEAST else level(look.differ, max(_LEAST, limit))
        places, differ = look.within(reach)
        scores = self._cosines(places, query)
        while True:
            best = int(differ[np.argpartition(scores, len(scores) - limit)[len(scores) - limit :]].max())
            look.take_like(best)
            reach = max(look.reach(best), 0 if len(places) >= most else level(look.differ, most))
            more, far = look.within(reach)
            if not len(more):
                return places, scores
            places, differ = np.concatenate([places, more]), np.concatenate([differ, far])
            scores = np.concatenate([scores, self._cosines(more, query)])

    def _cosines(self, places: Places, query: Floats) -> NDArray[np.float32]:
        products = np.empty(len(places), dtype=np.float32)
        for at in range(0, len(places), _TOGETHER):
            those = self.rows.take(places[at : at + _TOGETHER], axis=0)
            products[at : at + _TOGETHER] = those.astype(np.float32) @ query
        return products * self.factors[places]


def ranked(
    found: Sequence[tuple[int, float]], /, *, limit: int, age: Callable[[Sequence[int]], Mapping[int, int]]
) -> list[tuple[int, float]]:
    """The best `limit` of what a snapshot found, equal scores newest first; `age` is asked only for ties."""
    if len(found) == len({score for _, score in found}):
        return list(found[:limit])
    created = age([key // PARTS for key, _ in found])
    return sorted(found, key=lambda row: (-row[1], -created[row[0] // PARTS], -row[0]))[:limit]


class Matrix:
    """The packed rows of one scope and space, by key. Rows are only ever appended: snapshots keep what they saw."""

    __slots__ = (
        "_active",
        "_dropped",
        "_factors",
        "_keys",
        "_later",
        "_rows",
        "_sealed",
        "_seen",
        "_signed",
        "_signs",
        "_size",
        "parts",
    )

    def __init__(self, dimensions: int, /) -> None:
        self._fill(np.empty(16, np.int64), np.empty((16, dimensions), np.int16), np.empty(16, np.float32), 0)

    @classmethod
    def of(cls, keys: Ints, shorts: Shorts, factors: Floats, /) -> Matrix:
        """A matrix of these rows, whose memory it takes over; of several with one key the last one counts."""
        made = cls(shorts.shape[1])
        if len(keys) and not (np.diff(keys) > 0).all():
            order = np.argsort(keys, kind="stable")
            last = order[np.append(np.diff(keys[order]) > 0, True)]
            keys, shorts, factors = keys[last], shorts[last], factors[last]
        made._fill(keys, shorts, factors, len(keys))
        return made

    def _fill(self, keys: Ints, shorts: Shorts, factors: Floats, size: int) -> None:
        self._keys, self._rows, self._factors, self._size = keys, shorts, factors, size
        self._active: Bools = np.ones(len(keys), dtype=np.bool_)
        # Whether a snapshot shares `_active`: then it is copied before it is changed.
        self._seen = False
        # So many rows stand in the order of their keys; `_later` has the places of those after them.
        self._sealed = size
        self._later: dict[int, int] = {}
        self._dropped: set[int] = set()
        self._signs: Signs | None = None
        self._signed = 0
        self.parts = bool((keys[:size] % PARTS != 0).any())
        """Whether it ever had rows of lessons."""

    def __len__(self) -> int:
        """Rows that were neither dropped nor set again."""
        return self._sealed - len(self._dropped) + len(self._later)

    @property
    def dimensions(self) -> int:
        """Numbers in a row."""
        return self._rows.shape[1]

    @property
    def bytes(self) -> int:
        """Memory held, in bytes."""
        held = self._rows.nbytes + self._keys.nbytes + self._factors.nbytes + self._active.nbytes
        return held + (self._signs.bytes if self._signs else 0)

    @property
    def wasted(self) -> bool:
        """Whether most rows were superseded and the matrix is worth building anew."""
        return self._size > _EXACT and self._size > 2 * len(self)

    def missing(self, keys: Sequence[int], /) -> NDArray[np.intp]:
        """The places in `keys` of those without a row here."""
        if len(keys) < _FEW:
            return np.flatnonzero([self._place(key) is None for key in keys])
        asked = np.fromiter(keys, dtype=np.int64, count=len(keys))
        there = np.isin(asked, self._keys[: self._size])
        lost = self._dropped - self._later.keys()
        return np.flatnonzero(~there | np.isin(asked, np.fromiter(lost, dtype=np.int64)))

    def put(self, key: int, rows: Rows, /, *, active: bool = True) -> None:
        """Set the row of `key` to the first of `rows`; an inactive row is never found."""
        place = self._place(key)
        if place is not None:
            if np.array_equal(self._rows[place], rows[0][0]):
                self._mark(place, active)
                return
            self.drop(key)
        self._append(key, rows, active=active)

    def drop(self, key: int, /) -> None:
        """Forget the row of `key`, where there is one."""
        place = self._place(key)
        if place is None:
            return
        self._mark(place, False)
        if self._later.pop(key, None) is None:
            self._dropped.add(key)

    def activate(self, key: int, /, *, active: bool) -> None:
        """Set whether the row of `key` may be found, where there is one."""
        place = self._place(key)
        if place is not None:
            self._mark(place, active)

    def snapshot(self) -> MatrixSnapshot:
        """What the matrix holds now; nothing is copied."""
        self._sign()
        end, self._seen = self._size, True
        return MatrixSnapshot(self._keys[:end], self._rows[:end], self._factors[:end], self._active[:end], self._signs)

    def _place(self, key: int) -> int | None:
        place = self._later.get(key)
        if place is not None or key in self._dropped:
            return place
        place = int(np.searchsorted(self._keys[: self._sealed], key))
        return place if place < self._sealed and self._keys[place] == key else None

    def _mark(self, place: int, active: bool) -> None:
        if bool(self._active[place]) != active:
            if self._seen:
                self._active, self._seen = self._active.copy(), False
            self._active[place] = active

    def _append(self, key: int, rows: Rows, *, active: bool) -> None:
        if self._size == len(self._keys):
            more = 2 * self._size + 16 if self._size < 8 * _EXACT else self._size + self._size // 4
            self._keys, self._factors = _extended(self._keys, more), _extended(self._factors, more)
            self._rows, self._active = _extended(self._rows, more), _extended(self._active, more)
        place = self._size
        self._keys[place], self._rows[place], self._factors[place] = key, rows[0][0], rows[1][0]
        self._active[place] = active
        self.parts |= key % PARTS != 0
        self._later[key] = place
        self._size += 1

    def _sign(self) -> None:
        """Bring the signs up to the present. Their middle is taken anew whenever the matrix has doubled."""
        if self._size <= _EXACT:
            return
        signs = self._signs
        if signs is None or self._size > 2 * signs.counted:
            sample = slice(None, self._size, max(self._size // _SAMPLE, 1))
            signs = Signs.around(self._rows[sample], self._factors[sample], counted=self._size)
            self._signed = 0
        if signs.leading.shape[1] < self._size:
            signs = signs.with_room(len(self._keys), kept=self._signed)
        signs.take(self._rows, start=self._signed, end=self._size)
        self._signs, self._signed = signs, self._size


def _extended(array: NDArray[Any], length: int) -> NDArray[Any]:
    wider = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    wider[: len(array)] = array
    return wider

"""Columns of episodes that grow: made once, filled from the front, and looked at without copying."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from .columns import Episodes, Flags, Pairs

_KINDS: dict[str, Any] = {
    "true": np.bool_,
    "control": np.bool_,
    "judge": np.int64,
    "cluster": np.int64,
    "row": np.int64,
    "lesson": np.int64,
    "withheld": np.bool_,
    "cited": np.bool_,
}
_OTHERS = ("pairs", "lessons", "judges")
ROWS = tuple(f.name for f in fields(Episodes) if f.name not in _OTHERS)
PAIRS = tuple(f.name for f in fields(Pairs))
Columns = dict[str, np.ndarray]
"""Columns of Episodes by name, shape (n,) each."""
Table = dict[str, np.ndarray]
"""Columns of Pairs by name, shape (n, k) each, without `row`, and `placed`: which of them are there."""


class Growing:
    """Room for `capacity` episodes with up to k lessons each."""

    def __init__(self, capacity: int, k: int, /) -> None:
        self._rows = {name: np.empty(capacity, _KINDS.get(name, np.float64)) for name in ROWS}
        self._pairs = {name: np.empty(capacity * k, _KINDS.get(name, np.float64)) for name in PAIRS}
        self.filled = self._paired = 0

    def append(self, rows: Columns, pairs: Table, which: Flags, /) -> int:
        """Take in the rows of a block that `which` marks, in order; how many those were."""
        added, there = int(which.sum()), pairs["placed"][which]
        begin, end = self.filled, self.filled + added
        for name in ROWS:
            self._rows[name][begin:end] = rows[name][which]
        number = np.repeat(np.arange(begin, end), there.sum(axis=1))
        first, last = self._paired, self._paired + len(number)
        self._pairs["row"][first:last] = number
        for name in PAIRS[1:]:
            self._pairs[name][first:last] = pairs[name][which][there]
        self.filled, self._paired = end, last
        return added

    def view(self, *, lessons: tuple[str, ...], judges: tuple[str, ...]) -> Episodes:
        """What is there so far, without copying."""
        pairs = Pairs(**{name: column[: self._paired] for name, column in self._pairs.items()})
        rows: dict[str, Any] = {name: column[: self.filled] for name, column in self._rows.items()}
        return Episodes(**rows, pairs=pairs, lessons=lessons, judges=judges)

"""The same rows for every engine: vectors around 500 centres, and texts that do not compress better than real ones.

Needs numpy and nothing else, so that the other engines' environments can run it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from string import Formatter
from typing import Final, NamedTuple

import numpy as np

from .words import ADJECTIVES, CLAUSES, NOUNS, VERBS, figure, name

VERSION: Final = 1
"""Raised when the rows change: banks kept from earlier runs are then built again."""
DIMENSIONS: Final = 384
SPACE: Final = "bench-384"
SCOPE: Final = "bench"
TOP: Final = 5
_CENTRES, _SPREAD, _BLOCK, _PORTION = 500, 0.7, 10_000, 500
_TICKET: Final = re.compile(r"ticket (\d+)")


class Text(NamedTuple):
    """A task of about 200 characters, and a lesson of about 300."""

    task: str
    title: str
    description: str
    content: str

    @property
    def size(self) -> int:
        """UTF-8 bytes of all four."""
        return sum(len(part.encode()) for part in self)


# --- vectors ---------------------------------------------------------------------------------------------------------


@lru_cache(1)
def _centres() -> np.ndarray:
    return np.random.default_rng(7).standard_normal((_CENTRES, DIMENSIONS), dtype=np.float32)


@lru_cache(2)
def _block(stream: int, number: int) -> np.ndarray:
    rng = np.random.default_rng([stream, number])
    noise = rng.standard_normal((_BLOCK, DIMENSIONS), dtype=np.float32)
    made = _centres()[rng.integers(0, _CENTRES, _BLOCK)] + np.float32(_SPREAD) * noise
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def rows(start: int, count: int, *, stream: int = 1) -> np.ndarray:
    """Unit rows `start` to `start + count`, float32, shape (count, 384). The same whatever portion is asked for."""
    made = np.empty((count, DIMENSIONS), dtype=np.float32)
    at = 0
    while at < count:
        number, offset = divmod(start + at, _BLOCK)
        part = _block(stream, number)[offset : offset + count - at]
        made[at : at + len(part)] = part
        at += len(part)
    return made


class Queries:
    """Vectors from the same clusters, and texts to go with them. No query is ever given out twice."""

    def __init__(self) -> None:
        self._next, self._held = 0, rows(0, 0)

    def take(self, count: int) -> list[np.ndarray]:
        """`count` vectors that were not taken before."""
        while self._next + count > len(self._held):
            more = rows(len(self._held), 2 * _BLOCK, stream=2)
            self._held = np.concatenate([self._held, more])
        self._next += count
        return list(self._held[self._next - count : self._next])


def exact(vectors: np.ndarray, query: np.ndarray) -> frozenset[int]:
    """The rows of the five largest products, by one float32 pass: the raw operation too."""
    return frozenset(np.argpartition(vectors @ query, -TOP)[-TOP:].tolist())


# --- texts -----------------------------------------------------------------------------------------------------------


def texts(start: int, count: int) -> Iterator[Text]:
    """The texts of rows `start` to `start + count`."""
    for number in range(start, start + count):
        yield _portion(number // _PORTION)[number % _PORTION]


def number_of(task: str) -> int:
    """Which row a task belongs to: it names its ticket."""
    found = _TICKET.search(task)
    if found is None:
        raise ValueError(f"not a task of this workload: {task!r}")
    return int(found[1])


def tickets(tasks: Sequence[str]) -> frozenset[int]:
    """The rows of several tasks."""
    return frozenset(map(number_of, tasks))


@lru_cache(4)
def _portion(number: int) -> list[Text]:
    writer = _Writer(number)
    return [writer.text(number * _PORTION + i) for i in range(_PORTION)]


class _Writer:
    """Draws clauses and words: common ones often, names and numbers from a long tail."""

    def __init__(self, portion: int) -> None:
        rng = np.random.default_rng([3, portion])
        self._low, self._at = rng.random(65_536).tolist(), 0
        self._high = rng.integers(0, 1 << 40, 65_536).tolist()

    def text(self, row: int) -> Text:
        said = self._said(180)
        task = f"{said[:-1]} (ticket {row})."
        return Text(task, self._said(45)[:-1], self._said(70), self._said(190))

    def _said(self, length: int) -> str:
        """Sentences of about `length` characters, cut between words."""
        made = ""
        while len(made) < length:
            clause = self._clause()
            made += f"{' ' if made else ''}{clause[0].upper()}{clause[1:]}."
        return made if len(made) <= length else f"{made[:length].rpartition(' ')[0].rstrip('.,;:')}."

    def _clause(self) -> str:
        pieces = _OPEN[int(self._draw() * len(_OPEN))]
        return "".join(said + (self._word(kind) if kind else "") for said, kind in pieces)

    def _word(self, kind: str) -> str:
        if kind == "name":
            return name(self._high[self._at & 65_535] if self._draw() < 0.7 else int(self._draw() * 300))
        if kind == "number":
            self._draw()
            return figure(self._high[self._at & 65_535])
        words = _LISTS[kind]
        return words[int(self._draw() ** 1.6 * len(words))]

    def _draw(self) -> float:
        self._at += 1
        return self._low[self._at & 65_535]


_LISTS: Final = {"noun": NOUNS, "verb": VERBS, "adjective": ADJECTIVES}
_OPEN: Final = [[(said, kind) for said, kind, _, _ in Formatter().parse(clause)] for clause in CLAUSES]

"""Finding the closest experiences of one scope by words: exact, and a very common word is read only if it must."""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

import numpy as np

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Match
from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import bounds, scores, whole, words

from ._lengths import Numbers
from ._rows import AMONG, SHOWS, ScopeRow, among, find_scope, found_at, numbers_of
from ._word_places import Floats, Places, Tasks, counted

_SHARE: Final = 8
"""A word that one in so many tasks holds is read last, and only where the others leave open who is best."""
_SHORT: Final = 4096
"""A word of no more tasks is read at once: asking whether it must be read would cost more."""
_PLACES_PER_TEXT: Final = 200
"""Places of a word that can be read in the time that the words of one text are counted."""
_MORE: Final = 32
"""Tasks looked at beyond the limit: ties with the last place are among them, or more are looked at."""
_BATCH: Final = 64
"""Tasks whose text is read at once."""
_MARGIN: Final = 1e-6
"""Scores are rounded, and the sums are made in another order; a task this close to the last place is looked at."""


def search(
    connection: sqlite3.Connection,
    /,
    query: str,
    *,
    scope: str,
    limit: int,
    exclude: Collection[str],
) -> list[Match]:
    """The closest shown experiences by the words of their tasks.

    Rare words are read first. Once the last place is held by more than all unread words together could give, no task
    without a word already read can reach it (the MaxScore bound of Turtle and Flood 1995): the answer is the same.
    """
    here, asked = find_scope(connection, scope), words(query)
    if not asked or limit <= 0:
        return []
    left_out = set(numbers_of(connection, here, map(encodable, exclude)).values()) if exclude else set[int]()
    best = heapq.nlargest(limit, _Asking(connection, here, asked, limit, left_out).found())
    experiences = found_at(connection, here, [number for *_, number in best])
    return [Match(experience=experiences[number], score=score) for score, _, number in best]


class _Task(NamedTuple):
    number: int
    words: int
    shown: bool
    created_at: int


class _Asking:
    """One query: what the words read so far give each task, and the exact score of each task whose text was read."""

    def __init__(
        self, connection: sqlite3.Connection, scope: ScopeRow, asked: list[str], limit: int, left_out: Collection[int]
    ) -> None:
        self._connection, self._scope, self._asked, self._limit = connection, scope, asked, limit
        self._left_out = left_out
        self._tasks = Tasks(connection, scope, frozenset(asked))
        every = dict.fromkeys(asked)
        self._common = self._tasks.common(every, max(_SHORT, scope.documents // _SHARE))
        self._places = {word: self._tasks.places(word) for word in every if word not in self._common}
        self._held = {word: len(places.at) for word, places in self._places.items()} | self._common
        self._most = bounds(asked, self._held, documents=scope.documents)
        self._whole = whole(Counter(asked), self._most, documents=scope.documents, total=scope.words)
        self._sums = np.zeros(len(self._tasks.numbers))
        self._known: dict[int, _Task] = {}
        self._told: dict[int, float] = {}

    def found(self) -> Iterable[tuple[float, int, int]]:
        """Score, age and number of the tasks that can be among the best."""
        for word, places in self._places.items():
            self._add(word, places)
        unread = sum(self._most[word] for word in self._common)
        for word, held in sorted(self._common.items(), key=lambda one: (one[1], one[0])):
            if self._are_told(unread, held // _PLACES_PER_TEXT):
                break
            self._add(word, self._tasks.places(word))
            unread -= self._most[word]
        else:
            self._are_told(0.0, len(self._sums))
        return ((score, self._known[number].created_at, number) for number, score in self._told.items())

    def _add(self, word: str, places: Places) -> None:
        at, times = places
        self._sums[at] += self._most[word] * times / (times + self._tasks.drags(at))

    def _are_told(self, unread: float, most: int) -> bool:
        """Whether the best are known after reading at most so many texts; `unread`: what more a task can have."""
        found = np.flatnonzero(self._sums > 0.0)  # of what is true or false it finds it in a third of the time
        gains = self._sums[found]
        first, over = self._first(found, gains)
        self._tell(first)
        if len(first) < self._limit:
            return over and not unread
        last = heapq.nlargest(self._limit, self._told.values())[-1] * self._whole - _MARGIN * self._whole
        rest = found[gains >= last - unread]
        if unread and (last <= unread or len(rest) > most):
            return False
        self._tell(self._usable(rest))
        return True

    def _first(self, found: Numbers, gains: Floats) -> tuple[list[int], bool]:
        """The tasks with the largest sums that may be answered with, and whether there are no others."""
        most = self._limit + _MORE
        while True:
            over = most >= len(found)
            top = np.arange(len(found)) if over else np.argpartition(-gains, most)[:most]
            usable = self._usable(found[top[np.argsort(-gains[top], kind="stable")]])
            if over or len(usable) >= self._limit:
                return usable[: self._limit], over
            most *= 4

    def _usable(self, at: Numbers) -> list[int]:
        """The numbers of those that may be answered with."""
        numbers = self._tasks.numbers[at].tolist()
        for some in batches(number for number in numbers if number not in self._known):
            self._known |= _tasks(self._connection, self._scope, some)
        there = ((number, self._known.get(number)) for number in numbers)
        return [number for number, task in there if task and task.shown and number not in self._left_out]

    def _tell(self, numbers: Collection[int]) -> None:
        for some in batches((number for number in numbers if number not in self._told), size=_BATCH):
            found: dict[str, dict[int, int]] = {word: {} for word in self._held}
            for number, task in _texts(self._connection, some):
                held = counted(task)
                for word in held.keys() & found.keys():
                    found[word][number] = held[word]
            scope, lengths = self._scope, {number: self._known[number].words for number in some}
            told = scores(self._asked, found, lengths, documents=scope.documents, total=scope.words, holders=self._held)
            self._told |= {number: told.get(number, 0.0) for number in some}


def _tasks(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int]) -> dict[int, _Task]:
    """Words, whether shown, and age of tasks by row number."""
    rows = connection.execute(
        f"SELECT e.number, e.words, {SHOWS}, e.created_at FROM experiences e WHERE e.number {AMONG} AND +e.scope = ?",
        (among(sorted(numbers)), scope.number),
    )
    return {task.number: task for task in map(_Task._make, rows)}


def _texts(connection: sqlite3.Connection, numbers: Collection[int]) -> Iterable[tuple[int, str]]:
    return connection.execute(
        f"SELECT number, task FROM tasks WHERE number {AMONG}",
        (among(sorted(numbers)),),
    )

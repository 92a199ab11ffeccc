"""Finding the closest experiences of one scope by words: exact, and a very common word is read only if it must."""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Collection
from typing import Final

import numpy as np

from lessonbank.contracts.records import Match
from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import bounds, scores, whole, words

from ._lengths import Numbers
from ._rows import AMONG, SHOWS, ScopeRow, among, find_scope, found_at, numbers_of
from ._word_places import Tasks, counted

_SHARE: Final = 8
"""A word that one in so many tasks holds is read last, and only where the others leave open who is best."""
_SHORT: Final = 4096
"""A word of no more tasks is read at once: asking whether it must be read would cost more."""
_TEXTS: Final = 200
"""Tasks whose texts are read, rather than the lists of very common words."""
_MORE: Final = 4
"""Tasks looked at beyond the limit: ties with the last place are among them, or more are looked at."""
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
    best = _Asking(connection, here, asked, limit, left_out).best()
    experiences = found_at(connection, here, [number for *_, number in best])
    return [Match(experience=experiences[number], score=score) for score, _, number in best]


class _Asking:
    """One query: what the words read so far give each task, and which words are not read."""

    def __init__(
        self, connection: sqlite3.Connection, scope: ScopeRow, asked: list[str], limit: int, left_out: set[int]
    ) -> None:
        self._connection, self._scope, self._asked, self._limit = connection, scope, asked, limit
        self._left_out = left_out
        self._tasks = Tasks(connection, scope, frozenset(asked))
        every = dict.fromkeys(asked)
        self._unread = self._tasks.common(every, max(_SHORT, scope.documents // _SHARE))
        self._places = {word: self._tasks.places(word) for word in every if word not in self._unread}
        self._held = {word: len(places.at) for word, places in self._places.items()} | self._unread
        self._most = bounds(asked, self._held, documents=scope.documents)
        self._whole = whole(Counter(asked), self._most, documents=scope.documents, total=scope.words)
        self._sums = np.zeros(len(self._tasks.numbers))
        for word in self._places:
            self._add(word)

    def best(self) -> list[tuple[float, int, int]]:
        """Score, age and number of the best, best first."""
        most = self._limit + _MORE
        while True:
            found = np.flatnonzero(self._sums > 0.0)  # of what is true or false it finds it in a third of the time
            first = heapq.nlargest(self._limit, self._scored(self._first(found, most)))
            unread = sum(self._most[word] for word in self._unread)
            last = (first[-1][0] - _MARGIN) * self._whole if len(first) == self._limit else 0.0
            can_be = int(np.count_nonzero(self._sums[found] >= last - unread))
            if can_be <= most and (not unread or last > unread):
                return first
            if unread and (last <= unread or can_be > _TEXTS):
                self._read_one()
            else:
                most = min(can_be, 4 * most) if len(first) < self._limit else can_be

    def _add(self, word: str) -> None:
        at, times = self._places[word]
        self._sums[at] += self._most[word] * times / (times + self._tasks.drags(at))

    def _read_one(self) -> None:
        word = min(self._unread, key=lambda word: (self._unread[word], word))
        del self._unread[word]
        self._places[word] = self._tasks.places(word)
        self._add(word)

    def _first(self, found: Numbers, most: int) -> Numbers:
        """Return the rows of `found` with the largest sums, in the order of their numbers."""
        if most >= len(found):
            return found
        return np.sort(found[np.argpartition(-self._sums[found], most)[:most]])

    def _scored(self, at: Numbers) -> list[tuple[float, int, int]]:
        """Score, age and number of those of these tasks that may be answered with."""
        ages = _ages(self._connection, self._scope, self._tasks.numbers[at].tolist())
        shown = ages.keys() - self._left_out
        at = at[[number in shown for number in self._tasks.numbers[at].tolist()]]
        numbers = self._tasks.numbers[at].tolist()
        held = {word: places.of(at, numbers) for word, places in self._places.items()} | self._in_texts(numbers)
        lengths = dict(zip(numbers, self._tasks.words[at].tolist(), strict=True))
        scope = self._scope
        told = scores(self._asked, held, lengths, documents=scope.documents, total=scope.words, holders=self._held)
        return [(score, ages[number], number) for number, score in told.items()]

    def _in_texts(self, numbers: Collection[int]) -> dict[str, dict[int, int]]:
        """How often these tasks hold each word that is not read, by their texts."""
        held: dict[str, dict[int, int]] = {word: {} for word in self._unread}
        if held:
            sql = f"SELECT number, task FROM tasks WHERE number {AMONG}"
            for number, task in self._connection.execute(sql, (among(numbers),)):
                for word, times in counted(task).items():
                    if word in held:
                        held[word][number] = times
        return held


def _ages(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int]) -> dict[int, int]:
    """When each of these tasks was made that may be shown."""
    sql = f"SELECT e.number, e.created_at FROM experiences e WHERE e.number {AMONG} AND +e.scope = ? AND {SHOWS}"
    return dict(connection.execute(sql, (among(numbers), scope.number)))

"""Finding the closest experiences of one scope by words: exact, reading the lists of common words only when it must."""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from lessonbank.bm25 import add_gains, bounds, drag, scores, words
from lessonbank.stores._records import encodable
from lessonbank.types import Match

from ._derived import upto
from ._rows import AMONG, ScopeRow, among, experience_at, find_scope, numbers_of, term

_SHORT: Final = 512
"""A word that so few tasks hold is read at once: asking whether it must be read would cost more."""
_WORDS_PER_PLACE: Final = 8
"""Words of text that can be counted in the time one place is read from a list."""
_MARGIN: Final = 1e-6
"""Scores are rounded; a document this close to the last place is looked at, not bounded away."""


@dataclass(slots=True)
class _Field:
    """What is known so far: where the words that were read stand, and the tasks they stand in."""

    connection: sqlite3.Connection
    scope: ScopeRow
    left_out: Collection[int]
    tail: Mapping[str, Mapping[int, int]]
    """Where the words of the query stand in the tasks that the index does not hold yet."""
    postings: dict[str, Counter[int]] = field(default_factory=dict[str, Counter[int]])
    tasks: dict[int, tuple[int, bool, int]] = field(default_factory=dict[int, tuple[int, bool, int]])
    drags: dict[int, float] = field(default_factory=dict[int, float])
    sums: dict[int, float] = field(default_factory=dict[int, float])
    """What each task has at least."""

    def read(self, word: str, /, *, most: float = 0.0) -> None:
        """Add every task that holds `word`. A place without a record is left out: the index lost touch there."""
        places = self._places(word)
        found = _tasks(self.connection, self.scope, places.keys() - self.tasks.keys())
        mean = max(self.scope.words, 1) / max(self.scope.documents, 1)
        self.tasks |= found
        self.drags |= {number: drag(length / mean) for number, (length, _, _) in found.items()}
        self.postings[word] = Counter({number: count for number, count in places.items() if number in self.tasks})
        add_gains(self.sums, most, self.postings[word], self.drags)

    def _places(self, word: str) -> Counter[int]:
        rows = self.connection.execute("SELECT doc FROM word_places WHERE term = ?", (term(self.scope.number, word),))
        return Counter(chain.from_iterable(rows)) + Counter(self.tail.get(word, {}))

    def holders(self, word: str, /) -> int:
        """How many tasks hold a word."""
        row = self.connection.execute(
            "SELECT doc FROM word_counts WHERE term = ?", (term(self.scope.number, word),)
        ).fetchone()
        return (int(row[0]) if row else 0) + len(self.tail.get(word, {}))

    def complete(self, held: Mapping[str, int], /) -> None:
        """Count the words not read yet in the tasks found: in the tasks themselves, or in their lists if shorter."""
        missing = held.keys() - self.postings.keys()
        if sum(self.lengths.values()) < _WORDS_PER_PLACE * sum(held[word] for word in missing):
            self.postings |= self._counted(missing)
            return
        for word in missing:
            places = self._places(word)
            self.postings[word] = Counter({number: places[number] for number in places.keys() & self.tasks.keys()})

    def _counted(self, missing: Collection[str]) -> dict[str, Counter[int]]:
        counted: dict[str, Counter[int]] = {word: Counter() for word in missing}
        for number, task in _texts(self.connection, self.tasks.keys()):
            for word, count in Counter(w for w in words(task) if w in counted).items():
                counted[word][number] = count
        return counted

    def usable(self, number: int, /) -> bool:
        """Whether the task may be answered with."""
        return self.tasks[number][1] and number not in self.left_out

    @property
    def lengths(self) -> dict[int, int]:
        """Words per task."""
        return {number: length for number, (length, _, _) in self.tasks.items()}


def search(
    connection: sqlite3.Connection, query: str, /, *, scope: str, limit: int, exclude: Collection[str]
) -> list[Match]:
    """The closest active experiences by the words of their tasks.

    Rare words are read first. Once the last place is held by more than all unread words together could give, no task
    without a word already read can reach it (the MaxScore bound of Turtle and Flood 1995): the answer is the same.
    """
    here = find_scope(connection, scope)
    asked = words(query)
    left_out = set(numbers_of(connection, here, map(encodable, exclude)).values()) if exclude else set[int]()
    known = _Field(connection, here, left_out, _tail(connection, here, frozenset(asked)))
    held = _read_all(known, asked) if _rolled_back(connection, here) else _read_enough(known, asked, limit=limit)
    found = scores(asked, known.postings, known.lengths, documents=here.documents, total=here.words, holders=held)
    usable = ((score, known.tasks[number][2], number) for number, score in found.items() if known.usable(number))
    best = heapq.nlargest(max(limit, 0), usable)
    return [Match(experience=experience_at(connection, number), score=score) for score, _, number in best]


def _tail(connection: sqlite3.Connection, scope: ScopeRow, asked: Collection[str]) -> dict[str, Counter[int]]:
    rows = connection.execute(
        "SELECT e.number, t.task FROM experiences e JOIN tasks t ON t.number = e.number"
        " WHERE e.number > ? AND e.scope = ?",
        (upto(connection), scope.number),
    )
    found: dict[str, Counter[int]] = {}
    for number, task in rows:
        for word in words(task):
            if word in asked:
                found.setdefault(word, Counter())[number] += 1
    return found


def _rolled_back(connection: sqlite3.Connection, scope: ScopeRow) -> bool:
    """Whether some experiences are hidden: their words are still in the index, and its counts are too high."""
    row = connection.execute("SELECT EXISTS (SELECT 1 FROM experiences WHERE scope = ?)", (-scope.number,)).fetchone()
    return bool(row[0])


def _read_all(known: _Field, asked: list[str]) -> dict[str, int]:
    for word in dict.fromkeys(asked):
        known.read(word)
    return {word: len(places) for word, places in known.postings.items()}


def _read_enough(known: _Field, asked: list[str], *, limit: int) -> dict[str, int]:
    held = {word: known.holders(word) for word in dict.fromkeys(asked)}
    _read_what_decides(known, asked, held, limit=max(limit, 0))
    known.complete(held)
    return held


def _read_what_decides(known: _Field, asked: list[str], held: Mapping[str, int], *, limit: int) -> None:
    most = bounds(asked, held, documents=known.scope.documents)
    unread = sum(most.values())
    for word in sorted(most, key=lambda w: (held[w], w)):
        if held[word] > _SHORT and _decided(known, limit=limit, unread=unread):
            return
        known.read(word, most=most[word])
        unread -= most[word]


def _decided(known: _Field, *, limit: int, unread: float) -> bool:
    best = heapq.nlargest(limit, (gain for number, gain in known.sums.items() if known.usable(number)))
    return len(best) == limit > 0 and best[-1] > unread * (1.0 + _MARGIN) + _MARGIN


def _tasks(
    connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int]
) -> dict[int, tuple[int, bool, int]]:
    """Words, whether active, and age of tasks by row number."""
    rows = connection.execute(
        f"SELECT number, words, active, created_at FROM experiences WHERE number {AMONG} AND +scope = ?",
        (among(sorted(numbers)), scope.number),
    )
    return {number: (length, bool(active), created_at) for number, length, active, created_at in rows}


def _texts(connection: sqlite3.Connection, numbers: Collection[int]) -> Iterable[tuple[int, str]]:
    return connection.execute(
        f"SELECT number, task FROM tasks WHERE number {AMONG}",
        (among(sorted(numbers)),),
    )

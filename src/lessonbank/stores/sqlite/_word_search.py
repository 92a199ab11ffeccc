"""Finding the closest experiences of one scope by words: exact, reading the lists of common words only when it must."""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from lessonbank._batches import batches
from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import add_gains, bounds, drag, scores, whole, words
from lessonbank.types import Match

from ._derived import upto
from ._rows import AMONG, SHOWS, ScopeRow, among, find_scope, found_at, numbers_of, term
from ._word_sums import Floats, Numbers, sums

_SHORT: Final = 512
"""A word that so few tasks hold is read at once: asking whether it must be read would cost more."""
_BATCH: Final = 64
"""Tasks whose text is read at once, the most promising first, or that are scored at once."""
_FIRST: Final = 16
"""Texts that are read first, then twice as many each time, up to a batch: the best are mostly among the first few."""
_PLACES_PER_TEXT: Final = 12
"""Places that can be read from a list in the time that the words of one text are counted."""
_PART: Final = 64
"""When one place is read for so many tasks of the scope, and more must be, all sums are made at once."""
_MORE: Final = 32
"""Tasks looked at beyond the limit where all sums are made: ties with the last place are among them."""
_USUAL: Final = 20_000
"""Characters of a task whose words are kept for a while."""
_MARGIN: Final = 1e-6
"""Scores are rounded; a document this close to the last place is looked at, not bounded away."""


@dataclass(slots=True)
class _Field:
    """What is known so far of the tasks that hold a word of the query."""

    connection: sqlite3.Connection
    scope: ScopeRow
    left_out: Collection[int]
    tail: Mapping[str, Mapping[int, int]]
    """Where the words of the query stand in the tasks that the index does not hold yet."""
    tasks: dict[int, _Task] = field(default_factory=dict[int, "_Task"])
    drags: dict[int, float] = field(default_factory=dict[int, float])
    sums: dict[int, float] = field(default_factory=dict[int, float])
    """What each task has at least."""

    def read(self, most: Mapping[str, float], /) -> dict[str, dict[int, int]]:
        """Add every task that holds one of these words, each with what it gives at most; how often each does.

        A place without a record is left out: the index lost touch there.
        """
        places = {word: self._places(word) for word in most}
        for some in batches({number for held in places.values() for number in held if number not in self.tasks}):
            self.know(some)
        found = {word: {n: count for n, count in held.items() if n in self.tasks} for word, held in places.items()}
        for word, held in found.items():
            for part in batches(held.items()):
                add_gains(self.sums, most[word], dict(part), self.drags)
        return found

    def know(self, numbers: Collection[int], /) -> None:
        """Read how long these tasks are, and whether they are shown."""
        found = _tasks(self.connection, self.scope, numbers)
        mean = max(self.scope.words, 1) / max(self.scope.documents, 1)
        drags = {length: drag(length / mean) for length in {task.words for task in found.values()}}
        self.tasks |= found
        self.drags |= {number: drags[task.words] for number, task in found.items()}

    def _places(self, word: str) -> Counter[int]:
        rows = self.connection.execute("SELECT doc FROM word_places WHERE term = ?", (term(self.scope.number, word),))
        found: Counter[int] = Counter(chain.from_iterable(rows))
        found.update(self.tail.get(word, {}))
        return found

    def holders(self, word: str, /) -> int:
        """How many tasks hold a word."""
        row = self.connection.execute(
            "SELECT doc FROM word_counts WHERE term = ?", (term(self.scope.number, word),)
        ).fetchone()
        return (int(row[0]) if row else 0) + len(self.tail.get(word, {}))

    def usable(self, number: int, /) -> bool:
        """Whether the task may be answered with."""
        return self.tasks[number].shown and number not in self.left_out


def search(
    connection: sqlite3.Connection,
    /,
    query: str,
    *,
    scope: str,
    limit: int,
    exclude: Collection[str],
) -> list[Match]:
    """The closest active experiences by the words of their tasks.

    Rare words are read first. Once the last place is held by more than all unread words together could give, no task
    without a word already read can reach it (the MaxScore bound of Turtle and Flood 1995): the answer is the same.
    """
    here = find_scope(connection, scope)
    asked = words(query)
    left_out = set(numbers_of(connection, here, map(encodable, exclude)).values()) if exclude else set[int]()
    known = _Field(connection, here, left_out, _tail(connection, here, frozenset(asked)))
    found = _all(known, asked) if _rolled_back(connection, here) else _Asking(known, asked, limit).found()
    usable = ((score, known.tasks[n].created_at, n) for n, score in found.items() if known.usable(n))
    best = heapq.nlargest(max(limit, 0), usable)
    experiences = found_at(connection, here, [number for *_, number in best])
    return [Match(experience=experiences[number], score=score) for score, _, number in best]


def _all(known: _Field, asked: list[str]) -> dict[int, float]:
    """The score of every task with a word of the query."""
    postings = known.read(dict.fromkeys(asked, 0.0))
    holders = {word: len(held) for word, held in postings.items()}
    scope, found = known.scope, dict[int, float]()
    for some in batches(known.tasks, size=_BATCH):
        here = {word: {n: held[n] for n in some if n in held} for word, held in postings.items()}
        lengths = {n: known.tasks[n].words for n in some}
        found |= scores(asked, here, lengths, documents=scope.documents, total=scope.words, holders=holders)
    return found


class _Asking:
    """One query: the lists of its words are read from the rarest on, and the texts of the most promising tasks.

    What a text scores is known exactly once it is read. No other task can reach the last place when what it has so far
    and what all unread words could add fall short of it.
    """

    def __init__(self, known: _Field, asked: list[str], limit: int) -> None:
        self._known, self._asked, self._limit = known, asked, max(limit, 0)
        self._held = {word: known.holders(word) for word in dict.fromkeys(asked)}
        self._most = bounds(asked, self._held, documents=known.scope.documents)
        scope = known.scope
        self._whole = whole(Counter(asked), self._most, documents=scope.documents, total=scope.words)
        self._told: dict[int, float] = {}
        self._next = _FIRST

    def found(self) -> dict[int, float]:
        """The scores of the tasks that can be among the best."""
        rarest, room = sorted(self._most, key=lambda w: (self._held[w], w)), self._known.scope.documents // _PART
        short = {word: self._most[word] for word in rarest if self._held[word] <= _SHORT}
        read, room = sum(self._held[word] for word in short), max(_SHORT, room)
        if read > room:
            return self._all_at_once()
        self._known.read(short)
        unread = sum(self._most.values()) - sum(short.values())
        for word in rarest[len(short) :]:
            if self._worth_no_more(self._held[word], unread):
                break
            read += self._held[word]
            if read > room:
                return self._all_at_once()
            self._known.read({word: self._most[word]})
            unread -= self._most[word]
        while self._tell_some(unread):
            pass
        return self._told

    def _all_at_once(self) -> dict[int, float]:
        known, most = self._known, self._limit + _MORE
        numbers, gains = sums(known.connection, known.scope, self._most, known.tail)
        found = np.flatnonzero(gains)
        while self._limit:
            top = found[np.argpartition(-gains[found], most)[:most]] if most < len(found) else found
            self._tell_usable(numbers[top].tolist())
            if most >= len(found) or self._are_enough(numbers[top], gains[top]):
                break
            most *= 4
        return self._told

    def _tell_usable(self, numbers: Collection[int]) -> None:
        known = self._known
        known.know([n for n in numbers if n not in known.tasks])
        self._tell([n for n in numbers if n not in self._told and known.usable(n)])

    def _are_enough(self, numbers: Numbers, gains: Floats) -> bool:
        """Whether as many as are asked for are surely better than what was not looked at."""
        least = gains.min() + _MARGIN * self._whole
        better = sum(self._known.usable(n) for n in numbers[gains > least].tolist())
        return better >= self._limit

    def _worth_no_more(self, places: int, unread: float) -> bool:
        """Whether no task outside can be among the best, and the texts of the others are read sooner than a list."""
        self._tell_some(unread)
        last = self._last_place()
        if last is None or unread / self._whole >= last - _MARGIN:
            return False
        return len(self._promising(unread, 1 + places // _PLACES_PER_TEXT)) <= places // _PLACES_PER_TEXT

    def _tell_some(self, unread: float) -> bool:
        """Read the texts of the most promising tasks; whether there were any."""
        batch, self._next = self._promising(unread, self._next), min(2 * self._next, _BATCH)
        self._tell(batch)
        return bool(batch)

    def _promising(self, unread: float, most: int) -> list[int]:
        """Up to `most` tasks that may yet be among the best, and whose texts were not read; the best first."""
        last = self._last_place()
        least = -1.0 if last is None else (last - _MARGIN) * self._whole - unread
        sums, told, usable = self._known.sums, self._told, self._known.usable
        open_ = ((gain, n) for n, gain in sums.items() if gain >= least and n not in told and usable(n))
        return [number for _, number in heapq.nlargest(most, open_)]

    def _last_place(self) -> float | None:
        best = heapq.nlargest(self._limit, self._told.values())
        return best[-1] if len(best) == self._limit > 0 else (None if self._limit else 2.0)

    def _tell(self, numbers: Collection[int]) -> None:
        if not numbers:
            return
        counted: dict[str, dict[int, int]] = {word: {} for word in self._held}
        for number, task in _texts(self._known.connection, numbers):
            held = _held(task)
            for word in held.keys() & counted.keys():
                counted[word][number] = held[word]
        scope, tasks = self._known.scope, self._known.tasks
        lengths = {number: tasks[number].words for number in numbers}
        told = scores(self._asked, counted, lengths, documents=scope.documents, total=scope.words, holders=self._held)
        self._told |= {number: told.get(number, 0.0) for number in numbers}


def _tail(connection: sqlite3.Connection, scope: ScopeRow, asked: frozenset[str]) -> dict[str, Counter[int]]:
    rows = connection.execute(
        "SELECT e.number, t.task FROM experiences e JOIN tasks t ON t.number = e.number"
        " WHERE e.number > ? AND +e.scope = ?",
        (upto(connection), scope.number),
    )
    found: dict[str, Counter[int]] = {}
    for number, task in rows:
        held = _held(task)
        for word in held.keys() & asked:
            found.setdefault(word, Counter())[number] = held[word]
    return found


def _held(task: str) -> Mapping[str, int]:
    """How often a task holds each word."""
    return _counted(task) if len(task) <= _USUAL else Counter(words(task))


@lru_cache(maxsize=128)
def _counted(task: str) -> Mapping[str, int]:
    # Those that the index does not hold yet are read by each search.
    return Counter(words(task))


def _rolled_back(connection: sqlite3.Connection, scope: ScopeRow) -> bool:
    """Whether some experiences are hidden: their words are still in the index, and its counts are too high."""
    row = connection.execute("SELECT EXISTS (SELECT 1 FROM experiences WHERE scope = ?)", (-scope.number,)).fetchone()
    return bool(row[0])


class _Task(NamedTuple):
    number: int
    words: int
    shown: bool
    created_at: int


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

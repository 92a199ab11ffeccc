"""The closest experiences of one scope by words; very common words are read only if they must be."""

from __future__ import annotations

import heapq
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Match
from lessonbank.errors import StoreDamaged
from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import K1, B, bounds, full_score, scores, words

from ._rows import AMONG, REPEATED, SHOWS, ScopeRow, among, find_scope, found_at, journal_number, numbers_of, term

_Array = np.ndarray[Any, np.dtype[Any]]

_SHORT: Final = 4096
_SHARE: Final = 8
"""A word of more tasks than that, and than one in so many, is read only where the others leave open who is best."""
_MORE: Final = 8
"""Tasks beyond the limit whose texts are read, too: what the others leave open is mostly decided by these."""
_TEXTS: Final = 200
"""Tasks whose texts are read, rather than the lists of very common words."""
_FULL: Final = 1000
"""Lengths of tasks in one row: where their numbers follow one another, it fits into one page."""
_LAST: Final = (1 << 32) - 1
_LENGTHS: Final = "SELECT number, numbers, words FROM lengths WHERE number BETWEEN ? AND ? ORDER BY number"
_WITH: Final = "FROM word_index WHERE word_index MATCH ?"


def search(
    connection: sqlite3.Connection, /, query: str, *, scope: str, limit: int, exclude: Collection[str]
) -> list[Match]:
    """The closest shown experiences by the words of their tasks; of very many equal ones, those that came last.

    Rare words are read first. Once the last place is held by more than all unread words together could give to what
    was not looked at, nothing else can reach it (the MaxScore bound of Turtle and Flood 1995).
    """
    here, asked = find_scope(connection, scope), words(query)
    if not asked or limit <= 0:
        return []
    left_out = set(numbers_of(connection, here, map(encodable, exclude)).values()) if exclude else set[int]()
    best = _Asking(connection, here, asked, left_out).best(limit)
    experiences = found_at(connection, here, [number for *_, number in best])
    return [Match(experience=experiences[number], score=score) for score, _, number in best]


class _Asking:
    """One query: what the words read so far give each task of the scope, and which words are not read."""

    def __init__(
        self, connection: sqlite3.Connection, scope: ScopeRow, asked: list[str], left_out: Collection[int]
    ) -> None:
        self._connection, self._scope, self._asked, self._left_out = connection, scope, asked, left_out
        self._numbers, self._lengths, self._tail, is_whole = _tasks(connection, scope, frozenset(asked))
        self._is_unbroken = bool(len(self._numbers)) and self._numbers[-1] - self._numbers[0] == len(self._numbers) - 1
        self._sums = np.zeros(len(self._numbers))
        most = max(_SHORT, scope.documents // _SHARE) if is_whole else _LAST
        common = dict.fromkeys(asked) if len(self._numbers) > most else ()
        self._unread = {word: held for word in common if (held := self._count(word, most)) > most}
        places = {word: self._places(word) for word in dict.fromkeys(asked) if word not in self._unread}
        self._held = {word: len(at) for word, (at, _) in places.items()} | self._unread
        self._most = bounds(asked, self._held, documents=scope.documents)
        for word, (at, times) in places.items():
            self._add(word, at, times)

    def best(self, limit: int, /) -> list[tuple[float, int, int]]:
        """Score, age and number of the best, best first."""
        full = full_score(Counter(self._asked), self._most, documents=self._scope.documents, total=self._scope.words)
        most = limit + _MORE
        while True:
            positions = np.flatnonzero(self._sums > 0.0)  # of what is true or false it finds it in a third of the time
            shares = np.round(np.minimum(self._sums[positions] / full, 1.0), 9)
            least = np.partition(shares, -most)[-most] if most < len(positions) else 0.0
            top = np.concatenate((positions[shares > least], positions[shares == least][::-1]))[:most]
            first = heapq.nlargest(limit, self._scored(top))
            last = first[-1][0] - sum(map(self._most.__getitem__, self._unread)) / full if len(first) == limit else 0.0
            can_be = int(np.count_nonzero(shares >= last)) if last > 0.0 or not self._unread else _LAST
            if can_be <= most or (len(first) == limit and not self._unread):
                return first
            if not self._unread:
                most *= 4
            elif can_be <= _TEXTS:
                most = can_be
            else:
                for word in self._unread:
                    self._add(word, *self._places(word))
                self._unread = {}

    def _count(self, word: str, most: int) -> int:
        """How many tasks hold a word; where it is not more than `most`, a smaller number will do."""
        name, tail = f'"{term(self._scope.number, word)}"', len(self._tail.get(word, {}))
        sql = f"SELECT count(*) {_WITH}"
        # The index is read from its beginning: one task in sixteen, the first ones, tells which words are common.
        early = f"{sql} AND rowid <= ?"
        (few,) = self._connection.execute(early, (name, int(self._numbers[len(self._numbers) // 16]))).fetchone()
        return self._connection.execute(sql, (name,)).fetchone()[0] + tail if few * 16 > most else 0

    def _places(self, word: str) -> tuple[_Array, _Array]:
        """The tasks that hold a word, by their place in `_numbers`, and how often each does.

        A number without a record is left out: the index lost touch there.
        """
        name = term(self._scope.number, word)
        (text,) = self._connection.execute(f"SELECT group_concat(rowid) {_WITH}", (f'"{name}"',)).fetchone()
        numbers, tail = numbers_in(text), self._tail.get(word, {})
        times = np.ones(len(numbers))
        sql = "SELECT term, group_concat(doc) FROM word_places WHERE term >= ? AND term < ? GROUP BY term"
        ends = name + REPEATED, name + chr(ord(REPEATED) + 1)
        for marked, again in self._connection.execute(sql, ends) if len(numbers) else ():
            at = np.searchsorted(numbers, numbers_in(again))
            times[at[at < len(numbers)]] = int(marked.rpartition(REPEATED)[2])
        if tail:
            numbers = np.concatenate((numbers, np.array([*tail], np.int64)))
            times = np.concatenate((times, np.array([*tail.values()], np.float64)))
        if not len(self._numbers):
            return numbers[:0], times[:0]
        at = numbers - self._numbers[0] if self._is_unbroken else np.searchsorted(self._numbers, numbers)
        there = (at >= 0) & (at < len(self._numbers))
        there[there] = self._numbers[at[there]] == numbers[there]
        return (at, times) if there.all() else (at[there], times[there])

    def _add(self, word: str, at: _Array, times: _Array) -> None:
        mean = max(self._scope.words, 1) / max(self._scope.documents, 1)
        self._sums[at] += self._most[word] * times / (times + (K1 * (1 - B) + K1 * B / mean * self._lengths[at]))

    def _scored(self, at: _Array) -> list[tuple[float, int, int]]:
        """Score, age and number of those of these tasks that may be answered with: by their texts."""
        sql = (
            "SELECT e.number, e.created_at, t.task FROM experiences e JOIN tasks t ON t.number = e.number"
            f" WHERE e.number {AMONG} AND +e.scope = ? AND {SHOWS}"
        )
        rows = self._connection.execute(sql, (among(self._numbers[at].tolist()), self._scope.number))
        known = {number: (age, count_words(task)) for number, age, task in rows if number not in self._left_out}
        task_scores = scores(
            self._asked,
            {word: {n: held[word] for n, (_, held) in known.items() if word in held} for word in self._held},
            {number: sum(held.values()) for number, (_, held) in known.items()},
            documents=self._scope.documents,
            total=self._scope.words,
            holders=self._held,
        )
        return [(score, known[number][0], number) for number, score in task_scores.items()]


def _tasks(
    connection: sqlite3.Connection, scope: ScopeRow, asked: frozenset[str]
) -> tuple[_Array, _Array, dict[str, dict[int, int]], bool]:
    """Number and length of the tasks of a scope; where `asked` words stand in those that the index does not hold yet.

    And whether that is all the index has: a rollback takes tasks out that stay in it.
    """
    rows = connection.execute(
        "SELECT e.number, e.words, t.task FROM experiences e JOIN tasks t ON t.number = e.number"
        " WHERE e.number > coalesce((SELECT upto FROM indexed), 0) AND +e.scope = ? ORDER BY e.number",
        (scope.number,),
    )
    tail, waiting = dict[str, dict[int, int]](), list[tuple[int, int]]()
    for number, length, task in rows:
        waiting.append((number, length))
        held = count_words(task)
        for word in held.keys() & asked:
            tail.setdefault(word, {})[number] = held[word]
    span = journal_number(scope.number, 0), journal_number(scope.number, _LAST)
    late = np.array(waiting, np.uint32).reshape(-1, 2).T
    both = zip(lengths_in(connection.execute(_LENGTHS, span).fetchall()), late, strict=True)
    numbers, lengths = (np.concatenate(each) for each in both)
    sql = "SELECT number FROM experiences WHERE scope = ?"
    hidden = [number for (number,) in connection.execute(sql, (-scope.number,))]
    there = ~np.isin(numbers, hidden, assume_unique=True) if hidden else slice(None)
    return numbers[there], lengths[there], tail, not hidden


def count_words(task: str, /) -> Mapping[str, int]:
    """How often a task holds each word. Those of a usual size are kept for a while: each search reads the tail."""
    return _count_short(task) if len(task) <= 20_000 else Counter(words(task))


@lru_cache(maxsize=128)
def _count_short(task: str) -> Mapping[str, int]:
    return Counter(words(task))


def numbers_in(text: str | None, /) -> _Array:
    """The numbers of a text that has a comma between each two."""
    # One text of many numbers is read several times as fast as a row for each.
    return np.fromstring(text or "", dtype=np.int64, sep=",")


def lengths_in(rows: Sequence[tuple[int, bytes | None, bytes]], /) -> tuple[_Array, _Array]:
    """Number and length of the tasks in rows of `lengths`.

    Raises:
        StoreDamaged: one is not what was written.
    """
    numbers, lengths = [np.empty(0, np.int64)], [np.empty(0, np.uint32)]
    for row, named, packed in rows:
        first = row % (1 << 32)
        there = named is None or (len(named) == len(packed) and named[:4] == first.to_bytes(4, "little"))
        if len(packed) % 4 or not there:
            raise StoreDamaged("the lengths of tasks are not what was written")
        lengths.append(np.frombuffer(packed, "<u4"))
        numbers.append(np.arange(first, first + len(lengths[-1])) if named is None else np.frombuffer(named, "<u4"))
    return np.concatenate(numbers), np.concatenate(lengths)


def add_lengths(connection: sqlite3.Connection, after: int, last: int = _LAST, /) -> None:
    """Put in the tasks behind number `after`, up to `last`; none of them is there."""
    sql = "SELECT abs(scope) AS s, number, words FROM experiences WHERE number BETWEEN ? AND ? ORDER BY s, number"
    for scope, these in groupby(connection.execute(sql, (after + 1, last)), itemgetter(0)):
        begun = _row_of(connection, scope, _LAST)
        held = begun if len(begun) < _FULL else []
        for row in batches(chain(held, (each[1:] for each in these)), size=_FULL):
            _put(connection, scope, row)


def set_length(connection: sqlite3.Connection, scope: int, number: int, words: int | None, /) -> None:
    """Say anew how many words a task has that is there; with None it goes."""
    row = dict(_row_of(connection, scope, number))
    if number in row:
        connection.execute("DELETE FROM lengths WHERE number = ?", (journal_number(scope, next(iter(row))),))
        row |= {number: words}
        _put(connection, scope, [(number, length) for number, length in row.items() if length is not None])


def _row_of(connection: sqlite3.Connection, scope: int, number: int) -> list[tuple[int, int]]:
    """The row that holds a task, or would; an empty one where there is none."""
    span = journal_number(scope, 0), journal_number(scope, number)
    row = connection.execute(f"{_LENGTHS} DESC LIMIT 1", span).fetchone()
    return list(zip(*(each.tolist() for each in lengths_in([row])), strict=True)) if row else []


def _put(connection: sqlite3.Connection, scope: int, row: Sequence[tuple[int, int]]) -> None:
    if not row:
        return
    numbers, lengths = np.array(row, "<u4").T
    broken = None if numbers[-1] - numbers[0] == len(row) - 1 else numbers.tobytes()
    connection.execute(
        "INSERT OR REPLACE INTO lengths (number, numbers, words) VALUES (?, ?, ?)",
        (journal_number(scope, row[0][0]), broken, lengths.tobytes()),
    )

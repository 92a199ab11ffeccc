"""Where the words of a query stand in the tasks of one scope: what a search by words reads of the indexes."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from lessonbank.text.bm25 import K1, B, words

from ._derived import upto
from ._lengths import Numbers, lengths_of
from ._rows import REPEATED, ScopeRow, term

Floats = npt.NDArray[np.float64]

_USUAL: Final = 20_000
"""Characters of a task whose words are kept for a while."""
_SAMPLE: Final = 16
"""One task in so many, the first ones, tells which words are common: the index is read from its beginning."""
_END: Final = chr(ord(REPEATED) + 1)
_WITH: Final = "FROM word_index WHERE word_index MATCH ?"


class Places(NamedTuple):
    """A word's tasks, by their place in `Tasks.numbers`, and how often each holds it."""

    at: Numbers
    times: Floats

    def of(self, wanted: Numbers, names: Sequence[int], /) -> dict[int, int]:
        """How often each of these tasks holds the word that does at all, by its name."""
        if not len(self.at):
            return {}
        found = np.minimum(np.searchsorted(self.at, wanted), len(self.at) - 1)
        there = np.flatnonzero(self.at[found] == wanted).tolist()
        times = self.times[found].astype(int).tolist()
        return {names[one]: times[one] for one in there}


class Tasks:
    """The tasks of a scope, those left out that a rollback took out, and what each word finds among them."""

    def __init__(self, connection: sqlite3.Connection, scope: ScopeRow, asked: frozenset[str], /) -> None:
        self._connection, self._scope = connection, scope
        self._tail, waiting = _tail(connection, scope, asked)
        numbers, lengths = lengths_of(connection, scope.number)
        if waiting:
            numbers = np.concatenate((numbers, np.array([*waiting], np.int64)))
            lengths = np.concatenate((lengths, np.array([*waiting.values()], np.uint32)))
        hidden = _hidden(connection, scope)
        if len(hidden):
            there = ~np.isin(numbers, hidden, assume_unique=True)
            numbers, lengths = numbers[there], lengths[there]
        self.numbers, self.words, self._whole = numbers, lengths, not len(hidden)
        self._unbroken = bool(len(numbers)) and int(numbers[-1] - numbers[0]) == len(numbers) - 1

    def common(self, asked: Iterable[str], most: int, /) -> dict[str, int]:
        """The words that more than `most` tasks hold, as far as a sample tells, and how many hold each.

        None where a rollback took tasks out: the index still counts them.
        """
        if len(self.numbers) <= most or not self._whole:
            return {}
        first, early, last = (int(self.numbers[at]) for at in (0, len(self.numbers) // _SAMPLE, -1))
        likely = [word for word in asked if self._count(word, first, early) * _SAMPLE > most]
        held = {word: self._count(word, first, last) + len(self._tail.get(word, {})) for word in likely}
        return {word: count for word, count in held.items() if count > most}

    def places(self, word: str, /) -> Places:
        """The tasks that hold a word. A place without a record is left out: the index lost touch there."""
        sql, name = f"SELECT group_concat(rowid) {_WITH}", term(self._scope.number, word)
        numbers = numbers_in(*self._connection.execute(sql, (f'"{name}"',)).fetchone())
        times = np.ones(len(numbers))
        for often, again in self._repeated(name):
            at = np.searchsorted(numbers, again)
            times[at[at < len(numbers)]] = often
        waiting = self._tail.get(word, {})
        if waiting:
            numbers = np.concatenate((numbers, np.array([*waiting], np.int64)))
            times = np.concatenate((times, np.array([*waiting.values()], np.float64)))
        return self._find_places(numbers, times)

    def drags(self, at: Numbers, /) -> Floats:
        """What the length of each of these tasks adds to the denominator of BM25's term saturation."""
        mean = max(self._scope.words, 1) / max(self._scope.documents, 1)
        return K1 * (1 - B) + K1 * B / mean * self.words[at].astype(np.float64)

    def _count(self, word: str, first: int, last: int) -> int:
        sql = f"SELECT count(*) {_WITH} AND rowid BETWEEN ? AND ?"
        return int(self._connection.execute(sql, (f'"{term(self._scope.number, word)}"', first, last)).fetchone()[0])

    def _repeated(self, name: str) -> Iterator[tuple[int, Numbers]]:
        sql = "SELECT term, group_concat(doc) FROM word_places WHERE term >= ? AND term < ? GROUP BY term"
        for marked, numbers in self._connection.execute(sql, (name + REPEATED, name + _END)):
            yield int(marked.rpartition(REPEATED)[2]), numbers_in(numbers)

    def _find_places(self, numbers: Numbers, times: Floats) -> Places:
        if not len(self.numbers):
            return Places(numbers[:0], times[:0])
        at = numbers - self.numbers[0] if self._unbroken else np.searchsorted(self.numbers, numbers)
        there = (at >= 0) & (at < len(self.numbers))
        there[there] = self.numbers[at[there]] == numbers[there]
        return Places(at, times) if there.all() else Places(at[there], times[there])


def _hidden(connection: sqlite3.Connection, scope: ScopeRow) -> Numbers:
    """What a rollback took out: its words are still in the index."""
    rows = connection.execute("SELECT number FROM experiences WHERE scope = ?", (-scope.number,))
    return np.array([number for (number,) in rows], np.int64)


def _tail(
    connection: sqlite3.Connection, scope: ScopeRow, asked: frozenset[str]
) -> tuple[dict[str, dict[int, int]], dict[int, int]]:
    """Where words stand in the tasks that the index does not hold yet, and how many words each of these has."""
    rows = connection.execute(
        "SELECT e.number, e.words, t.task FROM experiences e JOIN tasks t ON t.number = e.number"
        " WHERE e.number > ? AND +e.scope = ? ORDER BY e.number",
        (upto(connection), scope.number),
    )
    found, lengths = dict[str, dict[int, int]](), dict[int, int]()
    for number, length, task in rows:
        held, lengths[number] = counted(task), length
        for word in held.keys() & asked:
            found.setdefault(word, {})[number] = held[word]
    return found, lengths


def counted(task: str, /) -> Mapping[str, int]:
    """How often a task holds each word."""
    return _counted(task) if len(task) <= _USUAL else Counter(words(task))


@lru_cache(maxsize=128)
def _counted(task: str) -> Mapping[str, int]:
    # Those that the index does not hold yet are read by each search.
    return Counter(words(task))


def numbers_in(text: str | None, /) -> Numbers:
    """The numbers of a text that has a comma between each two."""
    # One text of many numbers is read several times as fast as a row for each.
    return np.fromstring(text or "", dtype=np.int64, sep=",")

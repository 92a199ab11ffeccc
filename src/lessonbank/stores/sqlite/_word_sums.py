"""The sums of every task that holds a word of a query, all at once: what is quicker where common words decide."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from lessonbank.text.bm25 import K1, B

from ._rows import ScopeRow, term

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_ALONE: Final = 4
"""A scope with less than one in so many experiences of the file is read by its index, a larger one with the others."""


def sums(
    connection: sqlite3.Connection, scope: ScopeRow, most: Mapping[str, float], tail: Mapping[str, Mapping[int, int]], /
) -> tuple[Numbers, Floats]:
    """The experiences of a scope, and what each adds up to, not yet as a share of the query's own; 0 without a word.

    `most`: the bound of each word. `tail`: where words stand in the tasks that the index does not hold yet. The sums
    are made in another order than `scores` makes them. A place without a record counts nowhere.
    """
    numbers, lengths = _lengths(connection, scope)
    mean = max(scope.words, 1) / max(scope.documents, 1)
    drags = K1 * (1 - B) + K1 * B / mean * lengths
    found = np.zeros(len(numbers))
    for word, bound in most.items():
        at, times = _places(connection, scope, word, tail.get(word, {}))
        index = np.searchsorted(numbers, at)
        index[index == len(numbers)] = 0
        there = numbers[index] == at if len(numbers) else np.zeros(len(at), dtype=bool)
        index, times = index[there], times[there]
        found[index] += bound * times / (times + drags[index])
    return numbers, found


def _places(
    connection: sqlite3.Connection, scope: ScopeRow, word: str, tail: Mapping[int, int]
) -> tuple[Numbers, Numbers]:
    """The tasks that hold a word, and how often each does."""
    sql = "SELECT group_concat(doc) FROM word_places WHERE term = ?"
    (text,) = connection.execute(sql, (term(scope.number, word),)).fetchone()
    at, times = np.unique(_read(text), return_counts=True)
    waiting = np.array([*tail], dtype=np.int64), np.array([*tail.values()], dtype=np.int64)
    return np.concatenate((at, waiting[0])), np.concatenate((times, waiting[1]))


def _lengths(connection: sqlite3.Connection, scope: ScopeRow) -> tuple[Numbers, Numbers]:
    """The experiences of a scope in the order of their numbers, and the words of each task."""
    (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM experiences").fetchone()
    where = "scope" if scope.documents * _ALONE < last else "+scope"
    sql = f"SELECT group_concat(number), group_concat(words) FROM experiences WHERE {where} = ?"
    numbers, lengths = map(_read, connection.execute(sql, (scope.number,)).fetchone())
    order = np.argsort(numbers)
    return numbers[order], lengths[order]


def _read(text: str | None) -> Numbers:
    # One text of many numbers is read several times as fast as a row for each.
    return np.fromstring(text or "", dtype=np.int64, sep=",")

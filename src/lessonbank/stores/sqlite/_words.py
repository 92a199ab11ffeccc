"""The closest experiences of one scope by words: which tasks hold a word, from the index and from those behind it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Final

import numpy as np

from lessonbank.contracts.records import Match
from lessonbank.stores._words import Places, best_tasks
from lessonbank.text.bm25 import words

from ._arrays import numbers_in
from ._rows import (
    AMONG,
    LENGTHS,
    REPEATED,
    ScopeRow,
    among,
    find_scope,
    found_at,
    shown_at,
    term,
)

_PLACE: Final = np.dtype([("number", "i8"), ("times", "i8"), ("words", "i8")])


def search(connection: sqlite3.Connection, /, query: str, *, scope: str, limit: int) -> list[Match]:
    """The closest shown experiences by the words of their tasks; of very many equal ones, those that came last."""
    here, asked = find_scope(connection, scope), words(query)
    if not asked or limit <= 0:
        return []
    look, places = partial(shown_at, connection, here), _places(connection, here, frozenset(asked))
    best = best_tasks(asked, places, look, documents=here.documents, total=here.words, limit=limit)
    experiences = found_at(connection, here, [number for *_, number in best])
    return [Match(experience=experiences[number], score=score) for score, _, number in best]


def _places(connection: sqlite3.Connection, scope: ScopeRow, asked: frozenset[str]) -> dict[str, Places]:
    """Where the scope has each word, without what a rollback took out: that stays in the index."""
    late = _waiting(connection, scope, asked)
    hidden = connection.execute("SELECT number FROM experiences WHERE scope = ?", (-scope.number,)).fetchall()
    places = dict[str, Places]()
    for word in asked:
        held = _indexed(connection, term(scope.number, word))
        held = held[~np.isin(held["number"], [number for (number,) in hidden])] if hidden else held
        places[word] = np.concatenate((held, np.array(late[word], _PLACE))) if word in late else held
    return places


def _waiting(
    connection: sqlite3.Connection, scope: ScopeRow, asked: frozenset[str]
) -> dict[str, list[tuple[int, int, int]]]:
    """Where the tasks that are not in the index yet have each word."""
    rows = connection.execute(
        "SELECT e.number, e.words, t.task FROM experiences e JOIN tasks t ON t.number = e.number"
        " WHERE e.number > coalesce((SELECT upto FROM indexed), 0) AND +e.scope = ? ORDER BY e.number",
        (scope.number,),
    )
    late = dict[str, list[tuple[int, int, int]]]()
    for number, length, task in rows:
        held = count_words(task)
        for word in held.keys() & asked:
            late.setdefault(word, []).append((number, held[word], length))
    return late


def count_words(task: str, /) -> Mapping[str, int]:
    """How often a task holds each word. Those of a usual size are kept for a while: each search reads the tail."""
    return _count_short(task) if len(task) <= 20_000 else Counter(words(task))


@lru_cache(maxsize=128)
def _count_short(task: str) -> Mapping[str, int]:
    return Counter(words(task))


def _indexed(connection: sqlite3.Connection, name: str) -> Places:
    """Where the index has a term: once for each task, and once more where a task holds it more than once."""
    sql = "SELECT group_concat(rowid) FROM word_index WHERE word_index MATCH ?"
    rows = numbers_in(connection.execute(sql, (f'"{name}"',)).fetchone()[0])
    held = np.ones(len(rows), _PLACE)
    held["number"], held["words"] = rows // LENGTHS, rows & (LENGTHS - 1)
    sql = "SELECT term, group_concat(doc) FROM word_places WHERE term >= ? AND term < ? GROUP BY term"
    ends = name + REPEATED, name + chr(ord(REPEATED) + 1)
    for marked, again in connection.execute(sql, ends) if len(rows) else ():
        at = np.searchsorted(rows, numbers_in(again))
        held["times"][at[at < len(rows)]] = int(marked.rpartition(REPEATED)[2])
    if len(long := held["number"][held["words"] == LENGTHS - 1]):
        sql = f"SELECT number, words FROM experiences WHERE number {AMONG}"
        lengths = dict(connection.execute(sql, (among(long.tolist()),)).fetchall())
        held["words"][held["words"] == LENGTHS - 1] = [lengths.get(number, LENGTHS) for number in long.tolist()]
    return held

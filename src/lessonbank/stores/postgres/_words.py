"""Finding the closest experiences of one scope by words: the sums of all at once, the best scored as in every store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from lessonbank.contracts.records import Match
from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import K1, B, bounds, scores, words

from ._database import Connection, rows, stored
from ._postings import Places, places_of
from ._rows import ScopeRow, found_at, numbers_of

_MORE: Final = 32
"""Tasks looked at beyond the limit: ties with the last place are among them, or more are looked at."""
_FIRST: Final = 2
"""Records fetched beyond the limit with the first look: sums tie, and scores do not."""
_MARGIN: Final = 1e-6
"""The sums are made in another order than `scores` makes them; a task this close to the last place is looked at."""


def search(connection: Connection, /, query: str, *, scope: str, limit: int, exclude: Collection[str]) -> list[Match]:
    """The closest shown experiences by the words of their tasks."""
    asked = list(map(encodable, words(query)))
    if not asked or limit <= 0:
        return []
    here, places = places_of(connection, scope, set(asked))
    if not places or not here.documents:
        return []
    left_out = set(numbers_of(connection, scope, map(encodable, exclude)).values()) if exclude else set[int]()
    ages, records = _best(connection, here, _sums(here, asked, places), limit=limit, left_out=left_out)
    scores = _scored(here, asked, places, ages)
    best = sorted(scores.items(), key=lambda pair: (-pair[1], -ages[pair[0]], -pair[0]))[:limit]
    experiences = found_at(connection, scope, [number for number, _ in best], records)
    return [Match(experience=experiences[number], score=score) for number, score in best]


def _sums(here: ScopeRow, asked: list[str], places: Mapping[str, Places]) -> np.ndarray:
    """What each task adds up to, by its number; not yet a share of the query's own, which moves no place."""
    most = bounds(asked, {word: len(entries) for word, entries in places.items()}, documents=here.documents)
    gains = np.repeat([most[word] for word in places], [len(entries) for entries in places.values()])
    every = np.concatenate(list(places.values()))
    times, mean = every["times"].astype(np.float64), max(here.words, 1) / here.documents
    gains *= times / (times + K1 * (1 - B) + K1 * B / mean * every["words"])
    return np.bincount(every["number"].astype(np.intp), weights=gains)


def _best(
    connection: Connection, here: ScopeRow, sums: np.ndarray, *, limit: int, left_out: Collection[int]
) -> tuple[dict[int, int], dict[int, bytes]]:
    """Find the tasks that can be among the best and may be shown: the time of each, and the records of the first."""
    most, numbers = limit + _MORE, np.flatnonzero(sums)
    asked: dict[str, object] = {"scope": here.name, "most": limit + len(left_out) + _FIRST}
    while True:
        top = numbers[np.argpartition(-sums[numbers], most)[:most]] if most < len(numbers) else numbers
        least = sums[top].min()
        top = top[np.argsort(-sums[top], kind="stable")]
        # The driver takes longer for a list than the database for its text.
        asked["numbers"] = "{" + ",".join(map(str, top.tolist())) + "}"
        those = [row for row in rows(connection, _CANDIDATES, asked) if row[0] not in left_out]
        ages = {number: at for number, at, _ in those}
        if most >= len(numbers) or (len(ages) >= limit and sorted(sums[list(ages)])[-limit] > least + _MARGIN):
            return ages, {number: record for number, _, record in those if record is not None}
        most *= 4


_CANDIDATES: Final = (
    "SELECT number, created_at, CASE WHEN row_number() OVER"
    " (ORDER BY array_position(%(numbers)s::bigint[], number)) <= %(most)s"
    f" THEN {stored('record')} END"
    " FROM lessonbank.experiences WHERE scope = %(scope)s AND number = ANY(%(numbers)s::bigint[])"
    " AND shown AND NOT gone"
)
"""With the records of the first: most of them are the best, and nobody has to ask again."""


def _scored(
    here: ScopeRow, asked: list[str], places: Mapping[str, Places], numbers: Collection[int]
) -> dict[int, float]:
    """Score tasks by the shared function, so that every store gives the same scores."""
    wanted = np.zeros(1 + max((int(entries["number"].max()) for entries in places.values()), default=0), dtype=bool)
    wanted[list(numbers)] = True
    postings, lengths = dict[str, dict[int, int]](), dict[int, int]()
    for word, entries in places.items():
        here_too = entries[wanted[entries["number"]]].tolist()
        postings[word] = {number: times for number, times, _ in here_too}
        lengths.update((number, length) for number, _, length in here_too)
    holders = Counter({word: len(entries) for word, entries in places.items()})
    return scores(asked, postings, lengths, documents=here.documents, total=here.words, holders=holders)

"""Finding the closest experiences of one scope by words: candidates from the database, scored as every store scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import K1, B, scores, words
from lessonbank.types import Match

from ._database import Connection, rows
from ._rows import ScopeRow, find_scope, found_at, numbers_of

_MORE: Final = 32
"""Tasks fetched beyond the limit: ties with the last place are among them, or more are fetched."""
_MARGIN: Final = 1e-6
"""The database sums in another order than `scores` does; a task this close to the last place is looked at."""


def search(connection: Connection, /, query: str, *, scope: str, limit: int, exclude: Collection[str]) -> list[Match]:
    """The closest shown experiences by the words of their tasks."""
    here, asked = find_scope(connection, scope), list(map(encodable, words(query)))
    if not asked or limit <= 0 or not here.documents:
        return []
    left_out = set(numbers_of(connection, scope, map(encodable, exclude)).values()) if exclude else set[int]()
    told: dict[str, Any] = {
        "scope": scope,
        "words": list(counted := Counter(asked)),
        "times": list(counted.values()),
        "documents": here.documents,
        "mean": max(here.words, 1) / here.documents,
        "most": limit + _MORE,
    }
    while True:
        found = rows(connection, _CANDIDATES, told)
        usable = [(n, score, at) for n, score, at, shown, _, _ in found if shown and n not in left_out]
        if len(found) < told["most"] or (len(usable) >= limit and usable[limit - 1][1] > found[-1][1] + _MARGIN):
            break
        told["most"] *= 4
    if not usable:
        return []
    holders: dict[str, int] = dict(zip(*found[0][4:], strict=True))
    ages = {number: created_at for number, _, created_at in usable}
    best = sorted(_scored(connection, here, asked, holders, ages).items(), key=lambda n: (-n[1], -ages[n[0]], -n[0]))
    experiences = found_at(connection, scope, [number for number, _ in best[:limit]])
    return [Match(experience=experiences[number], score=score) for number, score in best[:limit]]


def _scored(
    connection: Connection, here: ScopeRow, asked: list[str], holders: dict[str, int], numbers: Collection[int]
) -> dict[int, float]:
    """What every store says that these tasks score."""
    sql = (
        "SELECT word, experience, times, words FROM lessonbank.terms"
        " WHERE scope = %s AND word = ANY(%s) AND experience = ANY(%s)"
    )
    postings, lengths = dict[str, Counter[int]](), dict[int, int]()
    for word, number, times, length in rows(connection, sql, here.name, list(holders), list(numbers)):
        postings.setdefault(word, Counter())[number] = times
        lengths[number] = length
    return scores(asked, postings, lengths, documents=here.documents, total=here.words, holders=holders)


_CANDIDATES: Final = (
    "WITH asked AS (SELECT * FROM unnest(%(words)s::text[], %(times)s::integer[]) AS a(word, times)),"
    " places AS MATERIALIZED (SELECT t.word, t.experience, t.times, t.words FROM lessonbank.terms t"
    " WHERE t.scope = %(scope)s AND t.word = ANY(%(words)s::text[])),"
    " held AS (SELECT word, count(*) AS holders FROM places GROUP BY word),"
    " gains AS (SELECT word, a.times * ln(1 + (%(documents)s - holders + 0.5) / (holders + 0.5))::float8 AS gain"
    " FROM held JOIN asked a USING (word)),"
    f" sums AS (SELECT experience, sum(gain * times / (times + {K1} * ({1 - B} + {B} * words / %(mean)s))) AS score"
    " FROM places JOIN gains USING (word) GROUP BY experience ORDER BY score DESC LIMIT %(most)s)"
    " SELECT e.number, s.score, e.created_at, e.shown AND NOT e.gone,"
    " (SELECT array_agg(word ORDER BY word) FROM held), (SELECT array_agg(holders ORDER BY word) FROM held)"
    " FROM sums s JOIN lessonbank.experiences e ON e.scope = %(scope)s AND e.number = s.experience"
    " ORDER BY s.score DESC"
)
"""`score` is a task's sum, not yet a share of the query's own: that moves no place."""

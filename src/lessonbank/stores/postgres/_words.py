"""Finding the closest experiences of one scope by words: candidates from the database, scored as every store scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any, Final

from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import K1, B, bounds, scores, words
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
    sql = "SELECT word, count(*) FROM lessonbank.terms WHERE scope = %s AND word = ANY(%s) GROUP BY word"
    holders: dict[str, int] = dict(rows(connection, sql, scope, list(set(asked))))
    if not holders:
        return []
    left_out = list(numbers_of(connection, scope, map(encodable, exclude)).values()) if exclude else []
    most = bounds(asked, holders, documents=here.documents)
    told: dict[str, Any] = {
        "scope": scope,
        "words": list(holders),
        "gains": [most[word] for word in holders],
        "mean": max(here.words, 1) / max(here.documents, 1),
        "exclude": left_out,
        "most": limit + _MORE,
    }
    while True:
        found = rows(connection, _CANDIDATES, told)
        if len(found) < told["most"] or found[-1][1] < found[limit - 1][1] - _MARGIN:
            break
        told["most"] *= 4
    ages = {number: created_at for number, _, created_at in found}
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
    "SELECT e.number, c.score, e.created_at FROM (SELECT t.experience,"
    f" sum(q.gain * t.times / (t.times + {K1} * ({1 - B} + {B} * t.words / %(mean)s))) AS score"
    " FROM unnest(%(words)s::text[], %(gains)s::float8[]) AS q(word, gain)"
    " JOIN lessonbank.terms t ON t.scope = %(scope)s AND t.word = q.word GROUP BY t.experience) c"
    " JOIN lessonbank.experiences e ON e.scope = %(scope)s AND e.number = c.experience"
    " WHERE e.shown AND NOT e.gone AND NOT e.number = ANY(%(exclude)s::bigint[]) ORDER BY c.score DESC LIMIT %(most)s"
)
"""`score` is a task's sum, not yet a share of the query's own: that moves no place."""

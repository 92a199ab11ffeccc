"""Finding the closest experiences of one scope by words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lessonbank.contracts.records import Match
from lessonbank.stores._records import encodable
from lessonbank.stores._words import best_tasks
from lessonbank.text.bm25 import words

from ._database import Connection, rows, stored
from ._postings import places_of
from ._rows import found_at

_FIRST: Final = 2
"""Records fetched beyond the limit with the first look: sums tie, and scores do not."""


def search(connection: Connection, /, query: str, *, scope: str, limit: int) -> list[Match]:
    """The closest shown experiences by the words of their tasks."""
    asked = list(map(encodable, words(query)))
    if not asked or limit <= 0:
        return []
    here, places = places_of(connection, scope, set(asked))
    records = dict[int, bytes]()

    def look(numbers: Sequence[int]) -> Mapping[int, int]:
        # The driver takes longer for a list than the database for its text.
        wanted = {
            "scope": scope,
            "numbers": f"{{{','.join(map(str, numbers))}}}",
            "most": limit + _FIRST,
        }
        those = rows(connection, _CANDIDATES, wanted)
        records.update((number, record) for number, _, record in those if record is not None)
        return {number: at for number, at, _ in those}

    best = best_tasks(asked, places, look, documents=here.documents, total=here.words, limit=limit)
    experiences = found_at(connection, scope, [number for *_, number in best], records)
    return [Match(experience=experiences[number], score=score) for score, _, number in best]


_CANDIDATES: Final = (
    "SELECT number, created_at, CASE WHEN row_number() OVER"
    " (ORDER BY array_position(%(numbers)s::bigint[], number)) <= %(most)s"
    f" THEN {stored('record')} END"
    " FROM lessonbank.experiences WHERE scope = %(scope)s AND number = ANY(%(numbers)s::bigint[])"
    " AND shown AND NOT gone"
)
"""With the records of the first: most of them are the best, and nobody has to ask again."""

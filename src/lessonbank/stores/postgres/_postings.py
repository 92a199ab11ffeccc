"""Which tasks hold a word: rows for rare words, and packed lists for common ones, which are read many at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import words

from ._database import Connection, do, rows
from ._rows import ScopeRow

PLACE: Final = np.dtype([("number", ">i4"), ("times", ">i4"), ("words", ">i4")])
"""An experience, how often the word stands in its task, and how many words the task has."""
Places = npt.NDArray[np.void]
_PACK: Final = 128
"""Rows of a word that are packed."""
_FULL: Final = 8192
"""Places of a list from which another one is begun: a list is written anew whenever rows come to it."""
_LOOK: Final = 64
"""Experiences between two looks at whether the words of the last one have so many rows."""


def term_rows(number: int, task: str, /) -> list[tuple[str, int, int, int]]:
    """What is kept of a task's words: word, experience, how often, how many in all."""
    every = words(task)
    return [(encodable(word), number, times, len(every)) for word, times in Counter(every).items()]


def index_words(connection: Connection, scope: str, tasks: Mapping[int, str], /) -> None:
    """Make tasks findable by their words, by number of the experience; by no word they are yet."""
    every = [row for number, task in tasks.items() for row in term_rows(number, task)]
    if not every:
        return
    columns = [list(column) for column in zip(*every, strict=True)]
    do(connection, _INDEX, scope, *columns)
    if any(number % _LOOK == 0 for number in tasks):
        parameters = {"scope": scope, "words": list(set(columns[0])), "pack": _PACK, "full": _FULL}
        do(connection, _PACKED, parameters)


_INDEX: Final = (
    "INSERT INTO lessonbank.terms (scope, word, experience, times, words)"
    " SELECT %s, * FROM unnest(%s::text[], %s::bigint[], %s::integer[], %s::integer[])"
)
_BYTES: Final = (
    "string_agg(int4send(experience::integer) || int4send(times) || int4send(words), '' ORDER BY experience)"
)
_PACKED: Final = (
    "WITH common AS (SELECT word FROM lessonbank.terms WHERE scope = %(scope)s AND word = ANY(%(words)s::text[])"
    " GROUP BY word HAVING count(*) >= %(pack)s),"
    " loose AS (DELETE FROM lessonbank.terms WHERE scope = %(scope)s AND word IN (SELECT word FROM common)"
    " RETURNING word, experience, times, words),"
    " begun AS (DELETE FROM lessonbank.postings WHERE scope = %(scope)s AND word IN (SELECT word FROM common)"
    " AND held < %(full)s RETURNING word, first, last, held, places)"
    " INSERT INTO lessonbank.postings (scope, word, first, last, held, places)"
    " SELECT %(scope)s, word, min(first), max(last), sum(held), string_agg(places, '' ORDER BY first) FROM ("
    f"SELECT * FROM begun UNION ALL SELECT word, min(experience), max(experience), count(*), {_BYTES} FROM loose"
    " GROUP BY word) every GROUP BY word"
)


def unindex_words(connection: Connection, scope: str, tasks: Mapping[int, str], /) -> None:
    """Have nothing find these tasks by their words any more."""
    if not tasks:
        return
    asked = {encodable(word) for task in tasks.values() for word in words(task)}
    named = {"scope": scope, "words": list(asked), "numbers": list(tasks), "first": min(tasks), "last": max(tasks)}
    do(connection, _UNINDEX, named)
    for word, first, places in rows(connection, _LISTS, named):
        there = np.frombuffer(places, PLACE)
        left = there[~np.isin(there["number"], named["numbers"])]
        if len(left) < len(there):
            _put_back(connection, scope, word, first, left)


def _put_back(connection: Connection, scope: str, word: str, first: int, left: Places) -> None:
    """Write what is left of a list in its place. Its name and its end may stay: they are bounds."""
    if len(left):
        sql = "UPDATE lessonbank.postings SET held = %s, places = %s WHERE scope = %s AND word = %s AND first = %s"
        do(connection, sql, len(left), left.tobytes(), scope, word, first)
    else:
        sql = "DELETE FROM lessonbank.postings WHERE scope = %s AND word = %s AND first = %s"
        do(connection, sql, scope, word, first)


_UNINDEX: Final = (
    "DELETE FROM lessonbank.terms WHERE scope = %(scope)s AND word = ANY(%(words)s::text[])"
    " AND experience = ANY(%(numbers)s::bigint[])"
)
_LISTS: Final = (
    "SELECT word, first, places FROM lessonbank.postings WHERE scope = %(scope)s AND word = ANY(%(words)s::text[])"
    " AND first <= %(last)s AND last >= %(first)s"
)


def places_of(connection: Connection, scope: str, asked: Collection[str], /) -> tuple[ScopeRow, dict[str, Places]]:
    """Every place of each word that any task holds, and the scope's sums: one statement, every search waits for it."""
    here, postings = ScopeRow(scope), dict[str, list[bytes]]()
    for sequence, documents, every, word, places in rows(connection, _READ, {"scope": scope, "words": list(asked)}):
        here = ScopeRow(scope, sequence, documents, every)
        postings.setdefault(word, []).append(places)
    return here, {word: np.frombuffer(b"".join(parts), PLACE) for word, parts in postings.items()}


_READ: Final = (
    "SELECT s.sequence, s.documents, s.words, p.word, p.places FROM lessonbank.scopes s, ("
    "SELECT word, places FROM lessonbank.postings WHERE scope = %(scope)s AND word = ANY(%(words)s::text[])"
    f" UNION ALL SELECT word, {_BYTES} FROM lessonbank.terms WHERE scope = %(scope)s"
    " AND word = ANY(%(words)s::text[]) GROUP BY word) p WHERE s.scope = %(scope)s"
)


def every_place(connection: Connection, scope: str, /) -> Iterator[Sequence[object]]:
    """Word, experience, how often and how many in all, of everything that is kept of a scope's words."""
    yield from rows(connection, "SELECT word, experience, times, words FROM lessonbank.terms WHERE scope = %s", scope)
    for word, places in rows(connection, "SELECT word, places FROM lessonbank.postings WHERE scope = %s", scope):
        yield from ((word, *place) for place in np.frombuffer(places, PLACE).tolist())

"""Which experiences hold a word in one of their lessons: a list of lessons looks it up, and reads no other record."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Experience
from lessonbank.stores._records import encodable
from lessonbank.text.bm25 import words

from ._rows import experience_of, replace_terms, stored_at, term, terms

_ASKED: Final = 16
"""Words that are looked up. What is asked for beyond them is looked for in the records that are found."""
INDEXED: Final = (
    "SELECT rowid AS number FROM lesson_index WHERE lesson_index MATCH ?"
    " UNION ALL SELECT number FROM experiences WHERE number > (SELECT upto FROM indexed)"
)
"""The experiences that hold what `asking` says, and the few that the index does not hold yet."""


def words_of(experience: Experience, /) -> str:
    """Each word of an experience's lessons once, with a blank between each two."""
    return " ".join(dict.fromkeys(word for lesson in experience.lessons for word in words(lesson.text)))


def asking(scope: int, asked: Collection[str], /) -> str:
    """The query for `INDEXED`: what holds all of these words, of which there is one or more."""
    longest = sorted(asked, key=lambda word: (-len(word), word))[:_ASKED]
    return " ".join(f'"{term(scope, encodable(word))}"' for word in longest)


def put(connection: sqlite3.Connection, experiences: Iterable[tuple[int, int, Experience]], /) -> None:
    """Make experiences findable by the words of their lessons, by number and scope; by none they are yet."""
    rows = ((number, terms(scope, words_of(experience))) for number, scope, experience in experiences)
    connection.executemany("INSERT INTO lesson_index (rowid, words) VALUES (?, ?)", (row for row in rows if row[1]))


def change(
    connection: sqlite3.Connection, scope: int, number: int, before: Experience, after: Experience | None, /
) -> None:
    """Have an experience that is in the index found by other words; by none where it is gone."""
    old, new = words_of(before), words_of(after) if after else ""
    if old != new:
        replace_terms(connection, "lesson_index", (number, terms(scope, old)), (number, terms(scope, new)))


def catch_up(connection: sqlite3.Connection, numbers: Iterable[int], /) -> None:
    """Put in experiences that are not in the index yet."""
    sql = "SELECT number, abs(scope) FROM experiences WHERE number BETWEEN ? AND ?"
    for some in batches(numbers):
        scopes = dict(connection.execute(sql, (min(some), max(some))))
        rows = sorted(stored_at(connection, some).items())
        put(connection, ((number, scopes[number], experience_of(*stored)) for number, stored in rows))


def reindex(connection: sqlite3.Connection, /) -> None:
    """Make the index anew from the records of every scope."""
    connection.execute("INSERT INTO lesson_index (lesson_index) VALUES ('delete-all')")
    catch_up(connection, [number for (number,) in connection.execute("SELECT number FROM experiences ORDER BY number")])


def count_by_word(connection: sqlite3.Connection, /) -> Counter[str]:
    """How many experiences the index names for each word, as it writes it."""
    return Counter(dict(connection.execute("SELECT term, doc FROM lesson_counts")))

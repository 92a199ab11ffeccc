"""How the parts of a scope lie in the tables: the statements that reading and writing share."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.records import Experience, Lesson
from lessonbank.contracts.records.repeats import shown_with
from lessonbank.errors import StoreDamaged
from lessonbank.stores._entries import entry_of as entry_of
from lessonbank.stores._listing import may_hold
from lessonbank.stores._records import encodable, loaded
from lessonbank.stores._texts import checked

from ._checks import checksum, stored

AMONG: Final = "IN (SELECT value FROM json_each(?))"
"""For numbers. For ids there is another: SQLite's JSON ends a text at a NUL, and an id may hold one."""
AMONG_IDS: Final = "IN (SELECT replace(replace(value, char(1, 98), char(0)), char(1, 97), char(1)) FROM json_each(?))"
"""A condition on a few rows by their number. Beside it, write `+scope = ?`: SQLite would rather read a whole scope."""
PARTS: Final = 4096
"""The key of a vector is an experience's number times this, plus 0 for its task or 1, 2, 3, … for its lessons."""
_JOURNALS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope's number and its running sums."""

    number: int
    sequence: int = 0
    documents: int = 0
    words: int = 0


def mark(lesson: Lesson, /) -> int:
    """What the `retired` of a row says: 0 for a lesson that is shown, 1 for a retired one, 2 for a quarantined one."""
    return 1 if lesson.retired else 2 if lesson.hidden else 0


OF_SCOPE: Final = "scope = (SELECT number FROM scopes WHERE name = ?)"
"""A condition on the rows of one scope, by its name."""
NOWHERE = ScopeRow(number=0)
"""Stands for a scope that holds nothing: no row has its number."""


def find_scope(connection: sqlite3.Connection, name: str, /) -> ScopeRow:
    """The scope of that name, or `NOWHERE`."""
    row = connection.execute("SELECT number, sequence, documents, words FROM scopes WHERE name = ?", (name,)).fetchone()
    return ScopeRow(*row) if row else NOWHERE


def make_scope(connection: sqlite3.Connection, name: str, /) -> ScopeRow:
    """The scope of that name, made where it is new."""
    scope = find_scope(connection, name)
    if scope is not NOWHERE:
        return scope
    connection.execute("INSERT INTO scopes (name, sum) VALUES (?, ?)", (name, checksum(name)))
    return find_scope(connection, name)


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A vector space as one scope uses it."""

    scope: int
    name: str
    number: int = 0
    dimensions: int | None = None
    epoch: int = 0


def find_space(connection: sqlite3.Connection, scope: ScopeRow, name: str, /) -> SpaceRow:
    """The space of that name in this scope, with the number 0 where there is none yet."""
    sql = "SELECT number, dimensions, epoch FROM spaces WHERE scope = ? AND name = ?"
    row = connection.execute(sql, (scope.number, name)).fetchone()
    return SpaceRow(scope.number, name, *(row or ()))


def journal_number(scope: int, sequence: int, /) -> int:
    """The row of a scope's journal entry: entries of one scope lie together, in order."""
    return scope * _JOURNALS + sequence


def sequence_of(number: int, /) -> int:
    """The inverse of `journal_number`, as far as the sequence goes."""
    return number % _JOURNALS


def among(numbers: Iterable[int], /) -> str:
    """Numbers as the one parameter of `AMONG`."""
    return json.dumps(list(numbers), check_circular=False)


def among_ids(ids: Iterable[str], /) -> str:
    """Ids as the one parameter of `AMONG_IDS`."""
    escaped = [id.replace("\1", "\1a").replace("\0", "\1b") for id in ids]
    text = json.dumps(escaped, ensure_ascii=False, check_circular=False)
    return text if text.isascii() else encodable(text)


_KEPT: Final = f"{stored('e.record')}, {stored('j.entry')} FROM experiences e LEFT JOIN journal j ON j.number = e.entry"
_RECORD: Final = f"SELECT {_KEPT}"


def experience_at(connection: sqlite3.Connection, number: int, /) -> Experience:
    """The experience in that row."""
    return experience_of(*connection.execute(f"{_RECORD} WHERE e.number = ?", (number,)).fetchone())


Stored = tuple[bytes | None, bytes | None]
"""An experience's own record, and the journal entry that holds it otherwise."""


def stored_at(connection: sqlite3.Connection, numbers: Collection[int], /) -> dict[int, Stored]:
    """The experiences in these rows as they are kept, by number."""
    if not numbers:
        return {}
    rows = connection.execute(f"SELECT e.number, {_KEPT} WHERE e.number {AMONG}", (among(numbers),))
    return {number: (record, entry) for number, record, entry in rows}


def lessons_of(row: Stored, words: frozenset[str], /) -> tuple[Lesson, ...]:
    """The lessons of an experience; none where it cannot hold all of `words`."""
    record, entry = row
    held = entry if record is None else record
    if words and held is not None and not may_hold(checked(held), words):
        return ()
    return experience_of(record, entry).lessons


def experience_of(record: bytes | None, entry: bytes | None, /) -> Experience:
    """An experience from its own record, or else from the journal entry that holds it.

    Raises:
        StoreDamaged: neither does.
    """
    if record is not None:
        return loaded(Experience, checked(record))
    if entry is not None:
        return experience_in(checked(entry))
    raise StoreDamaged(_LOST)


def experience_in(entry: bytes, /) -> Experience:
    """The experience that a journal entry holds.

    Raises:
        StoreDamaged: it holds none.
    """
    brought = entry_of(entry).brings
    if brought is not None:
        return brought
    raise StoreDamaged(_LOST)


_LOST: Final = "a kept experience has lost its record"


# CROSS: SQLite keeps this order. By its own choice it looks through all lessons of the scope for each experience.
_TAUGHT_AGAIN: Final = "repeats r CROSS JOIN lessons l"
SHOWS: Final = (
    f"(e.active OR EXISTS (SELECT 1 FROM {_TAUGHT_AGAIN} ON l.scope = e.scope AND l.id = r.lesson"
    " WHERE r.experience = e.number AND l.retired = 0))"
)
"""Whether the experience `e` is found: a lesson may be shown that it has, or that it taught again."""


def shown_at(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int], /) -> dict[int, int]:
    """The time of each experience in these rows that may be found, by number."""
    sql = f"SELECT e.number, e.created_at FROM experiences e WHERE e.number {AMONG} AND +e.scope = ? AND {SHOWS}"
    return dict(connection.execute(sql, (among(numbers), scope.number)).fetchall())


def experiences_at(connection: sqlite3.Connection, numbers: Collection[int], /) -> dict[int, Experience]:
    """The experiences in these rows, by number."""
    return {number: experience_of(*row) for number, row in stored_at(connection, numbers).items()}


def found_at(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int], /) -> dict[int, Experience]:
    """The experiences in these rows as a search gives them, by number: with what they taught again, as it is now."""
    known = experiences_at(connection, numbers)
    again = [number for number, experience in known.items() if experience.repeats]
    if not again:
        return known
    rows = connection.execute(
        f"SELECT DISTINCT l.experience FROM {_TAUGHT_AGAIN} ON l.scope = ? AND l.id = r.lesson"
        f" WHERE r.experience {AMONG}",
        (scope.number, among(again)),
    )
    owners = {number for (number,) in rows}
    held = [known[n] for n in owners & known.keys()]
    held += experiences_at(connection, owners - known.keys()).values()
    lessons = {lesson.id: lesson for owner in held for lesson in owner.lessons}
    return known | {number: shown_with(known[number], lessons) for number in again}


def term(scope: int, word: str, /) -> str:
    """A word as the index holds it: marked with its scope, and plain ASCII letters and digits."""
    if word.isascii() and word.isalnum():
        return f"{scope}x{word}"
    return f"{scope}z{word.encode().hex()}"


LENGTHS: Final = 4096
"""Lengths of tasks that the index tells apart: the longest one stands for all beyond."""
REPEATED: Final = "\u00d7"
"""Stands between a word and how often a task holds it, where that is more than once. No word has it."""


def task_terms(scope: int, words: str, /) -> str:
    """The words of one task, with a blank between each two, as the indexed text; those it repeats with how often."""
    every = words.split(" ")
    if len(every) == len(held := Counter(every)):
        return terms(scope, words)
    again = (f"{term(scope, word)}{REPEATED}{times}" for word, times in held.items() if times > 1)
    return " ".join((terms(scope, " ".join(held)), *again))


def place_of(number: int, length: int, /) -> int:
    """The row of a task in the index of words: it says how many words the task has, too."""
    return number * LENGTHS + min(length, LENGTHS - 1)


def terms(scope: int, words: str, /) -> str:
    """Different words, with a blank between each two, as the indexed text."""
    if words and words.isascii() and "_" not in words:
        return f"{scope}x{words.replace(' ', f' {scope}x')}"
    return " ".join(term(scope, word) for word in words.split(" ") if word)


def replace_terms(
    connection: sqlite3.Connection, index: str, before: tuple[int, str], after: tuple[int, str], /
) -> None:
    """Have a row of an index found by other words. It keeps no copy of its text: it must be the one put in."""
    (number, old), first = before, before[1].partition(" ")[0]
    # Taking out what is not there would damage the counts of the index.
    there = f"SELECT 1 FROM {index} WHERE {index} MATCH ? AND rowid = ?"
    if first and connection.execute(there, (f'"{first}"', number)).fetchone():
        connection.execute(f"INSERT INTO {index} ({index}, rowid, words) VALUES ('delete', ?, ?)", (number, old))
    if after[1]:
        connection.execute(f"INSERT INTO {index} (rowid, words) VALUES (?, ?)", after)

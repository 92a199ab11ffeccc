"""What reading and writing a scope share: its row, and experiences by number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.records import Experience
from lessonbank.contracts.records.repeats import shown_with
from lessonbank.stores._listing import may_hold
from lessonbank.stores._records import loaded
from lessonbank.stores._texts import checked

from ._database import Answer, Connection, ask, do, row, rows, stored

VISIBLE: Final = "l.state NOT IN ('retired', 'quarantined')"
"""Whether the lesson `l` may be shown."""

NEWEST: Final = (
    "ORDER BY (SELECT e.created_at FROM lessonbank.experiences e WHERE e.scope = a.scope AND e.number = a.experience)"
    " DESC, a.experience DESC LIMIT 1"
)
"""The newest experience of the attempts `a`. With a join, the planner may walk through all of the scope by time."""


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope's running sums."""

    name: str
    sequence: int = 0
    documents: int = 0
    words: int = 0
    numbers: int = 0
    """The last that an experience got."""


def find_scope(connection: Connection, name: str, /) -> ScopeRow:
    """The scope of that name; all zero where it holds nothing."""
    return ScopeRow(name, *(row(connection, _SCOPE, name) or ()))


def make_scope(connection: Connection, name: str, /) -> ScopeRow:
    """The scope of that name, made where it is new."""
    return told_scope(connection, name, asked_scope(connection, name))


def asked_scope(connection: Connection, name: str, /) -> Answer:
    """Ask for the scope of that name, together with what is asked next."""
    return ask(connection, _SCOPE, name)


def told_scope(connection: Connection, name: str, answer: Answer, /) -> ScopeRow:
    """What `asked_scope` found, made where it is new. Whoever writes has the scope alone: it holds nothing then."""
    if columns := answer.fetchone():
        return ScopeRow(name, *columns)
    add_scope(connection, name)
    return ScopeRow(name)


def add_scope(connection: Connection, name: str, /) -> None:
    """Make the scope of that name where it is new. Nothing is waited for."""
    do(connection, "INSERT INTO lessonbank.scopes (scope) VALUES (%s) ON CONFLICT DO NOTHING", name)


_SCOPE: Final = "SELECT sequence, documents, words, numbers FROM lessonbank.scopes WHERE scope = %s"


def reserve_numbers(
    connection: Connection, scope: ScopeRow, count: int, /, *, documents: int = 0, words: int = 0
) -> range:
    """Numbers for so many new experiences, and the running sums with what they add to them.

    Whoever draws has the scope alone, so that the numbers are known before, and later ones are greater.
    """
    sql = (
        "UPDATE lessonbank.scopes SET numbers = numbers + %s, documents = documents + %s, words = words + %s"
        " WHERE scope = %s"
    )
    do(connection, sql, count, documents, words, scope.name)
    return range(scope.numbers + 1, scope.numbers + count + 1)


def experiences_at(
    connection: Connection, scope: str, numbers: Collection[int], words: frozenset[str] = frozenset(), /
) -> dict[int, Experience]:
    """Experiences by number, in the order of `numbers`, without those that cannot hold all of `words`."""
    if not numbers:
        return {}
    sql = f"SELECT number, {stored('record')} FROM lessonbank.experiences WHERE scope = %s AND number = ANY(%s)"
    experiences = {
        number: experience_of(record)
        for number, record in rows(connection, sql, scope, list(numbers))
        if not words or may_hold(checked(record), words)
    }
    return {number: experiences[number] for number in numbers if number in experiences}


def experience_of(record: bytes, /) -> Experience:
    """A kept experience. Raises StoreDamaged."""
    return loaded(Experience, checked(record))


def found_at(
    connection: Connection, scope: str, numbers: Collection[int], records: Mapping[int, bytes] | None = None, /
) -> dict[int, Experience]:
    """Return experiences as a search gives them: with the lessons that they taught again, as they are now.

    `records`: those that are there already.
    """
    held = {number: experience_of(records[number]) for number in numbers if records and number in records}
    held |= experiences_at(connection, scope, [number for number in numbers if number not in held])
    experiences = {number: held[number] for number in numbers if number in held}
    again = {lesson for experience in experiences.values() for lesson in experience.repeats}
    if not again:
        return experiences
    owners = rows(connection, _OWNERS, {"scope": scope, "ids": list(again)})
    there = {i.id: i for (record,) in owners for i in experience_of(record).lessons}
    return {number: shown_with(experience, there) for number, experience in experiences.items()}


_OWNERS: Final = (
    f"SELECT {stored('record')} FROM lessonbank.experiences WHERE scope = %(scope)s AND number = ANY(ARRAY("
    "SELECT experience FROM lessonbank.lessons WHERE scope = %(scope)s AND id = ANY(%(ids)s)))"
)


def numbers_of(connection: Connection, scope: str, ids: Iterable[str], /) -> dict[str, int]:
    """Experience id to number, for those of the ids this scope has."""
    sql = "SELECT id, number FROM lessonbank.experiences WHERE scope = %s AND NOT gone AND id = ANY(%s)"
    return dict(rows(connection, sql, scope, list(ids)))

"""How the parts of a scope lie in the tables: the statements that reading and writing share."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from lessonbank.errors import StoreUnavailable
from lessonbank.stores._records import loaded
from lessonbank.types import Experience, Trajectory


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """A scope's number and its running sums."""

    number: int
    sequence: int = 0
    revision: int = 0
    documents: int = 0
    words: int = 0


NOWHERE = ScopeRow(number=0)
"""Stands for a scope that holds nothing: no row has its number."""


def find_scope(connection: sqlite3.Connection, name: str, /) -> ScopeRow:
    """The scope of that name, or `NOWHERE`."""
    row = connection.execute(
        "SELECT number, sequence, revision, documents, words FROM scopes WHERE name = ?", (name,)
    ).fetchone()
    return ScopeRow(*row) if row else NOWHERE


def make_scope(connection: sqlite3.Connection, name: str, /) -> ScopeRow:
    """The scope of that name, made where it is new."""
    connection.execute("INSERT OR IGNORE INTO scopes (name) VALUES (?)", (name,))
    return find_scope(connection, name)


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """A vector space as one scope uses it."""

    number: int
    dimensions: int | None
    epoch: int


def find_space(connection: sqlite3.Connection, scope: ScopeRow, name: str, /) -> SpaceRow | None:
    """The space of that name in this scope."""
    row = connection.execute(
        "SELECT number, dimensions, epoch FROM spaces WHERE scope = ? AND name = ?", (scope.number, name)
    ).fetchone()
    return SpaceRow(*row) if row else None


def experience_at(connection: sqlite3.Connection, number: int, /) -> Experience:
    """The experience in that row."""
    (record,) = connection.execute("SELECT record FROM experiences WHERE number = ?", (number,)).fetchone()
    return loaded(Experience, record)


def numbers_of(connection: sqlite3.Connection, scope: ScopeRow, ids: Iterable[str], /) -> dict[str, int]:
    """Experience id to row number, for those of the ids this scope has."""
    rows = connection.execute(
        "SELECT id, number FROM experiences WHERE scope = ? AND id IN (SELECT value FROM json_each(?))",
        (scope.number, json.dumps(list(ids))),
    )
    return dict(rows.fetchall())


def term(scope: int, word: str, /) -> str:
    """A word as the index holds it: marked with its scope, and plain ASCII letters and digits."""
    if word.isascii() and word.isalnum():
        return f"{scope}x{word}"
    return f"{scope}z{word.encode().hex()}"


def terms(scope: int, words: Collection[str], /) -> str:
    """The words of one task as one indexed text."""
    return " ".join(term(scope, word) for word in words)


def packed(json_text: str, /) -> bytes:
    """A trajectory's JSON as it is kept."""
    return zlib.compress(json_text.encode(), 6)


def unpacked(blob: bytes, /) -> Trajectory:
    """The inverse of `packed`.

    Raises:
        StoreUnavailable: the bytes are damaged.
    """
    try:
        text = zlib.decompress(blob)
    except zlib.error as error:
        raise StoreUnavailable(f"a kept trajectory cannot be unpacked ({error}): restore a backup") from None
    return loaded(Trajectory, text)

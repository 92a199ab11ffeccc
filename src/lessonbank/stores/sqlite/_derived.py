"""The tables that follow from the records: filled by every write, and all at once by a rebuild."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping

from lessonbank.stores._changes import open_attempts
from lessonbank.stores._lexical import words
from lessonbank.types import Experience

from ._rows import term, terms


def derive(connection: sqlite3.Connection, scope: int, experiences: Mapping[int, Experience], /) -> None:
    """Items and attempts of experiences, by row number; what earlier versions left must be gone."""
    connection.executemany(
        "INSERT INTO items (scope, id, experience, retired) VALUES (?, ?, ?, ?)",
        [(scope, item.id, number, item.retired) for number, e in experiences.items() for item in e.items],
    )
    connection.executemany(
        "INSERT INTO attempts (scope, trajectory, experience, waiting) VALUES (?, ?, ?, ?)",
        [
            (scope, trajectory_id, number, waiting)
            for number, experience in experiences.items()
            for trajectory_id, waiting in open_attempts(experience).items()
        ],
    )


def index_words(connection: sqlite3.Connection, scope: int, experiences: Mapping[int, Experience], /) -> None:
    """Make tasks findable by their words."""
    tasks = ((number, terms(scope, words(experience.task))) for number, experience in experiences.items())
    connection.executemany(
        "INSERT INTO word_index (rowid, words) VALUES (?, ?)", [(number, text) for number, text in tasks if text]
    )


def unindex_words(connection: sqlite3.Connection, scope: int, number: int, task: str, /) -> None:
    """Take a task out again. The index keeps no copy of its text, so the words must be those put in."""
    marked = [term(scope, word) for word in words(task)]
    if not marked:
        return
    # Taking out what is not there would damage the counts of the index.
    there = connection.execute(
        "SELECT 1 FROM word_index WHERE word_index MATCH ? AND rowid = ?", (f'"{marked[0]}"', number)
    ).fetchone()
    if there is not None:
        connection.execute(
            "INSERT INTO word_index (word_index, rowid, words) VALUES ('delete', ?, ?)", (number, " ".join(marked))
        )


def reindex_words(connection: sqlite3.Connection, /) -> None:
    """Make the word index of every scope anew."""
    connection.execute("INSERT INTO word_index (word_index) VALUES ('delete-all')")
    rows = connection.execute("SELECT number, abs(scope), task FROM experiences")
    tasks = ((number, terms(scope, words(task))) for number, scope, task in rows)
    connection.executemany(
        "INSERT INTO word_index (rowid, words) VALUES (?, ?)", [(number, text) for number, text in tasks if text]
    )


def settle_pending(connection: sqlite3.Connection, scope: int, trajectory_ids: Iterable[str], /) -> None:
    """Set whether each of these runs still waits: it does while no experience has settled it."""
    connection.executemany(
        "UPDATE trajectories SET pending = NOT EXISTS (SELECT 1 FROM attempts a"
        " WHERE a.scope = trajectories.scope AND a.trajectory = trajectories.id AND a.waiting = 0)"
        " WHERE scope = ? AND id = ?",
        [(scope, id) for id in trajectory_ids],
    )


def settle_all(connection: sqlite3.Connection, /, *, scope: int | None = None) -> None:
    """The same for every run of a scope, or of the file."""
    connection.execute(
        "UPDATE trajectories SET pending = NOT EXISTS (SELECT 1 FROM attempts a"
        " WHERE a.scope = trajectories.scope AND a.trajectory = trajectories.id AND a.waiting = 0)"
        " WHERE ?1 IS NULL OR scope = ?1",
        (scope,),
    )


def recount(connection: sqlite3.Connection, /, *, scope: int | None = None) -> None:
    """Add up anew what the word ranking must know of a scope, or of every one; matrices are to be read again."""
    connection.execute(
        "UPDATE scopes SET revision = revision + 1,"
        " documents = (SELECT count(*) FROM experiences WHERE scope = scopes.number),"
        " words = (SELECT coalesce(sum(words), 0) FROM experiences WHERE scope = scopes.number)"
        " WHERE ?1 IS NULL OR number = ?1",
        (scope,),
    )
    connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE ?1 IS NULL OR scope = ?1", (scope,))

"""The tables that follow from the records: filled by every write, and all at once by a rebuild."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Final

from lessonbank.contracts.records import Experience, Recall, Trajectory
from lessonbank.contracts.records.attempts import attempts_of
from lessonbank.stores._listing import listed, tags_of
from lessonbank.stores._records import loaded
from lessonbank.stores._texts import checked
from lessonbank.text.bm25 import words

from . import _lesson_words
from ._checks import stored
from ._rows import AMONG, AMONG_IDS, among, among_ids, mark, place_of, replace_terms, task_terms

TASKS: Final = "SELECT e.number, abs(e.scope), t.task FROM experiences e JOIN tasks t ON t.number = e.number"
RUN: Final = 1
RECALL: Final = 2
EXPERIENCE: Final = 3
"""The kinds of records that have tags."""
TAIL: Final = 64
"""Tasks whose words wait to be indexed together: one by one, indexing costs as much as the rest of a write."""


def derive(connection: sqlite3.Connection, scope: int, experiences: Mapping[int, Experience], /) -> None:
    """Lessons, repeats and attempts of experiences, by row number; what earlier versions left must be gone."""
    for number, experience in experiences.items():
        connection.executemany(
            "INSERT INTO lessons (scope, id, experience, place, retired, state, created_at, kind, writer, wording)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (scope, lesson.id, number, place, mark(lesson), *listed(lesson))
                for place, lesson in enumerate(experience.lessons, 1)
            ],
        )
        connection.executemany(
            "INSERT INTO attempts (scope, trajectory, waiting, outcome, experience) VALUES (?, ?, ?, ?, ?)",
            [(scope, *attempt, number) for attempt in attempts_of(experience)],
        )
        tag(connection, EXPERIENCE, number, experience)
        if experience.repeats:
            connection.executemany(
                "INSERT INTO repeats (experience, lesson) VALUES (?, ?)",
                [(number, lesson) for lesson in experience.repeats],
            )


def tag(connection: sqlite3.Connection, kind: int, number: int, record: Trajectory | Recall | Experience, /) -> None:
    """Make a record findable by its metadata and by its fields, see `tags_of`."""
    if digests := tags_of(record):
        connection.executemany(
            "INSERT OR IGNORE INTO tags (kind, tag, record) VALUES (?, ?, ?)",
            [(kind, digest, number) for digest in digests],
        )


def untag(connection: sqlite3.Connection, kind: int, numbers: Iterable[int], /) -> None:
    """Have records no longer found by these."""
    connection.executemany("DELETE FROM tags WHERE kind = ? AND record = ?", ((kind, number) for number in numbers))


def note_shown(connection: sqlite3.Connection, scope: int, number: int, recall: Recall, /) -> None:
    """Make a recall findable by its metadata and by the lessons it showed."""
    shown = [(scope, candidate.lesson_id, number) for candidate in recall.candidates if candidate.shown]
    if shown:
        connection.executemany("INSERT OR IGNORE INTO shown (scope, lesson, recall) VALUES (?, ?, ?)", shown)
    tag(connection, RECALL, number, recall)


def relist(connection: sqlite3.Connection, /) -> None:
    """Rebuild the search tables of all runs and recalls."""
    connection.execute("DELETE FROM shown")
    connection.execute("DELETE FROM tags WHERE kind IN (?, ?)", (RUN, RECALL))
    for number, blob in connection.execute(f"SELECT number, {stored('record')} FROM trajectories"):
        run = loaded(Trajectory, checked(blob))
        tag(connection, RUN, number, run)
    for number, scope, blob in connection.execute(f"SELECT number, scope, {stored('record')} FROM recalls"):
        note_shown(connection, scope, number, loaded(Recall, checked(blob)))


def underive(connection: sqlite3.Connection, scope: int, number: int, experience: Experience, /) -> None:
    """Take away the lessons and attempts of an experience as it is now."""
    ids = among_ids(lesson.id for lesson in experience.lessons)
    connection.execute(
        f"DELETE FROM lessons WHERE scope = ? AND id {AMONG_IDS} AND experience = ?", (scope, ids, number)
    )
    if tags_of(experience):
        untag(connection, EXPERIENCE, [number])
    if experience.repeats:
        connection.execute("DELETE FROM repeats WHERE experience = ?", (number,))
    runs = among_ids(attempt.trajectory_id for attempt in experience.attempts)
    connection.execute(
        f"DELETE FROM attempts WHERE scope = ? AND trajectory {AMONG_IDS} AND experience = ?", (scope, runs, number)
    )


def upto(connection: sqlite3.Connection, /) -> int:
    """The number of the last experience whose words are in the index."""
    row = connection.execute("SELECT upto FROM indexed").fetchone()
    return int(row[0]) if row else 0


def index_tail(
    connection: sqlite3.Connection,
    scope: int,
    known: Mapping[int, str],
    written: Mapping[int, Experience],
    /,
    *,
    before: int,
    done: int,
) -> None:
    """Index the words of the newest tasks and lessons, those behind number `done`, once there are enough.

    `known` has the words of the tasks of `written`, joined, in the order of their numbers, all of `scope`; `before`:
    the last number there was before these were written. Those up to it are read again.
    """
    last = max((before, *known))
    if last - done < TAIL:
        return
    rows = connection.execute(f"{TASKS} WHERE e.number > ? AND e.number <= ?", (done, before)).fetchall()
    waiting = ((n, of, known[n] if n in known else " ".join(words(task))) for n, of, task in rows)
    _index(connection, chain(waiting, ((n, scope, text) for n, text in known.items() if n > max(before, done))))
    _lesson_words.catch_up(connection, [n for n, *_ in rows])
    _lesson_words.put(connection, ((n, scope, e) for n, e in written.items() if n > max(before, done)))
    connection.execute("UPDATE indexed SET upto = ?", (last,))


def change_words(connection: sqlite3.Connection, scope: int, number: int, before: str, after: str, /) -> None:
    """Have a task that is in the index found by its new words."""
    old, new = (_row(number, scope, " ".join(words(task))) for task in (before, after))
    replace_terms(connection, "word_index", old, new)


def forget_words(connection: sqlite3.Connection, scope: int, numbers: Collection[int], /) -> None:
    """Have tasks that go no longer found. What was taken out of an index stands there until its parts are joined."""
    done = upto(connection)
    for number, task in connection.execute(f"SELECT number, task FROM tasks WHERE number {AMONG}", (among(numbers),)):
        if number <= done:
            replace_terms(connection, "word_index", _row(number, scope, " ".join(words(task))), (number, ""))
    for index in ("word_index", "lesson_index"):
        connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")


def reindex_words(connection: sqlite3.Connection, /) -> None:
    """Rebuild the word index of every scope."""
    connection.execute("INSERT INTO word_index (word_index) VALUES ('delete-all')")
    rows = connection.execute(TASKS)
    _index(connection, ((number, scope, " ".join(words(task))) for number, scope, task in rows))
    connection.execute("DELETE FROM indexed")
    connection.execute("INSERT INTO indexed (upto) SELECT coalesce(max(number), 0) FROM experiences")


def _index(connection: sqlite3.Connection, rows: Iterable[tuple[int, int, str]]) -> None:
    """Index tasks: number, scope, and the words with a blank between each two."""
    connection.executemany(
        "INSERT INTO word_index (rowid, words) VALUES (?, ?)",
        (_row(number, scope, text) for number, scope, text in rows if text),
    )


def _row(number: int, scope: int, text: str) -> tuple[int, str]:
    return place_of(number, text.count(" ") + 1), task_terms(scope, text)


_WAITS: Final = (
    "NOT EXISTS (SELECT 1 FROM attempts a"
    " WHERE a.scope = trajectories.scope AND a.trajectory = trajectories.id AND a.waiting = 0)"
)


def settle_pending(connection: sqlite3.Connection, scope: int, trajectory_ids: Iterable[str], /) -> None:
    """Set whether each of these runs still waits: it does while no experience has settled it."""
    sql = f"UPDATE trajectories SET pending = {_WAITS} WHERE scope = ? AND id = ?"
    connection.executemany(sql, [(scope, id) for id in trajectory_ids])


def settle_all(connection: sqlite3.Connection, /, *, scope: int | None = None) -> None:
    """Settle every run of a scope, or of the file."""
    sql = f"UPDATE trajectories SET pending = {_WAITS} WHERE (?1 IS NULL OR scope = ?1) AND pending <> {_WAITS}"
    connection.execute(sql, (scope,))


def recount(connection: sqlite3.Connection, /, *, scope: int | None = None) -> None:
    """Recompute the word counts of a scope, or of every one. Matrices are read again afterwards."""
    connection.execute(
        "UPDATE scopes SET documents = (SELECT count(*) FROM experiences WHERE scope = scopes.number),"
        " words = (SELECT coalesce(sum(words), 0) FROM experiences WHERE scope = scopes.number)"
        " WHERE ?1 IS NULL OR number = ?1",
        (scope,),
    )
    connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE ?1 IS NULL OR scope = ?1", (scope,))

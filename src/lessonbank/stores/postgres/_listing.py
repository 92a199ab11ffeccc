"""Lists of lessons, runs and recalls, page by page: rows are read in order, and only until a page is full."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from lessonbank.contracts.records import Kind, Lesson, LessonState, Outcome, Recall, Run, RunStatus, Trajectory
from lessonbank.stores._listing import (
    UNFINISHED_TAG,
    Asked,
    Where,
    asked_words,
    checked_limit,
    no_such,
    recall_texts,
    run_of,
    run_texts,
    says_outcome,
)
from lessonbank.stores._records import encodable, loaded, microseconds
from lessonbank.stores._texts import checked

from ._database import Connection, row, rows, stored
from ._read import FAILED, UNSETTLED, holding, trajectory
from ._rows import NEWEST, experiences_at
from ._seen import pattern

_FIRST: Final = 64
"""Rows fetched at once at first; each further fetch takes twice as many, because few of them fit what is asked."""
_MOST: Final = 1024


def lessons(
    connection: Connection,
    asked: Asked,
    /,
    *,
    states: Sequence[LessonState],
    kind: Kind | None,
    writer: str | None,
    topics: Collection[str] | None = None,
) -> list[Lesson]:
    """See `Store.list_lessons`."""
    checked_limit(asked.limit)
    where = Where()
    where.add("l.scope = %s AND l.state = ANY(%s)", asked.scope, list(states))
    if asked.after is not None:
        last = "SELECT created_at, experience, place FROM lessonbank.lessons WHERE scope = %s AND id = %s"
        values = _known(connection, last, asked.scope, asked.after, kind="lesson")
        where.add("(l.created_at, l.experience, l.place) < (%s, %s, %s)", *values)
    if kind is not None:
        where.add("l.kind = %s", kind)
    if writer is not None:
        where.add("l.writer = %s", encodable(writer))
    if asked.tags:
        where.add("e.scope = l.scope AND e.number = l.experience")
        where.add("e.tags @> %s", list(asked.tags))
    if words := asked_words(asked.text):
        where.add("l.seen & %s::bit(1024) = %s::bit(1024)", *[pattern(words)] * 2)
    joined = ", lessonbank.experiences e" if asked.tags else ""
    sql = (
        f"SELECT l.experience, l.place FROM lessonbank.lessons l{joined}"
        f" WHERE {where} ORDER BY l.created_at DESC, l.experience DESC, l.place DESC"
    )
    found = _lessons(connection, asked, sql, where.values)
    if topics is not None:
        found = (lesson for lesson in found if lesson.topic and lesson.topic.id in topics)
    return asked.first(found, lambda lesson: (lesson.text,))


def _lessons(connection: Connection, asked: Asked, sql: str, values: Sequence[object]) -> Iterator[Lesson]:
    """The lessons at these places, without most of those that lack one of the words."""
    words = asked_words(asked.text)
    for places in _pages(connection, sql, values):
        held = experiences_at(connection, asked.scope, {experience for experience, _ in places}, words)
        yield from (held[experience].lessons[place - 1] for experience, place in places if experience in held)


def runs(connection: Connection, asked: Asked, /, *, outcome: Outcome | None, status: RunStatus | None) -> list[Run]:
    """See `Store.list_runs`."""
    where = _paged(connection, asked, table="trajectories", column="kept_at", kind="run")
    if outcome is not None:
        where.add(f"coalesce({_OUTCOME}, 'unknown') = %s", outcome)
    if status is not None:
        where.add("pending = %s", status != "learned")
    if status in ("pending", "unfinished", "failed"):
        where.add("(%s = ANY(tags)) = %s", UNFINISHED_TAG, status == "unfinished")
    if status in ("pending", "failed"):
        where.add(f"{FAILED} = %s", status == "failed")
    columns = f"{_STANDING}, {stored('record')}"
    sql = f"SELECT {columns} FROM lessonbank.trajectories t WHERE {where} ORDER BY kept_at DESC, number DESC"
    pages = _pages(connection, sql, where.values)
    kept = ((standing, loaded(Trajectory, checked(blob))) for page in pages for *standing, blob in page)
    found = asked.first(kept, lambda one: run_texts(one[1]))
    return [_run(connection, asked.scope, run, *standing) for standing, run in found]


_OUTCOME: Final = (
    f"(SELECT a.outcome FROM lessonbank.attempts a WHERE a.scope = t.scope AND a.trajectory = t.id {NEWEST})"
)


def run(connection: Connection, scope: str, id: str, /) -> Run:
    """One kept run, as it is listed. Raises NotFound."""
    kept = trajectory(connection, scope, id)
    sql = f"SELECT {_STANDING} FROM lessonbank.trajectories t WHERE scope = %s AND id = %s"
    return _run(connection, scope, kept, *row(connection, sql, scope, kept.id) or ())


_STANDING: Final = f"pending, {FAILED}, tries, error"
"""How a run stands in the queue."""


def _run(
    connection: Connection, scope: str, run: Trajectory, waits: bool, failed: bool, tries: int, error: str | None
) -> Run:
    holder = holding(connection, scope, [run.id])
    return run_of(run, holder, pending=waits, failed=failed, tries=tries, problem=error)


def recalls(connection: Connection, asked: Asked, /, *, lesson: str | None, settled: bool | None) -> list[Recall]:
    """See `Store.list_recalls`."""
    where = _paged(connection, asked, table="recalls", column="created_at", kind="recall")
    if lesson is not None:
        shown = "number IN (SELECT recall FROM lessonbank.shown WHERE scope = %s AND lesson = %s)"
        where.add(shown, asked.scope, encodable(lesson))
    entry = "NULL::bytea"
    if settled is not None:
        entry = (
            f"(SELECT {stored('j.entry')} FROM lessonbank.journal j WHERE j.scope = r.scope AND j.sequence = r.settled)"
        )
    columns = f"{stored('record')}, {entry}"
    sql = f"SELECT {columns} FROM lessonbank.recalls r WHERE {where} ORDER BY created_at DESC, number DESC"
    pages = _pages(connection, sql, where.values)
    found = (blob for page in pages for blob, told in page if settled is None or says_outcome(told) == settled)
    return asked.first((loaded(Recall, checked(blob)) for blob in found), recall_texts)


def pending(connection: Connection, scope: str, limit: int | None, after: str | None, /) -> list[Trajectory]:
    """Trajectories that wait, oldest first; at most `limit`. Raises NotFound."""
    last = 0
    if after is not None:
        sql = "SELECT number FROM lessonbank.trajectories WHERE scope = %s AND id = %s"
        (last,) = _known(connection, sql, scope, after, kind="run")
    found = rows(
        connection,
        f"SELECT {stored('record')} FROM lessonbank.trajectories t WHERE scope = %(scope)s AND {UNSETTLED}"
        f" AND NOT {FAILED} AND number > %(last)s ORDER BY number LIMIT %(limit)s",
        {"scope": scope, "unfinished": UNFINISHED_TAG, "last": last, "limit": limit},
    )
    return [loaded(Trajectory, checked(blob)) for (blob,) in found]


def _pages(connection: Connection, sql: str, values: Sequence[object]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a statement, some at a time: nobody knows how many a page needs."""
    size = _FIRST
    with connection.cursor("list", binary=True) as cursor:
        cursor.execute(sql.encode(), values)
        while page := cursor.fetchmany(size):
            yield page
            size = min(2 * size, _MOST)


def _paged(connection: Connection, asked: Asked, *, table: str, column: str, kind: str) -> Where:
    checked_limit(asked.limit)
    where = Where()
    where.add("scope = %s", asked.scope)
    if asked.before is not None:
        where.add(f"{column} < %s", microseconds(asked.before))
    if asked.after is not None:
        last = f"SELECT {column}, number FROM lessonbank.{table} WHERE scope = %s AND id = %s"
        where.add(f"({column}, number) < (%s, %s)", *_known(connection, last, asked.scope, asked.after, kind=kind))
    if asked.tags:
        where.add("tags @> %s", list(asked.tags))
    return where


def _known(connection: Connection, sql: str, scope: str, id: str, *, kind: str) -> tuple[Any, ...]:
    found = row(connection, sql, scope, encodable(id))
    if found is None:
        raise no_such(kind, id)
    return found

"""Lists of lessons, runs and recalls, page by page: rows are read in order, and only until a page is full."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from lessonbank.contracts.ports import LessonFilter, RecallFilter, RunFilter, SavedRecall
from lessonbank.contracts.records import Lesson, Run, Trajectory
from lessonbank.stores._listing import (
    UNFINISHED_TAG,
    Where,
    asked_words,
    check_limit,
    first_fitting,
    in_order,
    no_such,
    run_texts,
    runs_of,
    saved_recall,
    saved_recalls,
    tags_wanted,
    wanted_states,
)
from lessonbank.stores._records import encodable, loaded, microseconds
from lessonbank.stores._texts import checked

from ._database import Connection, row, rows, stored
from ._read import FAILED, experiences
from ._rows import NEWEST, experiences_at
from ._seen import pattern

_FIRST: Final = 64
"""Rows fetched at once at first; each further fetch takes twice as many, because few of them fit what is asked."""
_MOST: Final = 1024


def lessons(connection: Connection, scope: str, wanted: LessonFilter, /) -> list[Lesson]:
    """See `Records.lessons`."""
    check_limit(wanted.limit)
    states = wanted_states(wanted.state, retired=wanted.retired)
    where = Where()
    where.add("l.scope = %s AND l.state = ANY(%s)", scope, list(states))
    if wanted.after is not None:
        last = "SELECT created_at, experience, place FROM lessonbank.lessons WHERE scope = %s AND id = %s"
        values = _known(connection, last, scope, wanted.after, kind="lesson")
        where.add("(l.created_at, l.experience, l.place) < (%s, %s, %s)", *values)
    if wanted.kind is not None:
        where.add("l.kind = %s", wanted.kind)
    if wanted.writer is not None:
        where.add("l.writer = %s", encodable(wanted.writer))
    found_by = tags_wanted(wanted)
    if found_by:
        where.add("e.scope = l.scope AND e.number = l.experience")
        where.add("e.tags @> %s", list(found_by))
    if words := asked_words(wanted.text):
        where.add("l.seen & %s::bit(1024) = %s::bit(1024)", *[pattern(words)] * 2)
    joined = ", lessonbank.experiences e" if found_by else ""
    sql = (
        f"SELECT l.experience, l.place FROM lessonbank.lessons l{joined}"
        f" WHERE {where} ORDER BY l.created_at DESC, l.experience DESC, l.place DESC"
    )
    matches = _lessons(connection, scope, sql, where.values, words)
    if (topics := wanted.topics) is not None:
        matches = (lesson for lesson in matches if lesson.topic and lesson.topic.id in topics)
    return first_fitting(wanted, matches, lambda lesson: (lesson.text,))


def lessons_since(connection: Connection, scope: str, since: int, limit: int | None, /) -> int:
    """How many lessons were made since then (microseconds), `limit` at most. Reads none of them."""
    sql = (
        "SELECT count(*) FROM (SELECT 1 FROM lessonbank.lessons"
        " WHERE scope = %s AND state = ANY(%s) AND created_at >= %s LIMIT %s) l"
    )
    answer = row(connection, sql, scope, list(wanted_states(None, retired=True)), since, limit)
    return answer[0] if answer else 0


def _lessons(
    connection: Connection, scope: str, sql: str, values: Sequence[object], words: frozenset[str]
) -> Iterator[Lesson]:
    """The lessons at these places, without most of those that lack one of the words."""
    for places in _pages(connection, sql, values):
        held = experiences_at(connection, scope, {experience for experience, _ in places}, words)
        yield from (held[experience].lessons[place - 1] for experience, place in places if experience in held)


def runs(connection: Connection, scope: str, wanted: RunFilter, /) -> list[Run]:
    """See `Records.runs`."""
    if wanted.ids is not None:
        return _runs_of(connection, scope, wanted.ids, verdicts=wanted.verdicts)
    check_limit(wanted.limit)
    status = wanted.status
    # What is not learned has an index of its own, in which the order of saving is that of the numbers.
    order = ("number",) if status not in (None, "learned") else ("kept_at", "number")
    where = _paged(connection, scope, wanted, table="trajectories", order=order, kind="run")
    if wanted.before is not None:
        where.add("kept_at < %s", microseconds(wanted.before))
    if wanted.outcome is not None:
        where.add(f"coalesce({_OUTCOME}, 'unknown') = %s", wanted.outcome)
    if status is not None:
        where.add("NOT pending" if status == "learned" else "pending")
    if status in ("pending", "unfinished", "failed"):
        where.add("(%s = ANY(tags)) = %s", UNFINISHED_TAG, status == "unfinished")
    if status in ("pending", "failed"):
        where.add(f"{FAILED} = %s", status == "failed")
    columns = f"{_STANDING}, {stored('record')}"
    sql = f"SELECT {columns} FROM lessonbank.trajectories t WHERE {where}{in_order(wanted, order)}"
    pages = _pages(connection, sql, where.values)
    pairs = ((standing, loaded(Trajectory, checked(blob))) for page in pages for *standing, blob in page)
    matches = first_fitting(wanted, pairs, lambda pair: run_texts(pair[1]))
    held = experiences(connection, scope, "run", [run.id for _, run in matches]) if wanted.verdicts and matches else ()
    return runs_of(matches, held)


def _runs_of(connection: Connection, scope: str, ids: Iterable[str], *, verdicts: bool) -> list[Run]:
    columns = f"{_STANDING}, {stored('record')}"
    sql = f"SELECT {columns} FROM lessonbank.trajectories t WHERE scope = %s AND id = ANY(%s)"
    records = rows(connection, sql, scope, list(map(encodable, ids)))
    pairs = [(standing, loaded(Trajectory, checked(blob))) for *standing, blob in records]
    held = experiences(connection, scope, "run", [run.id for _, run in pairs]) if verdicts and pairs else ()
    return runs_of(pairs, held)


_OUTCOME: Final = (
    f"(SELECT a.outcome FROM lessonbank.attempts a WHERE a.scope = t.scope AND a.trajectory = t.id {NEWEST})"
)


_STANDING: Final = f"pending, {FAILED}, tries, error"
"""How a run stands in the queue."""


def recalls(connection: Connection, scope: str, wanted: RecallFilter, /) -> list[SavedRecall]:
    """See `Records.recalls`."""
    if wanted.ids is not None:
        entry = _SETTLED_BY if wanted.settlements else "NULL::bytea"
        sql = f"SELECT {stored('record')}, {entry} FROM lessonbank.recalls r WHERE scope = %s AND id = ANY(%s)"
        return [saved_recall(*row) for row in rows(connection, sql, scope, list(map(encodable, wanted.ids)))]
    check_limit(wanted.limit)
    order = ("created_at", "number")
    where = _paged(connection, scope, wanted, table="recalls", order=order, kind="recall")
    if wanted.before is not None:
        where.add("created_at < %s", microseconds(wanted.before))
    if wanted.since is not None:
        where.add("created_at >= %s", microseconds(wanted.since))
    if wanted.lesson is not None:
        shown = "number IN (SELECT recall FROM lessonbank.shown WHERE scope = %s AND lesson = %s)"
        where.add(shown, scope, encodable(wanted.lesson))
    entry = _SETTLED_BY if wanted.settlements or wanted.settled is not None else "NULL::bytea"
    columns = f"{stored('record')}, {entry}"
    sql = f"SELECT {columns} FROM lessonbank.recalls r WHERE {where}{in_order(wanted, order)}"
    return saved_recalls(wanted, chain.from_iterable(_pages(connection, sql, where.values)))


_SETTLED_BY: Final = (
    f"(SELECT {stored('j.entry')} FROM lessonbank.journal j WHERE j.scope = r.scope AND j.sequence = r.settled)"
)


def _pages(connection: Connection, sql: str, values: Sequence[object]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of a statement, some at a time: nobody knows how many a page needs."""
    size = _FIRST
    with connection.cursor("list", binary=True) as cursor:
        cursor.execute(sql.encode(), values)
        while page := cursor.fetchmany(size):
            yield page
            size = min(2 * size, _MOST)


def _paged(
    connection: Connection, scope: str, wanted: RunFilter | RecallFilter, *, table: str, order: Sequence[str], kind: str
) -> Where:
    where = Where()
    where.add("scope = %s", scope)
    if wanted.after is not None:
        columns, places = ", ".join(order), ", ".join(["%s"] * len(order))
        last = f"SELECT {columns} FROM lessonbank.{table} WHERE scope = %s AND id = %s"
        row = _known(connection, last, scope, wanted.after, kind=kind)
        where.add(f"({columns}) {'>' if wanted.oldest_first else '<'} ({places})", *row)
    if found_by := tags_wanted(wanted):
        where.add("tags @> %s", list(found_by))
    return where


def _known(connection: Connection, sql: str, scope: str, id: str, *, kind: str) -> tuple[Any, ...]:
    values = row(connection, sql, scope, encodable(id))
    if values is None:
        raise no_such(kind, id)
    return values

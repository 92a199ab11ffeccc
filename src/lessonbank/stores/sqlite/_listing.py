"""Lists of lessons, runs and recalls, page by page: rows are read in order, and only until a page is full."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Final

from lessonbank._base.iterate import batches
from lessonbank.contracts.records import Kind, Lesson, LessonState, Outcome, Recall, Run, RunStatus, Trajectory
from lessonbank.stores._listing import (
    UNFINISHED_TAG,
    Asked,
    Where,
    asked_words,
    no_such,
    recall_texts,
    run_of,
    run_texts,
    says_outcome,
    state_of,
)
from lessonbank.stores._records import encodable, loaded, microseconds
from lessonbank.stores._texts import checked

from ._checks import stored
from ._derived import EXPERIENCE, RECALL, RUN, TAIL
from ._lesson_words import INDEXED, asking
from ._read import FAILED, PENDING, holding, trajectory
from ._rows import AMONG, ScopeRow, among, find_scope, lessons_of, stored_at

_FEW: Final = 2 * TAIL
"""Experiences with some metadata or words whose lessons are looked at one by one."""
_LISTED: Final = 16
_SEARCHED: Final = 256
"""Lessons whose records are fetched at once: many, where most are passed over."""


def lessons(
    connection: sqlite3.Connection,
    asked: Asked,
    /,
    *,
    states: Sequence[LessonState],
    kind: Kind | None,
    writer: str | None,
    topics: Collection[str] | None = None,
) -> list[Lesson]:
    """See `Store.list_lessons`. Each state has its own run of the index: they are merged as they are read."""
    scope, row = find_scope(connection, asked.scope), None
    where = Where()
    if asked.after is not None:
        last = "SELECT created_at, experience, place FROM lessons WHERE scope = ? AND id = ?"
        row = _known(connection, last, scope, asked.after, kind="lesson")
        where.add("(created_at, experience, place) < (?, ?, ?)", *row)
    if kind is not None:
        where.add("kind = ?", kind)
    if writer is not None:
        where.add("writer = ?", encodable(writer))
    words = asked_words(asked.text)
    few = _few(connection, scope, asked.tags, words)
    if few is None:
        _add_tags(where, "experience", EXPERIENCE, asked.tags)
        if words:
            where.add(f"experience IN (SELECT number FROM ({INDEXED}))", asking(scope.number, words))
        rows = [_of_state(connection, scope, state, where) for state in states]
        places = merge(*rows, reverse=True) if len(rows) > 1 else rows[0]
    else:
        wanted = _Wanted(frozenset(states), kind, None if writer is None else encodable(writer), row)
        places = iter(sorted(_places(connection, few, words, wanted), reverse=True))
    found = _lessons(connection, places, words)
    if topics is not None:
        found = (lesson for lesson in found if lesson.topic and lesson.topic.id in topics)
    return asked.first(found, lambda lesson: (lesson.text,))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which lessons of a few experiences are listed."""

    states: Collection[LessonState]
    kind: Kind | None
    writer: str | None
    before: tuple[int, ...] | None
    """The place of the last lesson of the page before."""

    def takes(self, lesson: Lesson, at: tuple[int, int, int], /) -> bool:
        """Whether a lesson that stands at this place is listed."""
        return (
            state_of(lesson) in self.states
            and self.kind in (None, lesson.kind)
            and self.writer in (None, lesson.provenance.writer)
            and (self.before is None or at < self.before)
        )


def _few(
    connection: sqlite3.Connection, scope: ScopeRow, wanted: Collection[bytes], words: Collection[str]
) -> Sequence[int] | None:
    """The experiences of the scope with these tags that may hold these words; `None` where there are many, or
    neither is asked for.

    No index leads from an experience to its lessons: a few are quicker read than every place of the scope looked up.
    """
    each = ["SELECT record FROM tags WHERE kind = ? AND tag = ?" for _ in wanted]
    values: list[object] = [value for tag in wanted for value in (EXPERIENCE, tag)]
    if words:
        each.append(f"SELECT number FROM ({INDEXED})")
        values.append(asking(scope.number, words))
    if not each:
        return None
    numbers = [number for (number,) in connection.execute(f"{' INTERSECT '.join(each)} LIMIT ?", (*values, _FEW + 1))]
    if len(numbers) > _FEW:
        return None
    rows = connection.execute(
        f"SELECT number FROM experiences WHERE +scope = ? AND number {AMONG}", (scope.number, among(numbers))
    )
    return [number for (number,) in rows]


def _places(
    connection: sqlite3.Connection, numbers: Collection[int], words: frozenset[str], wanted: _Wanted
) -> Iterator[tuple[int, int, int]]:
    for number, kept in stored_at(connection, numbers).items():
        for place, lesson in enumerate(lessons_of(kept, words), 1):
            at = microseconds(lesson.created_at), number, place
            if wanted.takes(lesson, at):
                yield at


def of_state(where: str, /) -> str:
    """The statement that lists the places of one state's lessons, newest first."""
    return (
        "SELECT created_at, experience, place FROM lessons WHERE scope = ? AND state = ?"
        f"{where} ORDER BY created_at DESC, experience DESC, place DESC"
    )


def _of_state(
    connection: sqlite3.Connection, scope: ScopeRow, state: LessonState, where: Where
) -> Iterator[tuple[int, int, int]]:
    sql = of_state(f" AND {where}" if where.parts else "")
    rows = connection.execute(sql, (scope.number, state, *where.values))
    return (row for row in rows)  # `merge` closes what can be closed, maybe after the connection was


def _lessons(
    connection: sqlite3.Connection, places: Iterator[tuple[int, int, int]], words: frozenset[str]
) -> Iterator[Lesson]:
    """The lessons at these places, without most of those that lack one of `words`."""
    number, lessons = 0, tuple[Lesson, ...]()
    for some in batches(places, size=_SEARCHED if words else _LISTED):
        kept = stored_at(connection, {experience for _, experience, _ in some})
        for _, experience, place in some:
            if experience != number:
                number, lessons = experience, lessons_of(kept[experience], words)
            if lessons:
                yield lessons[place - 1]


def runs(
    connection: sqlite3.Connection, asked: Asked, /, *, outcome: Outcome | None, status: RunStatus | None
) -> list[Run]:
    """See `Store.list_runs`."""
    scope = find_scope(connection, asked.scope)
    where = _paged(connection, scope, asked, table="trajectories", column="kept_at", kind="run")
    _add_tags(where, "number", RUN, asked.tags)
    if outcome is not None:
        where.add(f"coalesce({_OUTCOME}, 'unknown') = ?", outcome)
    if status is not None:
        where.add("pending = ?", status != "learned")
    if status in ("pending", "unfinished", "failed"):
        among = "IN" if status == "unfinished" else "NOT IN"
        where.add(f"number {among} (SELECT record FROM tags WHERE kind = ? AND tag = ?)", RUN, UNFINISHED_TAG)
    if status in ("pending", "failed"):
        where.add(f"({FAILED}) = ?", status == "failed")
    sql = f"SELECT {_STANDING}, {stored('record')} FROM trajectories t WHERE {where} ORDER BY kept_at DESC, number DESC"
    rows = connection.execute(sql, where.values)
    kept = ((standing, loaded(Trajectory, checked(blob))) for *standing, blob in rows)
    found = asked.first(kept, lambda row: run_texts(row[1]))
    return [_run(connection, asked.scope, run, *standing) for standing, run in found]


_OUTCOME = (
    "(SELECT a.outcome FROM attempts a JOIN experiences e ON e.number = a.experience WHERE a.scope = t.scope"
    " AND a.trajectory = t.id ORDER BY e.created_at DESC, e.number DESC LIMIT 1)"
)


def run(connection: sqlite3.Connection, scope_name: str, id: str, /) -> Run:
    """One kept run, as it is listed. Raises NotFound."""
    kept = trajectory(connection, scope_name, id)
    scope = find_scope(connection, scope_name)
    sql = f"SELECT {_STANDING} FROM trajectories t WHERE scope = ? AND id = ?"
    return _run(connection, scope_name, kept, *connection.execute(sql, (scope.number, kept.id)).fetchone())


_STANDING = f"pending, {FAILED}, tries, error"
"""How a run stands in the queue."""


def _run(
    connection: sqlite3.Connection, scope: str, run: Trajectory, waits: int, failed: int, tries: int, error: str | None
) -> Run:
    holder = holding(connection, scope, [run.id])
    return run_of(run, holder, pending=bool(waits), failed=bool(failed), tries=tries, problem=error)


def recalls(
    connection: sqlite3.Connection, asked: Asked, /, *, lesson: str | None, settled: bool | None
) -> list[Recall]:
    """See `Store.list_recalls`."""
    scope = find_scope(connection, asked.scope)
    where = _paged(connection, scope, asked, table="recalls", column="created_at", kind="recall")
    _add_tags(where, "number", RECALL, asked.tags)
    if lesson is not None:
        where.add(
            "number IN (SELECT recall FROM shown WHERE scope = ? AND lesson = ?)", scope.number, encodable(lesson)
        )
    entry = "NULL"
    if settled is not None:
        entry = (
            f"(SELECT {stored('j.entry')} FROM settlements s JOIN journal j ON j.number = s.entry"
            " WHERE s.scope = r.scope AND s.recall = r.id)"
        )
    sql = f"SELECT {stored('record')}, {entry} FROM recalls r WHERE {where} ORDER BY created_at DESC, number DESC"
    rows = connection.execute(sql, where.values)
    found = (blob for blob, told in rows if settled is None or says_outcome(told) == settled)
    return asked.first((loaded(Recall, checked(blob)) for blob in found), recall_texts)


def pending(
    connection: sqlite3.Connection, scope_name: str, limit: int | None, after: str | None, /
) -> list[Trajectory]:
    """Trajectories that wait, oldest first; at most `limit`. Raises NotFound."""
    scope, last = find_scope(connection, scope_name), 0
    if after is not None:
        sql = "SELECT number FROM trajectories WHERE scope = ? AND id = ?"
        (last,) = _known(connection, sql, scope, after, kind="run")
    rows = connection.execute(
        f"SELECT {stored('record')} FROM trajectories t WHERE scope = ?1 AND {PENDING} AND number > ?3"
        " ORDER BY number LIMIT ?4",
        (scope.number, UNFINISHED_TAG, last, -1 if limit is None else limit),
    )
    return [loaded(Trajectory, checked(blob)) for (blob,) in rows]


def _paged(
    connection: sqlite3.Connection, scope: ScopeRow, asked: Asked, *, table: str, column: str, kind: str
) -> Where:
    where = Where()
    where.add("scope = ?", scope.number)
    if asked.before is not None:
        where.add(f"{column} < ?", microseconds(asked.before))
    if asked.after is not None:
        last = f"SELECT {column}, number FROM {table} WHERE scope = ? AND id = ?"
        where.add(f"({column}, number) < (?, ?)", *_known(connection, last, scope, asked.after, kind=kind))
    return where


def _add_tags(where: Where, column: str, kind: int, tags: Iterable[bytes]) -> None:
    for tag in tags:
        where.add(f"{column} IN (SELECT record FROM tags WHERE kind = ? AND tag = ?)", kind, tag)


def _known(connection: sqlite3.Connection, sql: str, scope: ScopeRow, id: str, *, kind: str) -> tuple[int, ...]:
    row = connection.execute(sql, (scope.number, encodable(id))).fetchone()
    if row is None:
        raise no_such(kind, id)
    return row

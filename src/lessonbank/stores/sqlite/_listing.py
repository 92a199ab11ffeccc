"""Lists of lessons, runs and recalls, page by page: rows are read in order, and only until a page is full."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Final

from lessonbank._base.iterate import batches
from lessonbank.contracts.ports import LessonFilter, RecallFilter, RunFilter, SavedRecall
from lessonbank.contracts.records import Kind, Lesson, LessonState, Run, Trajectory
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
    state_of,
    tags_wanted,
    wanted_states,
)
from lessonbank.stores._records import encodable, loaded, microseconds
from lessonbank.stores._texts import checked

from ._checks import stored
from ._derived import EXPERIENCE, RECALL, RUN, TAIL
from ._lesson_words import INDEXED, asking
from ._read import FAILED, experiences
from ._rows import AMONG, AMONG_IDS, OF_SCOPE, ScopeRow, among, among_ids, find_scope, lessons_of, stored_at

_FEW: Final = 2 * TAIL
"""Experiences with some metadata or words whose lessons are looked at one by one."""
_LISTED: Final = 16
_SEARCHED: Final = 256
"""Lessons whose records are fetched at once: many, where most are passed over."""


def lessons(connection: sqlite3.Connection, scope_name: str, wanted: LessonFilter, /) -> list[Lesson]:
    """See `Records.lessons`. Each state has its own run of the index: they are merged as they are read."""
    check_limit(wanted.limit)
    states = wanted_states(wanted.state, retired=wanted.retired)
    scope, row = find_scope(connection, scope_name), None
    where, writer = Where(), None if wanted.writer is None else encodable(wanted.writer)
    if wanted.after is not None:
        last = "SELECT created_at, experience, place FROM lessons WHERE scope = ? AND id = ?"
        row = _known(connection, last, scope, wanted.after, kind="lesson")
        where.add("(created_at, experience, place) < (?, ?, ?)", *row)
    if wanted.kind is not None:
        where.add("kind = ?", wanted.kind)
    if writer is not None:
        where.add("writer = ?", writer)
    words, found_by = asked_words(wanted.text), tags_wanted(wanted)
    few = _few(connection, scope, found_by, words)
    if few is None:
        _add_tags(where, "experience", EXPERIENCE, found_by)
        if words:
            where.add(f"experience IN (SELECT number FROM ({INDEXED}))", asking(scope.number, words))
        rows = [_of_state(connection, scope, state, where) for state in states]
        places = merge(*rows, reverse=True) if len(rows) > 1 else rows[0]
    else:
        those = _Those(frozenset(states), wanted.kind, writer, row)
        places = iter(sorted(_places(connection, few, words, those), reverse=True))
    matches = _lessons(connection, places, words)
    if (topics := wanted.topics) is not None:
        matches = (lesson for lesson in matches if lesson.topic and lesson.topic.id in topics)
    return first_fitting(wanted, matches, lambda lesson: (lesson.text,))


def lessons_since(connection: sqlite3.Connection, scope_name: str, since: int, limit: int | None, /) -> int:
    """How many lessons were made since then (microseconds), `limit` at most. Reads none of them."""
    sql = (
        "SELECT count(*) FROM (SELECT 1 FROM lessons WHERE scope = ?"
        " AND state IN (SELECT value FROM json_each(?)) AND created_at >= ? LIMIT ?)"
    )
    every = json.dumps(wanted_states(None, retired=True))
    return int(
        connection.execute(
            sql, (find_scope(connection, scope_name).number, every, since, -1 if limit is None else limit)
        ).fetchone()[0]
    )


@dataclass(frozen=True, slots=True)
class _Those:
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
    connection: sqlite3.Connection, numbers: Collection[int], words: frozenset[str], those: _Those
) -> Iterator[tuple[int, int, int]]:
    for number, row in stored_at(connection, numbers).items():
        for place, lesson in enumerate(lessons_of(row, words), 1):
            at = microseconds(lesson.created_at), number, place
            if those.takes(lesson, at):
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
        rows = stored_at(connection, {experience for _, experience, _ in some})
        for _, experience, place in some:
            if experience != number:
                number, lessons = experience, lessons_of(rows[experience], words)
            if lessons:
                yield lessons[place - 1]


def runs(connection: sqlite3.Connection, scope_name: str, wanted: RunFilter, /) -> list[Run]:
    """See `Records.runs`."""
    if wanted.ids is not None:
        return _runs_of(connection, scope_name, wanted.ids, verdicts=wanted.verdicts)
    check_limit(wanted.limit)
    scope, status = find_scope(connection, scope_name), wanted.status
    # What is not learned has an index of its own, in which the order of saving is that of the numbers.
    order = ("number",) if status not in (None, "learned") else ("kept_at", "number")
    where = _paged(connection, scope, wanted, table="trajectories", order=order, kind="run")
    _add_tags(where, "number", RUN, tags_wanted(wanted))
    if wanted.before is not None:
        where.add("kept_at < ?", microseconds(wanted.before))
    if wanted.outcome is not None:
        where.add(f"coalesce({_OUTCOME}, 'unknown') = ?", wanted.outcome)
    if status is not None:
        where.add("pending = 0" if status == "learned" else "pending = 1")
    if status in ("pending", "unfinished", "failed"):
        among = "IN" if status == "unfinished" else "NOT IN"
        where.add(f"number {among} (SELECT record FROM tags WHERE kind = ? AND tag = ?)", RUN, UNFINISHED_TAG)
    if status in ("pending", "failed"):
        where.add(f"({FAILED}) = ?", status == "failed")
    sql = f"SELECT {_STANDING}, {stored('record')} FROM trajectories t WHERE {where}{in_order(wanted, order)}"
    rows = connection.execute(sql, where.values)
    pairs = ((standing, loaded(Trajectory, checked(blob))) for *standing, blob in rows)
    matches = first_fitting(wanted, pairs, lambda row: run_texts(row[1]))
    held = (
        experiences(connection, scope_name, "run", [run.id for _, run in matches])
        if wanted.verdicts and matches
        else ()
    )
    return runs_of(matches, held)


def _runs_of(connection: sqlite3.Connection, scope: str, ids: Iterable[str], *, verdicts: bool) -> list[Run]:
    sql = f"SELECT {_STANDING}, {stored('record')} FROM trajectories t WHERE {OF_SCOPE} AND id {AMONG_IDS}"
    rows = connection.execute(sql, (scope, among_ids(ids))).fetchall()
    pairs = [(standing, loaded(Trajectory, checked(blob))) for *standing, blob in rows]
    held = experiences(connection, scope, "run", [run.id for _, run in pairs]) if verdicts and pairs else ()
    return runs_of(pairs, held)


_OUTCOME = (
    "(SELECT a.outcome FROM attempts a JOIN experiences e ON e.number = a.experience WHERE a.scope = t.scope"
    " AND a.trajectory = t.id ORDER BY e.created_at DESC, e.number DESC LIMIT 1)"
)


_RECORD: Final = stored("record")
_AMONG: Final = f"{OF_SCOPE} AND id {AMONG_IDS}"
_STANDING = f"pending, {FAILED}, tries, error"
"""How a run stands in the queue."""


def recalls(connection: sqlite3.Connection, scope_name: str, wanted: RecallFilter, /) -> list[SavedRecall]:
    """See `Records.recalls`."""
    if wanted.ids is not None:
        sql = f"SELECT {_RECORD}, {_SETTLED_BY if wanted.settlements else 'NULL'} FROM recalls r WHERE {_AMONG}"
        values = scope_name, among_ids(wanted.ids)
        return [saved_recall(*row) for row in connection.execute(sql, values)]
    check_limit(wanted.limit)
    scope, order = find_scope(connection, scope_name), ("created_at", "number")
    where = _paged(connection, scope, wanted, table="recalls", order=order, kind="recall")
    _add_tags(where, "number", RECALL, tags_wanted(wanted))
    if wanted.before is not None:
        where.add("created_at < ?", microseconds(wanted.before))
    if wanted.since is not None:
        where.add("created_at >= ?", microseconds(wanted.since))
    if wanted.lesson is not None:
        shown = "number IN (SELECT recall FROM shown WHERE scope = ? AND lesson = ?)"
        where.add(shown, scope.number, encodable(wanted.lesson))
    entry = _SETTLED_BY if wanted.settlements or wanted.settled is not None else "NULL"
    sql = f"SELECT {stored('record')}, {entry} FROM recalls r WHERE {where}{in_order(wanted, order)}"
    return saved_recalls(wanted, connection.execute(sql, where.values))


_SETTLED_BY: Final = (
    f"(SELECT {stored('j.entry')} FROM settlements s JOIN journal j ON j.number = s.entry"
    " WHERE s.scope = r.scope AND s.recall = r.id)"
)


def _paged(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    wanted: RunFilter | RecallFilter,
    *,
    table: str,
    order: Sequence[str],
    kind: str,
) -> Where:
    where = Where()
    where.add("scope = ?", scope.number)
    if wanted.after is not None:
        columns, places = ", ".join(order), ", ".join("?" * len(order))
        last = f"SELECT {columns} FROM {table} WHERE scope = ? AND id = ?"
        row = _known(connection, last, scope, wanted.after, kind=kind)
        where.add(f"({columns}) {'>' if wanted.oldest_first else '<'} ({places})", *row)
    return where


def _add_tags(where: Where, column: str, kind: int, tags: Iterable[bytes]) -> None:
    for tag in tags:
        where.add(f"{column} IN (SELECT record FROM tags WHERE kind = ? AND tag = ?)", kind, tag)


def _known(connection: sqlite3.Connection, sql: str, scope: ScopeRow, id: str, *, kind: str) -> tuple[int, ...]:
    row = connection.execute(sql, (scope.number, encodable(id))).fetchone()
    if row is None:
        raise no_such(kind, id)
    return row

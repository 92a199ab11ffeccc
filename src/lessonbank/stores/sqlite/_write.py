"""What a write does to the tables; each function runs inside one transaction and is all or nothing with it."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from lessonbank.contracts.records import Add, Edit, Experience, JournalEntry, Recall, Settle, Trajectory
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.errors import Conflict, NotFound
from lessonbank.stores._changes import KEPT, SETTLED, Draft, planned, stale_places
from lessonbank.stores._entries import erased_since
from lessonbank.stores._listing import noted_again
from lessonbank.stores._records import json_of, loaded, microseconds, wait_of
from lessonbank.stores._texts import checked, records_with_sums, with_sum
from lessonbank.text.bm25 import words

from . import _lesson_words
from ._checks import checksum, keep_setting, stored
from ._clock import present
from ._derived import RUN, change_words, derive, index_tail, note_shown, settle_pending, tag, underive
from ._journal import AS_BEFORE, Batch, journal
from ._rows import (
    AMONG_IDS,
    NOWHERE,
    PARTS,
    ScopeRow,
    among_ids,
    entry_of,
    experience_at,
    find_scope,
    find_space,
    journal_number,
    make_scope,
)
from ._vectors import drop, forget, place

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors


_NEWEST: Final = (
    "SELECT (SELECT max(id) FROM experiences WHERE scope = ?1), (SELECT max(id) FROM lessons WHERE scope = ?1)"
)


class Present:
    """A scope's state as this transaction sees it; the `View` that changes are planned on.

    Which of the ids of what is `new` are not there is asked at once.
    """

    def __init__(self, connection: sqlite3.Connection, scope: ScopeRow, /, *, new: Sequence[Experience] = ()) -> None:
        self._connection = connection
        self._scope = scope
        last, last_lesson = connection.execute(_NEWEST, (scope.number,)).fetchone() if new else (None, None)
        self._unknown = self._not_in("experiences", last, [e.id for e in new])
        self._unowned = self._not_in("lessons", last_lesson, [i.id for e in new for i in e.lessons])

    def _not_in(self, table: str, last: object, ids: Sequence[str]) -> set[str]:
        doubtful = ids
        if isinstance(last, str | None):
            # Ids begin with the time they were made at: most are greater than any that is there, by SQLite's order too.
            doubtful = [] if last is None else [id for id in ids if id <= last]
        if not doubtful:
            return set(ids)
        sql = f"SELECT id FROM {table} WHERE scope = ? AND id {AMONG_IDS}"
        rows = self._connection.execute(sql, (self._scope.number, among_ids(doubtful)))
        return set(ids).difference([id for (id,) in rows])

    def knows(self, id: str, /) -> bool:
        """See `View.knows`."""
        if id in self._unknown:
            return False
        return self._first_value("SELECT 1 FROM experiences WHERE scope = ? AND id = ?", id) is not None

    def experience(self, id: str, /) -> Experience | None:
        """See `View.experience`."""
        number = self._first_value("SELECT number FROM experiences WHERE scope = ? AND id = ?", id)
        return None if number is None else experience_at(self._connection, number)

    def find_holder(self, lesson_id: str, /) -> str | None:
        """See `View.find_holder`."""
        if lesson_id in self._unowned:
            return None
        return self._first_value(
            "SELECT e.id FROM lessons i JOIN experiences e ON e.number = i.experience WHERE i.scope = ? AND i.id = ?",
            lesson_id,
        )

    def settled_runs(self, trajectory_ids: Collection[str], /) -> set[str]:
        """See `View.settled_runs`."""
        sql = f"SELECT trajectory FROM attempts WHERE scope = ? AND waiting = 0 AND trajectory {AMONG_IDS}"
        return {id for (id,) in self._connection.execute(sql, (self._scope.number, among_ids(trajectory_ids)))}

    def find_wordings(self, wordings: Collection[str], /) -> list[tuple[str, str]]:
        """See `View.find_wordings`."""
        sql = f"SELECT wording, id FROM lessons WHERE scope = ? AND wording {AMONG_IDS}"
        return self._connection.execute(sql, (self._scope.number, among_ids(wordings))).fetchall()

    def _first_value(self, sql: str, id: str) -> Any:
        row = self._connection.execute(sql, (self._scope.number, id)).fetchone()
        return row[0] if row else None


def save_runs(
    connection: sqlite3.Connection, scope_name: str, runs: Sequence[Trajectory], /, *, wait: float
) -> list[str]:
    """Keep runs, in a scope that is made where it is new."""
    return keep(connection, make_scope(connection, scope_name).number, runs, wait=wait)


def keep(
    connection: sqlite3.Connection,
    scope: int,
    runs: Sequence[Trajectory],
    /,
    *,
    wait: float = IN_HAND,
    together: bool = True,
) -> list[str]:
    """Insert trajectories by id; the ids that were new. `together`: see `Records.save_runs`."""
    held, at, new = records_with_sums(runs), microseconds(now()), list[str]()
    later = present(connection, at) + wait_of(wait)
    leader = held[0][0].id if together and len(held) > 1 else None
    for run, columns in held:
        due, first = None if run.unfinished else later, None if run.id == leader else leader
        done = connection.execute(_KEEP, (scope, at, run.id, *columns, checksum(scope, at, run.id), due, first))
        if done.rowcount == 1:
            new.append(run.id)
            tag(connection, RUN, done.lastrowid or 0, run)
        elif run.submission:
            _note_again(connection, scope, run, due=later)
    return new


def _note_again(connection: sqlite3.Connection, scope: int, run: Trajectory, *, due: int) -> None:
    """Keep what is said now of a run that waits. Workers may take it from `due` on, if it was unfinished."""
    sql = f"SELECT number, due, {stored('record')} FROM trajectories WHERE scope = ? AND id = ? AND pending = 1"
    row = connection.execute(sql, (scope, run.id)).fetchone()
    previous = row and loaded(Trajectory, checked(row[2]))
    if previous and (again := noted_again(previous, run)):
        ((again, text),) = records_with_sums([again])
        values = *text, due if previous.unfinished else row[1], row[0]
        connection.execute("UPDATE trajectories SET record = ?, record_sum = ?, due = ? WHERE number = ?", values)
        connection.execute("DELETE FROM tags WHERE kind = ? AND record = ?", (RUN, row[0]))
        tag(connection, RUN, row[0], again)


_KEEP: Final = (
    "INSERT OR IGNORE INTO trajectories (scope, kept_at, id, record, record_sum, sum, due, leader, pending)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, (SELECT number FROM trajectories WHERE scope = ?1 AND id = ?8),"
    " NOT EXISTS (SELECT 1 FROM attempts WHERE scope = ?1 AND trajectory = ?3 AND waiting = 0))"
)


def apply(connection: sqlite3.Connection, batch: Batch, /) -> Sequence[JournalEntry]:
    """Write the journal, make the changes, place the vectors, settle the recall.

    Raises:
        NotFound, Conflict, SpaceMismatch, UsageError: see `Records.apply`.
    """
    scope, changes = make_scope(connection, batch.scope), batch.changes
    if batch.runs and len(keep(connection, scope.number, batch.runs)) < len(batch.runs):
        raise Conflict(KEPT)
    new = [change.experience for change in changes if isinstance(change, Add)]
    draft = planned(batch, Present(connection, scope, new=new), changes)
    return _applied(connection, scope, batch, draft)


def _applied(connection: sqlite3.Connection, scope: ScopeRow, batch: Batch, draft: Draft) -> Sequence[JournalEntry]:
    rows = rows_for(connection, scope, Written.of(draft, scope)) if draft.written else None
    numbers: Mapping[str, int] = rows.numbers if rows else {}
    touched = [{numbers[id]: whole for id, whole in writes.items()} for writes in draft.touched]
    # First of all: most experiences are kept in these entries alone, and what is written next may read them.
    entries = journal(connection, scope, batch, touched=touched, grown=rows.grown if rows else AS_BEFORE)
    if rows:
        write(connection, scope, rows)
    if batch.vectors:
        place(connection, scope, batch.vectors, batch.space)
    for sequence, (entry, _) in enumerate(batch.entries, scope.sequence + 1):
        if isinstance(entry, Edit):
            connection.execute("DELETE FROM settings WHERE key = ?", (REVIEW.of(batch.scope),))
        if isinstance(entry, Settle):
            _settle(connection, scope, entry.settlement.recall_id, sequence, is_first=batch.if_unsettled)
    return entries


def index(
    connection: sqlite3.Connection, scope_name: str, vectors: Mapping[str, Vectors], space_name: str, replace: bool, /
) -> None:
    """Set vectors of existing experiences or lessons; `replace`: in place of all that the space held."""
    scope = find_scope(connection, scope_name)
    if replace and (space := find_space(connection, scope, space_name).number):
        drop(connection, space)
    if vectors:
        place(connection, scope, vectors, space_name)


def record(connection: sqlite3.Connection, receipt: Recall, /) -> bool:
    """Keep a receipt; a known one stays as it is. Whether it was new."""
    ((recall, columns),) = records_with_sums([receipt])
    scope = find_scope(connection, recall.scope)
    scope = make_scope(connection, recall.scope) if scope is NOWHERE else scope
    done = connection.execute(
        "INSERT OR IGNORE INTO recalls (scope, created_at, id, record, record_sum) VALUES (?, ?, ?, ?, ?)",
        (scope.number, microseconds(recall.created_at), recall.id, *columns),
    )
    if done.rowcount == 1:
        note_shown(connection, scope.number, done.lastrowid or 0, recall)
    return done.rowcount == 1


def take_back(connection: sqlite3.Connection, receipt: Recall, /) -> bool:
    """Keep a receipt that comes back, unless the scope has erased anything since it was made; whether it is kept."""
    since, scope = microseconds(receipt.created_at), find_scope(connection, receipt.scope)
    rows = connection.execute(
        f"SELECT {stored('entry')} FROM journal WHERE number BETWEEN ? AND ? AND at >= ?"
        " AND kind IN ('purge', 'forgotten')",
        (journal_number(scope.number, 0), journal_number(scope.number, scope.sequence), since),
    )
    if any(erased_since(entry_of(checked(blob)), since) for (blob,) in rows):
        return False
    record(connection, receipt)
    return True


def set_setting(connection: sqlite3.Connection, key: str, value: str | None, /) -> None:
    """Keep a choice with the file; `None` removes it."""
    if value is None:
        connection.execute("DELETE FROM settings WHERE key = ?", (key,))
    else:
        keep_setting(connection, key, value)


def _settle(connection: sqlite3.Connection, scope: ScopeRow, recall_id: str, sequence: int, *, is_first: bool) -> None:
    sql = (
        "SELECT s.entry FROM recalls r LEFT JOIN settlements s ON s.scope = r.scope AND s.recall = r.id"
        " WHERE r.scope = ? AND r.id = ?"
    )
    known = connection.execute(sql, (scope.number, recall_id)).fetchone()
    if known is None:
        raise NotFound(f"no recall {recall_id!r} in this scope")
    if is_first and known[0] is not None:
        raise Conflict(SETTLED)
    connection.execute(
        "INSERT OR REPLACE INTO settlements (scope, recall, entry) VALUES (?, ?, ?)",
        (scope.number, recall_id, journal_number(scope.number, sequence)),
    )


@dataclass(frozen=True, slots=True)
class Written:
    """Experiences to be put in the place of what has their ids."""

    experiences: Mapping[str, Experience]
    added: Collection[str]
    """Ids of those that are new to the scope."""
    entries: Mapping[str, tuple[int, bool]]
    """Id to the journal entry that wrote it last, and whether that entry holds it as it is."""

    @classmethod
    def of(cls, draft: Draft, scope: ScopeRow, /) -> Written:
        """What a draft writes, when its changes become the next entries of the journal."""
        entries = {
            id: (number, whole)
            for number, touched in enumerate(draft.touched, journal_number(scope.number, scope.sequence + 1))
            for id, whole in touched.items()
        }
        return cls(draft.written, draft.added, entries)


_STATE: Final = (
    "SELECT (SELECT coalesce(max(number), 0) FROM experiences), (SELECT upto FROM indexed),"
    " EXISTS (SELECT 1 FROM experiences WHERE scope = ?), EXISTS (SELECT 1 FROM repeats)"
)
"""The last number, the last one whose words are indexed; whether a rollback took anything out of a scope, and whether
anything is taught again."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the experiences of a write go, and what is there before it."""

    written: Written
    numbers: Mapping[str, int]
    old: Mapping[str, _Old]
    tasks: Mapping[int, str]
    """The words of every task as one text, by number."""
    lengths: Mapping[str, int]
    """How many words these are, by id."""
    last: int
    indexed: int
    repeated: bool

    @property
    def grown(self) -> tuple[int, int]:
        """By how many documents and words the scope grows."""
        added = self.written.added
        before = [row.words for id, row in self.old.items() if id not in added]
        return len(added), sum(self.lengths.values()) - sum(before)


def rows_for(connection: sqlite3.Connection, scope: ScopeRow, written: Written, /) -> Rows:
    """Find a row for each experience; those that a rollback took out get theirs back."""
    last, indexed, rolled_back, repeated = connection.execute(_STATE, (-scope.number,)).fetchone()
    back = _readmit(connection, scope, written.added) if rolled_back else set[str]()
    every, added = written.experiences, written.added
    old = {id: _old(connection, scope, id) for id in every if id not in added or id in back}
    new = [id for id in every if id not in old]
    numbers = {id: row.number for id, row in old.items()} | dict(zip(new, count(last + 1), strict=False))
    tasks, lengths = dict[int, str](), dict[str, int]()
    for id, experience in every.items():
        terms = words(experience.task)
        tasks[numbers[id]], lengths[id] = " ".join(terms), len(terms)
    return Rows(written, numbers, old, tasks, lengths, last=last, indexed=indexed or 0, repeated=bool(repeated))


def write(connection: sqlite3.Connection, scope: ScopeRow, rows: Rows, /) -> None:
    """Write experiences with all that follows from them, but for the sums of the scope.

    The journal has their entries by now: what is derived from many experiences at once reads them there.
    """
    written, old = rows.written, rows.old
    for row in old.values():
        underive(connection, scope.number, row.number, row.experience)
    _put(connection, scope, rows)
    experiences = {rows.numbers[id]: e for id, e in written.experiences.items()}
    derive(connection, scope.number, experiences)
    if old:
        _change_words(connection, scope, old, written, indexed=rows.indexed)
    if rows.repeated:
        _tell_repeating(connection, scope, old, written)
    index_tail(connection, scope.number, rows.tasks, experiences, before=rows.last, done=rows.indexed)
    versions = *experiences.values(), *[row.experience for row in old.values()]
    settle_pending(connection, scope.number, {attempt.trajectory_id for e in versions for attempt in e.attempts})


def _readmit(connection: sqlite3.Connection, scope: ScopeRow, ids: Collection[str]) -> set[str]:
    """Give back their rows to those of the ids that a rollback took out, to be written over."""
    rows: list[tuple[str, int]] = connection.execute(
        f"SELECT id, number FROM experiences WHERE scope = ? AND id {AMONG_IDS}", (-scope.number, among_ids(ids))
    ).fetchall()
    for _, number in rows:
        connection.execute("UPDATE experiences SET scope = ? WHERE number = ?", (scope.number, number))
        for table in ("lessons", "attempts"):
            connection.execute(f"DELETE FROM {table} WHERE scope = ?", (-number,))
    if rows:
        connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE scope = ?", (scope.number,))
    return {id for id, _ in rows}


@dataclass(frozen=True, slots=True)
class _Old:
    number: int
    words: int
    experience: Experience


def _old(connection: sqlite3.Connection, scope: ScopeRow, id: str) -> _Old:
    sql = "SELECT number, words FROM experiences WHERE scope = ? AND id = ?"
    number, length = connection.execute(sql, (scope.number, id)).fetchone()
    return _Old(number, length, experience_at(connection, number))


def _put(connection: sqlite3.Connection, scope: ScopeRow, rows: Rows) -> None:
    written, numbers = rows.written, rows.numbers

    def row(id: str) -> tuple[Any, ...]:
        experience, (entry, whole) = written.experiences[id], written.entries[id]
        record = (None, None) if whole else with_sum(json_of(experience))
        at = microseconds(experience.created_at)
        number = numbers[id]
        columns = at, bool(experience.active_lessons), rows.lengths[id], entry, *record
        return *columns, checksum(number, entry), number, scope.number, id

    # Rows are made one by one, as they are asked for: many that are held at once are much to look through for Python.
    connection.executemany(_UPDATE, map(row, rows.old))
    connection.executemany(_INSERT, (row(id) for id in numbers if id not in rows.old))
    connection.executemany(
        "INSERT OR REPLACE INTO tasks (number, task) VALUES (?, ?)",
        ((numbers[id], experience.task) for id, experience in written.experiences.items()),
    )


_UPDATE: Final = (
    "UPDATE experiences SET created_at = ?, active = ?, words = ?, entry = ?, record = ?, record_sum = ?, sum = ?"
    " WHERE number = ? AND scope = ? AND id = ?"
)
_INSERT: Final = (
    "INSERT INTO experiences (created_at, active, words, entry, record, record_sum, sum, number, scope, id)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def _change_words(
    connection: sqlite3.Connection, scope: ScopeRow, old: Mapping[str, _Old], written: Written, *, indexed: int
) -> None:
    """Words and vectors of a task that is another now are of no use, nor are those of changed lessons."""
    stale = set[int]()
    for id, row in old.items():
        before, after = row.experience, written.experiences[id]
        stale |= stale_keys(row.number, before, after)
        if row.number <= indexed:
            if before.task != after.task:
                change_words(connection, scope.number, row.number, before.task, after.task)
            _lesson_words.change(connection, scope.number, row.number, before, after)
    forget(connection, scope.number, stale)


def _tell_repeating(connection: sqlite3.Connection, scope: ScopeRow, old: Mapping[str, _Old], written: Written) -> None:
    """Have matrices read again where a lesson comes or goes that another experience taught again: no entry names it."""
    before = {i.id for row in old.values() for i in row.experience.active_lessons}
    moved = before ^ {i.id for experience in written.experiences.values() for i in experience.active_lessons}
    sql = f"SELECT EXISTS (SELECT 1 FROM repeats WHERE lesson {AMONG_IDS})"
    if moved and connection.execute(sql, (among_ids(moved),)).fetchone()[0]:
        connection.execute("UPDATE spaces SET epoch = epoch + 1 WHERE scope = ?", (scope.number,))


def stale_keys(number: int, before: Experience, after: Experience, /) -> set[int]:
    """Keys of a task and of lessons that are not there any more or say something else."""
    return {number * PARTS + at for at in stale_places(before, after) if at < PARTS}

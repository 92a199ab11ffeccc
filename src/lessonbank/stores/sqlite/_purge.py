"""True erasure in the tables: nothing that has to go is left in a record, the journal, an index or a free page."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from lessonbank.evidence.review_snapshot import key as told_key
from lessonbank.protocols import REFUSED
from lessonbank.stores._erasure import (
    OUTLIVE,
    SALT,
    Erasing,
    forgotten,
    is_forgotten,
    not_gone,
    scope_tombstone,
    unknown,
    without_reason,
)
from lessonbank.stores._packing import packed, packed_records, unpacked
from lessonbank.stores._records import loaded, microseconds
from lessonbank.types import Erased, Erasure, Experience, Forgotten, JournalEntry, Purge, Recall
from lessonbank.types.ids import new_id

from . import _lesson_words
from ._derived import RECALL, derive, recount, reindex_words, settle_all, underive, untag, upto
from ._read import counts, setting
from ._rows import AMONG, ScopeRow, among, entry_of, experience_of, find_scope, journal_number, make_scope
from ._vector_blocks import drop, forget
from ._write import Batch, journal, set_setting, stale_lessons

UNFINISHED: Final = "purge.unfinished"
"""The setting that stands from the purge until its bytes are gone from the file, too."""

_OF_SCOPE: Final = ("trajectories", "recalls", "settlements")
"""Not `spaces`: a later space must not begin with an epoch that somebody's matrix shows already."""


def purge_scope(connection: sqlite3.Connection, name: str, writer: str, reason: str, /) -> JournalEntry:
    """Erase everything a scope holds; its journal keeps its length."""
    before = counts(connection, name)
    scope = make_scope(connection, name)
    tombstone = scope_tombstone(name, reason, before, entries=scope.sequence)
    rows = connection.execute(
        "SELECT number FROM experiences WHERE scope IN (?, ?)", (scope.number, -scope.number)
    ).fetchall()
    _delete(connection, scope, [number for (number,) in rows])
    for (space,) in connection.execute("SELECT number FROM spaces WHERE scope = ?", (scope.number,)).fetchall():
        drop(connection, space)
    for table in _OF_SCOPE:
        connection.execute(f"DELETE FROM {table} WHERE scope = ?", (scope.number,))
    _empty_journal(connection, scope)
    told = _append(connection, name, writer, tombstone)
    _lesson_words.reindex(connection)
    _finish(connection, name)
    return told


def _empty_journal(connection: sqlite3.Connection, scope: ScopeRow) -> None:
    acts = f"kind IN ({', '.join('?' * len(OUTLIVE))})"
    kept = connection.execute(
        f"SELECT number, entry FROM journal WHERE number BETWEEN ? AND ? AND {acts}", (*_span(scope), *OUTLIVE)
    ).fetchall()
    erased = Erased(by=scope.sequence + 1)
    connection.execute(
        "UPDATE journal SET kind = ?, whole = NULL, part = NULL, entry = ?"
        f" WHERE number BETWEEN ? AND ? AND NOT {acts}",
        (erased.kind, packed(erased.model_dump_json()), *_span(scope), *OUTLIVE),
    )
    left = [(packed(without_reason(entry_of(unpacked(blob))).model_dump_json()), number) for number, blob in kept]
    connection.executemany("UPDATE journal SET entry = ? WHERE number = ?", left)


def purge(
    connection: sqlite3.Connection, name: str, these: Iterable[tuple[Erasure, str]], writer: str, reason: str, /
) -> list[JournalEntry]:
    """Erase lessons, runs and recalls, each with what is derived from it.

    Raises:
        NotFound: neither the scope nor its past knows one of them.
    """
    told = [_purge(connection, name, one, writer, reason) for one in not_gone(these)]
    _lesson_words.finish(connection)
    _finish(connection, name)
    return told


def _purge(connection: sqlite3.Connection, name: str, erasing: Erasing, writer: str, reason: str) -> JournalEntry:
    scope = find_scope(connection, name)
    while erasing.read(entry_of(text) for _, text in _entries(connection, scope, erasing)):
        pass
    run, receipt = (scope.number, erasing.trajectory), (scope.number, erasing.receipt)
    runs = connection.execute("DELETE FROM trajectories WHERE scope = ? AND id = ?", run).rowcount
    receipts = connection.execute("DELETE FROM recalls WHERE scope = ? AND id = ?", receipt).rowcount
    connection.execute("DELETE FROM settlements WHERE scope = ? AND recall = ?", receipt)
    if not runs and not receipts and not erasing.found:
        raise unknown(erasing)
    _scrub_experiences(connection, scope, erasing)
    entries = _scrub_journal(connection, scope, erasing)
    recalls = receipts + _scrub_recalls(connection, scope, erasing)
    tombstone = erasing.tombstone(reason, trajectories=runs, recalls=recalls, entries=entries)
    return _append(connection, name, writer, tombstone)


def forget_old(connection: sqlite3.Connection, name: str, before: datetime, writer: str, /) -> Forgotten:
    """Erase old runs and recalls, but for the evidence."""
    scope, end = find_scope(connection, name), microseconds(before)
    old = "DELETE FROM trajectories WHERE scope = ? AND kept_at < ?"
    runs = connection.execute(old, (scope.number, end)).rowcount
    told = Forgotten(before=before, runs=runs, recalls=_forget_recalls(connection, scope, end))
    if told.runs or told.recalls:
        _append(connection, name, writer, told)
        _leave_bytes(connection)
    return told


def _forget_recalls(connection: sqlite3.Connection, scope: ScopeRow, end: int) -> int:
    salt = setting(connection, SALT) or new_id()
    set_setting(connection, SALT, salt)
    rows = connection.execute(
        "SELECT number, record, EXISTS (SELECT 1 FROM settlements s WHERE s.scope = r.scope AND s.recall = r.id)"
        " FROM recalls r WHERE scope = ? AND created_at < ?",
        (scope.number, end),
    ).fetchall()
    old = [
        (number, recall, settled)
        for number, blob, settled in rows
        if not is_forgotten(recall := loaded(Recall, unpacked(blob)))
    ]
    for number, recall, settled in old:
        if settled:
            left = packed(forgotten(recall, salt).model_dump_json())
            connection.execute("UPDATE recalls SET record = ? WHERE number = ?", (left, number))
            untag(connection, RECALL, [number])
        else:
            connection.execute("DELETE FROM recalls WHERE number = ?", (number,))
    return len(old)


def _append(connection: sqlite3.Connection, name: str, writer: str, told: Purge | Forgotten) -> JournalEntry:
    batch = Batch(name, writer, packed_records([told]))
    return journal(connection, find_scope(connection, name), batch, touched=[{}])[0]


def _leave_bytes(connection: sqlite3.Connection) -> None:
    set_setting(connection, UNFINISHED, new_id())


def _finish(connection: sqlite3.Connection, name: str) -> None:
    # The word index keeps what was deleted until its segments are merged, so it is made anew.
    reindex_words(connection)
    scope = find_scope(connection, name)
    recount(connection, scope=scope.number)
    settle_all(connection, scope=scope.number)
    connection.execute("DELETE FROM settings WHERE key IN (?, ?)", (told_key(name), REFUSED + name))
    _leave_bytes(connection)


def _span(scope: ScopeRow) -> tuple[int, int]:
    return journal_number(scope.number, 0), journal_number(scope.number, scope.sequence)


def _entries(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> Iterator[tuple[int, bytes]]:
    """Number and JSON of the entries that name one of the ids, oldest first."""
    marks = _marks(erasing.ids)
    for number, blob in connection.execute(
        "SELECT number, entry FROM journal WHERE number BETWEEN ? AND ? ORDER BY number", _span(scope)
    ):
        text = unpacked(blob)
        if any(mark in text for mark in marks):
            yield number, text


def _marks(ids: Iterable[str]) -> list[bytes]:
    """How ids stand in JSON."""
    return [json.dumps(id, ensure_ascii=False).encode() for id in ids]


def _scrub_journal(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> int:
    rewritten: list[tuple[str, bytes, int]] = []
    for number, text in _entries(connection, scope, erasing):
        entry = entry_of(text)
        left = erasing.entry(entry, by=scope.sequence + 1)
        if left is not entry:
            rewritten.append((left.kind, packed(left.model_dump_json()), number))
    connection.executemany("UPDATE journal SET kind = ?, entry = ? WHERE number = ?", rewritten)
    return len(rewritten)


def _scrub_experiences(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> None:
    """Present ones and those that a rollback took out, before the journal entries that hold them are scrubbed."""
    marks = _marks(erasing.ids)
    rows = connection.execute(
        "SELECT e.number, e.scope, e.record, j.entry FROM experiences e LEFT JOIN journal j ON j.number = e.entry"
        " WHERE e.scope IN (?, ?)",
        (scope.number, -scope.number),
    ).fetchall()
    doomed, indexed = list[int](), upto(connection)
    for number, where, record, entry in rows:
        text = unpacked(record or entry or packed(""))
        if not any(mark in text for mark in marks):
            continue
        experience = experience_of(record, entry)
        left = erasing.experience(experience)
        if left is not experience and number <= indexed:
            _lesson_words.change(connection, scope.number, number, experience, left)
        if left is None:
            doomed.append(number)
        elif left is not experience:
            place = where if where > 0 else -number
            underive(connection, place, number, experience)
            derive(connection, place, {number: left})
            _put_back(connection, number, left, own=record is not None)
            forget(connection, scope.number, keys=stale_lessons(number, experience.lessons, left.lessons))
    _delete(connection, scope, doomed)


def _put_back(connection: sqlite3.Connection, number: int, left: Experience, *, own: bool) -> None:
    record = packed(left.model_dump_json()) if own else None
    connection.execute(
        "UPDATE experiences SET record = ?, active = ? WHERE number = ?", (record, bool(left.active_lessons), number)
    )


def _delete(connection: sqlite3.Connection, scope: ScopeRow, numbers: Sequence[int]) -> None:
    forget(connection, scope.number, numbers=frozenset(numbers))
    places = among([*(-number for number in numbers), scope.number])
    for table in ("lessons", "attempts"):
        connection.execute(f"DELETE FROM {table} WHERE scope {AMONG} AND experience {AMONG}", (places, among(numbers)))
    for table in ("experiences", "tasks"):
        connection.execute(f"DELETE FROM {table} WHERE number {AMONG}", (among(numbers),))
    _unname(connection, scope, frozenset(numbers))


def _unname(connection: sqlite3.Connection, scope: ScopeRow, numbers: frozenset[int]) -> None:
    """Take numbers out of the journal: they may be given to other experiences."""
    rows = connection.execute("SELECT whole, part, number FROM journal WHERE number BETWEEN ? AND ?", _span(scope))
    named = [(whole, part, number) for whole, part, number in rows if whole or part]
    changed = [
        (_without(whole, numbers), _without(part, numbers), number)
        for whole, part, number in named
        if not numbers.isdisjoint(json.loads(whole or "[]") + json.loads(part or "[]"))
    ]
    connection.executemany("UPDATE journal SET whole = ?, part = ? WHERE number = ?", changed)


def _without(text: str | None, numbers: Collection[int]) -> str | None:
    left = [number for number in json.loads(text or "[]") if number not in numbers]
    return among(left) if left else None


def _scrub_recalls(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> int:
    marks = _marks((*erasing.lessons, *erasing.recalls))
    rows = connection.execute("SELECT number, record FROM recalls WHERE scope = ?", (scope.number,))
    changed: list[tuple[bytes, int]] = []
    for number, blob in rows:
        text = unpacked(blob)
        if any(mark in text for mark in marks):
            recall = loaded(Recall, text)
            left = erasing.recall(recall)
            if left is not recall:
                changed.append((packed(left.model_dump_json()), number))
                if not left.metadata:
                    untag(connection, RECALL, [number])
    connection.executemany("UPDATE recalls SET record = ? WHERE number = ?", changed)
    return len(changed)


def mark(connection: sqlite3.Connection, /) -> str | None:
    """Which purge was the last whose bytes may still be in the file."""
    return setting(connection, UNFINISHED)


def finished(connection: sqlite3.Connection, mark: str | None, /) -> None:
    """Forget that bytes were still to be erased, unless a later purge left others."""
    connection.execute("DELETE FROM settings WHERE key = ? AND value = ?", (UNFINISHED, mark))

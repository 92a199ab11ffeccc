"""True erasure in the tables: nothing that has to go is left in a record, the journal, an index or a free page."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from lessonbank.contracts.records import Erased, Erasure, Experience, Forgotten, JournalEntry, Purge, Recall, Trajectory
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.records.settings import ZEROED, keys_of
from lessonbank.guard.shown_lines import ShownBlocks
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
from lessonbank.stores._mentions import (
    entries_naming,
    every_id,
    naming,
    runs_without,
    scrub_entries,
    scrub_recalls,
    shown_ids,
    take_in_all,
    texts_lost,
)
from lessonbank.stores._records import json_of, loaded, microseconds
from lessonbank.stores._texts import checked, records_with_sums, with_sum

from . import _lesson_words
from ._checks import stored
from ._derived import RECALL, RUN, derive, forget_words, recount, reindex_words, settle_all, tag, underive, untag, upto
from ._read import counts, setting
from ._rows import AMONG, PARTS, ScopeRow, among, entry_of, experience_in, find_scope, journal_number, make_scope
from ._vectors import drop, forget
from ._write import Batch, journal, set_setting, stale_keys

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
    entry = _append(connection, name, writer, tombstone)
    reindex_words(connection)
    _lesson_words.reindex(connection)
    _drop_settings(connection, keys_of(name))
    _finish(connection, name)
    return entry


def _empty_journal(connection: sqlite3.Connection, scope: ScopeRow) -> None:
    acts = f"kind IN ({', '.join('?' * len(OUTLIVE))})"
    entries = connection.execute(
        f"SELECT number, {stored('entry')} FROM journal WHERE number BETWEEN ? AND ? AND {acts}",
        (*_span(scope), *OUTLIVE),
    ).fetchall()
    erased = Erased(by=scope.sequence + 1)
    connection.execute(
        "UPDATE journal SET kind = ?, whole = NULL, part = NULL, entry = ?, entry_sum = ?"
        f" WHERE number BETWEEN ? AND ? AND NOT {acts}",
        (erased.kind, *with_sum(json_of(erased)), *_span(scope), *OUTLIVE),
    )
    left = [(*with_sum(json_of(without_reason(entry_of(checked(blob))))), number) for number, blob in entries]
    connection.executemany("UPDATE journal SET entry = ?, entry_sum = ? WHERE number = ?", left)


def purge(
    connection: sqlite3.Connection, name: str, these: Sequence[tuple[Erasure, str]], writer: str, reason: str, /
) -> list[JournalEntry]:
    """Erase lessons, runs and recalls, each with what is derived from it.

    Raises:
        NotFound: neither the scope nor its past knows one of them.
    """
    scope = find_scope(connection, name)
    mentions = _find_mentions(connection, scope, [Erasing(what, id) for what, id in these])
    receipts, has_words = dict(mentions.recalls), bool(mentions.entries or mentions.experiences)
    entries = [_purge(connection, name, mentions, erasing, writer, reason) for erasing in not_gone(these)]
    _scrub_runs(connection, scope, texts_lost(receipts, mentions.recalls))
    if has_words:
        forget_words(connection, scope.number, mentions.doomed)
    _delete(connection, find_scope(connection, name), mentions.doomed)
    _finish(connection, name)
    return entries


def _purge(
    connection: sqlite3.Connection, name: str, mentions: _Mentions, erasing: Erasing, writer: str, reason: str
) -> JournalEntry:
    scope = find_scope(connection, name)
    take_in_all(mentions.entries, erasing)
    run, receipt = (scope.number, erasing.trajectory), (scope.number, erasing.receipt)
    runs = connection.execute("DELETE FROM trajectories WHERE scope = ? AND id = ?", run).rowcount
    receipts = _delete_recall(connection, *receipt)
    for number in receipts:
        mentions.recalls.pop(number, None)
    if not runs and not receipts and not erasing.found:
        raise unknown(erasing)
    _scrub_experiences(connection, scope, mentions, erasing)
    entries = _scrub_journal(connection, scope, mentions.entries, erasing)
    recalls = len(receipts) + _scrub_recalls(connection, mentions.recalls, erasing)
    tombstone = erasing.tombstone(reason, trajectories=runs, recalls=recalls, entries=entries)
    return _append(connection, name, writer, tombstone)


def _delete_recall(connection: sqlite3.Connection, *receipt: object) -> Sequence[int]:
    connection.execute("DELETE FROM settlements WHERE scope = ? AND recall = ?", receipt)
    rows = connection.execute("DELETE FROM recalls WHERE scope = ? AND id = ? RETURNING number", receipt).fetchall()
    return [number for (number,) in rows]


@dataclass(frozen=True, slots=True)
class _KeptRow:
    """Where an experience is kept."""

    scope: int
    """Of the table; below 0 where a rollback took it out."""
    entry: int | None
    """The journal entry that holds it."""
    record: bytes
    """Its JSON where no entry does."""


@dataclass(frozen=True, slots=True)
class _Mentions:
    """The records of a scope that name what goes, as JSON by number. What is changed in the tables is changed here."""

    entries: dict[int, bytes]
    experiences: dict[int, _KeptRow]
    recalls: dict[int, bytes]
    doomed: list[int] = field(default_factory=list[int])
    """Experiences of which nothing is left. Their rows go at the end, all at once."""


def _find_mentions(connection: sqlite3.Connection, scope: ScopeRow, probes: Sequence[Erasing]) -> _Mentions:
    """Every table is read once for all that goes."""
    entries = entries_naming(lambda upto: _entries(connection, scope, upto), probes)
    rows = connection.execute(f"SELECT number, {stored('record')} FROM recalls WHERE scope = ?", (scope.number,))
    recalls = naming(_checked(rows), shown_ids(probes))
    return _Mentions(entries, _experiences(connection, scope, entries, every_id(probes)), dict(recalls))


def _experiences(
    connection: sqlite3.Connection, scope: ScopeRow, entries: Collection[int], ids: Collection[str]
) -> dict[int, _KeptRow]:
    """Return the experiences that name one of the ids, also those that a rollback took out."""
    every = "FROM experiences WHERE scope IN (?, ?) AND record"
    scopes = scope.number, -scope.number
    held = connection.execute(
        f"SELECT number, scope, entry {every} IS NULL AND entry {AMONG}", (*scopes, among(entries))
    )
    own = connection.execute(f"SELECT number, scope, {stored('record')} {every} IS NOT NULL", scopes)
    named = naming((((number, where), checked(record)) for number, where, record in own), ids)
    return {number: _KeptRow(where, entry, b"") for number, where, entry in held} | {
        number: _KeptRow(where, None, text) for (number, where), text in named
    }


def forget_old(connection: sqlite3.Connection, name: str, before: datetime, writer: str, /) -> list[JournalEntry]:
    """Erase old runs and recalls, but for the evidence."""
    scope, end = find_scope(connection, name), microseconds(before)
    old = "DELETE FROM trajectories WHERE scope = ? AND kept_at < ?"
    runs = connection.execute(old, (scope.number, end)).rowcount
    change = Forgotten(before=before, runs=runs, recalls=_forget_recalls(connection, scope, end))
    if not (change.runs or change.recalls):
        return []
    entry = _append(connection, name, writer, change)
    set_setting(connection, UNFINISHED, new_id())
    return [entry]


def _forget_recalls(connection: sqlite3.Connection, scope: ScopeRow, end: int) -> int:
    salt = setting(connection, SALT) or new_id()
    set_setting(connection, SALT, salt)
    rows = connection.execute(
        f"SELECT number, {stored('record')},"
        " EXISTS (SELECT 1 FROM settlements s WHERE s.scope = r.scope AND s.recall = r.id)"
        " FROM recalls r WHERE scope = ? AND created_at < ?",
        (scope.number, end),
    ).fetchall()
    old = [
        (number, recall, settled)
        for number, blob, settled in rows
        if not is_forgotten(recall := loaded(Recall, checked(blob)))
    ]
    for number, recall, settled in old:
        if settled:
            left = with_sum(json_of(forgotten(recall, salt)))
            connection.execute("UPDATE recalls SET record = ?, record_sum = ? WHERE number = ?", (*left, number))
            untag(connection, RECALL, [number])
        else:
            connection.execute("DELETE FROM recalls WHERE number = ?", (number,))
    return len(old)


def _append(connection: sqlite3.Connection, name: str, writer: str, change: Purge | Forgotten) -> JournalEntry:
    batch = Batch(name, writer, records_with_sums([change]))
    return journal(connection, find_scope(connection, name), batch, touched=[{}])[0]


def _finish(connection: sqlite3.Connection, name: str) -> None:
    # A new experience may get the number of one that went: it is in no index then.
    connection.execute("UPDATE indexed SET upto = min(upto, (SELECT coalesce(max(number), 0) FROM experiences))")
    scope = find_scope(connection, name)
    recount(connection, scope=scope.number)
    settle_all(connection, scope=scope.number)
    _drop_settings(connection, keys_of(name, derived=True))
    set_setting(connection, UNFINISHED, new_id())


def _drop_settings(connection: sqlite3.Connection, keys: Sequence[str]) -> None:
    connection.executemany("DELETE FROM settings WHERE key = ?", [(key,) for key in keys])


def _span(scope: ScopeRow) -> tuple[int, int]:
    return journal_number(scope.number, 0), journal_number(scope.number, scope.sequence)


def _entries(connection: sqlite3.Connection, scope: ScopeRow, upto: int) -> Iterator[tuple[int, bytes]]:
    """Number and JSON of the entries below a number, oldest first."""
    first, last = _span(scope)
    rows = connection.execute(
        f"SELECT number, {stored('entry')} FROM journal WHERE number BETWEEN ? AND ? ORDER BY number",
        (first, min(last, upto - 1)),
    )
    return _checked(rows)


def _scrub_journal(connection: sqlite3.Connection, scope: ScopeRow, entries: dict[int, bytes], erasing: Erasing) -> int:
    changed = scrub_entries(entries, erasing, by=scope.sequence + 1)
    connection.executemany(
        "UPDATE journal SET kind = ?, entry = ?, entry_sum = ? WHERE number = ?",
        [(kind, *with_sum(text), number) for number, (kind, text) in changed.items()],
    )
    return len(changed)


def _scrub_experiences(connection: sqlite3.Connection, scope: ScopeRow, mentions: _Mentions, erasing: Erasing) -> None:
    """Before the journal entries that hold them are scrubbed."""
    texts = {
        n: row.record if row.entry is None else mentions.entries[row.entry] for n, row in mentions.experiences.items()
    }
    indexed = upto(connection)
    for number, text in naming(texts.items(), erasing.ids):
        row = mentions.experiences[number]
        experience = loaded(Experience, text) if row.entry is None else experience_in(text)
        left = erasing.experience(experience)
        if left is not experience and number <= indexed:
            _lesson_words.change(connection, scope.number, number, experience, left)
        if left is None:
            mentions.doomed.append(number)
            del mentions.experiences[number]
        elif left is not experience:
            mentions.experiences[number] = _put_back(connection, number, row, experience, left)
            forget(connection, scope.number, stale_keys(number, experience, left))


def _put_back(
    connection: sqlite3.Connection, number: int, row: _KeptRow, before: Experience, left: Experience
) -> _KeptRow:
    place = row.scope if row.scope > 0 else -number
    underive(connection, place, number, before)
    derive(connection, place, {number: left})
    text = json_of(left)
    own = with_sum(text) if row.entry is None else (None, None)
    connection.execute(
        "UPDATE experiences SET record = ?, record_sum = ?, active = ? WHERE number = ?",
        (*own, bool(left.active_lessons), number),
    )
    return replace(row, record=text.encode())


def _delete(connection: sqlite3.Connection, scope: ScopeRow, numbers: Sequence[int]) -> None:
    if not numbers:
        return
    forget(connection, scope.number, [number * PARTS for number in numbers], parts=PARTS)
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


def _scrub_recalls(connection: sqlite3.Connection, recalls: dict[int, bytes], erasing: Erasing) -> int:
    changed = scrub_recalls(recalls, erasing)
    texts = [(*with_sum(json_of(left)), number) for number, left in changed.items()]
    connection.executemany("UPDATE recalls SET record = ?, record_sum = ? WHERE number = ?", texts)
    untag(connection, RECALL, [number for number, left in changed.items() if not left.metadata])
    return len(changed)


def _scrub_runs(connection: sqlite3.Connection, scope: ScopeRow, shown: ShownBlocks) -> None:
    if not shown:
        return
    rows = connection.execute(f"SELECT number, {stored('record')} FROM trajectories WHERE scope = ?", (scope.number,))
    left = dict(runs_without(_checked(rows), shown))
    texts = [(*with_sum(text), number) for number, text in left.items()]
    connection.executemany("UPDATE trajectories SET record = ?, record_sum = ? WHERE number = ?", texts)
    untag(connection, RUN, left)
    for number, text in left.items():
        tag(connection, RUN, number, loaded(Trajectory, text))


def _checked(rows: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    return ((number, checked(blob)) for number, blob in rows)


def mark(connection: sqlite3.Connection, /) -> str | None:
    """Which purge was the last whose bytes may still be in the file."""
    return setting(connection, UNFINISHED)


def finished(connection: sqlite3.Connection, mark: str | None, /) -> None:
    """Forget that bytes were still to be erased, unless a later purge left others."""
    connection.execute("DELETE FROM settings WHERE key = ? AND value = ?", (UNFINISHED, mark))
    if not is_zeroed(connection):
        set_setting(connection, ZEROED, "yes")


def is_zeroed(connection: sqlite3.Connection, /) -> bool:
    """Whether all that was ever deleted from the file was overwritten, up to what SQLite leaves as it moves rows.

    Earlier releases deleted as SQLite's library was built. Then the ends of pages that were used again hold old text.
    """
    return setting(connection, ZEROED) is not None

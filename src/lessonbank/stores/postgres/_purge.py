"""True erasure in the tables: nothing that has to go is left in a record, the journal or an index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lessonbank.contracts.records import Erased, Erasure, Experience, Forgotten, JournalEntry, Purge, Recall, Trajectory
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.records.settings import keys_of
from lessonbank.guard.shown_lines import ShownBlocks
from lessonbank.stores._changes import stale_places
from lessonbank.stores._entries import Batch, entry_of
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
from lessonbank.stores._listing import tags_of
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

from ._database import Connection, do, many, row, rows, stored
from ._derived import derive, recount, refresh_shown, settle_pending, underive
from ._postings import unindex_words
from ._read import counts, setting
from ._rows import find_scope, make_scope
from ._vectors import forget
from ._write import journal, set_setting

TABLES: Final = (
    *("journal", "experiences", "lessons", "repeats", "attempts"),
    *("trajectories", "recalls", "shown", "terms", "postings", "vectors"),
)
"""The partitioned ones, all of which may hold what a purge erases."""


def purge_scope(connection: Connection, scope: str, writer: str, reason: str, /) -> JournalEntry:
    """Erase everything a scope holds; its journal keeps its length."""
    before, here = counts(connection, scope), make_scope(connection, scope)
    tombstone = scope_tombstone(scope, reason, before, entries=here.sequence)
    for table in (*(t for t in TABLES if t != "journal"), "spaces"):
        do(connection, f"DELETE FROM lessonbank.{table} WHERE scope = %s", scope)
    _empty_journal(connection, scope, by=here.sequence + 1)
    entry = _append(connection, scope, writer, tombstone)
    _drop_settings(connection, keys_of(scope))
    _finish(connection, scope)
    return entry


def _empty_journal(connection: Connection, scope: str, *, by: int) -> None:
    sql = f"SELECT sequence, {stored('entry')} FROM lessonbank.journal WHERE scope = %s AND kind = ANY(%s)"
    entries = [(number, entry_of(checked(blob))) for number, blob in rows(connection, sql, scope, [*OUTLIVE])]
    erased = Erased(by=by)
    do(
        connection,
        "UPDATE lessonbank.journal SET kind = %s, whole = '{}', part = '{}', entry_json = %s, entry_sum = %s"
        " WHERE scope = %s AND NOT kind = ANY(%s)",
        erased.kind,
        *with_sum(json_of(erased)),
        scope,
        [*OUTLIVE],
    )
    left = [(*with_sum(json_of(without_reason(entry))), scope, number) for number, entry in entries]
    many(
        connection,
        "UPDATE lessonbank.journal SET entry_json = %s, entry_sum = %s WHERE scope = %s AND sequence = %s",
        left,
    )


def purge(
    connection: Connection, scope: str, these: Sequence[tuple[Erasure, str]], writer: str, reason: str, /
) -> list[JournalEntry]:
    """Erase lessons, runs and recalls, each with what is derived from it.

    Raises:
        NotFound: neither the scope nor its past knows one of them.
    """
    mentions = _find_mentions(connection, scope, [Erasing(what, id) for what, id in these])
    receipts = dict(mentions.recalls)
    entries = [_purge(connection, scope, mentions, erasing, writer, reason) for erasing in not_gone(these)]
    _scrub_runs(connection, scope, texts_lost(receipts, mentions.recalls))
    _finish(connection, scope)
    return entries


def _purge(
    connection: Connection, scope: str, mentions: _Mentions, erasing: Erasing, writer: str, reason: str
) -> JournalEntry:
    take_in_all(mentions.entries, erasing)
    runs = do(connection, "DELETE FROM lessonbank.trajectories WHERE scope = %s AND id = %s", scope, erasing.trajectory)
    receipts = _delete_recalls(connection, scope, [erasing.receipt])
    for number in receipts:
        mentions.recalls.pop(number, None)
    if not runs and not receipts and not erasing.found:
        raise unknown(erasing)
    _scrub_experiences(connection, scope, mentions.experiences, erasing)
    by = find_scope(connection, scope).sequence + 1
    entries = _scrub_journal(connection, scope, mentions.entries, erasing, by=by)
    recalls = len(receipts) + _scrub_recalls(connection, scope, mentions.recalls, erasing)
    tombstone = erasing.tombstone(reason, trajectories=runs, recalls=recalls, entries=entries)
    return _append(connection, scope, writer, tombstone)


@dataclass(frozen=True, slots=True)
class _Mentions:
    """The records of a scope that name what goes, as JSON by number. What is changed in the tables is changed here."""

    entries: dict[int, bytes]
    experiences: dict[int, bytes]
    recalls: dict[int, bytes]


def _find_mentions(connection: Connection, scope: str, probes: Sequence[Erasing]) -> _Mentions:
    """Every table is read once for all that goes."""
    entries = entries_naming(lambda upto: _texts(connection, _ENTRIES, scope, upto), probes)
    experiences = naming(_texts(connection, _EXPERIENCES, scope), every_id(probes))
    recalls = naming(_texts(connection, _RECALLS, scope), shown_ids(probes))
    return _Mentions(entries, dict(experiences), dict(recalls))


def forget_old(connection: Connection, scope: str, before: datetime, writer: str, /) -> list[JournalEntry]:
    """Erase old runs and recalls, but for the evidence."""
    end = microseconds(before)
    runs = do(connection, "DELETE FROM lessonbank.trajectories WHERE scope = %s AND kept_at < %s", scope, end)
    change = Forgotten(before=before, runs=runs, recalls=_forget_recalls(connection, scope, end))
    return [_append(connection, scope, writer, change)] if change.runs or change.recalls else []


def _forget_recalls(connection: Connection, scope: str, end: int) -> int:
    salt = setting(connection, SALT) or new_id()
    sql = f"SELECT id, {stored('record')}, settled FROM lessonbank.recalls WHERE scope = %s AND created_at < %s"
    every = [(id, loaded(Recall, checked(blob)), settled) for id, blob, settled in rows(connection, sql, scope, end)]
    old = [(id, recall, settled) for id, recall, settled in every if not is_forgotten(recall)]
    if old:
        set_setting(connection, SALT, salt)
    left = [forgotten(recall, salt) for _, recall, settled in old if settled is not None]
    _put_recalls(connection, scope, left)
    _delete_recalls(connection, scope, [id for id, _, settled in old if settled is None])
    return len(old)


def _delete_recalls(connection: Connection, scope: str, ids: Sequence[str | None]) -> list[int]:
    sql = "DELETE FROM lessonbank.recalls WHERE scope = %s AND id = ANY(%s::text[]) RETURNING number"
    numbers = [number for (number,) in rows(connection, sql, scope, list(ids))]
    if numbers:
        do(connection, "DELETE FROM lessonbank.shown WHERE scope = %s AND recall = ANY(%s)", scope, numbers)
    return numbers


def _put_recalls(connection: Connection, scope: str, recalls: Sequence[Recall]) -> None:
    sql = "UPDATE lessonbank.recalls SET record_json = %s, record_sum = %s, tags = %s WHERE scope = %s AND id = %s"
    many(connection, sql, ((*with_sum(json_of(r)), list(tags_of(r)), scope, r.id) for r in recalls))


def _append(connection: Connection, scope: str, writer: str, change: Purge | Forgotten) -> JournalEntry:
    return journal(connection, find_scope(connection, scope), Batch(scope, writer, records_with_sums([change])))[0]


def _finish(connection: Connection, scope: str) -> None:
    recount(connection, scope)
    settle_pending(connection, scope, None)
    _drop_settings(connection, keys_of(scope, derived=True))


def _drop_settings(connection: Connection, keys: Sequence[str]) -> None:
    do(connection, "DELETE FROM lessonbank.settings WHERE key = ANY(%s)", list(keys))


_ENTRIES: Final = (
    f"SELECT sequence, {stored('entry')} FROM lessonbank.journal WHERE scope = %s AND sequence < %s ORDER BY sequence"
)
_EXPERIENCES: Final = f"SELECT number, {stored('record')} FROM lessonbank.experiences WHERE scope = %s"
_RECALLS: Final = f"SELECT number, {stored('record')} FROM lessonbank.recalls WHERE scope = %s"
_RUNS: Final = f"SELECT number, {stored('record')} FROM lessonbank.trajectories WHERE scope = %s"
_AT_ONCE: Final = 1000
"""Rows that are fetched together."""


def _texts(connection: Connection, sql: str, *values: object) -> Iterator[tuple[int, bytes]]:
    """Number and JSON of records."""
    with connection.cursor("texts", binary=True) as cursor:
        cursor.itersize = _AT_ONCE
        for number, blob in cursor.execute(sql.encode(), values):
            yield number, checked(blob)


def _scrub_journal(connection: Connection, scope: str, entries: dict[int, bytes], erasing: Erasing, *, by: int) -> int:
    changed = scrub_entries(entries, erasing, by=by)
    sql = "UPDATE lessonbank.journal SET kind = %s, entry_json = %s, entry_sum = %s WHERE scope = %s AND sequence = %s"
    many(connection, sql, ((kind, *with_sum(text), scope, number) for number, (kind, text) in changed.items()))
    return len(changed)


def _scrub_experiences(connection: Connection, scope: str, experiences: dict[int, bytes], erasing: Erasing) -> None:
    """Present ones and those that a rollback took out."""
    originals = {number: loaded(Experience, text) for number, text in naming(experiences.items(), erasing.ids)}
    left = {number: erasing.experience(experience) for number, experience in originals.items()}
    doomed = [number for number, experience in left.items() if experience is None]
    replacements = {
        number: experience
        for number, experience in left.items()
        if experience is not None and experience is not originals[number]
    }
    put_back(connection, scope, {number: originals[number] for number in replacements}, replacements)
    experiences.update((number, json_of(experience).encode()) for number, experience in replacements.items())
    if doomed:
        for number in doomed:
            del experiences[number]
        for table in ("lessons", "repeats", "attempts", "vectors"):
            do(connection, f"DELETE FROM lessonbank.{table} WHERE scope = %s AND experience = ANY(%s)", scope, doomed)
        unindex_words(connection, scope, {number: originals[number].task for number in doomed})
        do(connection, "DELETE FROM lessonbank.experiences WHERE scope = %s AND number = ANY(%s)", scope, doomed)
    refresh_shown(connection, scope, [], lessons=erasing.lessons)


def put_back(connection: Connection, scope: str, old: dict[int, Experience], new: dict[int, Experience], /) -> None:
    """Write over experiences, by number, without a word to the journal. Those taken out stay so."""
    if not new:
        return
    underive(connection, scope, old)
    many(
        connection,
        "UPDATE lessonbank.experiences SET record_json = %s, record_sum = %s, tags = %s"
        " WHERE scope = %s AND number = %s",
        ((*with_sum(json_of(e)), list(tags_of(e)), scope, number) for number, e in new.items()),
    )
    sql = "SELECT number FROM lessonbank.experiences WHERE scope = %s AND NOT gone AND number = ANY(%s)"
    there = {number for (number,) in rows(connection, sql, scope, list(new))}
    derive(connection, scope, {number: e for number, e in new.items() if number in there})
    stale = [(number, at) for number, e in new.items() for at in stale_places(old[number], e)]
    forget(connection, scope, places=stale)
    refresh_shown(connection, scope, there)


def _scrub_recalls(connection: Connection, scope: str, recalls: dict[int, bytes], erasing: Erasing) -> int:
    changed = scrub_recalls(recalls, erasing)
    _put_recalls(connection, scope, list(changed.values()))
    return len(changed)


def _scrub_runs(connection: Connection, scope: str, shown: ShownBlocks) -> None:
    if not shown:
        return
    left = [
        (*with_sum(text), list(tags_of(loaded(Trajectory, text))), scope, number)
        for number, text in runs_without(_texts(connection, _RUNS, scope), shown)
    ]
    table = "UPDATE lessonbank.trajectories"
    many(connection, f"{table} SET record_json = %s, record_sum = %s, tags = %s WHERE scope = %s AND number = %s", left)


def tables_of(connection: Connection, scope: str, /) -> list[str]:
    """The tables that hold a scope's rows: its part of each."""
    sql = "SELECT tableoid::regclass::text FROM lessonbank.journal WHERE scope = %s LIMIT 1"
    part = row(connection, sql, scope)
    return [part[0].replace("journal", table) for table in TABLES] if part else []

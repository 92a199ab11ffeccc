"""True erasure in the tables: nothing that has to go is left in a record, the journal or an index."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from lessonbank.evidence.review_snapshot import key as told_key
from lessonbank.protocols import REFUSED
from lessonbank.stores._entries import Batch, entry_of
from lessonbank.stores._erasure import (
    OUTLIVE,
    SALT,
    Erasing,
    forgotten,
    is_forgotten,
    scope_tombstone,
    unknown,
    without_reason,
)
from lessonbank.stores._listing import tags
from lessonbank.stores._packing import packed, packed_records, unpacked
from lessonbank.stores._records import loaded, microseconds
from lessonbank.types import Erased, Erasure, Experience, Forgotten, JournalEntry, Purge, Recall
from lessonbank.types.ids import new_id

from ._database import Connection, do, many, rows
from ._derived import derive, recount, refresh_shown, settle_pending, stale_places, underive
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
    told = _append(connection, scope, writer, tombstone)
    _finish(connection, scope)
    return told


def _empty_journal(connection: Connection, scope: str, *, by: int) -> None:
    sql = "SELECT sequence, entry FROM lessonbank.journal WHERE scope = %s AND kind = ANY(%s)"
    kept = [(number, entry_of(unpacked(blob))) for number, blob in rows(connection, sql, scope, [*OUTLIVE])]
    erased = Erased(by=by)
    do(
        connection,
        "UPDATE lessonbank.journal SET kind = %s, whole = '{}', part = '{}', entry = %s"
        " WHERE scope = %s AND NOT kind = ANY(%s)",
        erased.kind,
        packed(erased.model_dump_json()),
        scope,
        [*OUTLIVE],
    )
    left = [(packed(without_reason(entry).model_dump_json()), scope, number) for number, entry in kept]
    many(connection, "UPDATE lessonbank.journal SET entry = %s WHERE scope = %s AND sequence = %s", left)


def purge(
    connection: Connection, scope: str, these: Iterable[tuple[Erasure, str]], writer: str, reason: str, /
) -> list[JournalEntry]:
    """Erase lessons, runs and recalls, each with what is derived from it.

    Raises:
        NotFound: neither the scope nor its past knows one of them.
    """
    told = [_purge(connection, scope, Erasing(what, id), writer, reason) for what, id in these]
    _finish(connection, scope)
    return told


def _purge(connection: Connection, scope: str, erasing: Erasing, writer: str, reason: str) -> JournalEntry:
    while erasing.read(entry_of(text) for _, text in _named(connection, _ENTRIES, scope, erasing.ids)):
        pass
    runs = do(connection, "DELETE FROM lessonbank.trajectories WHERE scope = %s AND id = %s", scope, erasing.trajectory)
    receipts = _delete_recalls(connection, scope, [erasing.receipt])
    if not runs and not receipts and not erasing.found:
        raise unknown(erasing)
    _scrub_experiences(connection, scope, erasing)
    entries = _scrub_journal(connection, scope, erasing, by=find_scope(connection, scope).sequence + 1)
    recalls = receipts + _scrub_recalls(connection, scope, erasing)
    tombstone = erasing.tombstone(reason, trajectories=runs, recalls=recalls, entries=entries)
    return _append(connection, scope, writer, tombstone)


def forget_old(connection: Connection, scope: str, before: datetime, writer: str, /) -> Forgotten:
    """Erase old runs and recalls, but for the evidence."""
    end = microseconds(before)
    runs = do(connection, "DELETE FROM lessonbank.trajectories WHERE scope = %s AND kept_at < %s", scope, end)
    told = Forgotten(before=before, runs=runs, recalls=_forget_recalls(connection, scope, end))
    if told.runs or told.recalls:
        _append(connection, scope, writer, told)
    return told


def _forget_recalls(connection: Connection, scope: str, end: int) -> int:
    salt = setting(connection, SALT) or new_id()
    sql = "SELECT id, record, settled FROM lessonbank.recalls WHERE scope = %s AND created_at < %s"
    every = [(id, loaded(Recall, unpacked(blob)), settled) for id, blob, settled in rows(connection, sql, scope, end)]
    old = [(id, recall, settled) for id, recall, settled in every if not is_forgotten(recall)]
    if old:
        set_setting(connection, SALT, salt)
    left = [forgotten(recall, salt) for _, recall, settled in old if settled is not None]
    _put_recalls(connection, scope, left)
    _delete_recalls(connection, scope, [id for id, _, settled in old if settled is None])
    return len(old)


def _delete_recalls(connection: Connection, scope: str, ids: Sequence[str | None]) -> int:
    sql = "DELETE FROM lessonbank.recalls WHERE scope = %s AND id = ANY(%s::text[]) RETURNING number"
    gone = [number for (number,) in rows(connection, sql, scope, list(ids))]
    if gone:
        do(connection, "DELETE FROM lessonbank.shown WHERE scope = %s AND recall = ANY(%s)", scope, gone)
    return len(gone)


def _put_recalls(connection: Connection, scope: str, recalls: Sequence[Recall]) -> None:
    sql = "UPDATE lessonbank.recalls SET record = %s, tags = %s WHERE scope = %s AND id = %s"
    many(connection, sql, ((packed(r.model_dump_json()), list(tags(r.metadata)), scope, r.id) for r in recalls))


def _append(connection: Connection, scope: str, writer: str, told: Purge | Forgotten) -> JournalEntry:
    return journal(connection, find_scope(connection, scope), Batch(scope, writer, packed_records([told])))[0]


def _finish(connection: Connection, scope: str) -> None:
    recount(connection, scope)
    settle_pending(connection, scope, None)
    sql = "DELETE FROM lessonbank.settings WHERE key = ANY(%s)"
    do(connection, sql, [told_key(scope), REFUSED + scope])


_ENTRIES: Final = "SELECT sequence, entry FROM lessonbank.journal WHERE scope = %s ORDER BY sequence"
_EXPERIENCES: Final = "SELECT number, record FROM lessonbank.experiences WHERE scope = %s"
_RECALLS: Final = "SELECT number, record FROM lessonbank.recalls WHERE scope = %s"


def _named(connection: Connection, sql: str, scope: str, ids: Iterable[str]) -> Iterator[tuple[int, bytes]]:
    """Number and JSON of the records that name one of the ids."""
    marks = [json.dumps(id, ensure_ascii=False).encode() for id in ids]
    with connection.cursor("named", binary=True) as cursor:
        for number, blob in cursor.execute(sql.encode(), (scope,)):
            text = unpacked(blob)
            if any(mark in text for mark in marks):
                yield number, text


def _scrub_journal(connection: Connection, scope: str, erasing: Erasing, *, by: int) -> int:
    entries = [(number, entry_of(text)) for number, text in _named(connection, _ENTRIES, scope, erasing.ids)]
    scrubbed = [(number, entry, erasing.entry(entry, by=by)) for number, entry in entries]
    changed = [
        (left.kind, packed(left.model_dump_json()), scope, n) for n, entry, left in scrubbed if left is not entry
    ]
    many(connection, "UPDATE lessonbank.journal SET kind = %s, entry = %s WHERE scope = %s AND sequence = %s", changed)
    return len(changed)


def _scrub_experiences(connection: Connection, scope: str, erasing: Erasing) -> None:
    """Present ones and those that a rollback took out."""
    found = {n: loaded(Experience, text) for n, text in _named(connection, _EXPERIENCES, scope, erasing.ids)}
    left = {number: erasing.experience(experience) for number, experience in found.items()}
    doomed = [number for number, kept in left.items() if kept is None]
    kept = {number: one for number, one in left.items() if one is not None and one is not found[number]}
    put_back(connection, scope, {number: found[number] for number in kept}, kept)
    if doomed:
        for table in ("lessons", "repeats", "attempts", "vectors"):
            do(connection, f"DELETE FROM lessonbank.{table} WHERE scope = %s AND experience = ANY(%s)", scope, doomed)
        unindex_words(connection, scope, {number: found[number].task for number in doomed})
        do(connection, "DELETE FROM lessonbank.experiences WHERE scope = %s AND number = ANY(%s)", scope, doomed)
    refresh_shown(connection, scope, [], lessons=erasing.lessons)


def put_back(connection: Connection, scope: str, old: dict[int, Experience], new: dict[int, Experience], /) -> None:
    """Write over experiences, by number, without a word to the journal. Those taken out stay so."""
    if not new:
        return
    underive(connection, scope, old)
    many(
        connection,
        "UPDATE lessonbank.experiences SET record = %s, tags = %s WHERE scope = %s AND number = %s",
        ((packed(e.model_dump_json()), list(tags(e.metadata)), scope, number) for number, e in new.items()),
    )
    sql = "SELECT number FROM lessonbank.experiences WHERE scope = %s AND NOT gone AND number = ANY(%s)"
    there = {number for (number,) in rows(connection, sql, scope, list(new))}
    derive(connection, scope, {number: e for number, e in new.items() if number in there})
    stale = [(number, at) for number, e in new.items() for at in stale_places(old[number].lessons, e.lessons)]
    forget(connection, scope, places=stale)
    refresh_shown(connection, scope, there)


def _scrub_recalls(connection: Connection, scope: str, erasing: Erasing) -> int:
    found = _named(connection, _RECALLS, scope, (*erasing.lessons, *erasing.recalls))
    every = [loaded(Recall, text) for _, text in found]
    changed = [left for recall in every if (left := erasing.recall(recall)) is not recall]
    _put_recalls(connection, scope, changed)
    return len(changed)

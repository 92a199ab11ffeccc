"""True erasure in the tables: nothing that has to go is left in a record, the journal, an index or a free page."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Final

from lessonbank.stores._erasing import Erasing, scope_tombstone, unknown
from lessonbank.stores._records import dumped, loaded
from lessonbank.types import Experience, JournalEntry, Purge, Recall, Settlement

from ._derived import derive, recount, reindex_words, settle_all
from ._reading import counts, entry_of
from ._rows import ScopeRow, find_scope, make_scope
from ._writing import Batch, journal

UNFINISHED: Final = "purge.unfinished"
"""The setting that stands from the purge until its bytes are gone from the file, too."""

_OF_SCOPE: Final = ("trajectories", "recalls", "settlements", "touched", "spaces")


def purge_scope(connection: sqlite3.Connection, name: str, writer: str, reason: str, /) -> JournalEntry:
    """Erase everything a scope holds; its journal keeps its length."""
    before = counts(connection, name)
    scope = make_scope(connection, name)
    tombstone = scope_tombstone(name, reason, before, entries=scope.sequence)
    rows = connection.execute("SELECT number FROM experiences WHERE abs(scope) = ?", (scope.number,)).fetchall()
    _delete(connection, [number for (number,) in rows])
    for table in _OF_SCOPE:
        connection.execute(f"DELETE FROM {table} WHERE scope = ?", (scope.number,))
    erased = json.dumps({"kind": "erased", "by": scope.sequence + 1}, separators=(",", ":"))
    connection.execute("UPDATE journal SET entry = ? WHERE scope = ?", (erased, scope.number))
    return _finish(connection, name, writer, tombstone)


def purge(connection: sqlite3.Connection, name: str, erasing: Erasing, writer: str, reason: str, /) -> JournalEntry:
    """Erase one item or run, with what is derived from it.

    Raises:
        NotFound: neither the scope nor its past knows it.
    """
    scope = find_scope(connection, name)
    while erasing.read(entry_of(text) for _, text in _entries(connection, scope, erasing)):
        pass
    runs = connection.execute(
        "DELETE FROM trajectories WHERE scope = ? AND id = ?", (scope.number, erasing.trajectory or "")
    ).rowcount
    if not runs and not erasing.found:
        raise unknown(erasing)
    entries = _scrub_journal(connection, scope, erasing)
    _scrub_experiences(connection, scope, erasing)
    _scrub_settlements(connection, scope, erasing)
    recalls = _scrub_recalls(connection, scope, erasing)
    return _finish(
        connection, name, writer, erasing.tombstone(reason, trajectories=runs, recalls=recalls, entries=entries)
    )


def _finish(connection: sqlite3.Connection, name: str, writer: str, tombstone: Purge) -> JournalEntry:
    # The word index keeps what was deleted until its segments are merged, so it is made anew.
    reindex_words(connection)
    scope = make_scope(connection, name)
    recount(connection, scope=scope.number)
    settle_all(connection, scope=scope.number)
    connection.execute("INSERT OR REPLACE INTO settings (key, value) VALUES (?, '')", (UNFINISHED,))
    batch = Batch(scope=name, writer=writer, entries=[dumped(tombstone)], vectors={}, space=None)
    return journal(connection, find_scope(connection, name), batch, touched=[{}])[0]


def _entries(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> Iterator[tuple[int, str]]:
    """Sequence and text of the entries that name one of the ids, oldest first."""
    marks = [json.dumps(id, ensure_ascii=False) for id in erasing.ids]
    rows = connection.execute("SELECT sequence, entry FROM journal WHERE scope = ? ORDER BY sequence", (scope.number,))
    for sequence, text in rows:
        if any(mark in text for mark in marks):
            yield sequence, text


def _scrub_journal(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> int:
    rewritten: list[tuple[str, int, int]] = []
    for sequence, text in _entries(connection, scope, erasing):
        entry = entry_of(text)
        left = erasing.entry(entry, by=scope.sequence + 1)
        if left is not entry:
            rewritten.append((left.model_dump_json(), scope.number, sequence))
    connection.executemany("UPDATE journal SET entry = ? WHERE scope = ? AND sequence = ?", rewritten)
    return len(rewritten)


def _scrub_experiences(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> None:
    """Present ones and those that a rollback took out."""
    marks = [json.dumps(id, ensure_ascii=False) for id in erasing.ids]
    rows = connection.execute(
        "SELECT number, scope, record FROM experiences WHERE scope IN (?, ?)", (scope.number, -scope.number)
    )
    named = [(number, place, text) for number, place, text in rows if any(mark in text for mark in marks)]
    doomed: list[int] = []
    for number, place, text in named:
        experience = loaded(Experience, text)
        left = erasing.experience(experience)
        if left is None:
            doomed.append(number)
        elif left is not experience:
            _put_back(connection, number, place if place > 0 else -number, left)
    _delete(connection, doomed)


def _put_back(connection: sqlite3.Connection, number: int, place: int, left: Experience) -> None:
    for table in ("items", "attempts"):
        connection.execute(f"DELETE FROM {table} WHERE experience = ?", (number,))
    connection.execute(
        "UPDATE experiences SET record = ?, active = ? WHERE number = ?",
        (left.model_dump_json(), bool(left.active_items), number),
    )
    derive(connection, place, {number: left})


def _delete(connection: sqlite3.Connection, numbers: list[int]) -> None:
    among = (json.dumps(numbers),)
    for table in ("items", "attempts", "vectors", "removed", "touched"):
        connection.execute(f"DELETE FROM {table} WHERE experience IN (SELECT value FROM json_each(?))", among)
    connection.execute("DELETE FROM experiences WHERE number IN (SELECT value FROM json_each(?))", among)


def _scrub_settlements(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> None:
    for id in erasing.recalls:
        rows = connection.execute(
            "SELECT record FROM settlements WHERE scope = ? AND recall = ?", (scope.number, id)
        ).fetchall()
        connection.executemany(
            "UPDATE settlements SET record = ? WHERE scope = ? AND recall = ?",
            [(erasing.settlement(loaded(Settlement, text)).model_dump_json(), scope.number, id) for (text,) in rows],
        )


def _scrub_recalls(connection: sqlite3.Connection, scope: ScopeRow, erasing: Erasing) -> int:
    marks = [json.dumps(id, ensure_ascii=False) for id in (*erasing.items, *erasing.recalls)]
    rows = connection.execute("SELECT number, record FROM recalls WHERE scope = ?", (scope.number,))
    changed: list[tuple[str, int]] = []
    for number, text in rows:
        if any(mark in text for mark in marks):
            recall = loaded(Recall, text)
            left = erasing.recall(recall)
            if left is not recall:
                changed.append((left.model_dump_json(), number))
    connection.executemany("UPDATE recalls SET record = ? WHERE number = ?", changed)
    return len(changed)


def finished(connection: sqlite3.Connection, /) -> None:
    """Forget that bytes were still to be erased."""
    connection.execute("DELETE FROM settings WHERE key = ?", (UNFINISHED,))

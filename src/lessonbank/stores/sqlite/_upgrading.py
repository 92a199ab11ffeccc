"""Carrying a bank of an earlier release over to today's tables, all of it or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lessonbank.stores._packing import packed
from lessonbank.stores._vectors import packed_rows, to_blobs
from lessonbank.types import Settle

from ._placing import PARTS, join
from ._repair import rebuild
from ._rewinding import date
from ._rows import entry_of, journal_number

_KEPT: Final = ("scopes", "journal", "experiences", "trajectories", "recalls", "spaces", "settings")
_DERIVED: Final = ("word_counts", "word_places", "word_index", "lessons", "attempts", "settlements")
_PORTION: Final = 1000


def carry_over(connection: sqlite3.Connection, make_tables: Callable[[], None], /) -> None:
    """Move everything from the tables of format 4 to those that `make_tables` makes, and rebuild what follows."""
    for table in _DERIVED:
        connection.execute(f"DROP TABLE {table}")
    indexes = connection.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    for (name,) in indexes:
        connection.execute(f"DROP INDEX {name}")
    for table in (*_KEPT, "vectors"):
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    make_tables()
    _copy(connection)
    _copy_journal(connection)
    _copy_vectors(connection)
    for table in ("vectors", "experiences", "trajectories", "recalls", "journal", "spaces", "scopes", "settings"):
        connection.execute(f"DROP TABLE old_{table}")
    for table in ("touched", "removed"):
        connection.execute(f"DROP TABLE {table}")
    rebuild(connection)
    date(connection)


def _copy(connection: sqlite3.Connection) -> None:
    connection.create_function("packed", 1, packed, deterministic=True)
    for statement in (
        "INSERT INTO scopes (number, name, sequence) SELECT number, name, sequence FROM old_scopes",
        "INSERT INTO settings SELECT key, value FROM old_settings",
        "INSERT INTO trajectories (number, scope, kept_at, pending, id, record)"
        " SELECT number, scope, kept_at, pending, id, record FROM old_trajectories",
        "INSERT INTO recalls (number, scope, created_at, id, record)"
        " SELECT number, scope, created_at, id, packed(record) FROM old_recalls",
        "INSERT INTO spaces (number, scope, name, dimensions) SELECT number, scope, name, dimensions FROM old_spaces",
        # Each keeps its own record: whether the journal entry holds the very same is not asked. What a rollback left
        # may be of an earlier entry than the last one that touched it: `date` sets that right.
        "INSERT INTO experiences (number, scope, created_at, active, words, entry, id, record)"
        " SELECT e.number, e.scope, e.created_at, e.active, e.words, abs(e.scope) * (1 << 32) + coalesce("
        " (SELECT version FROM removed r WHERE r.experience = e.number),"
        " (SELECT max(sequence) FROM touched t WHERE t.experience = e.number), 0), e.id, packed(e.record)"
        " FROM old_experiences e",
    ):
        connection.execute(statement)


def _copy_journal(connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT scope, sequence, at, writer, entry FROM old_journal ORDER BY scope, sequence")
    while portion := rows.fetchmany(_PORTION):
        entries: list[tuple[Any, ...]] = []
        settled: list[tuple[int, str, int]] = []
        for scope, sequence, at, writer, text in portion:
            entry = entry_of(text.encode())
            number = journal_number(scope, sequence)
            entries.append((number, at, entry.kind, writer, packed(text)))
            if isinstance(entry, Settle):
                settled.append((scope, entry.settlement.recall_id, number))
        connection.executemany("INSERT INTO journal (number, at, kind, writer, entry) VALUES (?, ?, ?, ?, ?)", entries)
        connection.executemany("INSERT OR REPLACE INTO settlements (scope, recall, entry) VALUES (?, ?, ?)", settled)


def _copy_vectors(connection: sqlite3.Connection) -> None:
    spaces = connection.execute("SELECT number FROM old_spaces WHERE dimensions IS NOT NULL").fetchall()
    for (space,) in spaces:
        rows = connection.execute(
            "SELECT experience, vector FROM old_vectors WHERE space = ? ORDER BY experience", (space,)
        )
        while portion := rows.fetchmany(_PORTION):
            vectors = to_blobs(packed_rows([np.frombuffer(blob, dtype="<f4") for _, blob in portion]))
            join(connection, space, zip((number * PARTS for number, _ in portion), vectors, strict=True))

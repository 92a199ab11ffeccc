"""How a file comes to have today's tables, and the refusal of files that are not ours."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from secrets import token_hex
from typing import Final

from lessonbank.contracts.ports import RECEIPT_SECRET
from lessonbank.contracts.records.settings import ZEROED
from lessonbank.errors import StoreUnavailable, VersionMismatch

from ._checks import keep_setting
from ._connection import patiently, transaction
from ._migrations import MIGRATIONS, keeping_copy, run, upgrade
from ._wal_identity import APPLICATION_ID, FORMATS, first_count

FORMAT: Final = max(MIGRATIONS) + 1
"""The format this release writes."""
OLDEST: Final = min(MIGRATIONS)
"""The oldest format that `MIGRATIONS` lead from. No release wrote an older one."""
_OLDEST_SQLITE: Final = (3, 37)
"""The first one that knows STRICT tables."""


def check_library(version: tuple[int, ...] = sqlite3.sqlite_version_info, /) -> None:
    """Refuse a SQLite that would take every bank for a damaged file. Raises StoreUnavailable."""
    if version < _OLDEST_SQLITE:
        raise StoreUnavailable(
            f"this Python has SQLite {'.'.join(map(str, version))}, and a bank needs 3.37 or newer: use another Python"
        )


def prepare(connection: sqlite3.Connection, path: Path, /, *, patience: float) -> None:
    """Check that the file is a bank (or empty), switch it to write-ahead logging, bring its tables to today's.

    Raises:
        StoreUnavailable: another program's database, or a place that cannot hold a write-ahead log.
        VersionMismatch: written by a newer release; nothing was changed.
    """
    _check(connection, path)
    _log_ahead(connection, path, patience=patience)
    if version(connection) < FORMAT:
        make_tables(connection, path, patience=patience)
        connection.execute("PRAGMA wal_checkpoint").fetchone()  # so that the file itself says what it is


def make_tables(connection: sqlite3.Connection, path: Path, /, *, patience: float = 0.0) -> None:
    """Bring the tables to today's, all of them or none. Raises StoreUnavailable, VersionMismatch."""
    check_library()
    with keeping_copy(connection, path) as copy, transaction(connection, patience=patience):
        # Another process may have been faster while this one waited.
        _check(connection, path)
        value = check_version(connection, path)
        format = value % FORMATS
        if format == FORMAT:
            return
        if format:
            copy(format)
            upgrade(connection, format)
        else:
            run(connection, "schema.sql")
            keep_setting(connection, RECEIPT_SECRET, token_hex(32))
            keep_setting(connection, ZEROED, "yes")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {value - format + FORMAT if format else first_count(FORMAT)}")


def version(connection: sqlite3.Connection, /) -> int:
    """The number of the last migration this file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0]) % FORMATS


def _check(connection: sqlite3.Connection, path: Path) -> None:
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if owner != APPLICATION_ID and (owner or tables):
        raise StoreUnavailable(f"{path} is a database of another program: name another file for the bank")
    check_version(connection, path)


def check_current(connection: sqlite3.Connection, path: Path, /) -> None:
    """Refuse a file that cannot be read as it is.

    Raises:
        StoreUnavailable: another program's database, or an empty one.
        VersionMismatch: of another format.
    """
    _check(connection, path)
    format = version(connection)
    if not format:
        raise VersionMismatch(f"{path} has no tables yet: open it for writing once")
    if format != FORMAT:
        raise VersionMismatch(
            f"{path} is of format {format}, and this release reads format {FORMAT}: open it for writing once, "
            "which upgrades it and keeps a copy"
        )


def check_version(connection: sqlite3.Connection, path: Path, /) -> int:
    """The `user_version` of a file; one that a newer release has written, or no release, is refused.

    Raises:
        VersionMismatch: it is.
    """
    value = int(connection.execute("PRAGMA user_version").fetchone()[0])
    format = value % FORMATS
    if format > FORMAT:
        raise VersionMismatch(
            f"{path} was written by a newer release (format {format}, this one knows {FORMAT}): "
            "upgrade lessonbank; nothing was changed"
        )
    if 0 < format < OLDEST:
        raise VersionMismatch(
            f"{path} was written by a development version (format {format}, the oldest known is {OLDEST}): "
            "run `lessonbank salvage BANK NEW`, which saves what it can read; nothing was changed"
        )
    return value


def _log_ahead(connection: sqlite3.Connection, path: Path, *, patience: float) -> None:
    mode = patiently(connection, "PRAGMA journal_mode = WAL", patience=patience).fetchone()[0]
    if mode != "wal":
        raise StoreUnavailable(f"the file system of {path} cannot hold a write-ahead log: put the bank on a local disk")

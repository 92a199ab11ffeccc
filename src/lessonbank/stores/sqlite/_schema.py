"""The numbered steps that bring a file to today's tables, and the refusal of files that are not ours."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Final

from lessonbank.errors import StoreUnavailable, VersionMismatch

APPLICATION_ID: Final = 0x4C424E4B
"""`LBNK`, where SQLite and `file` look for what a database is."""
FILL_TOUCHED: Final = 3
"""The migration that a rebuild runs again."""


def prepare(connection: sqlite3.Connection, path: Path, /, *, patience: float) -> None:
    """Check that the file is a bank (or empty), switch it to write-ahead logging, run the migrations it lacks.

    Raises:
        StoreUnavailable: another program's database, or a place that cannot hold a write-ahead log.
        VersionMismatch: written by a newer release; nothing was changed.
    """
    steps = migrations()
    _check(connection, path, newest=len(steps))
    _log_ahead(connection, path, patience=patience)
    if version(connection) < len(steps):
        _migrate(connection, path, steps)


def version(connection: sqlite3.Connection, /) -> int:
    """The number of the last migration this file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrations() -> list[str]:
    """The SQL of every migration, in order; the first is number 1."""
    folder = resources.files("lessonbank.stores.sqlite") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text(encoding="utf-8") for file in files]


def _check(connection: sqlite3.Connection, path: Path, *, newest: int) -> None:
    owner = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if owner != APPLICATION_ID and (owner or tables):
        raise StoreUnavailable(f"{path} is a database of another program: name another file for the bank")
    if version(connection) > newest:
        raise VersionMismatch(
            f"{path} was written by a newer release (format {version(connection)}, this one knows {newest}): "
            "upgrade lessonbank; nothing was changed"
        )


def _log_ahead(connection: sqlite3.Connection, path: Path, *, patience: float) -> None:
    # The switch does not wait by itself when another process is switching at the same moment.
    deadline = time.monotonic() + patience
    while True:
        try:
            mode = str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    if mode != "wal":
        raise StoreUnavailable(f"the file system of {path} cannot hold a write-ahead log: put the bank on a local disk")


def _migrate(connection: sqlite3.Connection, path: Path, steps: list[str]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster while this one waited.
        _check(connection, path, newest=len(steps))
        for step in steps[version(connection) :]:
            for statement in statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(steps)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def statements(script: str, /) -> Iterator[str]:
    """The statements of a migration, one by one."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""

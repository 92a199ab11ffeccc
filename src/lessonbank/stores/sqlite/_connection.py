"""How a connection to a bank file is opened, and how one transaction of it writes."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ._errors import is_busy
from ._wal_identity import count_on

_WRITER: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_size = -8192",
    "PRAGMA synchronous = FULL",
    "PRAGMA secure_delete = ON",
    "PRAGMA journal_size_limit = 67108864",
)
# Little, because there are several readers, and every write to the file empties the caches of all.
_READER: Final = ("PRAGMA trusted_schema = OFF", "PRAGMA cache_size = -2048", "PRAGMA query_only = ON")
_IN_MEMORY: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA journal_mode = MEMORY",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA secure_delete = ON",
)
_PAUSE: Final = (0.000_5, 0.002)
"""Seconds between two tries to write, at random. Of eight processes that write all the time, nobody waits for more than
560 ms; with SQLite's own waiting, which sleeps ever longer, 2,500 ms."""


class Connection(sqlite3.Connection):
    """Knows which log it writes to: SQLite itself would go on with one that was deleted.

    And how many lessons scopes held when it last counted them, which takes 12 ms of 100,000.
    """

    log: tuple[int, int] | None = None
    lessons: tuple[tuple[int, int], dict[int, int]] | None = None
    """The version of the file's content, and the lessons of scopes by number."""


def connect(path: Path, /, *, mode: str, writing: bool, busy_timeout: float) -> Connection:
    """A connection to the file; `mode` as SQLite's URIs have it, `busy_timeout` in seconds."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=busy_timeout,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=Connection,
    )
    for pragma in _WRITER if writing else _READER:
        connection.execute(pragma)
    return connection


def connect_in_memory() -> sqlite3.Connection:
    """A connection to tables of its own. Nothing of them touches the disk, and what is deleted is overwritten."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, cached_statements=256)
    for pragma in _IN_MEMORY:
        connection.execute(pragma)
    return connection


def _never() -> bool:
    return False


def patiently(
    connection: sqlite3.Connection, statement: str, /, *, patience: float, given_up: Callable[[], bool] = _never
) -> sqlite3.Cursor:
    """Execute what only one process may do at a time, as soon as no other does.

    Gives up after `patience` seconds, or as soon as `given_up` says that nobody waits for it.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return connection.execute(statement)
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(*_PAUSE))
            if given_up():
                raise


@contextmanager
def transaction(
    connection: sqlite3.Connection, /, *, patience: float, given_up: Callable[[], bool] = _never
) -> Generator[None]:
    """All that is written inside is on disk afterwards; if anything fails, nothing was written."""
    patiently(connection, "BEGIN IMMEDIATE", patience=patience, given_up=given_up)
    before = connection.total_changes
    try:
        yield
        if connection.total_changes != before:
            count_on(connection)
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has ended it already after some failures, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise

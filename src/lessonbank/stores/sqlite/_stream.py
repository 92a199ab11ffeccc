"""Rows of one query that are read in batches, while others write."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from lessonbank.errors import StoreUnavailable
from lessonbank.stores._threads import CLOSED

from ._connection import Connection
from ._errors import unavailable


class Stream:
    """Rows of one query, read in batches; where they come from a `connection`, its snapshot stays open in between."""

    def __init__(self, rows: Iterable[Any], path: Path, /, *, connection: Connection | None = None) -> None:
        self._turn = threading.Lock()
        self._path = path
        self._connection = connection
        self._rows: Iterator[Any] | None = iter(rows)

    def take(self, count: int, /) -> list[Any]:
        """The next rows; none at the end.

        Raises:
            StoreUnavailable: the store was closed in the meantime, or the file cannot be read.
        """
        with self._turn:
            if self._rows is None:
                raise StoreUnavailable(CLOSED)
            try:
                return list(islice(self._rows, count))
            except sqlite3.Error as error:
                raise unavailable(error, self._path) from error

    def detach(self) -> None:
        """Read what is left and give the snapshot back, so that a fork finds no connection open."""
        with self._turn:
            if self._connection is None or self._rows is None:
                return
            with suppress(sqlite3.Error):
                self._rows = iter(list(self._rows))
                self._connection.close()
                self._connection = None

    def end(self) -> Connection | None:
        """Give the snapshot back, and the connection, if another call can have it."""
        with self._turn:
            connection, self._connection, self._rows = self._connection, None, None
        if connection is not None:
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                return connection.close()
        return connection

"""The tables of a bank that is not kept: in the memory of this process, used by one thread for everything."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lessonbank.errors import StoreUnavailable
from lessonbank.stores._threads import CLOSED

from . import _forks
from ._connection import connect_in_memory
from ._database import TORN
from ._errors import unavailable
from ._log import Checkpoint
from ._schema import make_tables
from ._stream import Stream

T = TypeVar("T")


class InMemory:
    """Does for a bank in memory what `Database` does for a file. After a fork each process has its own copy."""

    path = Path(":memory:")
    patience = 0.0

    def __init__(self) -> None:
        self._connection = connect_in_memory()
        self._end = weakref.finalize(self, self._connection.close)
        make_tables(self._connection, self.path)
        self._closed = self._torn = False
        self._begin_afresh()
        _forks.watch(self)

    def _begin_afresh(self) -> None:
        self._turn = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lessonbank-memory")

    def call(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """See `Database.call`."""
        self.check_open()
        try:
            return self._thread.submit(work, *arguments)
        except RuntimeError as error:
            self.check_open()  # it may have been closed a moment ago
            raise StoreUnavailable(f"no thread can be started for {self.path} ({error}): end some, try again") from None

    def read(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """See `Database.read`."""
        return self.call(self._done, "ROLLBACK", work, arguments)

    def write(self, work: Callable[..., T], /, *arguments: Any, at_once: bool = False) -> Future[T]:
        """See `Database.write`."""
        return self.call(self._done, "COMMIT", work, arguments)

    def overwrite(self) -> Future[bool]:
        """Overwrite nothing more: SQLite zeroes what is deleted, see `connect_in_memory`."""
        return self.call(lambda: True)

    def compact(self) -> Future[None]:
        """See `Database.compact`. There is no file."""
        return self.call(lambda: None)

    def checkpoint(self) -> Future[Checkpoint]:
        """See `Database.checkpoint`. There is no log."""
        return self.call(Checkpoint)

    def stream(self, sql: str, values: Sequence[Any], scope: str = "", /) -> Stream:
        """Every row of a query, as a list: with one connection, a snapshot that stays open would hold up all writes."""
        return Stream(self._done("ROLLBACK", _rows, (sql, values)), self.path)

    def take(self, stream: Stream, count: int, /) -> list[Any]:
        """See `Database.take`."""
        return stream.take(count)

    def done(self, stream: Stream, /) -> None:
        """See `Database.done`."""
        stream.end()

    def damaged(self, what: str, /) -> None:
        """See `Database.damaged`. Nothing outside this process can reach its memory, so that there is nothing to do."""

    def check_open(self) -> None:
        """See `Database.check_open`."""
        if self._closed:
            raise StoreUnavailable(CLOSED)
        if self._torn:
            raise StoreUnavailable(TORN.format(path=self.path))

    def hurry(self, seconds: float, /) -> None:
        """See `Database.hurry`. No other process is waited for."""

    def close(self) -> None:
        """Wait for calls under way. What it held is gone."""
        self._closed = True
        self._thread.shutdown()
        self._end()

    def _done(self, end: str, work: Callable[..., T], arguments: Sequence[Any]) -> T:
        with self._turn, _roll_back_at_end(self._connection, self.path):
            self._connection.execute("BEGIN")
            result = work(self._connection, *arguments)
            self._connection.execute(end)
            return result

    def before_fork(self) -> None:
        """See `Forked`. SQLite shares nothing of a bank in memory, so that the connection itself may be inherited."""
        self._rests = self._turn.acquire(timeout=_forks.PATIENCE)

    def after_fork_in_parent(self) -> None:
        """See `Forked`."""
        if self._rests:
            self._turn.release()

    def after_fork_in_child(self) -> None:
        """See `Forked`."""
        _forks.inherited.append(self._thread)
        self._torn = self._torn or not self._rests
        self._begin_afresh()


def _rows(connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> list[Any]:
    return connection.execute(sql, values).fetchall()


@contextmanager
def _roll_back_at_end(connection: sqlite3.Connection, path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise unavailable(error, path) from error
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")

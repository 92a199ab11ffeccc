"""The connections to one file: who may use them when, and what their failures mean."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

from lessonbank._concurrency import rested
from lessonbank.errors import StoreUnavailable, UsageError

from ._causes import unavailable
from ._committing import Committer
from ._connecting import Connection, connect, patiently
from ._schema import check_version, prepare

T = TypeVar("T")

CLOSED: Final = "this store is closed: open it again"
_FORK_PATIENCE: Final = 5.0
"""Seconds a fork waits for the calls of other threads."""
_AT_ONCE: Final = 8
"""Reads of one store that run at the same time."""


class Stream:
    """Rows of one query, read in portions from one snapshot that stays open in between."""

    def __init__(self, connection: sqlite3.Connection, path: Path, sql: str, values: Sequence[Any], /) -> None:
        self._turn = threading.Lock()
        self._path = path
        self.connection: sqlite3.Connection | None = connection
        connection.execute("BEGIN")
        self._rows: Iterator[Any] | sqlite3.Cursor | None = connection.execute(sql, values)

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
            if self.connection is None or self._rows is None:
                return
            with suppress(sqlite3.Error):
                self._rows = iter(list(self._rows))
                self.connection.close()
                self.connection = None

    def close(self) -> None:
        """Give the snapshot back."""
        with self._turn:
            connection, self.connection, self._rows = self.connection, None, None
        if connection is not None:
            connection.close()


class Database:
    """One file, one writer, as many readers as are reading at once. Every method blocks: call it from a thread.

    Readers are opened `query_only`, so that nothing that ranks can ever write. Nothing is left open across a fork,
    because SQLite's locks do not survive one.
    """

    def __init__(self, path: str | os.PathLike[str], /, *, busy_timeout: float) -> None:
        if str(path) in {"", ":memory:"}:
            raise UsageError("a bank file needs a path; for a bank that is not kept use the memory store")
        self.path = Path(path).absolute()
        self._log = self.path.with_name(f"{self.path.name}-wal")
        self._busy_timeout = busy_timeout
        self._identity: tuple[int, int] | None = None
        self._closed = False
        self._torn = False
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        self._state = threading.Condition()
        self._writers: list[Connection] = []
        self._readers: list[Connection] = []
        self._streams: set[Stream] = set()
        self._leased = 0
        self._paused = False
        self._committer = Committer(self._turn, patience=self._busy_timeout)
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lessonbank-reader")

    def open(self) -> None:
        """Create or check the file.

        Raises:
            StoreUnavailable, VersionMismatch: see `prepare`.
        """
        if not self.path.parent.is_dir():
            raise StoreUnavailable(f"the folder {self.path.parent} does not exist: create it first")
        if self.path.is_dir():
            raise StoreUnavailable(f"{self.path} is a folder: name a file in it")
        with self._lease(self._writers) as connection:
            prepare(connection, self.path, patience=self._busy_timeout)
            self._identity = _identity(self.path)
        _databases.add(self)

    def read(self, work: Callable[[sqlite3.Connection], T], /) -> T:
        """What `work` finds in one snapshot."""
        with self._lease(self._readers) as connection:
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                # SQLite has ended it already after some failures, and what failed must be what is told.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def reading(self, call: Callable[[], T], /) -> Future[T]:
        """The future result of a call that reads, in a thread of its own."""
        return self._begun(self._pool.submit, partial(_rested, call))

    def writing(self, work: Callable[[sqlite3.Connection], T], /) -> Future[T]:
        """The future result of `work`, there once all it wrote is on disk; if anything fails, nothing was written."""
        return self._begun(self._committer.submit, partial(self._present, work))

    def _present(self, work: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        """`work` on a file that no newer release has taken over since it was opened."""
        check_version(connection, self.path)
        return work(connection)

    def compacting(self) -> Future[None]:
        """Write the file anew without its free pages, and empty the write-ahead log.

        Its result raises StoreUnavailable while another reader still needs the old pages.
        """
        return self._begun(partial(self._committer.submit, bare=True), self._compact)

    def _begun(self, submit: Callable[[Callable[..., T]], Future[T]], work: Callable[..., T]) -> Future[T]:
        self.check_open()
        try:
            return submit(work)
        except RuntimeError as error:
            self.check_open()  # it may have been closed a moment ago
            raise StoreUnavailable(f"no thread can be started for {self.path} ({error}): end some, try again") from None

    def _compact(self, connection: sqlite3.Connection) -> None:
        patiently(connection, "VACUUM", patience=self._busy_timeout)
        if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise StoreUnavailable(
                f"what was erased may still be read in the log of {self.path}, because another reader holds an older "
                "state: end it, then rebuild"
            )

    @contextmanager
    def _turn(self) -> Generator[sqlite3.Connection]:
        """The writing connection."""
        with self._lease(self._writers, ending=True) as connection:
            yield connection

    def stream(self, sql: str, values: Sequence[Any], /) -> Stream:
        """The rows of a query, as one snapshot that is read in portions; `done` must follow."""
        with self._lease(self._readers, keep=False) as connection:
            stream = Stream(connection, self.path, sql, values)
            self._streams.add(stream)
            return stream

    def done(self, stream: Stream, /) -> None:
        """Close a stream."""
        stream.close()
        self._streams.discard(stream)

    def check_open(self) -> None:
        """Raise StoreUnavailable once the store was closed."""
        if self._closed:
            raise StoreUnavailable(CLOSED)
        if self._torn:
            raise StoreUnavailable(
                f"this process was forked while its parent was busy with {self.path}, and cannot use it safely: "
                "start it by spawning, or fork while the bank rests"
            )

    def close(self) -> None:
        """Wait for calls under way, then close every connection."""
        self._closed = True
        self._committer.stop()
        with self._state:
            self._state.wait_for(lambda: not self._leased)
            self._close_idle()
        self._pool.shutdown(wait=False)
        for stream in tuple(self._streams):
            self.done(stream)

    @contextmanager
    def _lease(
        self,
        idle: list[Connection],
        *,
        keep: bool = True,
        ending: bool = False,
    ) -> Generator[sqlite3.Connection]:
        self._enter(ending=ending)
        connection: Connection | None = None
        sound = False
        try:
            connection = self._connection(idle)
            yield connection
            sound = True
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error
        except BaseException:
            sound = connection is not None and not connection.in_transaction
            raise
        finally:
            self._leave(connection, idle, sound=sound, keep=keep)

    def _enter(self, *, ending: bool) -> None:
        """Begin a call; one that was under way when the store was closed may still end."""
        with self._state:
            self._state.wait_for(lambda: not self._paused)
            if not ending:
                self.check_open()
            self._leased += 1

    def _connection(self, idle: list[Connection]) -> Connection:
        if self._identity not in (None, _identity(self.path)):
            raise StoreUnavailable(f"{self.path} was moved, deleted or replaced while it was open: open it again")
        log = _identity(self._log)
        if any(one.log not in (None, log) for one in (*idle[-1:], *self._writers[-1:])):
            raise StoreUnavailable(f"the log {self._log} was moved or deleted while the bank was open: open it again")
        try:
            return idle.pop()
        except IndexError:
            return self._connect(writing=idle is self._writers)

    def _connect(self, *, writing: bool) -> Connection:
        return connect(
            self.path,
            writing=writing,
            may_make=self._identity is None,
            busy_timeout=0 if writing else self._busy_timeout,
        )

    def _leave(self, connection: Connection | None, idle: list[Connection], *, sound: bool, keep: bool) -> None:
        with self._state:
            self._leased -= 1
            if connection is not None and sound and keep:
                connection.log = connection.log or _identity(self._log)
                idle.append(connection)
            elif connection is not None and not sound:
                connection.close()
            self._state.notify_all()

    def _close_idle(self) -> None:
        for connection in (*self._readers, *self._writers):
            connection.close()
        self._readers.clear()
        self._writers.clear()

    def before_fork(self) -> None:
        """Let the calls under way finish, start no new ones, and close what is idle."""
        with self._state:
            self._paused = True
            if self._state.wait_for(lambda: not self._leased, timeout=_FORK_PATIENCE):
                self._close_idle()
            for stream in tuple(self._streams):
                stream.detach()

    def after_fork_in_parent(self) -> None:
        """Go on; connections are opened again as they are needed."""
        with self._state:
            self._paused = False
            self._state.notify_all()

    def after_fork_in_child(self) -> None:
        """Forget, without touching them, whatever connections and locks the parent still held."""
        _inherited.extend([*self._readers, *self._writers, *self._streams, self._pool])
        self._torn = self._torn or self._leased > 0
        self._begin_afresh()


def _rested(call: Callable[[], T]) -> T:
    """The result of a call that a thread waited for."""
    rested()
    return call()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_inherited: list[object] = []
"""Kept alive for good: finalising an inherited connection would use the parent's locks."""


def _each(step: Callable[[Database], None]) -> Callable[[], None]:
    def run() -> None:
        for database in tuple(_databases):
            step(database)

    return run


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_each(Database.before_fork),
        after_in_parent=_each(Database.after_fork_in_parent),
        after_in_child=_each(Database.after_fork_in_child),
    )

"""The connections to one file: who may use them when, and what their failures mean."""

from __future__ import annotations

import logging
import math
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from lessonbank._base.atomic_write import refuse_odd_bank
from lessonbank.errors import ReadOnly, StoreDamaged, StoreReplaced, StoreUnavailable, UsageError
from lessonbank.stores._threads import CLOSED, Threads

from . import _forks
from ._checks import check_rows
from ._connection import Connection, connect, patiently, transaction
from ._creation import create
from ._erased_bytes import overwrite_unused
from ._errors import IMPOSSIBLE, impossible, is_busy, shows_damage, unavailable
from ._jobs import Job, outcome
from ._log import Checkpoint, checkpoint
from ._looks import claim_look, is_looked_over, note_looked_over
from ._schema import check_current, check_library, check_version, prepare
from ._stream import Stream
from ._wal_identity import WalIdentity, identity_of, stat_of

T = TypeVar("T")

log: Final = logging.getLogger("lessonbank")

TORN: Final = (
    "this process was forked while its parent was busy with {path}, and cannot use it safely: "
    "start it by spawning, or fork while the bank rests"
)
_AT_ONCE: Final = 8
"""Reads of one store that run at the same time."""
_TOGETHER: Final = 64
"""Writes that share a commit at most. So many receipts take 16 ms together, 280 ms one by one; lessons 80 and 280."""
_REFUSED: Final = "nothing is written to a damaged bank"
_NOT_HAD: Final = "failed to get page"
_HELD_BACK: Final = 0.6
"""Seconds that changes wait at most until the file was looked over: 100,000 lessons take about one."""
_LOOKS_AGAIN: Final = 0.02, 25
"""Seconds between two looks at whether another process has found the file sound, and how many come before a claim."""
_BEFORE_A_CHANGE: Final = 0.25
"""Seconds for which the first change of a file that was not looked over reads checksums at most."""
_LOOKED_OVER: Final = 1 << 30
"""Bytes of a file that is looked over when it is opened, at most: more would take one thread over ten seconds."""


class Database:
    """One file, one thread that writes, and as many that read as are reading at once.

    Readers are opened `query_only`, so that nothing that ranks can ever write. Nothing is left open across a fork,
    because SQLite's locks do not survive one.
    """

    def __init__(self, path: str | os.PathLike[str], /, *, busy_timeout: float, read_only: bool = False) -> None:
        if not str(path):
            raise UsageError("a bank file needs a path: name a file, or use ':memory:' for a bank that is not kept")
        # SQLite keeps its log beside the file to which a link leads.
        self.path = Path(os.path.realpath(Path(path).expanduser()))
        self._read_only = read_only
        if not self.path.name:
            raise StoreUnavailable(f"{self.path} is a folder: name a file in it")
        self._log = self.path.with_name(f"{self.path.name}-wal")
        self.patience = busy_timeout
        """Seconds a call waits for other processes."""
        self._hurried = 0.0
        self._identity: tuple[int, int] | None = None
        self._closed = False
        self._torn = False
        self._damage = ""
        self._begin_afresh()

    def _begin_afresh(self) -> None:
        self._wal_identity = WalIdentity(self.path)
        self._state = threading.Condition()
        self._writers: list[Connection] = []
        self._readers: list[Connection] = []
        self._streams: set[Stream] = set()
        self._leased = 0
        self._paused = False
        self._looking: sqlite3.Connection | None = None
        self._looked, self._is_checked, self._bad_vector = threading.Event(), False, False
        self._looked.set()
        self._waiting: deque[Job] = deque()
        self._may_change, self._reads_sums = True, False
        self._held: list[Job] = []
        self._patience: threading.Timer | None = None
        self._writing = Threads(1, name="lessonbank-writer")
        self._reading = Threads(_AT_ONCE, name="lessonbank-reader")

    def open(self) -> None:
        """Create or check the file.

        Raises:
            StoreUnavailable, VersionMismatch: see `prepare`.
            UsageError: something there, or beside it, is no file.
        """
        check_library()
        if not self.path.parent.is_dir():
            raise StoreUnavailable(f"the folder {self.path.parent} does not exist: create it first")
        if self.path.is_dir():
            raise StoreUnavailable(f"{self.path} is a folder: name a file in it")
        refuse_odd_bank(self.path)
        if self._read_only:
            self._open_to_read()
        else:
            create(self.path)
            with self._lease(self._writers) as connection:
                prepare(connection, self.path, patience=self.patience)
                connection.execute("PRAGMA busy_timeout = 0")  # from now on it waits as `patiently` does
                self._identity = identity_of(stat_of(self.path))
                self._is_checked = is_looked_over(connection, self._identity)
        _forks.watch(self)
        if not (self._read_only or self._is_checked):
            self._begin_to_look()

    def _begin_to_look(self) -> None:
        look = threading.Thread(target=self._look_over, name="lessonbank-check", daemon=True)
        try:
            if self.path.stat().st_size <= _LOOKED_OVER:
                self._looked.clear()
                look.start()
                self._may_change = False
        except (OSError, RuntimeError):  # no file or no thread any more: whoever calls hears it
            self._looked.set()

    def _open_to_read(self) -> None:
        self._identity = identity_of(stat_of(self.path))
        if self._identity is None:
            raise StoreUnavailable(f"{self.path} does not exist: open it for writing once, or name another file")
        with self._lease(self._readers) as connection:
            check_current(connection, self.path)

    def call(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """The future result of a call that takes a while and needs no connection."""
        return self._reading.submit(self._sound, work, *arguments)

    def read(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """What `work` will find in one snapshot; it is called with a connection before its `arguments`."""
        return self._reading.submit(self._sound, self._read, work, *arguments)

    def _sound(self, work: Callable[..., T], *arguments: Any) -> T:
        """What `work` finds. Damage is remembered: what is written on top of it could be lost, or make it worse."""
        try:
            return work(*arguments)
        except StoreDamaged as error:
            self.damaged(str(error))
            raise
        except IMPOSSIBLE as error:
            raise impossible(error) from error

    def damaged(self, what: str, /) -> None:
        """Refuse every further write."""
        self._damage = self._damage or what.removesuffix(StoreDamaged.REMEDY)

    @contextmanager
    def _noticing(self) -> Generator[None]:
        """Damage that is met inside is remembered. What cannot be read, or was called off, every call will say."""
        try:
            yield
        except StoreDamaged as error:
            self._say_damaged(str(error))
        except (StoreUnavailable, MemoryError):
            pass

    def _look_over(self) -> None:
        """Read the whole file once: damage that no call has read yet must not be written on."""
        try:
            self._look(_quickly_checked)
        finally:
            self._looked.set()

    def _read_sums(self) -> None:
        """Read the checksums inside the rows, at which SQLite does not look. Then changes are let in."""
        try:
            self._looked.wait()
            if self._read_by_others():
                return
            self._reads_sums = True
            vector = self._look(check_rows)
            if vector is not None:
                self._bad_vector = bool(vector)
                self._note_checked(not vector)
        finally:
            self._reads_sums = False
            self._let_changes_in()

    def _read_by_others(self) -> bool:
        """Wait while another process reads the sums of this very file; whether it found them sound."""
        pause, looks = _LOOKS_AGAIN
        with self._noticing():
            while not self.write(claim_look, self._identity, at_once=True).result():
                for _ in range(looks):
                    time.sleep(pause)
                    with self._lease(self._readers) as connection:
                        self._is_checked = is_looked_over(connection, self._identity)
                    if self._is_checked:
                        return True
        return False

    def _check_sums(self) -> None:
        """Before the first change of a file that was not looked over, and while a vector is damaged, read checksums.

        Raises:
            StoreDamaged: a vector is damaged. This is not remembered, because a rebuild mends it.
        """
        seconds, vector = math.inf if self._bad_vector else _BEFORE_A_CHANGE, ""
        with self._noticing(), self._lease(self._readers, ending=True) as connection:
            record, vector = check_rows(connection, seconds=seconds, records=not self._bad_vector)
            self._say_damaged(record)
            self._note_checked(not vector)
        if vector and not self._damage:
            self._bad_vector = True
            raise StoreDamaged(f"{_REFUSED} ({vector})", remedy=": call `admin.rebuild()`, then `admin.reindex()`")

    def _note_checked(self, is_checked: bool) -> None:
        self._is_checked = is_checked
        if is_checked and not self._damage:
            with self._noticing():  # closed meanwhile: whoever opens the file next looks again
                self.write(note_looked_over, self._identity, at_once=True)

    def _hold_back(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs that are done now. The first changes wait until the file was looked over; nothing else does."""
        with self._state:
            changes = [job for job in jobs if not job.at_once]
            if self._may_change or not changes:
                return list(jobs)
            self._held += changes
            if self._patience is None:
                self._patience = threading.Timer(_HELD_BACK, self._let_changes_in)
                self._patience.daemon = True
                begun = self._patience, threading.Thread(target=self._read_sums, name="lessonbank-check", daemon=True)
                try:
                    for thread in begun:
                        thread.start()
                except RuntimeError:  # no thread can be started
                    self._let_in()
        return [job for job in jobs if job.at_once]

    def _let_changes_in(self) -> None:
        with self._state:
            self._let_in()

    def _let_in(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._may_change, held, self._held = True, self._held, []
        self._waiting.extend(held)
        for _ in held[::_TOGETHER]:
            self._writing.submit(self._commit_waiting)

    def _say_damaged(self, message: str) -> None:
        # A page that cannot be had now says nothing of the file: memory may be short.
        if not message or _NOT_HAD in message or self._damage:
            return
        self._wal_identity.check()  # who put another file in its place hears of that, and not of damage
        self.damaged(" ".join(message.split()))
        log.warning("%s is damaged (%s): nothing is written to it; see `lessonbank salvage`", self.path, self._damage)

    def _look(self, at: Callable[[sqlite3.Connection], tuple[str, str]]) -> str | None:
        """What is wrong with a vector, see `check_rows`; `None` where the look did not come to its end.

        Other damage is remembered.
        """
        with self._noticing(), self._lease([], keep=False) as connection, closing(connection):
            record, vector = self._looked_at(connection, at)
            self._say_damaged(record)
            return vector
        return None

    def _looked_at(self, connection: sqlite3.Connection, look: Callable[[sqlite3.Connection], T]) -> T:
        """What `look` finds. Raises StoreUnavailable where it was called off."""
        with self._state:
            if self._paused or self._closed:
                raise sqlite3.OperationalError("interrupted")  # as SQLite says of a look that has begun
            self._looking = connection
        try:
            return look(connection)
        finally:
            self._looking = None

    def _call_off(self) -> None:
        """End the look over the file. SQLite is told until it hears: between two statements it forgets it."""
        while (connection := self._looking) is not None:
            with suppress(sqlite3.ProgrammingError):
                connection.interrupt()
            time.sleep(0.001)

    def _read(self, work: Callable[..., T], *arguments: Any) -> T:
        with self._lease(self._readers) as connection:
            check_version(connection, self.path)  # a newer release may have upgraded the file meanwhile
            # Only what `work` reads first takes the snapshot: matrices are brought up to it in the order of snapshots.
            connection.execute("BEGIN")
            try:
                return work(connection, *arguments)
            finally:
                # SQLite has ended it already after some failures, and what failed must be what is told.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def write(self, work: Callable[..., T], /, *arguments: Any, at_once: bool = False) -> Future[T]:
        """The future result of `work`, there once all it wrote is on disk; if anything fails, nothing was written.

        Cancelled while it still waits, for its turn or for another process, it is not done at all. The first change
        waits until the file was looked over, unless it is to be made `at_once`.
        """
        if self._read_only:
            raise ReadOnly(f"{self.path} was opened read-only: open it for writing to change anything")
        if self._damage:
            raise self._refused()
        job = Job(work, arguments, at_once)
        self._waiting.append(job)
        try:
            self._writing.submit(self._commit_waiting)
        except StoreUnavailable:
            with suppress(ValueError):
                self._waiting.remove(job)
            raise
        return job.future

    def _refused(self) -> StoreDamaged:
        return StoreDamaged(f"{_REFUSED} ({self._damage})")

    def compact(self) -> Future[None]:
        """Write the file again without its free pages. What was in them is still in the write-ahead log."""
        return self._writing.submit(self._compact)

    def overwrite(self) -> Future[bool]:
        """See `overwrite_unused`."""
        return self._reading.submit(self._overwrite)

    def checkpoint(self) -> Future[Checkpoint]:
        """Try once to empty the write-ahead log."""
        return self._writing.submit(self._checkpoint)

    def _commit_waiting(self) -> None:
        jobs = [self._waiting.popleft() for _ in range(min(len(self._waiting), _TOGETHER))]
        if not self._may_change:
            jobs = self._hold_back(jobs)
        live = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        if not (self._is_checked or self._damage or self._reads_sums):
            live = self._on_sound_sums(live)
        if live:
            self._commit(live)

    def _on_sound_sums(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs that are done. Changes are refused where a damaged vector was found."""
        changes = [job for job in jobs if not job.at_once]
        try:
            if changes:
                self._check_sums()
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the callers, not to this thread
            for job in changes:
                job.future.set_exception(error)
            return [job for job in jobs if job.at_once]
        return list(jobs)

    def _commit(self, jobs: Sequence[Job]) -> None:
        """Do several writes in one transaction. One that fails takes nothing with it: the others go on without it."""
        try:
            if self._damage:
                raise self._refused()
            with (
                self._lease(self._writers, ending=True) as connection,
                transaction(
                    connection, patience=self.patience, given_up=partial(self._is_late, jobs, time.monotonic())
                ),
            ):
                self._wal_identity.check_view(check_version(connection, self.path))
                outcomes = [outcome(connection, job) for job in jobs]
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the callers, not to this thread
            if self._hurried and is_busy(error.__cause__):
                self.patience = 0.0  # who did not go away in this time holds up nothing more
            if len(jobs) > 1 and not is_busy(error.__cause__):  # one wait for a lock is enough for all
                for job in jobs:
                    self._commit([job])
                return
            outcomes = [(None, error)] * len(jobs)
        for job, (result, error) in zip(jobs, outcomes, strict=True):
            if error is not None and shows_damage(error):
                self.damaged(str(error))
            if error is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(error)

    def _is_late(self, jobs: Sequence[Job], began: float) -> bool:
        """Whether nobody waits any more for jobs whose turn began at that moment."""
        if all(job.future.given_up for job in jobs):
            return True
        return 0.0 < self._hurried < time.monotonic() - self.patience > began

    def hurry(self, seconds: float, /) -> None:
        """Wait for other processes no longer than so many seconds from now on, also where a call waits already."""
        self.patience, self._hurried = min(self.patience, seconds), time.monotonic()

    def _compact(self) -> None:
        self._call_off()  # it would keep what was erased in the log
        with self._lease(self._writers, ending=True) as connection:
            patiently(connection, "VACUUM", patience=self.patience)

    def _overwrite(self) -> bool:
        self._call_off()
        with self._lease(self._readers, ending=True) as connection:
            return overwrite_unused(connection, self.path, patience=self.patience)

    def _checkpoint(self) -> Checkpoint:
        self._call_off()
        with self._lease(self._writers, ending=True) as connection:
            return checkpoint(connection)

    def stream(self, sql: str, values: Sequence[Any], scope: str = "", /) -> Stream:
        """The rows of a query, as one snapshot that is read in batches; `done` must follow."""
        with self._lease(self._readers, keep=False) as connection:
            connection.execute("BEGIN")
            check_version(connection, self.path)
            stream = Stream(connection.execute(sql, values), self.path, connection=connection)
            self._streams.add(stream)
            return stream

    def take(self, stream: Stream, count: int, /) -> list[Any]:
        """The next rows of a stream, fewer at the end: the snapshot is given back then."""
        rows = stream.take(count)
        if len(rows) < count:
            self.done(stream)
        return rows

    def done(self, stream: Stream, /) -> None:
        """End a stream. The next reader takes its connection: one that is opened has every statement to prepare."""
        with self._state:
            connection = stream.end()
            self._streams.discard(stream)
            if connection and not self._paused and not self._closed and len(self._readers) < _AT_ONCE:
                self._readers.append(connection)
            elif connection:
                connection.close()

    def check_open(self) -> None:
        """Raise StoreUnavailable once the store was closed."""
        if self._closed:
            raise StoreUnavailable(CLOSED)
        if self._torn:
            raise StoreUnavailable(TORN.format(path=self.path))

    def holds(self, identity: tuple[int, int], /) -> bool:
        """Whether this is that file, and open."""
        return not self._closed and self._identity == identity

    def close(self) -> None:
        """Wait for calls under way, then close every connection."""
        with self._state:
            self._closed = True
        self._call_off()
        self._let_changes_in()
        self._writing.shutdown()
        with self._state:
            self._state.wait_for(lambda: not self._leased)
            self._close_idle()
        self._reading.shutdown(wait=False)
        for stream in tuple(self._streams):
            self.done(stream)

    @contextmanager
    def _lease(self, idle: list[Connection], *, keep: bool = True, ending: bool = False) -> Generator[Connection]:
        """A connection for one call. `ending`: a call that was under way when the store was closed may still end."""
        with self._state:
            while self._paused:
                self._state.wait()
            if self._torn or (self._closed and not ending):
                self.check_open()
            self._leased += 1
        connection: Connection | None = None
        sound = False
        try:
            connection = self._connection(idle)
            yield connection
            sound = True
        except sqlite3.Error as error:
            raise unavailable(error, self.path) from error
        except BaseException:
            sound = keep and connection is not None and not connection.in_transaction
            raise
        finally:
            with self._state:
                self._leased -= 1
                if connection is not None and not sound:
                    connection.close()
                elif connection is not None and keep:
                    connection.log = connection.log or identity_of(stat_of(self._log))
                    idle.append(connection)
                self._state.notify_all()

    def _connection(self, idle: list[Connection]) -> Connection:
        log = self._wal_identity.check(self._identity)
        for connection in (*idle[-1:], *self._writers[-1:]):
            # Another thread may have made the log, and the connection, since it was looked for.
            if connection.log not in (None, log) and connection.log != identity_of(stat_of(self._log)):
                raise StoreReplaced(f"the log {self._log} was moved or deleted while the bank was open: open it again")
        try:
            return idle.pop()
        except IndexError:
            return self._connect(writing=idle is self._writers)

    def _connect(self, *, writing: bool) -> Connection:
        making = self._identity is None
        patience = 0 if writing and not making else self.patience
        return connect(self.path, mode=self._mode(making=making), writing=writing, busy_timeout=patience)

    def _mode(self, *, making: bool) -> str:
        if not self._read_only:
            return "rwc" if making else "rw"
        if self._log.exists():
            return "ro"
        # Where nobody has it open, SQLite makes a log and takes it away again; where it cannot, it need not.
        return "rw" if os.access(self.path.parent, os.W_OK) else "ro&immutable=1"

    def _close_idle(self) -> None:
        for connection in (*self._readers, *self._writers):
            connection.close()
        self._readers.clear()
        self._writers.clear()

    def before_fork(self) -> None:
        """Let the calls under way finish, start no new ones, and close what is idle."""
        with self._state:
            self._paused = True
            self._call_off()
            if self._state.wait_for(lambda: not self._leased, timeout=_forks.PATIENCE):
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
        _forks.inherited.extend([*self._readers, *self._writers, *self._streams, self._reading, self._writing])
        self._torn = self._torn or self._leased > 0
        self._begin_afresh()


def _quickly_checked(connection: sqlite3.Connection) -> tuple[str, str]:
    answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if answer == "ok" else answer, ""


def is_open_here(path: Path, /) -> bool:
    """Whether this process has the bank open: nobody but SQLite may open its file then."""
    identity = identity_of(stat_of(path))
    return identity is not None and any(
        isinstance(database, Database) and database.holds(identity) for database in _forks.watched()
    )

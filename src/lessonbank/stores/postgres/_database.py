"""The connections of one bank, and the threads that wait for them: transactions that know their scope."""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.string import StrBinaryDumper, StrDumper
from psycopg_pool import ConnectionPool, PoolTimeout

from lessonbank._base.aio import seconds_left
from lessonbank.errors import LessonbankError, ReadOnly, StoreUnavailable, UsageError
from lessonbank.stores._threads import Threads

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Answer: TypeAlias = "psycopg.Cursor[tuple[Any, ...]]"
Lock: TypeAlias = Literal["none", "free", "shared", "alone"]

CLOCK: Final = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint"
"""The present moment in microseconds by the clock of the database: those of its clients differ."""
EVERY: Final = "*"
"""What a transaction names that looks at every scope: its role must be allowed to."""
_MOST: Final = 16
"""Connections of one process at most."""
_PATIENCE: Final = 30.0
"""Seconds a call waits for a free connection, and for a lock, as on a file. Less where its caller waits less."""
_CONNECTING: Final = 5
_SILENT: Final = 10
"""Seconds until a network that carries nothing any more is noticed."""
_ON_THE_WAY: Final = {
    "connect_timeout": _CONNECTING,
    "keepalives_idle": _SILENT // 2,
    "keepalives_interval": 1,
    "keepalives_count": _SILENT // 2,
    "tcp_user_timeout": 1000 * _SILENT,
}
_ABSENT: Final = 60.0
"""Seconds for which a transaction that writes may do nothing: then a frozen client loses its locks."""
_left_to_the_parent: Final[list[object]] = []
"""Pools of the process this one was forked from: to close them here would end the parent's sessions."""


def limits_of(url: str, /) -> dict[str, Any]:
    """The time limits of a connection that the address does not set itself."""
    own = conninfo_to_dict(url)
    return {name: value for name, value in _ON_THE_WAY.items() if name not in own}


def rows(connection: Connection, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """What a statement gives; its values in order, or one mapping of names to values."""
    return ask(connection, sql, *values).fetchall()


def row(connection: Connection, sql: str, *values: object) -> tuple[Any, ...] | None:
    """The first row of it."""
    return ask(connection, sql, *values).fetchone()


def do(connection: Connection, sql: str, *values: object) -> int:
    """Execute a statement; how many rows it changed, unless it goes with others and is not waited for (`pipeline`)."""
    return ask(connection, sql, *values).rowcount


def ask(connection: Connection, sql: str, *values: object) -> Answer:
    """Execute a statement whose rows are read later: where all goes together, several are so answered at once."""
    if len(values) == 1 and isinstance(values[0], dict):
        return connection.execute(sql.encode(), cast("dict[str, object]", values[0]))
    return connection.execute(sql.encode(), values or None)


def many(connection: Connection, sql: str, values: Iterable[Sequence[object] | Mapping[str, object]], /) -> None:
    """Execute a statement for each of these, without waiting in between."""
    held = list(values)
    if held:
        with connection.cursor() as cursor:
            cursor.executemany(sql.encode(), held)


def stored(column: str, /) -> str:
    """SQL that selects a record's checksum and text as one value, which `checked` reads."""
    return f"convert_to({column}_sum || ' ' || {column}_json, 'UTF8')"


@dataclass(slots=True)
class Stream:
    """Rows that are fetched as they are asked for, from one snapshot."""

    connection: Connection | None
    cursor: psycopg.ServerCursor[tuple[Any, ...]]


class _Call(Future[T]):
    """Knows until when its caller waits, and cuts its connection where nobody waits and the server is silent."""

    connection: Connection | None = None

    def __init__(self) -> None:
        super().__init__()
        self.until = time.monotonic() + _seconds_left()

    def cancel(self) -> bool:
        cut = super().cancel()
        if not cut and not self.done():
            _later(_SILENT, self.cut)
        return cut

    def cut(self) -> None:
        """The thread that waits for the answer of a frozen server would wait for ever, and whoever ends it with it."""
        if not self.done() and self.connection is not None:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(self.connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)


def _later(seconds: float, do: Callable[[], None], /) -> None:
    timer = threading.Timer(seconds, do)
    timer.daemon = True
    timer.start()


class _Here(threading.local):
    call: _Call[Any] | None = None
    """What this thread does."""


def _seconds_left() -> float:
    try:
        return seconds_left()
    except RuntimeError:  # nobody waits in an event loop
        return math.inf


class Database:
    """Executes work in threads, each in one transaction. Works in any thread and event loop, and after `fork`."""

    def __init__(self, url: str, /, *, read_only: bool = False) -> None:
        self._url = url
        self.read_only = read_only
        self._closed = self._is_silent = False
        self._most = math.inf
        """Seconds that a call may take."""
        self._here = _Here()
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        self._threads, self._calls = Threads(_MOST, name="lessonbank-postgres"), weakref.WeakSet[_Call[Any]]()
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            self._url,
            min_size=0,
            max_size=_MOST,
            open=False,
            timeout=_PATIENCE,
            max_idle=300.0,
            name="lessonbank",
            # A pooler may give each transaction another session, and transactions are begun here.
            kwargs={"prepare_threshold": None, "autocommit": True, **limits_of(self._url)},
            configure=prepared,
        )

    def check_open(self) -> None:
        """Refuse a closed store. Raises StoreUnavailable."""
        if self._closed:
            raise StoreUnavailable("the bank is closed: open it again")
        if self._is_silent:
            raise StoreUnavailable(_SILENCE)

    def call(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Call `work` in a thread. Nothing in it waits longer than its caller, where that has a limit."""
        self.check_open()
        if self._process != os.getpid():
            _left_to_the_parent.append((self._pool, self._threads))
            self._start()
        call = _Call[T]()
        if self._most < math.inf:
            self._bound(call)
        self._calls.add(call)
        self._threads.submit(self._answer, call, work, *arguments)
        return call

    def hurry(self, seconds: float, /) -> None:
        """Wait for no call longer than so many seconds from now on. The first that takes longer ends them all."""
        self._most = seconds
        for call in tuple(self._calls):
            self._bound(call)

    def _bound(self, call: _Call[Any]) -> None:
        call.until = min(call.until, time.monotonic() + self._most)
        _later(self._most, partial(self._give_up, weakref.ref(call)))

    def _give_up(self, call: weakref.ref[_Call[Any]]) -> None:
        if (late := call()) is None or late.done():
            return
        self._is_silent = True
        for open_call in tuple(self._calls):
            open_call.until = 0.0
            open_call.cut()
        self._pool.close(0.1)  # whoever waits for a connection hears it

    def _answer(self, call: _Call[T], work: Callable[..., T], *arguments: Any) -> None:
        if not call.set_running_or_notify_cancel():
            return
        self._here.call = call
        try:
            call.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the caller, not to this thread
            call.set_exception(error)
        finally:
            self._here.call = None

    @property
    def _left(self) -> float:
        """Seconds that the caller of this thread still waits. Raises StoreUnavailable where there are none."""
        left = self._here.call.until - time.monotonic() if self._here.call else math.inf
        if left <= 0:
            raise StoreUnavailable("the database took longer than its caller waits: see what holds it")
        return left

    def read(self, work: Callable[[Connection], T], /, *, scope: str = "") -> Future[T]:
        """What `work` finds in one snapshot."""
        return self.call(self._do, work, scope, "none")

    def ask(self, sql: str, *values: object, scope: str) -> Future[list[tuple[Any, ...]]]:
        """What one statement finds: one question and one answer, as short as a look at a scope can be."""
        return self.call(self._ask, sql, values, scope)

    def write(self, work: Callable[[Connection], T], /, *, scope: str = "", lock: Lock = "alone") -> Future[T]:
        """What `work` returns, once all it wrote is on disk. Writers of one scope take turns, unless they share.

        One that is `free` waits for no other, see `is_alone`.
        """
        self._check_writable()
        return self.call(self._do, work, scope, lock)

    def write_together(
        self, work: Callable[[Connection], Callable[[], T]], /, *, scope: str, lock: Lock = "alone", waits: bool = True
    ) -> Future[T]:
        """Write with `work` that opens no server-side cursor: what it does not wait for goes with the commit.

        What it returns is called afterwards, and may read answers that nobody waited for. Without `waits` it fails
        where others hold what it needs for a second: who asked for it does not wait any more, and readers need the
        connection.
        """
        self._check_writable()
        return self.call(self._do_together, work, scope, lock, waits)

    def _check_writable(self) -> None:
        if self.read_only:
            raise ReadOnly("the bank was opened to read alone: open it for writing")

    def _do(self, work: Callable[[Connection], T], scope: str, lock: Lock) -> T:
        with translated():
            connection = self._begun(scope, lock)
            try:
                with finished(connection):
                    return work(connection)
            finally:
                self._give_back(connection)

    def _do_together(self, work: Callable[[Connection], Callable[[], T]], scope: str, lock: Lock, waits: bool) -> T:
        with translated():
            for connection in self._connections():
                begun: Answer | None = None
                is_ending = False
                try:
                    with undone(connection), connection.pipeline():
                        begun = _begin(connection, scope, lock, self._left, wait=_PATIENCE if waits else _BRIEFLY)
                        fetch = work(connection)
                        is_ending = True
                        do(connection, "COMMIT")
                    return fetch()
                except psycopg.OperationalError:
                    # Nothing was done where nothing was answered, unless the last word was on its way.
                    if not connection.closed or is_ending or (begun and begun.pgresult):
                        raise
                finally:
                    self._give_back(connection)
        raise StoreUnavailable(_ENDED)

    def _ask(self, sql: str, values: tuple[object, ...], scope: str) -> list[tuple[Any, ...]]:
        def asked(connection: Connection) -> Answer:
            # One transaction without BEGIN: it ends where the pipeline does.
            with connection.pipeline():
                do(connection, _LIMITS, _limits(self._left))
                do(connection, _SCOPE, {"scope": scope})
                return ask(connection, sql, *values)

        with translated():
            connection, answer = self._first(asked)
            self._give_back(connection)
            return answer.fetchall()

    def _begun(self, scope: str, lock: Lock) -> Connection:
        """A connection in a transaction that knows its scope."""

        def begin(connection: Connection) -> None:
            with undone(connection), connection.pipeline():
                _begin(connection, scope, lock, self._left)

        return self._first(begin)[0]

    def _first(self, work: Callable[[Connection], T]) -> tuple[Connection, T]:
        """A connection, and what `work` does first with it. Connections that the server ended are passed over."""
        for connection in self._connections():
            try:
                return connection, work(connection)
            except psycopg.OperationalError:
                self._give_back(connection)
                if not connection.closed:
                    raise
            except BaseException:
                self._give_back(connection)
                raise
        raise StoreUnavailable(_ENDED)

    def _connections(self) -> Iterator[Connection]:
        """One after the other, for whoever finds that the server ended the one before."""
        if self._pool.closed:
            self._pool.open()
        for _ in range(_MOST + 1):
            connection = self._pool.getconn(min(self._left, _PATIENCE))
            if self._here.call:
                self._here.call.connection = connection
            if _is_there(connection):
                yield connection
            else:
                self._give_back(connection)

    def _give_back(self, connection: Connection) -> None:
        self._pool.putconn(connection)

    def stream(self, sql: str, values: Sequence[object], scope: str) -> Stream:
        """Begin to read; `done` ends it."""
        with translated():
            connection = self._begun(scope, "none")
            try:
                cursor = connection.cursor("rows", binary=True)
                cursor.execute(sql.encode(), values)
            except BaseException:
                connection.rollback()
                self._give_back(connection)
                raise
            return Stream(connection, cursor)

    def take(self, stream: Stream, count: int) -> list[tuple[Any, ...]]:
        """The next rows, fewer at the end; the connection is free then."""
        if stream.connection is None:
            return []
        with translated():
            rows = stream.cursor.fetchmany(count)
        if len(rows) < count:
            self.done(stream)
        return rows

    def done(self, stream: Stream) -> None:
        """End a stream. Twice is fine."""
        connection, stream.connection = stream.connection, None
        if connection is None:
            return
        try:
            with translated():
                stream.cursor.close()
                connection.rollback()
        finally:
            self._give_back(connection)

    def outside(self, *statements: str) -> None:
        """Execute statements that no transaction may hold, such as VACUUM."""
        with translated():
            connection = self._begun("", "none")
            try:
                connection.rollback()
                for statement in statements:
                    do(connection, statement)
            finally:
                self._give_back(connection)

    def close(self) -> None:
        """Wait for calls under way and end the sessions. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._threads.shutdown()
        if not self._pool.closed:
            self._pool.close()


@contextmanager
def finished(connection: Connection, /) -> Generator[None]:
    """A transaction that ends with what is done in it: all of it or nothing."""
    with undone(connection):
        yield
    connection.commit()


@contextmanager
def undone(connection: Connection, /) -> Generator[None]:
    """A transaction that is rolled back where what is done in it fails."""
    try:
        yield
    except BaseException:
        if not connection.closed:
            connection.rollback()
        raise


def _is_there(connection: Connection) -> bool:
    """Whether nobody is known to have ended a connection that lay idle: what its end said is read, and nothing sent."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    try:
        while waiting.poll(0):
            connection.pgconn.consume_input()
    except psycopg.OperationalError:
        connection.close()
    return not connection.closed


_SILENCE: Final = "the database did not answer while the bank was closed: see what holds it"
_ENDED: Final = "the database ends every connection: ask who runs it"
_LOCK_KEY: Final = "hashtextextended('lessonbank ' || %(scope)s, 0)"
_LOCKS: Final[dict[Lock, str]] = {
    "none": "",
    "free": "",
    "shared": f", pg_advisory_xact_lock_shared({_LOCK_KEY})",
    "alone": f", pg_advisory_xact_lock({_LOCK_KEY})",
}
_SCOPE: Final = "SELECT set_config('lessonbank.scope', %(scope)s, true)"
# For one transaction: a pooler may give the next one another session. 0 is no limit.
_LIMIT: Final = (
    "set_config('{name}', coalesce(1000 * extract(epoch FROM least(nullif(current_setting('{name}')::interval, '0'),"
    " nullif(%({own})s::interval, '0'))), 0)::bigint::text, true)"
)
"""The shorter one of ours and of the role's own."""
_LIMITS: Final = "SELECT " + ", ".join(
    _LIMIT.format(name=name, own=own)
    for name, own in {
        "lock_timeout": "wait",
        "statement_timeout": "work",
        "idle_in_transaction_session_timeout": "absent",
    }.items()
)
_BRIEFLY: Final = 1.0
_LONGEST: Final = 600.0
"""Seconds for one statement, such as the deletion of a large scope, where its caller has no limit."""
_READS: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITES: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"


def _begin(connection: Connection, scope: str, lock: Lock, left: float, *, wait: float = _PATIENCE) -> Answer:
    """Begin a transaction that knows its scope and what is left of its time; sent with what comes after it."""
    do(connection, _READS if lock == "none" else _WRITES)
    do(connection, _LIMITS, _limits(left, wait, absent=0 if lock == "none" else _ABSENT))
    return ask(connection, _SCOPE + _LOCKS[lock], {"scope": scope})


def _limits(left: float, wait: float = _PATIENCE, absent: float = 0) -> dict[str, str]:
    limits = {"wait": min(wait, left), "work": min(_LONGEST, left), "absent": absent}
    return {name: f"{math.ceil(1000 * seconds)}ms" for name, seconds in limits.items()}


def is_alone(connection: Connection, scope: str, /) -> bool:
    """Whether a transaction has its scope alone from now on. It does not wait for whoever else has it."""
    return row(connection, f"SELECT pg_try_advisory_xact_lock({_LOCK_KEY})", {"scope": scope}) == (True,)


def enter_scope(connection: Connection, scope: str, /) -> None:
    """Let a transaction that knows every scope look at the rows of one."""
    do(connection, _SCOPE, {"scope": scope})


def prepared(connection: Connection, /) -> None:
    """Have a new connection give binary results and take every text."""
    connection.cursor_factory = _BinaryCursor
    connection.adapters.register_dumper(str, _TextInListDumper)
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(UnitRow, _UnitDumper)
    connection.adapters.register_loader("text", _TextLoader)


class _BinaryCursor(psycopg.Cursor[Any]):
    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.format = psycopg.pq.Format.BINARY


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(_without_nul(obj))


class _TextInListDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(_without_nul(obj))


def _without_nul(text: str) -> str:
    """PostgreSQL keeps no NUL."""
    return text.replace("\1", "\1a").replace("\0", "\1b") if "\0" in text or "\1" in text else text


class _TextLoader(Loader):
    format = psycopg.pq.Format.BINARY

    def load(self, data: Any) -> str:
        text = bytes(data).decode()
        return text.replace("\1b", "\0").replace("\1a", "\1") if "\1" in text else text


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A vector as pgvector sends and receives it; in a statement, `%s::vector`."""

    data: bytes


class _UnitDumper(Dumper):
    format = psycopg.pq.Format.BINARY

    def dump(self, obj: UnitRow) -> bytes:
        return obj.data


@contextmanager
def translated() -> Generator[None]:
    """Failures of the database as ours, in one sentence each."""
    try:
        yield
    except LessonbankError:
        raise
    except PoolTimeout as error:
        raise StoreUnavailable(f"{first_line(error)}: see that the database runs and takes more connections") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreUnavailable(f"this database role may not do that ({first_line(error)}): use one that may") from error
    except psycopg.errors.LockNotAvailable as error:
        raise StoreUnavailable("others kept what this needs of the database locked: find out who, try again") from error
    except psycopg.errors.QueryCanceled as error:
        raise StoreUnavailable(
            f"the database took longer than may be waited for ({first_line(error)}): try again"
        ) from error
    except psycopg.errors.ProgramLimitExceeded as error:
        raise UsageError(f"an id, a name or a vector is longer than PostgreSQL keeps ({first_line(error)})") from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise ReadOnly("the database takes no writes, as a standby does: connect to the primary") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.errors.InvalidSchemaName) as error:
        raise StoreUnavailable(f"the bank lacks what every bank has ({first_line(error)}): open it again") from error
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"the database failed ({first_line(error)}): nothing was half done; try again"
        ) from error


def first_line(error: psycopg.Error, /) -> str:
    """The first line of what the database said. Values that a statement had are in later ones."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]

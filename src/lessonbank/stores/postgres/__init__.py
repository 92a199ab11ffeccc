"""The store for many machines: a PostgreSQL database, each scope for itself, every call one transaction."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import psycopg
from anyio import to_thread
from psycopg.conninfo import conninfo_to_dict

from lessonbank.contracts.ports import Health, Nearest
from lessonbank.contracts.records import Experience, JournalEntry, Match, Recall, Trajectory
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.errors import StoreUnavailable, UsageError, VersionMismatch
from lessonbank.guard import check_scope
from lessonbank.stores._calls import StoreCalls
from lessonbank.stores._records import encodable
from lessonbank.stores._streams import result

from . import (
    _health,
    _listing,
    _migrations,
    _purge,
    _queue,
    _read,
    _rebuild,
    _vectors,
    _words,
    _write,
)
from ._database import EVERY, Connection, Database, finished, first_line, limits_of, prepared, translated

if TYPE_CHECKING:
    from lessonbank.contracts.ports import ExperienceKey, Vectors

T = TypeVar("T")
R = TypeVar("R")


class PostgresStore(StoreCalls[Database]):
    """Keeps everything in the schema `lessonbank` of one database; see the ports for what it promises.

    All work is done in threads, so that it runs in any event loop, and after `fork`. No session keeps anything between
    two transactions: a pooler may stand before the server.
    """

    _reads, _writes, _lists, _queues = _read, _write, _listing, _queue
    _package = __name__

    def __init__(self, database: Database, /) -> None:
        self._database = database

    @classmethod
    async def open(cls, url: str, /, *, read_only: bool = False, partitions: int = _migrations.PARTITIONS) -> Self:
        """Open the bank in a database, and make its tables if they are not there yet.

        `read_only`: nothing is written, and every write raises `ReadOnly`. `partitions`: into how many tables those
        that hold records are divided, by their scope; only when they are made.

        Raises:
            UsageError: the address cannot be read.
            StoreUnavailable: the server cannot be reached, or the database has no pgvector.
            VersionMismatch: a newer release wrote it, a development version, or an earlier one and it is opened
                `read_only`; nothing was changed.
        """
        await to_thread.run_sync(partial(_prepare, url, read_only=read_only, partitions=partitions))
        return cls(Database(url, read_only=read_only))

    async def save_runs(
        self, trajectories: Sequence[Trajectory], /, *, scope: str, wait: float = IN_HAND
    ) -> Sequence[str]:
        """See `Records.save_runs`."""
        where, runs = check_scope(scope), tuple(trajectories)
        self._database.check_open()
        keep = partial(_write.keep, scope=where, runs=runs, wait=wait)
        new = await result(self._database.write_together(keep, scope=where, lock="shared")) if runs else []
        if again := [run for run in runs if run.submission and run.id not in new]:
            note = partial(_write.note_again, scope=where, runs=again, wait=wait)
            await result(self._database.write(note, scope=where, lock="shared"))
        return new

    async def experiences(self, by: ExperienceKey, values: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """See `Records.experiences`. One question and one answer."""
        where = check_scope(scope)
        parameters = {"scope": where, "values": list(map(encodable, values))}
        return _read.oldest_first(await result(self._database.ask(_read.looked_up(by), parameters, scope=where)))

    async def nearest(
        self,
        vector: Vectors,
        /,
        *,
        scope: str,
        space: str,
        limit: int,
        lessons: bool = False,
    ) -> Nearest:
        """See `Index.nearest`. In one transaction."""
        where, name = check_scope(scope), encodable(space)
        near = partial(_vectors.nearest, scope=where, space=name, limit=limit)

        def find(connection: Connection) -> tuple[Nearest, int | None]:
            matches = near(connection, vector)
            if not limit:
                return Nearest(), None
            missing, upto = _vectors.unindexed(connection, scope=where, space=name, limit=1, lessons=lessons)
            return Nearest(matches, not missing), upto

        nearest, upto = await self._find(where, find)
        await self._note(where, name, upto, lessons=lessons)
        return nearest

    async def search(self, query: str, /, *, scope: str, limit: int) -> Sequence[Match]:
        """See `Index.search`."""
        where = check_scope(scope)
        find = partial(_words.search, query=query, scope=where, limit=limit)
        return await self._find(where, find)

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        """See `Index.unindexed`."""
        where, name = check_scope(scope), encodable(space)
        find = partial(_vectors.unindexed, scope=where, space=name, limit=limit, lessons=lessons)
        pairs, upto = await self._find(where, find)
        await self._note(where, name, upto, lessons=lessons)
        return pairs

    async def _note(self, scope: str, space: str, upto: int | None, *, lessons: bool) -> None:
        if upto is not None and not self._database.read_only:
            note = partial(_vectors.note_checked, scope=scope, space=space, lessons=lessons)
            await result(self._database.write(note, scope=scope, lock="free"))

    async def save_recall(self, recall: Recall, /, *, returned: bool = False) -> bool:
        """See `Records.save_recall`."""
        plain, where = recall.model_copy(update={"lessons": ()}), check_scope(recall.scope)
        keep = _write.take_back if returned else _write.record
        is_saved = await result(
            self._database.write_together(
                lambda connection: keep(connection, plain), scope=where, lock="shared", waits=returned
            )
        )
        return is_saved if returned else True

    def journal(
        self, *, scope: str, since: int = 0, kinds: Collection[str] | None = None, naming: Collection[str] | None = None
    ) -> AsyncIterator[JournalEntry]:
        """See `Records.journal`."""
        where, first = check_scope(scope), min(max(since, 0), 1 << 62)
        values = where, first, sorted(kinds) if kinds is not None else None
        return self._stream(where, _read.JOURNAL, values, partial(_read.journal_entry, where, naming=naming))

    async def settings(self, prefix: str, /, *, exact: bool = False) -> Mapping[str, str]:
        """See `Records.settings`."""
        return dict(await result(self._database.ask(_read.settings_sql(exact=exact), encodable(prefix), scope="")))

    async def rebuild(self) -> None:
        """See `Care.rebuild`. Each scope in a transaction of its own; then every table is written anew."""
        for scope in await self._find(None, _read.scopes):
            await self._change(scope, _rebuild.rebuild, scope)
        written_anew = [f"VACUUM (FULL) lessonbank.{table}" for table in _purge.TABLES]
        await result(self._database.call(self._database.outside, *written_anew))
        await self.index_vectors()

    async def index_vectors(self) -> Sequence[str]:
        """Make the HNSW indexes that large scopes need; the statements. Writers of vectors wait meanwhile."""
        lacking = await self._find(None, _vectors.index_statements)
        await result(self._database.call(self._database.outside, *lacking))
        return lacking

    async def verify(self, *, tables: bool = True, records: bool = True) -> Health:
        """See `Care.verify`. Looks at every scope; with `records`, checks that what follows from them does."""
        storage = await self._find(None, _health.storage)
        if not tables:
            return Health(storage=storage)
        faults = list(await self._find(None, _health.missing_indexes))
        for scope in await self._find(None, _read.scopes):
            problems = _rebuild.problems if records else _rebuild.problems_outside
            faults.extend(await self._find(scope, problems, scope))
        return Health(faults, storage)

    async def backup(self, path: Path, /) -> None:
        """A server has its own: raises UsageError."""
        self._database.check_open()
        raise UsageError(
            f"a database is not copied to {str(path)[:80]!r}: use pg_basebackup or pg_dump, or `lessonbank backup`"
        )

    def _find(self, scope: str | None, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        return result(self._database.read(lambda c: work(c, *arguments), scope=EVERY if scope is None else scope))

    def _change(
        self, scope: str | None, work: Callable[..., T], /, *arguments: Any, shared: bool = False
    ) -> Awaitable[T]:
        where, lock = EVERY if scope is None else scope, "shared" if shared else "alone"
        return result(self._database.write(lambda c: work(c, *arguments), scope=where, lock=lock))

    def _apply(self, scope: str, work: Callable[[Connection], T], /) -> Awaitable[T]:
        def applied(connection: Connection) -> Callable[[], T]:
            answer = work(connection)
            return lambda: answer

        return result(self._database.write_together(applied, scope=scope))

    async def _sweep(self, scope: str, /) -> None:
        """Give the room of a scope's rows that are gone to others. Other scopes' tables are left alone."""
        statements = [f"VACUUM {table}" for table in await self._find(scope, _purge.tables_of, scope)]
        await result(self._database.call(self._database.outside, *statements))


def _check_address(url: str) -> None:
    """Refuse an address in which a part of the password stands for another part: an error would show it."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        parts = None
    # A host that begins with @ is a socket without a file.
    if parts is None or "@" in str(parts.get("host", ""))[1:] or _OTHER_THAN_PORTS.search(str(parts.get("port", ""))):
        raise UsageError(
            "the address of the database cannot be read: write postgresql://USER:PASSWORD@HOST:PORT/NAME, and in the "
            "password %40 for @, %2F for / and %25 for %"
        )


_OTHER_THAN_PORTS: Final = re.compile(r"[^0-9,]")


def _prepare(url: str, *, read_only: bool, partitions: int) -> None:
    """Reach the server once, so that what is wrong is said at once, and bring the tables to today's."""
    _check_address(url)
    try:
        connection = psycopg.connect(url, prepare_threshold=None, **limits_of(url))
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"cannot reach the database ({first_line(error)}): check the address and its server"
        ) from error
    try:
        prepared(connection)
        with translated(), finished(connection):
            at = _migrations.version(connection)
            _migrations.check(connection, at)
        if at < _migrations.NEWEST and read_only:
            raise VersionMismatch(
                f"the database is at step {at}, and this release reads step {_migrations.NEWEST}: open it for writing "
                "once"
            )
        if at < _migrations.NEWEST:
            _migrations.migrate(connection, partitions=partitions)
    finally:
        connection.close()

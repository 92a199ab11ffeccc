"""The store: one SQLite file, durable before a call returns, shared by any number of processes; or one in memory."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from anyio import to_thread

from lessonbank.contracts.ports import Health, Nearest
from lessonbank.contracts.records import JournalEntry, Match, Recall, Trajectory
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.errors import UsageError
from lessonbank.guard import check_scope
from lessonbank.stores._calls import StoreCalls
from lessonbank.stores._records import encodable
from lessonbank.stores._streams import result

from . import _listing, _queue, _read, _write
from ._database import Database
from ._in_memory import InMemory
from ._log import empty_log
from ._migrations import copies_of

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors

    from ._matrices import Matrices

T = TypeVar("T")
R = TypeVar("R")


class SqliteStore(StoreCalls[Database | InMemory]):
    """Keeps everything in one file, or in memory; see the ports for what it promises, `open` for how to get one.

    All work on the file is done in threads, one that writes and a few that read, so that a long write never keeps a
    read waiting, nor anything the event loop. Works in any thread or event loop, and after `fork`.
    """

    _reads, _writes, _lists, _queues = _read, _write, _listing, _queue
    _package = __name__

    def __init__(self, database: Database | InMemory, /) -> None:
        self._database = database

    @cached_property
    def _matrices(self) -> Matrices:
        """For a thread that reads: numpy is loaded where no event loop waits for it."""
        return self._load("_matrices").Matrices()

    @classmethod
    async def open(
        cls, path: str | os.PathLike[str], /, *, busy_timeout: float = 30.0, read_only: bool = False
    ) -> Self:
        """Open the bank file at `path`, made where there is none, for its owner alone; its folder must exist.

        `":memory:"` is a bank that ends with the store; nothing of it touches the disk. `busy_timeout`: seconds a write
        waits for other processes before it gives up. `read_only`: nothing is written, and every write raises
        `ReadOnly`.

        Raises:
            UsageError: no path, or a bank in memory that is opened `read_only`.
            StoreUnavailable: the file cannot be opened, or belongs to another program.
            VersionMismatch: a newer release wrote it; nothing was changed.
        """
        return cls(await to_thread.run_sync(_opened, path, busy_timeout, read_only))

    @classmethod
    def in_memory(cls) -> Self:
        """A new bank in memory; `open(":memory:")` makes it without holding up the event loop for a millisecond."""
        return cls(InMemory())

    async def save_runs(
        self, trajectories: Sequence[Trajectory], /, *, scope: str, wait: float = IN_HAND
    ) -> Sequence[str]:
        """See `Records.save_runs`."""
        where, runs = check_scope(scope), tuple(trajectories)
        if not runs:
            self._database.check_open()
            return []
        return await self._change(where, partial(_write.save_runs, wait=wait), where, runs)

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
        """See `Index.nearest`. One look at the file tells what is nearest, and whether anything has no vector."""
        where, name = check_scope(scope), encodable(space)

        def find(connection: sqlite3.Connection) -> Nearest:
            return self._matrices.nearest(connection, vector, scope=where, space=name, limit=limit, lessons=lessons)

        return await self._find(where, find)

    async def search(self, query: str, /, *, scope: str, limit: int) -> Sequence[Match]:
        """See `Index.search`."""
        where = check_scope(scope)

        def find(connection: sqlite3.Connection) -> Sequence[Match]:
            return self._load("_words").search(connection, query=query, scope=where, limit=limit)

        return await self._find(where, find)

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        """See `Index.unindexed`."""
        where, name = check_scope(scope), encodable(space)

        def find(connection: sqlite3.Connection) -> Sequence[tuple[str, str]]:
            return self._matrices.unindexed(connection, scope=where, space=name, limit=limit, lessons=lessons)

        return await self._find(where, find)

    async def save_recall(self, recall: Recall, /, *, returned: bool = False) -> bool:
        """See `Records.save_recall`."""
        where, plain = check_scope(recall.scope), recall.model_copy(update={"lessons": ()})
        if returned:
            return await self._change(where, _write.take_back, plain)
        await result(self._database.write(_write.record, plain, at_once=True))
        return True

    def journal(
        self, *, scope: str, since: int = 0, kinds: Collection[str] | None = None, naming: Collection[str] | None = None
    ) -> AsyncIterator[JournalEntry]:
        """See `Records.journal`."""
        where, first = check_scope(scope), min(max(since, 0), 1 << 32)
        values = where, first, json.dumps(sorted(kinds)) if kinds is not None else None
        return self._stream(where, _read.JOURNAL, values, partial(_read.journal_entry, where, naming=naming))

    async def rebuild(self) -> None:
        """See `Care.rebuild`. Also finishes a purge that was interrupted."""
        # A rebuild mends damaged vectors, which keep every other change out.
        rebuilding = self._load("_rebuild")
        await result(self._database.write(rebuilding.rebuild, at_once=True))
        if await self._find(None, rebuilding.unfinished):
            await self._sweep()

    async def verify(self, *, tables: bool = True, records: bool = True) -> Health:
        """See `Care.verify`. Reads the whole file; with `records`, checks that what follows from them does."""
        self._database.check_open()
        copies = await to_thread.run_sync(copies_of, self._database.path)
        storage = {"SQLite": sqlite3.sqlite_version} | {
            f"before format {format + 1}": f"{copy.name}: delete it when you need no way back; purges do not reach it"
            for format, copy in copies.items()
        }
        if not tables:
            return Health(storage=storage)
        verify = self._load("_verify")
        problems = await self._find(None, verify.problems if records else verify.problems_outside)
        if problems and problems[0].startswith(verify.SQLITE_SAYS):
            self._database.damaged(problems[0])
        return Health(problems, storage)

    async def backup(self, path: Path, /) -> None:
        """See `Care.backup`."""
        await self._find(None, self._load("_backup").backup, path)

    def _find(self, scope: str | None, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        return result(self._database.read(work, *arguments))

    def _change(
        self, scope: str | None, work: Callable[..., T], /, *arguments: Any, shared: bool = False
    ) -> Awaitable[T]:
        return result(self._database.write(work, *arguments))

    def _apply(self, scope: str, work: Callable[[Any], T], /) -> Awaitable[T]:
        return result(self._database.write(work))

    async def _sweep(self, scope: str = "", /) -> None:
        """Overwrite what was erased; else write the whole file again, which needs as much free space again."""
        purging = self._load("_purge")
        mark = await self._find(scope, purging.mark)
        await self._empty_log()
        is_zeroed = await self._find(scope, purging.is_zeroed)
        if not is_zeroed or not await result(self._database.overwrite()):
            await result(self._database.compact())
            await self._empty_log()
        await self._change(scope, purging.finished, mark)

    async def _empty_log(self) -> None:
        database = self._database
        await empty_log(lambda: result(database.checkpoint()), database.path, patience=database.patience)


def _opened(path: str | os.PathLike[str], busy_timeout: float, read_only: bool) -> Database | InMemory:
    if str(path) == ":memory:":
        if read_only:
            raise UsageError("a new bank in memory holds nothing to read: open it for writing, or name a file")
        return InMemory()
    database = Database(path, busy_timeout=busy_timeout, read_only=read_only)
    try:
        database.open()
    except BaseException:
        database.close()
        raise
    return database

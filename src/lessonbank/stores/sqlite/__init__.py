"""The store that lasts: one SQLite file, durable before a call returns, shared by any number of processes."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from lessonbank.stores._changes import check_settlement, lone_rollback
from lessonbank.stores._erasing import Erasing
from lessonbank.stores._records import checked_scope, dumped, encodable, loaded
from lessonbank.stores._vectors import unit
from lessonbank.types import (
    Change,
    Counts,
    Erasure,
    Experience,
    JournalEntry,
    Match,
    Recall,
    Rollback,
    Settle,
    Settlement,
    Trajectory,
)

from . import _purging, _ranking, _reading, _repair, _words, _writing
from ._database import Database
from ._rewinding import rewind
from ._rows import packed, unpacked

if TYPE_CHECKING:
    from lessonbank.protocols import Vectors

T = TypeVar("T")
R = TypeVar("R")

_READERS: Final = 8
"""Reads of one store that run at once, in one event loop."""
_PORTION: Final = 200
"""Records a scan fetches at a time."""


class SqliteStore:
    """Keeps everything in one file; see `Store` for what it promises, `open` for how to get one.

    All blocking work is done in threads of its own limits, one writing and a few reading, so that a long write
    never keeps a read waiting. Works in any thread or event loop, and after `fork`.
    """

    def __init__(self, database: Database, /) -> None:
        self._database = database
        self._matrices = _ranking.Matrices()
        self._reading: RunVar[anyio.CapacityLimiter] = RunVar("lessonbank_reading")
        self._writing: RunVar[anyio.CapacityLimiter] = RunVar("lessonbank_writing")

    @classmethod
    async def open(cls, path: str | os.PathLike[str], /, *, busy_timeout: float = 30.0) -> SqliteStore:
        """Open the bank file at `path`, made where there is none; its folder must exist.

        `busy_timeout`: seconds a write waits for other processes before it gives up.

        Raises:
            StoreUnavailable: the file cannot be opened, or belongs to another program.
            VersionMismatch: a newer release wrote it; nothing was changed.
        """
        return cls(await to_thread.run_sync(_opened, path, busy_timeout))

    async def keep(self, trajectories: Sequence[Trajectory], /, *, scope: str) -> Sequence[str]:
        """See `Store.keep`."""
        return await self._write(partial(_keep, self._database, checked_scope(scope), tuple(trajectories)))

    async def learned(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Collection[str]:
        """See `Store.learned`."""
        ids = tuple(trajectory_ids)
        return await self._read(lambda file: _reading.learned(file, checked_scope(scope), ids))

    async def holding(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Experience | None:
        """See `Store.holding`."""
        ids = tuple(trajectory_ids)
        return await self._read(lambda file: _reading.holding(file, checked_scope(scope), ids))

    async def pending(self, *, scope: str, limit: int | None = None) -> Sequence[Trajectory]:
        """See `Store.pending`."""
        bound = -1 if limit is None else max(limit, 0)
        return await self._in_thread(partial(_pending, self._database, checked_scope(scope), bound))

    async def trajectory(self, id: str, /, *, scope: str) -> Trajectory:
        """See `Store.trajectory`."""
        return await self._read(lambda file: _reading.trajectory(file, checked_scope(scope), id))

    async def apply(
        self,
        changes: Sequence[Change],
        /,
        *,
        scope: str,
        writer: str,
        vectors: Mapping[str, Vectors] | None = None,
        space: str | None = None,
        settlement: Settlement | None = None,
    ) -> Sequence[JournalEntry]:
        """See `Store.apply`."""
        check_settlement(settlement, scope=checked_scope(scope))
        if not (changes or vectors or settlement):
            self._database.check_open()
            return []
        entries = [*changes, *([Settle(settlement=settlement)] if settlement else [])]
        prepare = partial(
            _batch, entries, scope=scope, writer=encodable(writer), vectors=dict(vectors or {}), space=space
        )
        rollback = lone_rollback(changes, vectors, settlement)
        return await self._write(lambda: _applied(self._database, prepare(), rollback))

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """See `Store.get`."""
        return await self._read(lambda file: _reading.experience(file, checked_scope(scope), id))

    async def owner(self, item_id: str, /, *, scope: str) -> Experience:
        """See `Store.owner`."""
        return await self._read(lambda file: _reading.owner(file, checked_scope(scope), item_id))

    def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """See `Store.scan`. The snapshot is taken when the first experience is asked for."""
        return self._stream(_reading.SCAN, (checked_scope(scope),), lambda row: loaded(Experience, row[0]))

    async def nearest(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, exclude: Collection[str] = ()
    ) -> Sequence[Match]:
        """See `Store.nearest`."""
        find = partial(
            _ranking.nearest, scope=checked_scope(scope), space=encodable(space), limit=limit, exclude=exclude
        )
        query = unit(vector, what="the query")
        return await self._read(lambda file: find(file, self._matrices, query))

    async def search(self, query: str, /, *, scope: str, limit: int, exclude: Collection[str] = ()) -> Sequence[Match]:
        """See `Store.search`."""
        find = partial(_words.search, scope=checked_scope(scope), limit=limit, exclude=exclude)
        return await self._read(lambda file: find(file, query))

    async def unindexed(self, *, scope: str, space: str, limit: int) -> Sequence[tuple[str, str]]:
        """See `Store.unindexed`."""
        return await self._read(lambda file: _reading.unindexed(file, checked_scope(scope), encodable(space), limit))

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str) -> None:
        """See `Store.index`."""
        where = checked_scope(scope), dict(vectors), encodable(space)
        await self._change(lambda file: _writing.index(file, *where))

    async def drop_index(self, *, scope: str, space: str) -> None:
        """See `Store.drop_index`."""
        where = checked_scope(scope), encodable(space)
        await self._change(lambda file: _writing.drop_index(file, *where))

    async def record(self, recall: Recall, /) -> None:
        """See `Store.record`."""
        checked_scope(recall.scope)
        clean, text = dumped(recall.model_copy(update={"items": ()}))
        await self._change(lambda file: _writing.record(file, clean, text))

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """See `Store.recall`."""
        return await self._read(lambda file: _reading.recall(file, checked_scope(scope), id))

    def receipts(self, *, scope: str) -> AsyncIterator[Recall]:
        """See `Store.receipts`. One snapshot, taken when the first is asked for."""
        return self._stream(_reading.RECEIPTS, (checked_scope(scope),), lambda row: loaded(Recall, row[0]))

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """See `Store.settlement`."""
        return await self._read(lambda file: _reading.settlement(file, checked_scope(scope), recall_id))

    def journal(self, *, scope: str, since: int = 0) -> AsyncIterator[JournalEntry]:
        """See `Store.journal`."""
        values = (checked_scope(scope), since)
        return self._stream(_reading.JOURNAL, values, partial(_reading.journal_entry, scope))

    async def counts(self, *, scope: str) -> Counts:
        """See `Store.counts`."""
        return await self._read(lambda file: _reading.counts(file, checked_scope(scope)))

    async def scopes(self) -> Sequence[str]:
        """See `Store.scopes`."""
        return await self._read(_reading.scopes)

    async def setting(self, key: str, /) -> str | None:
        """See `Store.setting`."""
        return await self._read(lambda file: _reading.setting(file, encodable(key)))

    async def set_setting(self, key: str, value: str, /) -> None:
        """See `Store.set_setting`."""
        await self._change(lambda file: _writing.set_setting(file, encodable(key), encodable(value)))

    async def purge(self, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
        """See `Store.purge`. Writes the whole file anew, so it needs as much free space again."""
        where, by, why = checked_scope(scope), encodable(writer), encodable(reason)
        if what == "scope":
            return await self._erase(lambda file: _purging.purge_scope(file, where, by, why))
        erasing = Erasing(item=encodable(id)) if what == "item" else Erasing(trajectory=encodable(id))
        return await self._erase(lambda file: _purging.purge(file, where, erasing, by, why))

    async def rebuild(self) -> None:
        """See `Store.rebuild`. Also finishes a purge that was interrupted."""
        await self._change(_repair.rebuild)
        if await self._read(_repair.unfinished):
            await self._erase(lambda file: None)

    async def verify(self) -> Sequence[str]:
        """See `Store.verify`. Reads the whole file, and checks that what follows from the records does."""
        return await self._read(_repair.problems)

    async def close(self) -> None:
        """See `Store.close`. Waits for calls under way."""
        await to_thread.run_sync(self._database.close)

    async def _change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._write(lambda: self._database.write(work))

    async def _erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """A change after which nothing of what it took away is left in the file."""
        done = await self._change(work)
        await self._write(self._database.compact)
        await self._change(_purging.finished)
        return done

    async def _write(self, call: Callable[[], T]) -> T:
        return await to_thread.run_sync(call, limiter=_limiter(self._writing, 1))

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._in_thread(lambda: self._database.read(work))

    async def _in_thread(self, call: Callable[[], T]) -> T:
        return await to_thread.run_sync(call, limiter=_limiter(self._reading, _READERS))

    async def _stream(self, sql: str, values: Sequence[Any], parse: Callable[[Any], R]) -> AsyncIterator[R]:
        stream = await self._in_thread(lambda: self._database.stream(sql, values))
        try:
            while portion := await self._in_thread(lambda: [parse(row) for row in stream.take(_PORTION)]):
                for record in portion:
                    yield record
        finally:
            with anyio.CancelScope(shield=True):
                await self._in_thread(lambda: self._database.done(stream))


def _limiter(variable: RunVar[anyio.CapacityLimiter], size: int) -> anyio.CapacityLimiter:
    found = variable.get(None)
    if found is None:
        found = anyio.CapacityLimiter(size)
        variable.set(found)
    return found


def _opened(path: str | os.PathLike[str], busy_timeout: float) -> Database:
    database = Database(path, busy_timeout=busy_timeout)
    try:
        database.open()
    except BaseException:
        database.close()
        raise
    return database


def _keep(database: Database, scope: str, trajectories: Iterable[Trajectory]) -> list[str]:
    rows = [(clean.id, packed(text)) for clean, text in map(dumped, trajectories)]
    if not rows:
        database.check_open()
        return []
    return database.write(lambda file: _writing.keep(file, scope, rows))


def _pending(database: Database, scope: str, limit: int) -> list[Trajectory]:
    blobs = database.read(lambda file: _reading.pending(file, scope, limit))
    return [unpacked(blob) for blob in blobs]


def _batch(
    entries: Sequence[Change | Settle],
    *,
    scope: str,
    writer: str,
    vectors: Mapping[str, Vectors],
    space: str | None,
) -> _writing.Batch:
    clean = [dumped(entry) for entry in entries]
    return _writing.Batch(
        scope=scope,
        writer=writer,
        entries=clean,
        vectors=vectors,
        space=space if space is None else encodable(space),
    )


def _applied(database: Database, batch: _writing.Batch, rollback: Rollback | None) -> list[JournalEntry]:
    if rollback is not None:
        return database.write(lambda file: rewind(file, batch, rollback))
    return database.write(lambda file: _writing.apply(file, batch))

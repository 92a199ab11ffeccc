"""The store: one SQLite file, durable before a call returns, shared by any number of processes; or one in memory."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import anyio
from anyio import to_thread

from lessonbank.errors import UsageError
from lessonbank.guard import check_scope
from lessonbank.stores._changes import check_settlement, lone_rollback
from lessonbank.stores._erasure import check_erasures
from lessonbank.stores._importing import import_records
from lessonbank.stores._listing import Asked, wanted_states
from lessonbank.stores._packing import packed_records, unpacked
from lessonbank.stores._records import encodable, loaded
from lessonbank.stores._vectors import unit
from lessonbank.types import (
    Change,
    Claim,
    Counts,
    Erasure,
    Experience,
    Forgotten,
    JournalEntry,
    Json,
    Kind,
    Lesson,
    LessonState,
    Match,
    Outcome,
    Queue,
    Recall,
    Run,
    RunStatus,
    Settle,
    Settlement,
    Trajectory,
)
from lessonbank.types.queue import IN_HAND

from . import (
    _backup,
    _copying,
    _listing,
    _purge,
    _queue,
    _read,
    _rebuild,
    _vector_search,
    _verify,
    _word_search,
    _write,
)
from ._database import Database, Stream
from ._importing import Receiver
from ._in_memory import InMemory
from ._matrices import Matrices
from ._rollback import roll_back
from ._rows import experience_of

if TYPE_CHECKING:
    from lessonbank.protocols import Imported, Vectors
    from lessonbank.stores._copying import Row, Table

T = TypeVar("T")
R = TypeVar("R")

_FIRST: Final = 4
"""Records it fetches first: some look at one alone."""
_BATCH: Final = 64
"""Records a scan fetches at a time: to look through many more would take Python's collector milliseconds."""


class SqliteStore:
    """Keeps everything in one file, or in memory; see `Store` for what it promises, `open` for how to get one.

    All work on the file is done in threads, one that writes and a few that read, so that a long write never keeps a
    read waiting, nor anything the event loop. Works in any thread or event loop, and after `fork`.
    """

    def __init__(self, database: Database | InMemory, /) -> None:
        self._database = database
        self._matrices = Matrices()

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

    async def keep(self, trajectories: Sequence[Trajectory], /, *, scope: str, wait: float = IN_HAND) -> Sequence[str]:
        """See `Store.keep`."""
        where, runs = check_scope(scope), tuple(trajectories)
        self._database.check_open()
        return await self._write(partial(_write.keep, wait=wait), where, runs) if runs else []

    async def learned(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Collection[str]:
        """See `Store.learned`."""
        return await self._read(_read.learned, check_scope(scope), tuple(trajectory_ids))

    async def holding(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Experience | None:
        """See `Store.holding`."""
        return await self._read(_read.holding, check_scope(scope), tuple(trajectory_ids))

    async def pending(self, *, scope: str, limit: int | None = None, after: str | None = None) -> Sequence[Trajectory]:
        """See `Store.pending`."""
        where, bound = check_scope(scope), -1 if limit is None else max(limit, 0)
        return await self._read(_listing.pending, where, bound, after)

    async def claim(
        self,
        *,
        worker: str,
        limit: int,
        seconds: float,
        scope: str | None = None,
        exclusive: bool = False,
        anyway: bool = False,
    ) -> Sequence[Claim]:
        """See `Store.claim`."""
        where, by = None if scope is None else check_scope(scope), encodable(worker)
        take = partial(_queue.claim, worker=by, limit=limit, seconds=seconds, exclusive=exclusive, anyway=anyway)
        return await self._write(take, where)

    async def extend(self, ids: Collection[str], /, *, scope: str, worker: str, seconds: float) -> Collection[str]:
        """See `Store.extend`."""
        longer = partial(_queue.extend, worker=encodable(worker), seconds=seconds)
        return await self._write(longer, check_scope(scope), tuple(ids))

    async def release(
        self, id: str, /, *, scope: str, worker: str, error: str | None = None, wait: float | None = 0.0
    ) -> bool:
        """See `Store.release`."""
        why = None if error is None else encodable(error)
        give = partial(_queue.release, worker=encodable(worker), error=why, wait=wait)
        return await self._write(give, check_scope(scope), id)

    async def queue(self, *, scope: str | None = None) -> Queue:
        """See `Store.queue`."""
        return await self._read(_queue.queue, None if scope is None else check_scope(scope))

    async def trajectory(self, id: str, /, *, scope: str) -> Trajectory:
        """See `Store.trajectory`."""
        return await self._read(_read.trajectory, check_scope(scope), id)

    async def get_run(self, id: str, /, *, scope: str) -> Run:
        """See `Store.get_run`."""
        return await self._read(_listing.run, check_scope(scope), id)

    async def list_runs(
        self,
        *,
        scope: str,
        outcome: Outcome | None = None,
        status: RunStatus | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        before: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Run]:
        """See `Store.list_runs`."""
        asked = Asked(check_scope(scope), text, metadata, before, limit, after)
        return await self._read(partial(_listing.runs, outcome=outcome, status=status), asked)

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
        unlearned: Collection[str] = (),
        unchanged: Sequence[Experience] = (),
        one_wording: bool = False,
    ) -> Sequence[JournalEntry]:
        """See `Store.apply`."""
        check_settlement(settlement, scope=check_scope(scope))
        if not (changes or vectors or settlement):
            self._database.check_open()
            return []
        entries = [*changes, *([Settle(settlement=settlement)] if settlement else [])]
        rollback = lone_rollback(changes, vectors, settlement)
        kept = encodable(writer), None if space is None else encodable(space)
        placed, settled, decided_upon = dict(vectors or {}), tuple(unlearned), tuple(unchanged)

        def write(connection: sqlite3.Connection) -> Sequence[JournalEntry]:
            batch = _write.Batch(
                scope, kept[0], packed_records(entries), placed, kept[1], settled, decided_upon, one_wording
            )
            return _write.apply(connection, batch) if rollback is None else roll_back(connection, batch, rollback)

        return await self._write(write)

    async def import_records(
        self,
        portions: Callable[[], Iterable[Imported]],
        /,
        *,
        scope: str,
        writer: str,
        approved_by: str | None = None,
        one_wording: bool = False,
    ) -> int:
        """See `Store.import_records`. One transaction: other writers wait, readers do not."""
        where, by = check_scope(scope), encodable(approved_by) if approved_by else None
        told = portions, where, encodable(writer), by, one_wording

        def write(connection: sqlite3.Connection) -> int:
            return import_records(Receiver(connection, where), *told)

        return await self._write(write)

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """See `Store.get`."""
        return await self._read(_read.experience, check_scope(scope), id)

    async def owner(self, lesson_id: str, /, *, scope: str) -> Experience:
        """See `Store.owner`."""
        return await self._read(_read.owner, check_scope(scope), lesson_id)

    async def worded(self, wordings: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """See `Store.worded`."""
        return await self._read(_read.worded, check_scope(scope), tuple(wordings))

    async def repeating(self, lesson_id: str, /, *, scope: str) -> Sequence[Experience]:
        """See `Store.repeating`."""
        return await self._read(_read.repeating, check_scope(scope), lesson_id)

    async def list_lessons(
        self,
        *,
        scope: str,
        state: LessonState | None = None,
        kind: Kind | None = None,
        writer: str | None = None,
        topics: Collection[str] | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        retired: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Lesson]:
        """See `Store.list_lessons`."""
        asked = Asked(check_scope(scope), text, metadata, None, limit, after)
        states = wanted_states(state, retired=retired)
        listed = partial(_listing.lessons, states=states, kind=kind, writer=writer, topics=topics)
        return await self._read(listed, asked)

    def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """See `Store.scan`. The snapshot is taken when the first experience is asked for."""
        return self._stream(_read.SCAN, (check_scope(scope),), lambda row: experience_of(*row))

    async def nearest(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, exclude: Collection[str] = ()
    ) -> Sequence[Match]:
        """See `Store.nearest`."""
        find = partial(
            _vector_search.nearest, scope=check_scope(scope), space=encodable(space), limit=limit, exclude=exclude
        )
        return await self._rank(find, vector)

    async def nearest_unless_missing(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[Match] | None:
        """`nearest`, and whether `unindexed` names anything (then `None`), of one moment: with one look at the file."""
        find = partial(
            _vector_search.nearest_unless_missing,
            scope=check_scope(scope),
            space=encodable(space),
            limit=limit,
            lessons=lessons,
        )
        return await self._rank(find, vector)

    async def search(self, query: str, /, *, scope: str, limit: int, exclude: Collection[str] = ()) -> Sequence[Match]:
        """See `Store.search`."""
        find = partial(_word_search.search, query=query, scope=check_scope(scope), limit=limit, exclude=exclude)
        return await self._read(find)

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        """See `Store.unindexed`."""
        find = partial(
            _vector_search.unindexed, scope=check_scope(scope), space=encodable(space), limit=limit, lessons=lessons
        )
        return await self._read(find, self._matrices)

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str) -> None:
        """See `Store.index`."""
        await self._write(_write.index, check_scope(scope), dict(vectors), encodable(space))

    async def drop_index(self, *, scope: str, space: str) -> None:
        """See `Store.drop_index`."""
        await self._write(_write.drop_index, check_scope(scope), encodable(space))

    async def record(self, recall: Recall, /, *, returned: bool = False) -> bool:
        """See `Store.record`."""
        check_scope(recall.scope)
        plain = recall.model_copy(update={"lessons": ()})
        if returned:
            return await self._write(_write.take_back, plain)
        await _result(self._database.write(_write.record, plain, at_once=True))
        return True

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """See `Store.recall`."""
        return await self._read(_read.recall, check_scope(scope), id)

    async def list_recalls(
        self,
        *,
        scope: str,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        lesson: str | None = None,
        settled: bool | None = None,
        before: datetime | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Recall]:
        """See `Store.list_recalls`."""
        asked = Asked(check_scope(scope), text, metadata, before, limit, after)
        return await self._read(partial(_listing.recalls, lesson=lesson, settled=settled), asked)

    def receipts(self, *, scope: str, settled: bool | None = None) -> AsyncIterator[Recall]:
        """See `Store.receipts`. One snapshot, taken when the first is asked for."""
        values = (check_scope(scope), settled)
        return self._stream(_read.RECEIPTS, values, lambda row: loaded(Recall, unpacked(row[0])))

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """See `Store.settlement`."""
        return await self._read(_read.settlement, check_scope(scope), recall_id)

    def journal(
        self,
        *,
        scope: str,
        since: int = 0,
        kinds: Collection[str] | None = None,
        naming: Collection[str] | None = None,
    ) -> AsyncIterator[JournalEntry]:
        """See `Store.journal`."""
        values = (
            check_scope(scope),
            min(max(since, 0), 1 << 32),
            json.dumps(sorted(kinds)) if kinds is not None else None,
        )
        return self._stream(_read.JOURNAL, values, partial(_read.journal_entry, scope, naming=naming))

    async def counts(self, *, scope: str) -> Counts:
        """See `Store.counts`."""
        return await self._read(_read.counts, check_scope(scope))

    async def scopes(self) -> Sequence[str]:
        """See `Store.scopes`."""
        return await self._read(_read.scopes)

    async def setting(self, key: str, /) -> str | None:
        """See `Store.setting`."""
        return await self._read(_read.setting, encodable(key))

    async def settings(self, prefix: str, /) -> Mapping[str, str]:
        """See `Store.settings`."""
        return await self._read(_read.settings, encodable(prefix))

    async def set_setting(self, key: str, value: str | None, /) -> None:
        """See `Store.set_setting`."""
        await self._write(_write.set_setting, encodable(key), value and encodable(value))

    async def purge(self, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
        """See `Store.purge`. Writes the whole file again, so it needs as much free space again."""
        where, by, why = check_scope(scope), encodable(writer), encodable(reason)
        if what == "scope":
            return await self._erase(_purge.purge_scope, where, by, why)
        return (await self._erase(_purge.purge, where, [(what, encodable(id))], by, why))[0]

    async def purge_many(
        self, these: Sequence[tuple[Erasure, str]], /, *, scope: str, writer: str, reason: str
    ) -> Sequence[JournalEntry]:
        """See `Store.purge_many`."""
        where, by, why = check_scope(scope), encodable(writer), encodable(reason)
        erased = [(what, encodable(id)) for what, id in check_erasures(these)]
        return await self._erase(_purge.purge, where, erased, by, why) if erased else []

    async def forget(self, *, scope: str, before: datetime, writer: str) -> Forgotten:
        """See `Store.forget`. Writes the whole file again if anything was erased."""
        where, by = check_scope(scope), encodable(writer)
        told = await self._write(_purge.forget_old, where, before, by)
        if told.runs or told.recalls:
            await self._erase(_purge.mark)
        return told

    async def rebuild(self) -> None:
        """See `Store.rebuild`. Also finishes a purge that was interrupted."""
        # A rebuild mends damaged vectors, which keep every other change out.
        await _result(self._database.write(_rebuild.rebuild, at_once=True))
        if await self._read(_rebuild.unfinished):
            await self._erase(_purge.mark)

    async def verify(self, *, records: bool = True) -> Sequence[str]:
        """See `Store.verify`. Reads the whole file; with `records`, checks that what follows from them does."""
        found = await self._read(_verify.problems if records else _verify.problems_outside)
        if found and found[0].startswith(_verify.SQLITE_SAYS):
            self._database.damaged(found[0])
        return found

    async def storage(self) -> Mapping[str, str]:
        """See `Store.storage`."""
        self._database.check_open()
        return {"SQLite": sqlite3.sqlite_version}

    async def backup(self, path: Path, /) -> None:
        """See `Store.backup`."""
        await self._read(_backup.backup, path)

    async def read_rows(self, table: Table, /, *, scope: str, after: int, limit: int) -> Sequence[Row]:
        """See `Copyable.read_rows`."""
        return await self._read(_copying.read_rows, check_scope(scope), table, after, limit)

    async def write_rows(self, table: Table, rows: Sequence[Row], /, *, scope: str) -> None:
        """See `Copyable.write_rows`."""
        await self._write(_copying.write_rows, check_scope(scope), table, rows)

    async def finish_copy(self, *, scope: str) -> None:
        """See `Copyable.finish_copy`."""
        await self._write(_copying.finish_copy, check_scope(scope))

    async def close(self) -> None:
        """See `Store.close`. Waits for calls under way."""
        await to_thread.run_sync(self._database.close)

    async def _erase(self, work: Callable[..., T], *arguments: Any) -> T:
        """A change after which nothing of what it took away is left in the file."""

        def erased(connection: sqlite3.Connection) -> tuple[T, str | None]:
            return work(connection, *arguments), _purge.mark(connection)

        done, mark = await self._write(erased)
        await _result(self._database.compact())
        await self._write(_purge.finished, mark)
        return done

    def _write(self, work: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        """What `work` returns, once all it wrote is on disk; it is called with a connection before its `arguments`."""
        return _result(self._database.write(work, *arguments))

    def _read(self, work: Callable[..., T], *arguments: Any) -> Awaitable[T]:
        """What `work` finds in one snapshot; it is called with a connection before its `arguments`."""
        return _result(self._database.read(work, *arguments))

    async def _rank(self, find: Callable[..., T], vector: Vectors) -> T:
        """What is found with a matrix."""
        return await self._read(partial(find, matrices=self._matrices, query=unit(vector, what="the query")))

    async def _stream(self, sql: str, values: Sequence[Any], parse: Callable[[Any], R | None]) -> AsyncIterator[R]:
        opening = self._database.call(lambda: self._batch(self._database.stream(sql, values), _FIRST, parse))
        try:
            batch, stream = await _result(opening)
        except BaseException:
            # Whoever asked is gone; a snapshot that nobody closes would keep the log from ever being emptied.
            opening.add_done_callback(self._abandon)
            raise
        size = _FIRST
        try:
            while True:
                for record in batch:
                    if record is not None:
                        yield record
                if stream is None:
                    return
                size = min(8 * size, _BATCH)
                batch, stream = await _result(self._database.call(self._batch, stream, size, parse))
        finally:
            if stream is not None:
                with anyio.CancelScope(shield=True):
                    await to_thread.run_sync(self._database.done, stream)

    def _batch(self, stream: Stream, size: int, parse: Callable[[Any], R]) -> tuple[list[R], Stream | None]:
        """The next records of a stream, and the stream while there may be more: the end gives its snapshot back."""
        there_may_be_more = False
        try:
            rows = stream.take(size)
            batch = list(map(parse, rows))
            there_may_be_more = len(rows) == size
        finally:
            if not there_may_be_more:
                self._database.done(stream)
        return batch, stream if there_may_be_more else None

    def _abandon(self, opening: Future[tuple[list[Any], Stream | None]]) -> None:
        stream = None if opening.cancelled() or opening.exception() else opening.result()[1]
        if stream is not None:
            self._database.done(stream)


def _result(future: Future[T]) -> Awaitable[T]:
    """What a thread returns, to be waited for in whatever event loop this is."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return to_thread.run_sync(future.result)
    return asyncio.wrap_future(future)


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

"""The store for many machines: a PostgreSQL database, each scope for itself, every call one transaction."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import anyio
import psycopg
from anyio import to_thread
from psycopg.conninfo import conninfo_to_dict

from lessonbank.errors import StoreUnavailable, UsageError
from lessonbank.guard import check_scope
from lessonbank.stores._changes import check_settlement, lone_rollback
from lessonbank.stores._entries import Batch
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
    _copying,
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
from ._database import EVERY, Connection, Database, Lock, Stream, finished, prepared, said, translated
from ._importing import Receiver
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
_PATIENCE: Final = 10
"""Seconds until a server that does not answer counts as absent."""


class PostgresStore:
    """Keeps everything in the schema `lessonbank` of one database; see `Store` for what it promises.

    All work is done in threads, so that it runs in any event loop, and after `fork`. No session keeps anything between
    two transactions: a pooler may stand before the server.
    """

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
            VersionMismatch: a newer release wrote it; nothing was changed.
        """
        await to_thread.run_sync(partial(_prepare, url, read_only=read_only, partitions=partitions))
        return cls(Database(url, read_only=read_only))

    async def keep(self, trajectories: Sequence[Trajectory], /, *, scope: str, wait: float = IN_HAND) -> Sequence[str]:
        """See `Store.keep`."""
        where, runs = check_scope(scope), tuple(trajectories)
        self._database.check_open()
        keep = partial(_write.keep, scope=where, runs=runs, wait=wait)
        return await _result(self._database.write_together(keep, scope=where, lock="shared")) if runs else []

    async def learned(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Collection[str]:
        """See `Store.learned`."""
        where, ids = check_scope(scope), tuple(trajectory_ids)
        asked = self._database.ask(_read.LEARNED, where, list(map(encodable, ids)), scope=where)
        return _read.learned_of(ids, await _result(asked))

    async def holding(self, trajectory_ids: Sequence[str], /, *, scope: str) -> Experience | None:
        """See `Store.holding`."""
        where = check_scope(scope)
        told = {"scope": where, "ids": list(map(encodable, trajectory_ids))}
        return _read.newest(await _result(self._database.ask(_read.HOLDING, told, scope=where)))

    async def pending(self, *, scope: str, limit: int | None = None, after: str | None = None) -> Sequence[Trajectory]:
        """See `Store.pending`."""
        where, bound = check_scope(scope), None if limit is None else max(limit, 0)
        return await self._read(where, _listing.pending, bound, after)

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
        return await _result(self._database.write(lambda c: take(c, where), scope=where or EVERY, lock="shared"))

    async def extend(self, ids: Collection[str], /, *, scope: str, worker: str, seconds: float) -> Collection[str]:
        """See `Store.extend`."""
        longer = partial(_queue.extend, worker=encodable(worker), seconds=seconds)
        return await self._write(check_scope(scope), longer, tuple(ids), lock="shared")

    async def release(
        self, id: str, /, *, scope: str, worker: str, error: str | None = None, wait: float | None = 0.0
    ) -> bool:
        """See `Store.release`."""
        why = None if error is None else encodable(error)
        give = partial(_queue.release, worker=encodable(worker), error=why, wait=wait)
        return await self._write(check_scope(scope), give, id, lock="shared")

    async def queue(self, *, scope: str | None = None) -> Queue:
        """See `Store.queue`."""
        where = None if scope is None else check_scope(scope)
        return await self._find(where or EVERY, lambda connection: _queue.queue(connection, where))

    async def trajectory(self, id: str, /, *, scope: str) -> Trajectory:
        """See `Store.trajectory`."""
        return await self._read(check_scope(scope), _read.trajectory, id)

    async def get_run(self, id: str, /, *, scope: str) -> Run:
        """See `Store.get_run`."""
        return await self._read(check_scope(scope), _listing.run, id)

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
        return await self._find(scope, lambda c: _listing.runs(c, asked, outcome=outcome, status=status))

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

        def write(connection: Connection) -> Callable[[], Sequence[JournalEntry]]:
            batch = Batch(scope, kept[0], packed_records(entries), placed, kept[1], settled, decided_upon, one_wording)
            told = _write.apply(connection, batch) if rollback is None else roll_back(connection, batch, rollback)
            return lambda: told

        return await _result(self._database.write_together(write, scope=scope))

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
        write = self._database.write(lambda connection: import_records(Receiver(connection, where), *told), scope=where)
        return await _result(write)

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """See `Store.get`."""
        return await self._read(check_scope(scope), _read.experience, id)

    async def owner(self, lesson_id: str, /, *, scope: str) -> Experience:
        """See `Store.owner`."""
        return await self._read(check_scope(scope), _read.owner, lesson_id)

    async def worded(self, wordings: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """See `Store.worded`."""
        where = check_scope(scope)
        found = await _result(
            self._database.ask(_read.WORDED, {"scope": where, "wordings": list(wordings)}, scope=where)
        )
        return [experience_of(record) for _, record in sorted(found)]

    async def repeating(self, lesson_id: str, /, *, scope: str) -> Sequence[Experience]:
        """See `Store.repeating`."""
        return await self._read(check_scope(scope), _read.repeating, (lesson_id,))

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
        return await self._find(scope, lambda connection: listed(connection, asked))

    def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """See `Store.scan`. The snapshot is taken when the first experience is asked for."""
        return self._stream(check_scope(scope), _read.SCAN, (scope,), lambda row: experience_of(*row))

    async def nearest(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, exclude: Collection[str] = ()
    ) -> Sequence[Match]:
        """See `Store.nearest`."""
        row, where = unit(vector, what="the query"), check_scope(scope)
        find = partial(_vectors.nearest, scope=where, space=encodable(space), limit=limit, exclude=tuple(exclude))
        return await self._find(where, lambda connection: find(connection, row))

    async def nearest_unless_missing(
        self, vector: Vectors, /, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[Match] | None:
        """`nearest`, and whether `unindexed` names anything (then `None`), of one moment: in one transaction."""
        row, where, name = unit(vector, what="the query"), check_scope(scope), encodable(space)

        def find(connection: Connection) -> tuple[Sequence[Match] | None, int | None]:
            missing, upto = _vectors.unindexed(connection, scope=where, space=name, limit=1, lessons=lessons)
            found = None if missing else _vectors.nearest(connection, row, scope=where, space=name, limit=limit)
            return found, upto

        found, upto = await self._find(where, find)
        await self._note(where, name, upto, lessons=lessons)
        return found

    async def search(self, query: str, /, *, scope: str, limit: int, exclude: Collection[str] = ()) -> Sequence[Match]:
        """See `Store.search`."""
        find = partial(_words.search, query=query, scope=check_scope(scope), limit=limit, exclude=tuple(exclude))
        return await self._find(scope, find)

    async def unindexed(
        self, *, scope: str, space: str, limit: int, lessons: bool = False
    ) -> Sequence[tuple[str, str]]:
        """See `Store.unindexed`."""
        where, name = check_scope(scope), encodable(space)
        find = partial(_vectors.unindexed, scope=where, space=name, limit=limit, lessons=lessons)
        found, upto = await self._find(where, find)
        await self._note(where, name, upto, lessons=lessons)
        return found

    async def _note(self, scope: str, space: str, upto: int | None, *, lessons: bool) -> None:
        if upto is not None and not self._database.read_only:
            note = partial(_vectors.note_checked, scope=scope, space=space, lessons=lessons)
            await _result(self._database.write(note, scope=scope))

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str) -> None:
        """See `Store.index`."""
        where, placed, name = check_scope(scope), dict(vectors), encodable(space)
        self._database.check_open()
        if placed:
            place = partial(_vectors.place, numbers={})
            await _result(self._database.write(lambda c: place(c, where, placed, name), scope=where))

    async def drop_index(self, *, scope: str, space: str) -> None:
        """See `Store.drop_index`."""
        await self._write(check_scope(scope), _vectors.drop, encodable(space))

    async def record(self, recall: Recall, /, *, returned: bool = False) -> bool:
        """See `Store.record`."""
        plain, where = recall.model_copy(update={"lessons": ()}), check_scope(recall.scope)
        keep = _write.take_back if returned else _write.record
        kept = await _result(
            self._database.write_together(
                lambda connection: keep(connection, plain), scope=where, lock="shared", waits=returned
            )
        )
        return kept if returned else True

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """See `Store.recall`."""
        return await self._read(check_scope(scope), _read.recall, id)

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
        return await self._find(scope, lambda c: _listing.recalls(c, asked, lesson=lesson, settled=settled))

    def receipts(self, *, scope: str, settled: bool | None = None) -> AsyncIterator[Recall]:
        """See `Store.receipts`. One snapshot, taken when the first is asked for."""
        where = check_scope(scope)
        return self._stream(where, _read.RECEIPTS, (where, settled), lambda row: loaded(Recall, unpacked(row[0])))

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """See `Store.settlement`."""
        return await self._read(check_scope(scope), _read.settlement, recall_id)

    def journal(
        self,
        *,
        scope: str,
        since: int = 0,
        kinds: Collection[str] | None = None,
        naming: Collection[str] | None = None,
    ) -> AsyncIterator[JournalEntry]:
        """See `Store.journal`."""
        where, first = check_scope(scope), min(max(since, 0), 1 << 62)
        values = where, first, sorted(kinds) if kinds is not None else None
        return self._stream(where, _read.JOURNAL, values, partial(_read.journal_entry, where, naming=naming))

    async def counts(self, *, scope: str) -> Counts:
        """See `Store.counts`."""
        return await self._read(check_scope(scope), _read.counts)

    async def scopes(self) -> Sequence[str]:
        """See `Store.scopes`."""
        return await self._find(EVERY, _read.scopes)

    async def setting(self, key: str, /) -> str | None:
        """See `Store.setting`."""
        return await _result(self._database.look(lambda connection: _read.setting(connection, encodable(key))))

    async def settings(self, prefix: str, /) -> Mapping[str, str]:
        """See `Store.settings`."""
        return await self._find("", lambda connection: _read.settings(connection, encodable(prefix)))

    async def set_setting(self, key: str, value: str | None, /) -> None:
        """See `Store.set_setting`."""
        kept = encodable(key), value and encodable(value)
        await _result(self._database.write(lambda connection: _write.set_setting(connection, *kept), lock="shared"))

    async def purge(self, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
        """See `Store.purge`. What was erased is gone for every statement; see the guide for its bytes on disk."""
        where, by, why = check_scope(scope), encodable(writer), encodable(reason)
        if what == "scope":
            told = await self._write(where, _purge.purge_scope, by, why)
        else:
            told = (await self._write(where, _purge.purge, [(what, encodable(id))], by, why))[0]
        await self._sweep(where)
        return told

    async def purge_many(
        self, these: Sequence[tuple[Erasure, str]], /, *, scope: str, writer: str, reason: str
    ) -> Sequence[JournalEntry]:
        """See `Store.purge_many`."""
        where, by, why = check_scope(scope), encodable(writer), encodable(reason)
        erased = [(what, encodable(id)) for what, id in check_erasures(these)]
        if not erased:
            return []
        told = await self._write(where, _purge.purge, erased, by, why)
        await self._sweep(where)
        return told

    async def forget(self, *, scope: str, before: datetime, writer: str) -> Forgotten:
        """See `Store.forget`."""
        where = check_scope(scope)
        told = await self._write(where, _purge.forget_old, before, encodable(writer))
        if told.runs or told.recalls:
            await self._sweep(where)
        return told

    async def rebuild(self) -> None:
        """See `Store.rebuild`. Each scope in a transaction of its own; then every table is written anew."""
        for scope in await self.scopes():
            await self._write(scope, _rebuild.rebuild)
        written_anew = [f"VACUUM (FULL) lessonbank.{table}" for table in _purge.TABLES]
        await _result(self._database.call(self._database.outside, *written_anew))
        await self.index_vectors()

    async def index_vectors(self) -> Sequence[str]:
        """Make the HNSW indexes that large scopes need; the statements. Writers of vectors wait meanwhile."""
        lacking = await self._find(EVERY, _vectors.index_statements)
        await _result(self._database.call(self._database.outside, *lacking))
        return lacking

    async def verify(self, *, records: bool = True) -> Sequence[str]:
        """See `Store.verify`. Looks at every scope; with `records`, checks that what follows from them does."""
        found = list(await self._find(EVERY, _health.missing_indexes))
        for scope in await self.scopes():
            found.extend(await self._read(scope, _rebuild.problems if records else _rebuild.problems_outside))
        return found

    async def storage(self) -> Mapping[str, str]:
        """See `Store.storage`."""
        return await self._find(EVERY, _health.storage)

    async def backup(self, path: Path, /) -> None:
        """A server has its own: raises UsageError."""
        self._database.check_open()
        raise UsageError(
            f"a database is not copied to {str(path)[:80]!r}: use pg_basebackup or pg_dump, or `lessonbank export`"
        )

    async def read_rows(self, table: Table, /, *, scope: str, after: int, limit: int) -> Sequence[Row]:
        """See `Copyable.read_rows`."""
        return await self._read(check_scope(scope), _copying.read_rows, table, after, limit)

    async def write_rows(self, table: Table, rows: Sequence[Row], /, *, scope: str) -> None:
        """See `Copyable.write_rows`."""
        await self._write(check_scope(scope), _copying.write_rows, table, rows)

    async def finish_copy(self, *, scope: str) -> None:
        """See `Copyable.finish_copy`."""
        await self._write(check_scope(scope), _copying.finish_copy)

    async def close(self) -> None:
        """See `Store.close`. Waits for calls under way."""
        await to_thread.run_sync(self._database.close)

    async def _sweep(self, scope: str) -> None:
        """Give the room of a scope's rows that are gone to others. Other scopes' tables are left alone."""
        statements = [f"VACUUM {table}" for table in await self._read(scope, _purge.tables_of)]
        await _result(self._database.call(self._database.outside, *statements))

    async def _write(self, scope: str, work: Callable[..., T], *arguments: Any, lock: Lock = "alone") -> T:
        """What `work` returns, once all it wrote is on disk; it is called with a connection and the scope first."""
        return await _result(self._database.write(lambda c: work(c, scope, *arguments), scope=scope, lock=lock))

    async def _read(self, scope: str, work: Callable[..., T], *arguments: Any) -> T:
        """What `work` finds in one snapshot; it is called with a connection and the scope before its `arguments`."""
        return await _result(self._database.read(lambda c: work(c, scope, *arguments), scope=scope))

    async def _find(self, scope: str, find: Callable[[Connection], T]) -> T:
        """What is found in one snapshot."""
        return await _result(self._database.read(find, scope=scope))

    async def _stream(
        self, scope: str, sql: str, values: Sequence[Any], parse: Callable[[Any], R | None]
    ) -> AsyncIterator[R]:
        call, database = self._database.call, self._database
        opening = call(database.stream, sql, values, scope)
        try:
            stream = await _result(opening)
        except BaseException:
            # Whoever asked is gone; a snapshot that nobody closes would hold its connection for ever.
            opening.add_done_callback(self._abandon)
            raise

        def parsed(count: int) -> list[R | None]:
            return list(map(parse, database.take(stream, count)))

        size = _FIRST
        try:
            while batch := await _result(call(parsed, size)):
                for record in batch:
                    if record is not None:
                        yield record
                size = min(8 * size, _BATCH)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(database.done, stream)

    def _abandon(self, opening: Future[Stream]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._database.done(opening.result())


async def _result(future: Future[T]) -> T:
    """What a thread returns, waited for in whatever event loop this is."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return await to_thread.run_sync(future.result)
    return await asyncio.wrap_future(future)


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
        connection = psycopg.connect(url, connect_timeout=_PATIENCE, prepare_threshold=None)
    except psycopg.Error as error:
        raise StoreUnavailable(
            f"cannot reach the database ({said(error)}): check the address and its server"
        ) from error
    try:
        prepared(connection)
        with translated(), finished(connection):
            at = _migrations.version(connection)
            _migrations.check(connection, at)
        if at < _migrations.NEWEST and not read_only:
            _migrations.migrate(connection, partitions=partitions)
    finally:
        connection.close()

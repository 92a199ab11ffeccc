"""The calls that every store with tables answers alike: it checks the arguments, and its own functions do the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from anyio import to_thread

from lessonbank.contracts.records import (
    Change,
    Claim,
    Counts,
    Erasure,
    Experience,
    JournalEntry,
    Lesson,
    QueueStatus,
    Rollback,
    Run,
    Settle,
    Settlement,
    Trajectory,
)
from lessonbank.errors import UsageError
from lessonbank.guard import check_scope

from ._entries import Batch
from ._erasure import checked_erasures
from ._importing import import_records
from ._records import encodable, microseconds
from ._streams import Connections, streamed
from ._texts import records_with_sums

if TYPE_CHECKING:
    from lessonbank.contracts.ports import (
        ExperienceKey,
        Imported,
        LessonFilter,
        RecallFilter,
        RunFilter,
        SavedRecall,
        Vectors,
    )

    from ._copying import Row, Table

T = TypeVar("T")
R = TypeVar("R")

D = TypeVar("D", bound=Connections)


class StoreCalls(Generic[D]):
    """One half of a store; see `Records`, `Index`, `Queue` and `Care` for what it promises.

    The other half says how work is done: `work` is called with a connection before its `arguments`, in a thread.
    """

    _database: D

    _reads: ClassVar[ModuleType]
    _lists: ClassVar[ModuleType]
    _queues: ClassVar[ModuleType]
    _writes: ClassVar[ModuleType]
    """The modules whose functions do the work."""
    _package: ClassVar[str]
    """Where there are more of them."""

    def _load(self, name: str, /) -> ModuleType:
        """One of `_package`, for calls that few programs make: it is loaded with the first of them."""
        return import_module(f"{self._package}.{name}")

    def _find(self, scope: str | None, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        """What `work` finds in one snapshot; `scope` is what it looks at, `None` for all of them."""
        raise NotImplementedError

    def _change(
        self, scope: str | None, work: Callable[..., T], /, *arguments: Any, shared: bool = False
    ) -> Awaitable[T]:
        """What `work` returns, once all it wrote is on disk. `shared`: others may do the same there meanwhile."""
        raise NotImplementedError

    def _apply(self, scope: str, work: Callable[[Any], T], /) -> Awaitable[T]:
        """Apply a batch of changes."""
        raise NotImplementedError

    async def _sweep(self, scope: str, /) -> None:
        """Have nothing left on disk of what was erased."""
        raise NotImplementedError

    async def claim(
        self,
        *,
        worker: str,
        limit: int,
        seconds: float,
        scope: str | None = None,
        exclusive: bool = False,
        include_given_up: bool = False,
    ) -> Sequence[Claim]:
        """See `Queue.claim`."""
        where, by = None if scope is None else check_scope(scope), encodable(worker)
        take = partial(self._queues.claim, worker=by, limit=limit, seconds=seconds)
        take = partial(take, exclusive=exclusive, include_given_up=include_given_up)
        return await self._change(where, take, where, shared=True)

    async def extend(self, ids: Collection[str], /, *, scope: str, worker: str, seconds: float) -> Collection[str]:
        """See `Queue.extend`."""
        where, longer = check_scope(scope), partial(self._queues.extend, worker=encodable(worker), seconds=seconds)
        return await self._change(where, longer, where, tuple(ids), shared=True)

    async def release(
        self, id: str, /, *, scope: str, worker: str, error: str | None = None, wait: float | None = 0.0
    ) -> bool:
        """See `Queue.release`."""
        where, why = check_scope(scope), None if error is None else encodable(error)
        give = partial(self._queues.release, worker=encodable(worker), error=why, wait=wait)
        return await self._change(where, give, where, id, shared=True)

    async def queue(self, *, scope: str | None = None) -> QueueStatus:
        """See `Queue.queue`."""
        where = None if scope is None else check_scope(scope)
        return await self._find(where, self._queues.queue, where)

    async def runs(self, wanted: RunFilter, /, *, scope: str) -> Sequence[Run]:
        """See `Records.runs`."""
        return await self._find(where := check_scope(scope), self._lists.runs, where, wanted)

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
        if_unlearned: Collection[str] = (),
        if_unchanged: Sequence[Experience] = (),
        if_unsettled: bool = False,
        unique_wording: bool = False,
        runs: Sequence[Trajectory] = (),
    ) -> Sequence[JournalEntry]:
        """See `Records.apply`."""
        where = check_scope(scope)
        if settlement is not None and settlement.scope != where:
            what = f"the settlement of {settlement.recall_id!r} belongs to the scope {settlement.scope!r}"
            raise UsageError(f"{what}, not to {where!r}")
        names = encodable(writer), _check_space(space) if vectors else ""
        if not (changes or vectors or settlement or runs):
            self._database.check_open()
            return []
        entries = [*changes, *([Settle(settlement=settlement)] if settlement else [])]
        is_alone = len(changes) == 1 and not (vectors or settlement or runs)
        rollback = changes[0] if is_alone and isinstance(changes[0], Rollback) else None
        decided_upon = tuple(if_unlearned), tuple(if_unchanged), if_unsettled
        placed, new = dict(vectors or {}), tuple(runs)

        def write(connection: Any) -> Sequence[JournalEntry]:
            columns = records_with_sums(entries)
            batch = Batch(where, names[0], columns, placed, names[1], *decided_upon, unique_wording, new)
            if rollback is not None:
                return self._load("_rollback").roll_back(connection, batch, rollback)
            return self._writes.apply(connection, batch)

        return await self._apply(where, write)

    async def index(self, vectors: Mapping[str, Vectors], /, *, scope: str, space: str, replace: bool = False) -> None:
        """See `Index.index`."""
        where, placed, name = check_scope(scope), dict(vectors), _check_space(space)
        self._database.check_open()
        if placed or replace:
            await self._change(where, self._writes.index, where, placed, name, replace)

    async def import_records(
        self,
        portions: Callable[[], Iterable[Imported]],
        /,
        *,
        scope: str,
        writer: str,
        approved_by: str | None = None,
        unique_wording: bool = False,
    ) -> int:
        """See `Care.import_records`. One transaction: other writers wait, readers do not."""
        where, by = check_scope(scope), encodable(approved_by) if approved_by else None
        arguments = portions, where, encodable(writer), by, unique_wording

        def write(connection: Any) -> int:
            return import_records(self._load("_importing").receiver(connection, where), *arguments)

        return await self._change(where, write)

    async def experiences(self, by: ExperienceKey, values: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """See `Records.experiences`."""
        return await self._find(where := check_scope(scope), self._reads.experiences, where, by, tuple(values))

    async def lessons(self, wanted: LessonFilter, /, *, scope: str) -> Sequence[Lesson]:
        """See `Records.lessons`."""
        return await self._find(where := check_scope(scope), self._lists.lessons, where, wanted)

    def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """See `Records.scan`. The snapshot is taken when the first experience is asked for."""
        where, read = check_scope(scope), self._reads.experience_of
        return self._stream(where, self._reads.SCAN, (where,), lambda row: read(*row))

    async def recalls(self, wanted: RecallFilter, /, *, scope: str) -> Sequence[SavedRecall]:
        """See `Records.recalls`."""
        return await self._find(where := check_scope(scope), self._lists.recalls, where, wanted)

    async def count(
        self,
        *,
        scope: str | None = None,
        names_only: bool = False,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> Mapping[str, Counts]:
        """See `Records.count`."""
        where = None if scope is None else check_scope(scope)
        if where is None and names_only:
            return {name: Counts() for name in await self._find(None, self._reads.scopes)}
        if where is not None and since is not None:
            lessons = await self._find(where, self._lists.lessons_since, where, microseconds(since), limit)
            return {where: Counts(lessons=lessons)}
        return await self._find(where, self._reads.count, where)

    async def settings(self, prefix: str, /, *, exact: bool = False) -> Mapping[str, str]:
        """See `Records.settings`."""
        return await self._find("", self._reads.settings, encodable(prefix), exact)

    async def put_setting(self, key: str, value: str | None, /) -> None:
        """See `Records.put_setting`."""
        await self._change("", self._writes.set_setting, encodable(key), value and encodable(value), shared=True)

    async def purge(
        self,
        what: Sequence[tuple[Erasure, str]] | datetime,
        /,
        *,
        scope: str,
        writer: str,
        reason: str,
        changes: Sequence[Change] = (),
        if_unchanged: Sequence[Experience] = (),
    ) -> Sequence[JournalEntry]:
        """See `Records.purge`."""
        where, by, why = check_scope(scope), encodable(writer), encodable(reason)
        erasures = checked_erasures(what, changes)
        if not erasures:
            return []
        batch = Batch(where, by, records_with_sums(changes), if_unchanged=tuple(if_unchanged))

        def write(connection: Any) -> Sequence[JournalEntry]:
            purging = self._load("_purge")
            if isinstance(erasures, datetime):
                return purging.forget_old(connection, where, erasures, by)
            if erasures == [("scope", "")]:
                return [purging.purge_scope(connection, where, by, why)]
            if batch.entries:
                self._writes.apply(connection, batch)
            return purging.purge(connection, where, erasures, by, why)

        entries = await self._change(where, write)
        if entries:
            await self._sweep(where)
        return entries

    async def read_rows(self, table: Table, /, *, scope: str, after: int, limit: int) -> Sequence[Row]:
        """See `Copyable.read_rows`."""
        return await self._find(
            where := check_scope(scope), self._load("_copying").read_rows, where, table, after, limit
        )

    async def write_rows(self, table: Table, rows: Sequence[Row], /, *, scope: str) -> None:
        """See `Copyable.write_rows`."""
        await self._change(where := check_scope(scope), self._load("_copying").write_rows, where, table, rows)

    async def finish_copy(self, *, scope: str) -> None:
        """See `Copyable.finish_copy`."""
        await self._change(where := check_scope(scope), self._load("_copying").finish_copy, where)

    def hurry(self, seconds: float, /) -> None:
        """Let no call wait for others longer than so many seconds from now on, also where it waits already."""
        self._database.hurry(seconds)

    async def close(self) -> None:
        """See `Records.close`. Waits for calls under way."""
        await to_thread.run_sync(self._database.close)

    def _stream(
        self, scope: str, sql: str, values: Sequence[Any], parse: Callable[[Any], R | None], /
    ) -> AsyncIterator[R]:
        return streamed(self._database, scope, sql, values, parse)


def _check_space(space: str | None) -> str:
    if not space:
        raise UsageError("these vectors come without the name of their space: pass space=")
    return encodable(space)

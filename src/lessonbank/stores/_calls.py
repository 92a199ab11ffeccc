"""The calls that every store with tables answers alike: it checks the arguments, and its own functions do the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from anyio import to_thread

from lessonbank.contracts.records import (
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
    Outcome,
    Queue,
    Recall,
    Run,
    RunStatus,
    Settle,
    Settlement,
    Trajectory,
)
from lessonbank.guard import check_scope

from ._changes import check_settlement, lone_rollback
from ._entries import Batch
from ._erasure import check_erasures
from ._importing import import_records
from ._listing import Asked, wanted_states
from ._records import encodable, loaded
from ._streams import Connections, streamed
from ._texts import checked, records_with_sums

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Imported, Vectors

    from ._copying import Row, Table

T = TypeVar("T")
R = TypeVar("R")

D = TypeVar("D", bound=Connections)


class StoreCalls(Generic[D]):
    """One half of a store; see `Store` for what it promises.

    The other half says how work is done: `work` is called with a connection before its `arguments`, in a thread.
    """

    _database: D

    _reads: ClassVar[ModuleType]
    _lists: ClassVar[ModuleType]
    _queues: ClassVar[ModuleType]
    _writes: ClassVar[ModuleType]
    _erases: ClassVar[ModuleType]
    _imports: ClassVar[ModuleType]
    _copies: ClassVar[ModuleType]
    _rolls_back: ClassVar[ModuleType]
    """The modules whose functions do the work."""

    def _find(self, scope: str | None, work: Callable[..., T], /, *arguments: Any) -> Awaitable[T]:
        """What `work` finds in one snapshot; `scope` is what it looks at, `None` for all of them."""
        raise NotImplementedError

    def _change(
        self, scope: str | None, work: Callable[..., T], /, *arguments: Any, shared: bool = False
    ) -> Awaitable[T]:
        """What `work` returns, once all it wrote is on disk. `shared`: others may do the same there meanwhile."""
        raise NotImplementedError

    def _apply(self, scope: str, work: Callable[[Any], T], /) -> Awaitable[T]:
        """The same of a batch of changes."""
        raise NotImplementedError

    async def _sweep(self, scope: str, /) -> None:
        """Have nothing left on disk of what was erased."""
        raise NotImplementedError

    async def pending(self, *, scope: str, limit: int | None = None, after: str | None = None) -> Sequence[Trajectory]:
        """See `Store.pending`."""
        where, bound = check_scope(scope), None if limit is None else max(limit, 0)
        return await self._find(where, self._lists.pending, where, bound, after)

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
        take = partial(self._queues.claim, worker=by, limit=limit, seconds=seconds, exclusive=exclusive, anyway=anyway)
        return await self._change(where, take, where, shared=True)

    async def extend(self, ids: Collection[str], /, *, scope: str, worker: str, seconds: float) -> Collection[str]:
        """See `Store.extend`."""
        where, longer = check_scope(scope), partial(self._queues.extend, worker=encodable(worker), seconds=seconds)
        return await self._change(where, longer, where, tuple(ids), shared=True)

    async def release(
        self, id: str, /, *, scope: str, worker: str, error: str | None = None, wait: float | None = 0.0
    ) -> bool:
        """See `Store.release`."""
        where, why = check_scope(scope), None if error is None else encodable(error)
        give = partial(self._queues.release, worker=encodable(worker), error=why, wait=wait)
        return await self._change(where, give, where, id, shared=True)

    async def queue(self, *, scope: str | None = None) -> Queue:
        """See `Store.queue`."""
        where = None if scope is None else check_scope(scope)
        return await self._find(where, self._queues.queue, where)

    async def trajectory(self, id: str, /, *, scope: str) -> Trajectory:
        """See `Store.trajectory`."""
        return await self._find(where := check_scope(scope), self._reads.trajectory, where, id)

    async def get_run(self, id: str, /, *, scope: str) -> Run:
        """See `Store.get_run`."""
        return await self._find(where := check_scope(scope), self._lists.run, where, id)

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
        return await self._find(asked.scope, partial(self._lists.runs, outcome=outcome, status=status), asked)

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
        where = check_scope(scope)
        check_settlement(settlement, scope=where)
        if not (changes or vectors or settlement):
            self._database.check_open()
            return []
        entries = [*changes, *([Settle(settlement=settlement)] if settlement else [])]
        rollback = lone_rollback(changes, vectors, settlement)
        kept = encodable(writer), None if space is None else encodable(space)
        placed, settled, decided_upon = dict(vectors or {}), tuple(unlearned), tuple(unchanged)

        def write(connection: Any) -> Sequence[JournalEntry]:
            batch = Batch(
                where, kept[0], records_with_sums(entries), placed, kept[1], settled, decided_upon, one_wording
            )
            if rollback is not None:
                return self._rolls_back.roll_back(connection, batch, rollback)
            return self._writes.apply(connection, batch)

        return await self._apply(where, write)

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

        def write(connection: Any) -> int:
            return import_records(self._imports.Receiver(connection, where), *told)

        return await self._change(where, write)

    async def get(self, id: str, /, *, scope: str) -> Experience:
        """See `Store.get`."""
        return await self._find(where := check_scope(scope), self._reads.experience, where, id)

    async def owner(self, lesson_id: str, /, *, scope: str) -> Experience:
        """See `Store.owner`."""
        return await self._find(where := check_scope(scope), self._reads.owner, where, lesson_id)

    async def owners(self, lesson_ids: Collection[str], /, *, scope: str) -> Sequence[Experience]:
        """See `Store.owners`."""
        return await self._find(where := check_scope(scope), self._reads.owners, where, tuple(lesson_ids))

    async def repeating(self, lesson_id: str, /, *, scope: str) -> Sequence[Experience]:
        """See `Store.repeating`."""
        return await self._find(where := check_scope(scope), self._reads.repeating, where, (lesson_id,))

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
        recall: str | None = None,
        retired: bool = False,
        limit: int = 50,
        after: str | None = None,
    ) -> Sequence[Lesson]:
        """See `Store.list_lessons`."""
        asked = Asked(check_scope(scope), text, metadata, None, limit, after, recall)
        states = wanted_states(state, retired=retired)
        listed = partial(self._lists.lessons, states=states, kind=kind, writer=writer, topics=topics)
        return await self._find(asked.scope, listed, asked)

    def scan(self, *, scope: str) -> AsyncIterator[Experience]:
        """See `Store.scan`. The snapshot is taken when the first experience is asked for."""
        where, read = check_scope(scope), self._reads.experience_of
        return self._stream(where, self._reads.SCAN, (where,), lambda row: read(*row))

    async def recall(self, id: str, /, *, scope: str) -> Recall:
        """See `Store.recall`."""
        return await self._find(where := check_scope(scope), self._reads.recall, where, id)

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
        return await self._find(asked.scope, partial(self._lists.recalls, lesson=lesson, settled=settled), asked)

    def receipts(self, *, scope: str, settled: bool | None = None) -> AsyncIterator[Recall]:
        """See `Store.receipts`. One snapshot, taken when the first is asked for."""
        where = check_scope(scope)
        return self._stream(where, self._reads.RECEIPTS, (where, settled), lambda row: loaded(Recall, checked(row[0])))

    async def settlement(self, recall_id: str, /, *, scope: str) -> Settlement | None:
        """See `Store.settlement`."""
        return await self._find(where := check_scope(scope), self._reads.settlement, where, recall_id)

    async def counts(self, *, scope: str) -> Counts:
        """See `Store.counts`."""
        return await self._find(where := check_scope(scope), self._reads.counts, where)

    async def scopes(self) -> Sequence[str]:
        """See `Store.scopes`."""
        return await self._find(None, self._reads.scopes)

    async def settings(self, prefix: str, /) -> Mapping[str, str]:
        """See `Store.settings`."""
        return await self._find("", self._reads.settings, encodable(prefix))

    async def set_setting(self, key: str, value: str | None, /) -> None:
        """See `Store.set_setting`."""
        await self._change("", self._writes.set_setting, encodable(key), value and encodable(value), shared=True)

    async def purge(self, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
        """See `Store.purge`. All that is left is written again: a file needs as much room again meanwhile."""
        where, by, why = check_scope(scope), encodable(writer), encodable(reason)
        if what == "scope":
            told = await self._change(where, self._erases.purge_scope, where, by, why)
        else:
            (told,) = await self._change(where, self._erases.purge, where, [(what, encodable(id))], by, why)
        await self._sweep(where)
        return told

    async def purge_many(
        self,
        these: Sequence[tuple[Erasure, str]],
        /,
        *,
        scope: str,
        writer: str,
        reason: str,
        changes: Sequence[Change] = (),
        unchanged: Sequence[Experience] = (),
    ) -> Sequence[JournalEntry]:
        """See `Store.purge_many`."""
        where, by, why = check_scope(scope), encodable(writer), encodable(reason)
        erased = [(what, encodable(id)) for what, id in check_erasures(these)]
        if not erased:
            return []
        batch = Batch(where, by, records_with_sums(changes), {}, None, (), tuple(unchanged))

        def write(connection: Any) -> Sequence[JournalEntry]:
            if batch.entries:
                self._writes.apply(connection, batch)
            return self._erases.purge(connection, where, erased, by, why)

        told = await self._change(where, write)
        await self._sweep(where)
        return told

    async def forget(self, *, scope: str, before: datetime, writer: str) -> Forgotten:
        """See `Store.forget`."""
        where = check_scope(scope)
        told: Forgotten = await self._change(where, self._erases.forget_old, where, before, encodable(writer))
        if told.runs or told.recalls:
            await self._sweep(where)
        return told

    async def read_rows(self, table: Table, /, *, scope: str, after: int, limit: int) -> Sequence[Row]:
        """See `Copyable.read_rows`."""
        return await self._find(where := check_scope(scope), self._copies.read_rows, where, table, after, limit)

    async def write_rows(self, table: Table, rows: Sequence[Row], /, *, scope: str) -> None:
        """See `Copyable.write_rows`."""
        await self._change(where := check_scope(scope), self._copies.write_rows, where, table, rows)

    async def finish_copy(self, *, scope: str) -> None:
        """See `Copyable.finish_copy`."""
        await self._change(where := check_scope(scope), self._copies.finish_copy, where)

    async def close(self) -> None:
        """See `Store.close`. Waits for calls under way."""
        await to_thread.run_sync(self._database.close)

    def _stream(
        self, scope: str, sql: str, values: Sequence[Any], parse: Callable[[Any], R | None], /
    ) -> AsyncIterator[R]:
        return streamed(self._database, scope, sql, values, parse)

"""What several rooms ask of a store, in terms of its ports: no store writes these plain functions itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, TypeVar, cast

from lessonbank._base.surrogates import encodable
from lessonbank.errors import NotFound, NotSupported

from .ports import Care, Index, Queue, RecallFilter, Records, RunFilter, SavedRecall
from .records import (
    Counts,
    Erasure,
    Experience,
    Forgotten,
    JournalEntry,
    Recall,
    Run,
    RunStatus,
    Settlement,
    Trajectory,
)
from .records.attempts import attempts_of

T = TypeVar("T")

_PAGE: Final = 200
"""Records that are read at a time where all are wanted."""


def queue_of(store: Records, /) -> Queue:
    """The queue of a store.

    Raises:
        NotSupported: the store has none, so that no run of it waits for a worker.
    """
    return cast("Queue", _with(store, Queue, "has no queue for runs: learn from each run in the call that brings it"))


def care_of(store: Records, /) -> Care:
    """What the owner of a store can do with it.

    Raises:
        NotSupported: the store cannot be imported to, checked, rebuilt or copied.
    """
    return cast("Care", _with(store, Care, "has no import, verify, rebuild or backup: use the tools of its database"))


def _with(store: object, port: type, what: str) -> object:
    if any(not hasattr(store, name) for name in calls_of(port)):
        raise NotSupported(f"the store {type(store).__name__!r} {what}")
    return store


def calls_of(port: type, /) -> list[str]:
    """The names of what a port declares itself."""
    return [name for name in vars(port) if not name.startswith("_")]


# --- runs ------------------------------------------------------------------------------------------------------------


async def get_run(store: Records, id: str, /, *, scope: str) -> Run:
    """One saved run, with its verdict and status. Raises NotFound."""
    return _the_one(await store.runs(RunFilter(ids=(id,)), scope=scope), "run", id)


async def get_trajectory(store: Records, id: str, /, *, scope: str) -> Trajectory:
    """One saved run as it was handed in. Raises NotFound."""
    return _the_one(await store.runs(RunFilter(ids=(id,), verdicts=False), scope=scope), "run", id).trajectory


async def get_trajectories(store: Records, ids: Collection[str], /, *, scope: str) -> list[Trajectory]:
    """Read the saved runs among these, as they were handed in and in the order of `ids`. One read."""
    runs = await store.runs(RunFilter(ids=tuple(ids), verdicts=False), scope=scope) if ids else ()
    trajectories = {run.trajectory.id: run.trajectory for run in runs}
    return [trajectories[clean] for id in ids if (clean := encodable(id)) in trajectories]


async def pending_runs(
    store: Records,
    /,
    *,
    scope: str,
    limit: int | None = None,
    after: str | None = None,
    status: RunStatus = "pending",
) -> Sequence[Trajectory]:
    """Saved runs that still wait for a verdict or for extraction, oldest first; all of them without a `limit`.

    An unfinished run is not among them, nor one that workers gave up: these have a `status` of their own. `after` is
    the id of the last one of the page before. Raises NotFound (`after`).
    """
    runs, left = list[Trajectory](), limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        wanted = RunFilter(status=status, verdicts=False, oldest_first=True, limit=size, after=after)
        page = await store.runs(wanted, scope=scope)
        runs += [run.trajectory for run in page]
        if len(page) < size:
            break
        after, left = page[-1].trajectory.id, None if left is None else left - size
    return runs


async def settled_runs(store: Records, ids: Collection[str], /, *, scope: str) -> Collection[str]:
    """Return the runs that belong to an experience already and are not pending."""
    return settled_in(await store.experiences("run", ids, scope=scope), ids) if ids else ()


def settled_in(experiences: Sequence[Experience], ids: Collection[str], /) -> set[str]:
    """Return the runs that one of these experiences settles: it holds an attempt at them that does not wait."""
    settled = {id for experience in experiences for id, waits, _ in attempts_of(experience) if not waits}
    return {id for id in ids if encodable(id) in settled}


# --- experiences -----------------------------------------------------------------------------------------------------


async def get_experience(store: Records, id: str, /, *, scope: str) -> Experience:
    """One experience, its lessons (retired ones included) in order. Raises NotFound."""
    return _the_one(await store.experiences("id", (id,), scope=scope), "experience", id)


async def experience_of_lesson(store: Records, lesson_id: str, /, *, scope: str) -> Experience:
    """The experience that a lesson belongs to. Raises NotFound."""
    return _the_one(await store.experiences("lesson", (lesson_id,), scope=scope), "lesson", lesson_id)


async def experience_of_runs(store: Records, ids: Collection[str], /, *, scope: str) -> Experience | None:
    """The newest experience that one of the runs belongs to."""
    experiences = await store.experiences("run", ids, scope=scope)
    return experiences[-1] if experiences else None


# --- recalls ---------------------------------------------------------------------------------------------------------


async def get_recall(store: Records, id: str, /, *, scope: str) -> Recall:
    """A saved recall, without its lessons. Raises NotFound."""
    records = await store.recalls(RecallFilter(ids=(id,)), scope=scope)
    return _the_one(records, "recall", id).recall


async def list_recalls(store: Records, wanted: RecallFilter, /, *, scope: str) -> list[Recall]:
    """Saved recalls, as `Records.recalls` lists them, without what settled them. Raises UsageError, NotFound."""
    return [record.recall for record in await store.recalls(wanted, scope=scope)]


async def every_recall(store: Records, /, *, scope: str, since: datetime | None = None) -> AsyncIterator[Recall]:
    """Every saved recall of the scope, without lessons, oldest first. `since`: those made at that moment or later.

    It is read page by page: a recall that is made meanwhile may come, too, and one that is erased may be missing.
    """
    async for record in every_saved_recall(store, scope=scope, since=since):
        yield record.recall


async def every_saved_recall(
    store: Records, /, *, scope: str, settlements: bool = False, since: datetime | None = None
) -> AsyncIterator[SavedRecall]:
    """Every recall that is saved, with the latest settlement of each where `settlements` are asked for."""
    wanted = RecallFilter(settlements=settlements, since=since, oldest_first=True, limit=_PAGE)
    given = set[str]()  # of the latest moment: they come again where a page begins with a moment
    while page := await _recalls_from(store, wanted, scope=scope):
        for record in page:
            if record.recall.id not in given:
                yield record
        last = page[-1].recall
        if wanted.since != last.created_at:
            given.clear()
        given |= {record.recall.id for record in page if record.recall.created_at == last.created_at}
        if len(page) < _PAGE:
            return
        wanted = replace(wanted, after=last.id, since=last.created_at)


async def _recalls_from(store: Records, wanted: RecallFilter, /, *, scope: str) -> Sequence[SavedRecall]:
    """A page of recalls. If the last one of the page before is erased, it begins with the moment of that one."""
    try:
        return await store.recalls(wanted, scope=scope)
    except NotFound:
        return await store.recalls(replace(wanted, after=None), scope=scope)


async def settlement_of(store: Records, recall_id: str, /, *, scope: str) -> Settlement | None:
    """The latest settlement of a recall."""
    records = await store.recalls(RecallFilter(ids=(recall_id,), settlements=True), scope=scope)
    return records[0].settlement if records else None


# --- the bank --------------------------------------------------------------------------------------------------------


async def count_records(store: Records, /, *, scope: str) -> Counts:
    """How much the scope holds."""
    return (await store.count(scope=scope))[scope]


async def list_scopes(store: Records, /) -> Sequence[str]:
    """Every scope that holds anything, sorted. For the owner of the store, never for an agent."""
    return list(await store.count(names_only=True))


async def get_setting(store: Records, key: str, /) -> str | None:
    """A choice kept with the bank, such as its embedder."""
    return (await store.settings(key, exact=True)).get(key)


async def purge_one(store: Records, what: Erasure, id: str, /, *, scope: str, writer: str, reason: str) -> JournalEntry:
    """Erase one lesson, trajectory or recall, or the whole scope (`id` is ignored); see `Records.purge`."""
    return (await store.purge([(what, id)], scope=scope, writer=writer, reason=reason))[0]


async def forget(store: Records, /, *, scope: str, before: datetime, writer: str) -> Forgotten:
    """Erase what is older than a moment; how much that was. See `Records.purge`."""
    entries = await store.purge(before, scope=scope, writer=writer, reason="")
    entry = entries[0].entry if entries else None
    return entry if isinstance(entry, Forgotten) else Forgotten(before=before)


async def drop_index(store: Index, /, *, scope: str, space: str) -> None:
    """Forget every vector of a space in this scope."""
    await store.index({}, scope=scope, space=space, replace=True)


def _the_one(records: Sequence[T], kind: str, id: str) -> T:
    if not records:
        raise NotFound(f"no {kind} {id!r} in this scope")
    return records[0]

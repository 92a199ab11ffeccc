"""Erases lessons, runs and recalls with all that goes with them, and says in which words lessons live on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Self

from lessonbank._base.aio import get_or_none
from lessonbank._base.iterate import closing, every_record
from lessonbank.bank.outbox import erase_spooled
from lessonbank.bank.recall_again import AFTER, kept_cures
from lessonbank.bank.scoped_bank import ScopedBank
from lessonbank.contracts.ports import RecallFilter, RunFilter
from lessonbank.contracts.records import Erasure, Json, Recall, Record, Run, target_of
from lessonbank.contracts.store_calls import experience_of_lesson, get_recall, get_trajectory, list_recalls, purge_one
from lessonbank.errors import Conflict, NotFound, UsageError

from .succession import SuccessionFinder, Successions


class Successor(Record):
    """How a lesson lives on that goes with an erased run: in the words of a run that taught it again, and stays."""

    of: str
    """The id of the lesson that goes."""
    experience_id: str
    """The experience that taught it again."""
    runs: tuple[str, ...]
    """The ids of its runs that stay."""
    lesson_id: str | None = None
    """Where a lesson that stays has these words already, its id."""
    title: str = ""
    when: str = ""
    content: str = ""
    """The words. All are empty in a preview where a model would be asked to draw them from the runs again."""
    approved: bool = False
    """Whether an approval passes on: somebody gave it to exactly these words."""


class Erasing(Record):
    """What a purge would erase: ids of lessons, runs and recalls, or everything; and what of it lives on."""

    lessons: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    recalls: tuple[str, ...] = ()
    whole_scope: bool = False
    successors: tuple[Successor, ...] = ()
    """For each of the lessons that lives on, in which words. The others are gone."""
    spooled: int = 0
    """Calls whose runs waited for the bank on this machine, see `attempt`."""
    cures: Erasing | None = None
    """The same of the scope of cures, where there is one."""

    @property
    def empty(self) -> bool:
        """Whether nothing would be erased."""
        own = self.lessons or self.runs or self.recalls or self.whole_scope
        return not own and (self.cures is None or self.cures.empty)


def with_successors(wanted: Erasing, successions: Successions, /) -> Erasing:
    """`wanted`, with what lives on of it."""
    new = {
        succession.lesson.id for succession in successions.passed if succession.is_new
    }  # ids that no preview could foresee
    drawn = [
        Successor(
            of=succession.of.id,
            experience_id=succession.heir.experience.id,
            runs=succession.heir.run_ids,
            lesson_id=None if succession.lesson.id in new else succession.lesson.id,
            title=succession.lesson.title,
            when=succession.lesson.description,
            content=succession.lesson.content,
            approved=succession.is_approved,
        )
        for succession in (*successions.passed, *successions.restored)
    ]
    untold = [Successor(of=id, experience_id=heir.experience.id, runs=heir.run_ids) for id, heir in successions.untold]
    return wanted.model_copy(update={"successors": (*drawn, *untold)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Eraser:
    """Erases in one scope, and in the scope of its cures."""

    bank: ScopedBank
    writer: str
    """Who erases."""
    reason: str

    async def preview(self, named: Erasing, metadata: Mapping[str, Json] | None, /) -> Erasing:
        """What would go with what is named, or has this metadata. Nothing goes, and no model is asked.

        Raises UsageError, NotFound.
        """
        wanted, _, waiting = await self._all_that_goes(named, metadata)
        await self._check_there(await self._in_bank(named, waiting))
        held = await self._in_bank(wanted, waiting)
        return with_successors(wanted, await self._successions(held, named.lessons, may_ask_model=False))

    async def erase(self, named: Erasing, metadata: Mapping[str, Json] | None, /) -> Erasing:
        """Erase what is named, or has this metadata; what went.

        Raises UsageError, NotFound, Conflict, StoreUnavailable.
        """
        wanted, erase_waiting, waiting = await self._all_that_goes(named, metadata)
        held, successions = await self._in_bank(wanted, waiting), Successions()
        is_there = await self._is_there(named, waiting)
        if is_there:  # while the runs are there, a purge that broke off can be called again
            await self._erase_cures(wanted.cures)
        if wanted.whole_scope:
            await purge_one(self.bank.store, "scope", "", scope=self.bank.scope, writer=self.writer, reason=self.reason)
        else:
            successions = await self._erase(held, named.lessons)
        if not is_there:  # whether the journal holds what was named, the store has said now
            await self._erase_cures(wanted.cures)
        await erase_waiting()  # last: where the bank refuses, all of it stays
        return with_successors(wanted, successions)

    async def _all_that_goes(
        self, named: Erasing, metadata: Mapping[str, Json] | None
    ) -> tuple[Erasing, Callable[..., Awaitable[Sequence[frozenset[str]]]], frozenset[str]]:
        """All that goes, what erases that which waits on this machine, and the ids of it."""
        wanted, cures = await self._wanted(named, metadata), await self._cures()
        meant = {"ids": {*named.runs, *wanted.recalls}, "metadata": metadata, "all": named.whole_scope}
        erase_waiting = partial(erase_spooled, self.bank.spool, self.bank.scope, **meant)
        spooled = await erase_waiting(preview=True)
        below = await self._wanted_of_cures(cures, wanted, metadata) if cures else None
        wanted = wanted.model_copy(update={"spooled": len(spooled), "cures": below})
        return wanted, erase_waiting, frozenset[str]().union(*spooled)

    async def _erase_cures(self, wanted: Erasing | None) -> None:
        if wanted and not wanted.empty and (cures := await self._cures()):
            await cures.erase(wanted, None)

    async def _erase(self, held: Erasing, named: Sequence[str]) -> Successions:
        """Erase what the bank holds; what lives on of it."""
        these: Sequence[tuple[Erasure, str]] = [
            *(("trajectory", id) for id in held.runs),  # first: their lessons go with them
            *(("lesson", id) for id in held.lessons),
            *(("recall", id) for id in held.recalls),
        ]
        erase = partial(self.bank.store.purge, these, scope=self.bank.scope, writer=self.writer, reason=self.reason)
        for tries_left in (2, 1, 0) if these else ():
            successions = await self._successions(held, named, may_ask_model=True)
            try:
                changes = successions.changes(corroborates=self.bank.options.corroborates)
                await erase(changes=changes, if_unchanged=successions.basis)
            except Conflict:  # others learned from what it was decided upon
                if not tries_left:
                    raise
            else:
                return successions
        return Successions()

    async def _cures(self) -> Self | None:
        """What erases in the scope of the cures; `None` where there are none."""
        scope = await kept_cures(self.bank.store, self.bank.scope)
        return None if scope is None else replace(self, bank=replace(self.bank, scope=scope))

    async def _wanted_of_cures(self, cures: Self, wanted: Erasing, metadata: Mapping[str, Json] | None) -> Erasing:
        """What goes of cures: those drawn from these runs, and recalls in them."""
        if wanted.whole_scope:
            return wanted
        own = Erasing() if metadata is None else await cures._wanted(Erasing(), metadata)
        lessons = await cures._with_derived((*wanted.runs, *own.runs), own.lessons)
        runs = await self.bank.store.runs(RunFilter(ids=wanted.runs), scope=self.bank.scope)
        recalls = [await cures._recalls_with({AFTER: run.recall_id}) for run in runs if run.recall_id]
        return Erasing(lessons=lessons, runs=own.runs, recalls=tuple(dict.fromkeys(chain(own.recalls, *recalls))))

    async def _successions(self, wanted: Erasing, named: Sequence[str], *, may_ask_model: bool) -> Successions:
        """What lives on of the lessons that go with runs. What a person named, or goes with it, does not."""
        if named and not wanted.runs:
            return Successions()
        named = await self._with_derived((), named)
        finder = SuccessionFinder(self.bank, frozenset(wanted.runs), frozenset(wanted.lessons), may_ask_model)
        return await finder.find([id for id in wanted.lessons if id not in named])

    async def _wanted(self, named: Erasing, metadata: Mapping[str, Json] | None) -> Erasing:
        """What was named, with all that goes with it. Raises UsageError."""
        ids = bool(named.lessons or named.runs or named.recalls)
        if ids + named.whole_scope + (metadata is not None) != 1 or metadata == {}:
            raise UsageError(
                "purge takes ids (lesson=, run=, recall=, each one or several), or metadata={…}, or all=True: "
                "exactly one of the three"
            )
        if named.whole_scope:
            return named
        if metadata is None:
            runs, recalls, lessons = named.runs, named.recalls, named.lessons
        else:
            runs, recalls = await self._runs_with(metadata), await self._recalls_with(metadata)
            lessons = await self._without_runs(metadata)
        return Erasing(lessons=await self._with_derived(runs, lessons), runs=runs, recalls=recalls)

    async def _without_runs(self, metadata: Mapping[str, Json]) -> tuple[str, ...]:
        """The lessons with some metadata that no run taught: written by hand, or kept by another program."""
        ids = list[str]()
        async with closing(self.bank.store.scan(scope=self.bank.scope)) as every:
            async for experience in every:
                if not experience.attempts and metadata.items() <= experience.metadata.items():
                    ids += [lesson.id for lesson in experience.lessons]
        return tuple(ids)

    async def _with_derived(self, runs: Sequence[str], lessons: Sequence[str]) -> tuple[str, ...]:
        """The lessons that go with runs and lessons: those drawn from a run, those of experiences with no other run,
        and what was merged from any of these or would change one."""
        run_ids, lesson_ids = set(runs), dict.fromkeys(lessons)
        if not run_ids and not lesson_ids:
            return ()
        resting = list[tuple[set[str | None], tuple[str, ...]]]()
        async with closing(self.bank.store.scan(scope=self.bank.scope)) as every:
            async for experience in every:
                attempts = {ref.trajectory_id for ref in experience.attempts}
                whole = bool(attempts) and attempts <= run_ids
                drawn = [i.id for i in experience.lessons if whole or run_ids.intersection(i.provenance.trajectory_ids)]
                lesson_ids |= dict.fromkeys(drawn)
                if on := {target_of(experience), *chain(*experience.merged.values())} - {None}:
                    resting.append((on, tuple(lesson.id for lesson in experience.lessons)))
        while more := [
            id for on, ids in resting if not on.isdisjoint(lesson_ids) for id in ids if id not in lesson_ids
        ]:
            lesson_ids |= dict.fromkeys(more)
        return tuple(lesson_ids)

    async def _in_bank(self, wanted: Erasing, waiting: frozenset[str]) -> Erasing:
        """`wanted` without the ids that only waited on this machine, so that the bank does not have them."""
        store, scope = self.bank.store, self.bank.scope

        async def is_in_bank(find: Callable[..., Awaitable[object]], id: str) -> bool:
            return id not in waiting or await get_or_none(find(store, id, scope=scope)) is not None

        runs = [id for id in wanted.runs if await is_in_bank(get_trajectory, id)]
        recalls = [id for id in wanted.recalls if await is_in_bank(get_recall, id)]
        return wanted.model_copy(update={"runs": tuple(runs), "recalls": tuple(recalls)})

    async def _is_there(self, named: Erasing, waiting: frozenset[str]) -> bool:
        """Whether all that is named is there now."""
        try:
            await self._check_there(await self._in_bank(named, waiting))
        except NotFound:
            return False
        return True

    async def _check_there(self, wanted: Erasing) -> None:
        """Refuse ids that are not there now. The purge itself also finds what only the journal still holds."""
        store, scope = self.bank.store, self.bank.scope
        for id in wanted.lessons:
            await experience_of_lesson(store, id, scope=scope)
        for id in wanted.runs:
            await get_trajectory(store, id, scope=scope)
        for id in wanted.recalls:
            await get_recall(store, id, scope=scope)

    async def _runs_with(self, metadata: Mapping[str, Json]) -> tuple[str, ...]:
        async def page(limit: int, after: str | None) -> Sequence[Run]:
            return await self.bank.store.runs(
                RunFilter(metadata=metadata, limit=limit, after=after), scope=self.bank.scope
            )

        return tuple([run.trajectory.id async for run in every_record(page, lambda run: run.trajectory.id)])

    async def _recalls_with(self, metadata: Mapping[str, Json]) -> tuple[str, ...]:
        async def page(limit: int, after: str | None) -> Sequence[Recall]:
            wanted = RecallFilter(metadata=metadata, limit=limit, after=after)
            return await list_recalls(self.bank.store, wanted, scope=self.bank.scope)

        return tuple([recall.id async for recall in every_record(page, lambda recall: recall.id)])

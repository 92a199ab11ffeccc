"""Learns from runs that others kept: any number of workers, on any machine, share the queue of one bank."""

from __future__ import annotations

import logging
import random
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import TaskGroup

from lessonbank._base.aio import first_error, get_or_none
from lessonbank._base.checks import a_count, check_record, some_seconds
from lessonbank._base.plural import plural
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Claim, Record, Usage
from lessonbank.contracts.records.ids import new_id
from lessonbank.contracts.records.queue import problem_of
from lessonbank.contracts.store_calls import queue_of, settled_runs
from lessonbank.errors import ModelUnavailable, ReadOnly, StoreDamaged, StoreError, StoreUnavailable
from lessonbank.guard.quote import quoted

from .budgets import Budget as Budget
from .budgets import Budgets

log = logging.getLogger("lessonbank")
TRIES: Final = 8
"""How often a run is tried: with the pauses in between this takes over an hour."""
_LONGEST: Final = 3600.0
"""Seconds that a run waits at most after a try that failed."""
_POLL: Final = 1.0
"""Seconds between two looks for runs, when there is nothing to do."""


class Worked(Record):
    """What a worker did so far."""

    learned: int = 0
    failed: int = 0
    """Tries that failed; the runs are tried again later."""
    given_up: int = 0
    """Runs that failed once too often: `runs.list(status="failed")` shows them with the reason."""
    put_off: int = 0
    """Runs that were given back untried: the budget was spent, the model was not there, or the worker stopped."""


@dataclass(frozen=True, slots=True)
class _Result:
    """What is to be done with a run, unless it was learned."""

    error: str | None = None
    wait: float | None = 0.0


class Worker:
    """Claims runs that wait, learns from them as the bank does, and tries again what failed.

    A run is claimed for `lease` seconds, and the claim is renewed while the worker lives. If it dies, another worker
    takes the run over. Nothing is learned twice: the bank settles a run once, whoever learned from it.

    Args:
        bank: a bank with the models and settings to learn with. Its scope does not matter: a worker serves them all.
        concurrency: how many runs it learns from at once.
        tries: how often a run is tried before it is given up.
        wait: seconds after a first try that failed, doubled for each further one, at most an hour.
        lease: seconds after which the runs of a dead worker are taken over.
        grace: seconds that `stop` leaves to what is under way.
        budget: what a scope may spend in a day.

    Raises:
        UsageError: a number that cannot be.
        NotSupported: the bank's store has no queue.
    """

    def __init__(
        self,
        bank: AsyncReasoningBank | ReasoningBank,
        /,
        *,
        concurrency: int = 4,
        tries: int = TRIES,
        wait: float = 30.0,
        lease: float = 60.0,
        grace: float = 25.0,
        budget: Budget | None = None,
    ) -> None:
        self._bank = bank.aio if isinstance(bank, ReasoningBank) else check_record(bank, "Worker", AsyncReasoningBank)
        self._concurrency, self._tries = a_count(concurrency, "concurrency="), a_count(tries, "tries=")
        self._wait, self._lease = some_seconds(wait, "wait="), some_seconds(lease, "lease=")
        self._grace = some_seconds(grace, "grace=")
        self._store, self.name = self._bank.store, f"worker {new_id()}"
        self._queue = queue_of(self._store)
        self._budgets = Budgets(self._store, budget, worker=self.name)
        # Lessons are compared with those of the scope: one process decides at a time, for no lock reaches beyond it.
        self._exclusive = self._bank.settings.get("consolidation") != "append"
        self._jobs = dict[tuple[str, str], anyio.CancelScope]()
        self._wake, self._stopping, self._paused_until = anyio.Event(), False, 0.0
        self._is_cut_off = False
        self.worked = Worked()

    @property
    def under_way(self) -> int:
        """How many runs it is learning from."""
        return len(self._jobs)

    def stop(self) -> None:
        """Take no more runs. Those under way are finished, or given back when the time of grace is over.

        Call it on the event loop of `run`; a second call gives them back at once.
        """
        if self._stopping:
            for job in self._jobs.values():
                job.cancel()
        self._stopping = True
        self._wake.set()

    async def run(self, *, drain: bool = False) -> Worked:
        """Learn until `stop` is called; with `drain`, until no run can be taken now. Raises StoreError."""
        try:
            await self._tell()
            async with anyio.create_task_group() as group:
                group.start_soon(self._renew)
                async with anyio.create_task_group() as jobs:
                    await self._take(jobs, drain=drain)
                    if self._stopping:
                        jobs.cancel_scope.deadline = anyio.current_time() + self._grace
                group.cancel_scope.cancel()
        except* StoreError as failed:
            raise first_error(failed) from None
        finally:
            with anyio.CancelScope(shield=True), suppress(StoreError):
                await self._budgets.leave()
        return self.worked

    async def _tell(self) -> None:
        """Let people see that it runs. A store that cannot be told gives it no runs, either: that is said there."""
        with suppress(StoreError):
            await self._budgets.tell(self._lease)

    async def _take(self, jobs: TaskGroup, *, drain: bool) -> None:
        while not self._stopping:
            self._wake = anyio.Event()
            is_paused = time.monotonic() < self._paused_until
            free = 0 if is_paused else self._concurrency - len(self._jobs)
            claims = await self._claimed(free) if free else []
            for claim in claims:
                key = claim.scope, claim.trajectory.id
                if key not in self._jobs:  # else this process was stopped for so long that its own claim was over
                    self._jobs[key] = anyio.CancelScope()
                    jobs.start_soon(self._serve, claim, self._jobs[key])
            if drain and not claims and not self._jobs:
                return
            if not claims or len(claims) == free:
                with anyio.move_on_after(_POLL):
                    await self._wake.wait()

    async def _claimed(self, free: int) -> list[Claim]:
        try:
            claims = await self._queue.claim(
                worker=self.name, limit=free, seconds=self._lease, exclusive=self._exclusive
            )
        except (ReadOnly, StoreDamaged):
            raise
        except StoreUnavailable as error:
            if not self._is_cut_off:
                log.warning("no run can be taken, until the store answers again: %s", quoted(error))
            self._is_cut_off = True
            return []
        self._is_cut_off = False
        return list(claims)

    async def _serve(self, claim: Claim, scope: anyio.CancelScope) -> None:
        result: _Result | None = None
        try:
            with scope:
                result = await self._learned(claim)
        finally:
            with anyio.CancelScope(shield=True):
                await self._give_back(claim, result)
            del self._jobs[claim.scope, claim.trajectory.id]
            self._wake.set()

    async def _learned(self, claim: Claim) -> _Result:
        """Learn from a run; what is to be done with it in case that it still waits."""
        if claim.tries >= self._tries:
            return _Result(f"its worker ended before it was done with this run, {plural(claim.tries, 'time')}", None)
        try:
            if wait := await self._budgets.wait(claim.scope):
                return _Result(wait=wait)
            (learned,) = await self._bank.scoped(claim.scope).runs.retry(claim.trajectory.id)
            await self._budgets.spend(claim.scope, learned.usage + await self._fitting(claim))
        except Exception as error:  # noqa: BLE001 - a part of the caller's own may raise anything; the worker goes on
            return self._failed(claim, f"{type(error).__name__}: {quoted(error)}")
        if ModelUnavailable.code in learned.errors:
            return self._pause()
        return self._failed(claim, problem_of(learned))

    async def _fitting(self, claim: Claim) -> Usage:
        """What a model took that fitted lessons to the task of this run. Another try does not count it again."""
        if claim.tries:
            return Usage()
        bank = self._bank.scoped(claim.scope)
        run = await get_or_none(bank.runs.get(claim.trajectory.id))
        recall = await get_or_none(bank.recalls.get(run.recall_id)) if run and run.recall_id else None
        return recall.fit.usage if recall and recall.fit else Usage()

    def _failed(self, claim: Claim, problem: str) -> _Result:
        if claim.tries + 1 >= self._tries:
            return _Result(problem, None)
        wait = min(self._wait * 2.0**claim.tries, _LONGEST)
        return _Result(problem, wait * (0.5 + 0.5 * random.random()))

    def _pause(self) -> _Result:
        """No run is to blame for a model that is not there: all wait, and none of them loses a try."""
        if time.monotonic() >= self._paused_until:
            log.warning("the model is not available: no run is learned for %g seconds", self._wait)
        self._paused_until = time.monotonic() + self._wait
        return _Result(wait=self._wait)

    async def _give_back(self, claim: Claim, result: _Result | None) -> None:
        """A run that was learned meanwhile, or that another worker took, is not this one's any more."""
        outcome = result or _Result()
        try:
            waits = await self._queue.release(
                claim.trajectory.id, scope=claim.scope, worker=self.name, error=outcome.error, wait=outcome.wait
            )
        except StoreError as error:
            log.warning("a run was not given back, and waits until its time is over: %s", quoted(error))
            return
        if waits:
            self._count("put_off" if outcome.error is None else "given_up" if outcome.wait is None else "failed")
        elif result is not None:
            self._count("learned")

    def _count(self, what: str) -> None:
        self.worked = self.worked.model_copy(update={what: getattr(self.worked, what) + 1})

    async def _renew(self) -> None:
        """Keep what is under way. A run that another worker took is left to it: both would pay for the same."""
        while True:
            await anyio.sleep(self._lease / 3)
            await self._tell()
            held = defaultdict[str, list[str]](list)
            for scope, id in self._jobs:
                held[scope].append(id)
            for scope, ids in held.items():
                await self._renew_some(scope, ids)

    async def _renew_some(self, scope: str, ids: list[str]) -> None:
        try:
            own_ids = await self._queue.extend(ids, scope=scope, worker=self.name, seconds=self._lease)
            missing_ids = {*ids}.difference(own_ids)
            lost = (
                missing_ids.difference(await settled_runs(self._store, sorted(missing_ids), scope=scope))
                if missing_ids
                else missing_ids
            )
        except StoreError as error:
            log.warning("a claim could not be renewed: %s", quoted(error))
            return
        for id in lost:
            if job := self._jobs.get((scope, id)):
                job.cancel()

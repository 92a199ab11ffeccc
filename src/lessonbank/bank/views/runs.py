"""The runs that a scope has kept: find them, correct a verdict, and learn from those that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import anyio

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import a_count, a_text, an_id, filters, maybe_id, maybe_one_of
from lessonbank._base.iterate import closing
from lessonbank._base.plural import plural
from lessonbank.bank.find_run import find_run
from lessonbank.bank.learner import Learner, with_notes
from lessonbank.bank.retention import forget_old_runs
from lessonbank.bank.scoped_bank import ScopedBank, person
from lessonbank.contracts.ports import RunFilter
from lessonbank.contracts.records import Json, Learned, Outcome, Rejudge, Run, RunStatus, Trajectory, Verdict, notes_of
from lessonbank.contracts.records.ids import new_id, now
from lessonbank.contracts.records.queue import IN_HAND, QueueStatus, Spending, problem_of
from lessonbank.contracts.records.runs import NO_SUBMISSION, without_submission
from lessonbank.contracts.store_calls import (
    get_recall,
    get_run,
    get_trajectories,
    pending_runs,
    queue_of,
    settled_runs,
    settlement_of,
)
from lessonbank.errors import StoreError, UsageError
from lessonbank.guard.identity import verified_submitter
from lessonbank.guard.quote import quoted
from lessonbank.guard.reviewed import asks

from .spending import spending


@asks("runs")
@dataclass(frozen=True, slots=True)
class AsyncRuns:
    """`bank.runs`. Every method acts in the scope of its bank."""

    _bank: ScopedBank

    async def list(
        self,
        *,
        outcome: Outcome | None = None,
        status: RunStatus | None = None,
        text: str | None = None,
        metadata: Mapping[str, Json] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Run, ...]:
        """Kept runs, newest first, at most `limit`. `after`: the id of the last run of the page before.

        `text`: every word of it stands in the run's task, steps, answer or error. `metadata`: the run has these keys
        and values. Raises UsageError, NotFound (`after`).
        """
        runs = await self._bank.store.runs(
            RunFilter(
                outcome=maybe_one_of(outcome, "outcome=", get_args(Outcome)),
                status=maybe_one_of(status, "status=", get_args(RunStatus)),
                **filters(text=text, metadata=metadata, limit=limit, after=after),
            ),
            scope=self._bank.scope,
        )
        return tuple(map(_as_handed_in, runs))

    async def search(
        self,
        text: str | None = None,
        /,
        *,
        outcome: Outcome | None = None,
        metadata: Mapping[str, Json] | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> tuple[Run, ...]:
        """Runs that contain every word of `text` and have this metadata, newest first. Raises UsageError."""
        return await self.list(text=text, outcome=outcome, metadata=metadata, limit=limit, after=after)

    async def get(self, id: str, /) -> Run:
        """One run with its trajectory, verdict and status. Raises NotFound."""
        return _as_handed_in(await get_run(self._bank.store, an_id(id), scope=self._bank.scope))

    async def pending(self, *, limit: int = 50, after: str | None = None) -> tuple[Trajectory, ...]:
        """Runs that wait for a verdict or for extraction, oldest first. `retry` learns from them.

        Raises UsageError, NotFound (`after`).
        """
        limit, after = a_count(limit), maybe_id(after, "after=")
        waiting = await pending_runs(self._bank.store, scope=self._bank.scope, limit=limit, after=after)
        return tuple(map(without_submission, waiting))

    async def retry(self, *ids: str, limit: int = 50) -> tuple[Learned, ...]:
        """Learn from the oldest runs that wait or failed, at most `limit` of them; or from the runs of these `ids`.

        Runs that a worker is learning from are left to it, unless they are named. Raises NotFound, StoreError.
        """
        learned = await self._retry(ids, a_count(limit))
        # Last, for it erases old runs that wait, too; and by the right of who calls, not of who submitted them.
        erased = await forget_old_runs(self._bank) if learned else ()
        return (*learned[:-1], with_notes(learned[-1], erased)) if erased else tuple(learned)

    async def _retry(self, ids: Sequence[str], limit: int) -> Sequence[Learned]:
        store, scope = self._bank.store, self._bank.scope
        if ids:
            named = [await get_run(store, an_id(id), scope=scope) for id in ids]
            await self._record_retry(sum(run.status == "failed" for run in named))
            return [(await self._try(run.trajectory))[0] for run in named]
        queue = queue_of(store)
        await self._record_retry((await queue.queue(scope=scope)).failed)
        taker, learned = f"retry {new_id()}", list[Learned]()
        claims = await queue.claim(worker=taker, limit=limit, seconds=IN_HAND, scope=scope, include_given_up=True)
        waiting = {claim.trajectory.id: claim.trajectory for claim in claims}
        try:
            while waiting:
                await queue.extend(waiting, scope=scope, worker=taker, seconds=IN_HAND)
                result, done, problem = await self._try(next(iter(waiting.values())))
                learned.append(result)
                for id in done & waiting.keys():
                    await queue.release(id, scope=scope, worker=taker, error=problem)
                    del waiting[id]
        finally:
            with anyio.CancelScope(shield=True):
                for id in waiting:
                    await queue.release(id, scope=scope, worker=taker)
        return learned

    async def _record_retry(self, given_up: int) -> None:
        """To try again what was given up is an act of a person; what merely waits is learned anyhow."""
        if given_up:
            await self._bank.record_act(
                "runs.retry", plural(given_up, "run that was given up", "runs that were given up")
            )

    async def _try(self, run: Trajectory) -> tuple[Learned, set[str], str]:
        """Learn from a waiting run, and say why to try it again. One run whose judge breaks holds up no other."""
        try:
            result, done = await self._learn_with_siblings(run)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a judge or an extractor of the caller's own may raise anything
            problem = f"{type(error).__name__}: {quoted(error)}"
            return Learned(notes=notes_of(f"nothing was learned from run {run.id}: {problem}")), {run.id}, problem
        return result, done, problem_of(result)

    async def _learn_with_siblings(self, run: Trajectory) -> tuple[Learned, set[str]]:
        """Learn from `run` and all that belongs to it; the ids of these runs."""
        runs, teller, options = await self._as_submitted(run)
        result = await Learner(self._bank).learn_as(teller, runs, **options)
        tried = result.experience.attempts if result.experience else ()
        return result, {*(sibling.id for sibling in runs), *(ref.trajectory_id for ref in tried)}

    async def _as_submitted(self, run: Trajectory) -> tuple[list[Trajectory], tuple[str, str] | None, dict[str, Any]]:
        """The runs that were submitted together with `run`, by whom, and what was said of them then."""
        handed_in, store, scope = run.submission or NO_SUBMISSION, self._bank.store, self._bank.scope
        others = [id for id in handed_in.run_ids if id != run.id]
        siblings = await get_trajectories(store, others, scope=scope)
        runs = [run, *siblings]
        recall = await get_or_none(get_recall(store, handed_in.recall_id, scope=scope)) if handed_in.recall_id else None
        teller = await verified_submitter(store, handed_in, runs=[run.id, *others], scope=scope)
        learned = await settled_runs(store, [sibling.id for sibling in runs], scope=scope)
        # What was known later of a learned run, such as a correction, stands.
        submissions = [
            NO_SUBMISSION if sibling.id in learned else sibling.submission or NO_SUBMISSION for sibling in runs
        ]
        outcomes, rewards = zip(*[submission.ending for submission in submissions], strict=True)
        return runs, teller, {"outcome": outcomes, "reward": rewards, "recall": recall}

    async def queue(self) -> QueueStatus:
        """How many runs of the scope wait to be learned, are being learned by a worker, or were given up."""
        return await queue_of(self._bank.store).queue(scope=self._bank.scope)

    async def spending(self) -> Spending:
        """What workers that run now let the scope spend on a day, and what workers with a budget spent today (UTC)."""
        return await spending(now(), self._bank.store, scope=self._bank.scope)

    async def correct(self, id: str, /, *, outcome: Outcome | None, by: str, reason: str = "") -> Learned:
        """Put a person's word in the place of a run's verdict. Its receipt is settled again.

        The lessons of the run stay until somebody retires them. `outcome=None` takes the last correction back: the
        verdict before it counts again, with its source and reason. `id`: of the run, or of its recall. `by`: the
        person's name. A run that waits is learned with it: its verdict names the person, and the journal who calls.
        Raises UsageError (nothing was corrected, several runs), NotAllowed, NotFound.
        """
        name, reason = person(by), a_text(reason, "reason=")
        outcome = maybe_one_of(outcome, "outcome=", get_args(Outcome))
        run = await find_run(self._bank, an_id(id))
        if outcome is None:
            verdict = await self._before_correction(run.id)
        else:
            verdict = Verdict(outcome=outcome, source="human", reason=": ".join(filter(None, (name, reason))))
        return await Learner(self._bank).correct(run, verdict, by=name, reason=reason)

    async def _before_correction(self, id: str) -> Verdict:
        """The verdict that the last correction in force replaced. Raises UsageError."""
        now, verdict = (await self.get(id)).verdict, None
        journal = self._bank.store.journal(scope=self._bank.scope, kinds={"verdict"})
        async with closing(journal) as entries:
            async for entry in entries:
                change = entry.entry
                if isinstance(change, Rejudge) and change.trajectory_id == id and change.verdict == now:
                    verdict = change.before
        if verdict is None:
            raise UsageError(f"no correction of the run {quoted(id)} can be taken back: say outcome=")
        return verdict

    async def audit(self, count: int = 20, /, *, by: str | None = None, reason: str = "") -> tuple[Run, ...]:
        """Draw about `count` runs at random for a person to label: each has the same chance. Answer with `correct`.

        Drawn are runs with a recall of which only a judge said how they ended. Each has a draw of its own, so their
        number varies. While drawn runs wait for a label, these are returned and none is drawn. The journal keeps the
        odds, and the evidence counts the labels by them. `by`: who asks for it. Raises UsageError.
        """
        count, reason = a_count(count, "count"), a_text(reason, "reason=")
        writer = self._bank.writer if by is None else person(by)
        waiting = await self.unlabelled()
        if waiting or self._bank.is_off("an audit"):
            return waiting
        why = await self._bank.parts.intake.sentence(reason)
        await self._bank.parts.ledger.audit(count, scope=self._bank.scope, by=writer, reason=why)
        return await self.unlabelled()

    async def unlabelled(self) -> tuple[Run, ...]:
        """The runs that an audit drew and that wait for a person's label, the oldest first."""
        store, scope = self._bank.store, self._bank.scope
        drawn = [
            await settlement_of(store, id, scope=scope) for id in await self._bank.parts.ledger.unlabelled(scope=scope)
        ]
        ids = dict.fromkeys(id for settlement in drawn if settlement for id in settlement.trajectory_ids)
        runs = [run for id in ids if (run := await get_or_none(get_run(store, id, scope=scope)))]
        return tuple(_as_handed_in(run) for run in runs if run.verdict.source == "judge")


def _as_handed_in(run: Run) -> Run:
    trajectory = without_submission(run.trajectory)
    if trajectory is run.trajectory:
        return run
    return run.model_copy(update={"trajectory": trajectory})

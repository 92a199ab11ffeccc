"""Puts runs on disk with all that is known of them, before anything slow begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from lessonbank._base.aio import if_there
from lessonbank._base.checks import shown
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Recall, Submission, Trajectory
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.store_calls import get_recall, get_trajectory
from lessonbank.evidence.receipts import Receipts
from lessonbank.guard.identity import seal, teller_of
from lessonbank.learning.handed_in import request_of, submission_of, truths_with_submitted, with_submission
from lessonbank.learning.prior_runs import Verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKeeper:
    """Keeps runs of one scope in the name of whoever tells them."""

    store: Store
    scope: str
    receipts: Receipts
    writer: str
    who: str
    """The writer as the bank knows it."""

    async def keep(
        self, runs: Sequence[Trajectory], truths: Verdicts, receipt: Recall | None, /, *, wait: float = IN_HAND
    ) -> list[Trajectory]:
        """Keep runs without secrets. Gives those that the bank had already, with what is known of them now."""
        ids = [run.id for run in runs]
        proof = seal(await self.receipts.secret(), self.who, self.writer, runs=ids, scope=self.scope)
        stamp = partial(
            with_submission,
            recall_id=receipt.id if receipt else None,
            group=ids,
            teller=Submission(identity=self.who, writer=self.writer, seal=proof),
        )
        stamped = [stamp(run, truths[run.id]) if run.id in truths else run for run in runs]
        new = await self.store.save_runs(stamped, scope=self.scope, wait=wait)
        if len(new) == len(ids):
            return []
        return [await get_trajectory(self.store, id, scope=self.scope) for id in ids if id not in new]

    async def earlier_teller(self, waiting: Sequence[Trajectory], /) -> tuple[str, str] | None:
        """Who told how runs that wait ended, where that is another than who tells it now, who may not say otherwise."""
        for run in waiting:
            said = submission_of(run)
            if said.identity != self.who and said.says_outcome:
                return await teller_of(self.store, said, runs=said.run_ids or [run.id], scope=self.scope)
        return None

    async def with_earlier_word(
        self, waiting: Sequence[Trajectory], truths: Verdicts, receipt: Recall | None, /, *, success_at: float
    ) -> tuple[Verdicts, Recall | None]:
        """What is known of runs, some of which waited: what was said earlier counts until somebody says otherwise."""
        recall = next(filter(None, [submission_of(run).recall_id for run in waiting]), None)
        receipt = receipt or (await if_there(get_recall(self.store, recall, scope=self.scope)) if recall else None)
        return truths_with_submitted(truths, waiting, success_at=success_at), receipt

    def swapped(self, receipt: Recall | None, runs: Sequence[Trajectory], /) -> tuple[str, ...]:
        """A note for each run that begins with the task of another recall than the one that it settles."""
        if receipt is None:
            return ()
        requests = [(run, request) for run in runs if (request := request_of(run))]
        others = [(run, request, self.receipts.mistaken_for(receipt, request)) for run, request in requests]
        return tuple(
            f"another task: run {shown(run.id)} begins with {shown(request)}, for which the recall {shown(id)} was "
            f"made, and it settles that of {shown(receipt.task)}: hand each run to learn with the recall that it used"
            for run, request, id in others
            if id
        )

"""Reads what a caller reports of runs, and puts these on disk with all that is known, before anything slow begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import anyio

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import short_repr
from lessonbank._base.iterate import closing
from lessonbank.contracts.records import Experience, Forgotten, Outcome, Purge, Recall, Submission, Trajectory, Verdict
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.records.runs import NO_SUBMISSION
from lessonbank.contracts.store_calls import get_recall, get_trajectory
from lessonbank.guard.identity import seal, verified_submitter
from lessonbank.learning.judging import truth_verdict
from lessonbank.learning.run_report import RunReport, find_prior_runs, truths_of, without_word_of_others
from lessonbank.text.messages.runs import runs_from

from .scoped_bank import ScopedBank


@dataclass(frozen=True, slots=True)
class RunKeeper:
    """Keeps runs of one scope in the name of whoever reports them."""

    bank: ScopedBank
    identity: str
    """The writer as the bank knows it."""
    limit: anyio.CancelScope | None = None
    """What ends the wait: once the runs are kept, it does not."""

    async def report(
        self,
        source: object,
        /,
        *,
        task: str | None,
        recall: Recall | str | None,
        outcome: Outcome | Sequence[Outcome] | None,
        reward: float | Sequence[float] | None,
    ) -> RunReport:
        """What a caller hands to `learn` or `submit`. Raises UsageError, FormatError, NotFound."""
        receipt, unmeasured = await self.bank.state.receipts.returned(recall, scope=self.bank.scope)
        runs = await runs_from(source, task=task, asked=receipt.task if receipt else None)
        success_at = self.bank.options.success_at
        truths, graded = truths_of(runs, outcome=outcome, reward=reward, success_at=success_at)
        return RunReport(runs, receipt, truths, self.identity, (*unmeasured, *graded))

    async def with_prior_runs(self, report: RunReport, /) -> RunReport:
        """`report` with what the bank holds of these runs, and without what does not count beside that."""
        report = await find_prior_runs(self.bank.store, report, scope=self.bank.scope)
        return await without_word_of_others(self.bank.store, report)

    async def keep(
        self, runs: Sequence[Trajectory], report: RunReport, /, *, wait: float = IN_HAND
    ) -> list[Trajectory]:
        """Keep clean runs with what is reported. Gives those that the bank had already, with what is known of them."""
        bank, ids = self.bank, [run.id for run in runs]
        new = await bank.store.save_runs(await self.submitted(runs, report), scope=bank.scope, wait=wait)
        if self.limit:
            self.limit.deadline = math.inf
        if len(new) == len(ids):
            return []
        return [await get_trajectory(bank.store, id, scope=bank.scope) for id in ids if id not in new]

    async def submitted(self, runs: Sequence[Trajectory], report: RunReport, /) -> list[Trajectory]:
        """Clean runs as they are kept: with what is reported of them, and by whom."""
        bank, ids = self.bank, [run.id for run in runs]
        submission = Submission(
            recall_id=report.receipt.id if report.receipt else None,
            run_ids=tuple(sorted(ids)) if len(ids) > 1 else (),
            identity=self.identity,
            writer=bank.writer,
            seal=seal(await bank.state.receipts.secret(), self.identity, bank.writer, runs=ids, scope=bank.scope),
        )
        own = {id: submission.model_copy(update={"verdict": truth}) for id, truth in report.truths.items()}
        return [  # what is reported is to be learned
            run.model_copy(update={"submission": own[run.id], "unfinished": False}) if run.id in own else run
            for run in runs
        ]

    async def without_erased(
        self, runs: Sequence[Trajectory], receipt: Recall | None, /, *, since: datetime
    ) -> list[Trajectory]:
        """The runs that were not erased `since` then; none where their recall, or all that was kept then, was."""
        digests, whole = set[str](), digest(receipt.id) if receipt else ""
        journal = self.bank.store.journal(scope=self.bank.scope, kinds=("purge", "forgotten"))
        async with closing(journal) as entries:
            async for at in entries:
                entry = at.entry
                if isinstance(entry, Forgotten) and entry.before > since:
                    return []
                if isinstance(entry, Purge) and at.at > since:
                    if entry.what == "scope" or entry.digest == whole:
                        return []
                    digests.add(entry.digest)
        return [run for run in runs if digest(run.id) not in digests]

    async def earlier_teller(self, waiting: Sequence[Trajectory], /) -> tuple[str, str] | None:
        """Who told how runs that wait ended, where that is another than who tells it now, who may not say otherwise."""
        if self.bank.teller is not None:  # it learns in the name of one of them already
            return None
        tellers = [await self._other_teller(run) for run in waiting]
        return next(filter(None, tellers), None)

    async def _other_teller(self, run: Trajectory) -> tuple[str, str] | None:
        submission = run.submission or NO_SUBMISSION
        if submission.identity == self.identity or not submission.says_outcome:
            return None
        return await verified_submitter(
            self.bank.store, submission, runs=submission.run_ids or [run.id], scope=self.bank.scope
        )

    async def with_earlier_word(self, waiting: Sequence[Trajectory], report: RunReport, /) -> RunReport:
        """`report`, in which what was said earlier of runs that wait counts until its teller says otherwise."""
        bank, receipt, truths = self.bank, report.receipt, dict(report.truths)
        submissions = [(run, run.submission or NO_SUBMISSION) for run in waiting]
        recall = next(filter(None, [submission.recall_id or run.recall_id for run, submission in submissions]), None)
        receipt = receipt or (await get_or_none(get_recall(bank.store, recall, scope=bank.scope)) if recall else None)
        others = [run for run in waiting if await self._other_teller(run)]
        truths |= dict.fromkeys([run.id for run in others])
        later = later_endings(report.experiences)
        for run, submission in submissions:  # where the caller says nothing of it now
            if run.id in truths and truths[run.id] is None:
                outcome, reward = later.get(run.id) or submission.ending
                truths[run.id] = truth_verdict(outcome=outcome, reward=reward, success_at=bank.options.success_at)
        notes = (*report.notes, *stays_as_told(others, report))
        return replace(report, receipt=receipt, truths=truths, notes=notes)


def later_endings(experiences: Sequence[Experience], /) -> dict[str, tuple[Verdict, None]]:
    """How runs ended by what was told of them since they were handed in: also that nobody can say it any more."""
    refs = [ref for owner in experiences for ref in owner.attempts if ref.verdict.source in ("ground_truth", "human")]
    return {ref.trajectory_id: (ref.verdict, None) for ref in refs}


def stays_as_told(waiting: Sequence[Trajectory], report: RunReport, /) -> tuple[str, ...]:
    """A note for each run that waits with the outcome of another writer, where the caller says one, too."""
    return tuple(
        f"told by another writer: run {short_repr(run.id)} waits with an outcome, and it stays"
        for run in waiting
        if report.truths.get(run.id)
    )

"""The loop: retrieve, then judge, extract and consolidate. Everything else in this package serves these lines."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from datetime import datetime
from functools import partial
from time import perf_counter
from typing import Any, Final, Self, Unpack, cast

from anyio import CancelScope

from lessonbank._base.aio import within
from lessonbank._base.background import Background
from lessonbank._base.checks import (
    a_count,
    a_flag,
    a_mapping,
    a_share,
    a_text,
    an_action,
    check_record,
    maybe_text,
    maybe_time,
    nonempty,
    safe_getattr,
    short_repr,
)
from lessonbank.contracts.events import Retrieved
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import (
    Change,
    Experience,
    Extraction,
    Found,
    Json,
    Learned,
    Outcome,
    Recall,
    Reflected,
    Run,
    Trajectory,
    Verdict,
    notes_of,
)
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.retrieve_options import (
    PATIENCE,
    RetrieveKeywords,
    RetrieveOptions,
    some_patience,
    takes_retrieve_options,
)
from lessonbank.contracts.settings import OFF
from lessonbank.contracts.store_calls import settled_runs
from lessonbank.errors import UsageError
from lessonbank.evidence.lift import Lift
from lessonbank.guard import check_scope
from lessonbank.guard.names import checked_name
from lessonbank.guard.quote import quoted
from lessonbank.guard.receipts import Receipts
from lessonbank.learning.consolidation.append import asks_model
from lessonbank.learning.judging import truth_verdict
from lessonbank.learning.run_report import RunReport
from lessonbank.learning.topics import LEAST_RUNS
from lessonbank.matts.scale import scale
from lessonbank.search.emptiness import with_reason
from lessonbank.text.messages.runs import run_from
from lessonbank.trials.trial import trial

from .attempt import AsyncAttempt
from .find_run import find_run
from .judge_and_extract import JudgeAndExtract
from .learner import Learner, with_notes
from .outbox import Outbox, deliver_soon
from .parts import BankOptions, BankParts
from .recall_again import Situation, recall_again
from .reflection import reflect
from .retrieval import Recaller
from .run_keeper import RunKeeper
from .scoped_bank import BankState, ScopedBank
from .views import AsyncAdmin, AsyncHistory, AsyncLessons, AsyncRecalls, AsyncRuns

log: Final = logging.getLogger("lessonbank")


def _until_kept(patience: float | None) -> AbstractContextManager[CancelScope]:
    """Inside, runs are kept within so many seconds: a `RunKeeper` lifts the limit. Raises UsageError."""
    return within(None if patience is None else some_patience(patience), "the run was not kept")


class AsyncReasoningBank:
    """Remembers what an agent learned, and recalls it for the next task. Made by `lessonbank.connect_async`."""

    def __init__(self, store: Store, parts: BankParts, options: BankOptions | None = None, /, *, scope: str) -> None:
        self.store, self.parts, self.scope = store, parts, scope
        self.options = options or BankOptions()
        self.writer, self.settings = self.options.writer, dict(self.options.settings)
        self._key: str | None = None
        self._is_scoped = False
        self._state, self._background = BankState(Receipts(store)), Background(quoted)

    # -- before a task ------------------------------------------------------------------------------------------------

    @takes_retrieve_options
    async def retrieve(self, task: str, /, **options: Unpack[RetrieveKeywords]) -> Recall:
        """Find what past tasks taught about `task`. `.text` goes into the prompt; `.notes` says why it is empty.

        `limit` counts experiences, or lessons where these are searched. `trusted=True` shows only lessons that are
        active (approved by a person, or trusted by the bank's policy): for a text that goes where instructions stand.
        `metadata` is kept with the receipt, for example `{"user": "u-17"}`. The receipt is on disk if `.kept` says so.
        If it cannot be written within 0.25 seconds, the text is given all the same, and `learn` keeps the receipt.
        There is a recall, or an error, within `patience` seconds. Raises UsageError, StoreError.
        """
        asked = RetrieveOptions(**options)
        with within(asked.patience, "there was no recall"):
            recall = await self._retrieve(a_text(task, "the task", blank=False), asked)
        if recall.kept:  # the bank takes writes
            await deliver_soon(self)
        return recall

    async def _retrieve(self, task: str, asked: RetrieveOptions) -> Recall:
        begun, task = perf_counter(), await self.parts.intake.task(task)
        if self.options.off:
            return Recall(scope=self.scope, task=task, kept=False, notes=notes_of(OFF))
        recaller = Recaller(self._in_scope)
        recall, retrieval = await recaller.recall(task, asked, draw=True)
        return await self._keep_recall(await recaller.fit(recall, asked, since=begun), retrieval, begun=begun)

    @takes_retrieve_options
    async def recall_again(
        self,
        observation: str,
        /,
        *,
        doing: str = "",
        recall: Recall | str | None = None,
        reason: str = "error",
        step: int = 0,
        cured: bool = False,
        **options: Unpack[RetrieveKeywords],
    ) -> Recall:
        """Look again in the middle of a run, by what came back last; the text has at most 400 tokens.

        `recall` is the first recall of the run: nothing that it or a later one showed is shown again. `doing` is the
        command or call, and `step` how many steps there were. For a command that failed, the cure of this very failure
        comes first; with `cured=True` only that: it is one, whatever `limit` is. `fit` is not done here. `lift`
        measures each `reason` as a group. `bank.attempt` settles the receipt with the run; elsewhere give `recall`,
        and name it in the run's metadata, `{"recalls_again": [recall.id]}`. Raises UsageError, NotFound, StoreError.
        """
        asked, begun = RetrieveOptions(**options), perf_counter()
        situation = Situation(
            observation=a_text(observation, "the observation"),
            doing=a_text(doing, "doing="),
            reason=a_text(reason, "reason="),
            step=a_count(step, "step=", least=0),
        )
        with within(asked.patience, "there was no second recall"):
            first, _ = await self._state.receipts.returned(recall, scope=self.scope)
            why = OFF
            if not self.options.off:
                if pair := await recall_again(self._in_scope, situation, first, asked, cured=a_flag(cured, "cured=")):
                    return await self._keep_recall(*pair, begun=begun)
                why = "nothing more is known of where this run stands"
            task = await self.parts.intake.task(situation.text or reason)
        return Recall(scope=self.scope, task=task, kept=False, step=situation.step, notes=notes_of(why))

    async def _keep_recall(self, recall: Recall, retrieval: Found, /, *, begun: float) -> Recall:
        recall = recall.observed() if self.options.observe else await with_reason(recall, retrieval, self.store)
        receipt = await self._state.receipts.keep(recall)
        unkept = receipt.notes[len(recall.notes) :]
        event = Retrieved(recall=receipt, seconds=perf_counter() - begun)
        return with_notes(receipt, self._in_scope.emit(event, notes=(*retrieval.notes, *unkept)))

    async def _recall_for_trial(self, task: str, /, *, asked: RetrieveOptions) -> tuple[Recall, Found]:
        return await Recaller(self._in_scope).for_trial(task, asked=asked)

    # -- after a task -------------------------------------------------------------------------------------------------

    async def learn(
        self,
        source: object,
        /,
        *,
        task: str | None = None,
        recall: Recall | str | None = None,
        outcome: Outcome | Sequence[Outcome] | None = None,
        reward: float | Sequence[float] | None = None,
        metadata: Mapping[str, Json] | None = None,
        patience: float | None = None,
    ) -> Learned:
        """Judge, extract and consolidate one run (a trajectory or its messages), or several runs of one task.

        `outcome` or `reward` is ground truth and beats the judge. `recall` settles its receipt. The runs are on disk
        before a model is asked. When a model fails, or the embedder's vectors do not fit those of the bank, the run
        stays pending: `notes` says why and `errors` has the codes.
        A run that was learned before adds no lesson, but a later outcome corrects its verdict and its receipt. A
        pending run is learned together with its pending siblings. `patience`: seconds until the runs are on disk; then
        StoreUnavailable. `None`: as long as the store waits. Raises UsageError, FormatError, StoreError.
        """
        if self.options.off:
            return Learned(notes=notes_of(OFF))
        with _until_kept(patience) as limit:
            return await Learner(self._in_scope, limit).learn(
                source, task=task, recall=recall, outcome=outcome, reward=reward, metadata=metadata
            )

    async def tell(
        self,
        of: str | Recall | Mapping[str, Json],
        /,
        *,
        outcome: Outcome | None = None,
        reward: float | None = None,
    ) -> Learned:
        """Say how a task ended once it is known, such as two days later: a thumbs-up, a ticket that came back.

        `of`: the id of the run (`attempt.run_id`), its recall or the recall's id, or metadata that only this run has.
        A run that waits for a verdict teaches now. A run that was learned has its verdict corrected, and the evidence
        of what it was shown. Raises UsageError (no outcome, several runs), NotFound, StoreError.
        """
        if outcome is None and reward is None:
            raise UsageError("tell says how a task ended: give outcome= or reward=")
        if self._in_scope.is_off("tell"):
            return Learned(notes=notes_of(OFF))
        return await Learner(self._in_scope).learn(await find_run(self._in_scope, of), outcome=outcome, reward=reward)

    async def submit(
        self,
        source: object,
        /,
        *,
        task: str | None = None,
        recall: Recall | str | None = None,
        outcome: Outcome | None = None,
        reward: float | None = None,
        metadata: Mapping[str, Json] | None = None,
        patience: float | None = None,
        learn: bool = True,
        ended_at: datetime | None = None,
    ) -> tuple[str, ...]:
        """Keep one run (or several of one task) and learn from it in the background; the ids of the runs.

        The runs and what is known of their outcome are on disk when this returns. `close` waits for the learning. After
        a crash, a worker or `runs.retry()` goes on with it. With `Learning(submit="worker")` only workers learn from
        it. Raises UsageError, FormatError, StoreError.

        Args:
            source: as `learn` takes it, like all that follows.
            task: the task, where `source` does not say it.
            recall: the recall whose receipt the run settles.
            outcome: how the run ended.
            reward: the same as a number from 0 to 1.
            metadata: kept with the run.
            patience: seconds until the runs are on disk; then StoreUnavailable. `None`: as long as the store waits.
            learn: `False` leaves the learning to a call of `learn` with the same runs, which follows.
            ended_at: when the runs ended. What was erased since, here or with its recall, is not kept: there is no id.
                Memory that is switched off then raises UsageError.
        """
        if self._in_scope.is_off("submit", waits=ended_at is not None):
            return ()
        metadata, learn, ended_at = a_mapping(metadata), a_flag(learn, "learn="), maybe_time(ended_at, "ended_at=")
        with _until_kept(patience) as limit:
            bank = self._in_scope
            keeper = RunKeeper(bank, await bank.identity(), limit)
            report = await keeper.report(source, task=task, recall=recall, outcome=outcome, reward=reward)
            for note in report.notes:
                log.warning("%s", note)
            runs = await self.parts.intake.runs(report.runs, metadata)
            if ended_at and not (runs := await keeper.without_erased(runs, report.receipt, since=ended_at)):
                return ()
            # While this process holds the runs, no worker takes them.
            is_held = self.options.submits_here or not learn
            waiting = await keeper.keep(runs, report, wait=IN_HAND if is_held else 0.0)
            if learn:
                await self._learn_submitted(runs, waiting, report)
        return tuple(run.id for run in runs)

    async def _learn_submitted(
        self, runs: Sequence[Trajectory], waiting: Sequence[Trajectory], report: RunReport, /
    ) -> None:
        known = await settled_runs(self.store, [run.id for run in waiting], scope=self.scope) if waiting else ()
        if known:  # no queue holds these: what is said of them now corrects them, and asks no model
            outcomes = [(run, report.truths[run.id]) for run in runs if run.id in known]
            await self.learn(
                [run for run, _ in outcomes],
                recall=report.receipt,
                outcome=cast("Any", [verdict for _, verdict in outcomes]),
            )
        if self.options.submits_here and len(known) < len(runs):
            # How they ended is kept: said once more, it would take the place of what somebody tells until then.
            learn = partial(self.learn, runs, recall=report.receipt)
            self.in_background(learn, lost="a submitted run stays pending")

    async def _hand_in(
        self,
        runs: Sequence[Trajectory],
        /,
        *,
        recall: Recall | None,
        outcome: Sequence[Outcome],
        reward: Sequence[float],
    ) -> None:
        bank = self._in_scope
        keeper = RunKeeper(bank, await bank.identity())
        await keeper.keep(runs, await keeper.report(runs, task=None, recall=recall, outcome=outcome, reward=reward))

    async def keep_unfinished(
        self,
        source: object,
        /,
        *,
        task: str | None = None,
        recall: Recall | str | None = None,
        metadata: Mapping[str, Json] | None = None,
        patience: float | None = None,
        ended_at: datetime | None = None,
    ) -> None:
        """Keep a run that nobody finished: it can be looked at, teaches nothing and settles nothing.

        `patience` and `ended_at` as `submit` has them. Raises UsageError, FormatError, StoreError.
        """
        if self._in_scope.is_off("keep_unfinished", waits=ended_at is not None):
            return
        ended_at = maybe_time(ended_at, "ended_at=")
        with _until_kept(patience) as limit:
            bank = self._in_scope
            keeper = RunKeeper(bank, await bank.identity(), limit)
            receipt, _ = await self._state.receipts.returned(recall, scope=self.scope)
            runs = await self.parts.intake.runs([await run_from(source, task=task)], a_mapping(metadata))
            if not ended_at or await keeper.without_erased(runs, receipt, since=ended_at):
                fields = {"unfinished": True, "recall_id": receipt.id if receipt else None}
                await self.store.save_runs([run.model_copy(update=fields) for run in runs], scope=self.scope)

    async def judge(
        self, source: object, /, *, task: str | None = None, outcome: Outcome | None = None, reward: float | None = None
    ) -> Verdict:
        """Whether a run did its task. Ground truth beats an error that stopped the run, which beats the judge."""
        run = (await self.parts.intake.runs([await run_from(source, task=task)]))[0]
        truth = truth_verdict(outcome=outcome, reward=reward, success_at=self.options.success_at)
        if self.options.off and truth is None:
            return Verdict(outcome="unknown", confidence=0.0, reason=OFF)
        return (await JudgeAndExtract(self._in_scope).judge(run, truth)).verdict

    async def extract(self, attempts: Sequence[Run], /) -> Extraction:
        """Draw lessons from attempts at one task, without keeping them. Raises ExtractionError, ModelError."""
        attempts = nonempty(attempts, "extract", Run)
        if self.options.off:
            return Extraction(notes=notes_of(OFF))
        return await JudgeAndExtract(self._in_scope).extract(await self.parts.intake.attempts(attempts))

    async def consolidate(self, experience: Experience, /, *, dry_run: bool = False) -> tuple[Change, ...]:
        """Decide how the bank changes, and change it; with `dry_run`, decide only.

        Raises UsageError (an experience of another scope), Conflict, SpaceMismatch, StoreError.
        """
        a_flag(dry_run, "dry_run=")
        if check_record(experience, "consolidate", Experience).scope != self.scope:
            raise UsageError(
                f"this experience belongs to scope {short_repr(experience.scope)}, and this bank acts in {self.scope!r}"
                ": call it on `scoped()` of that scope"
            )
        if self._in_scope.is_off("consolidate"):
            return ()
        await self._in_scope.identity()  # a wrong key costs no model
        experience = await self.parts.intake.experience(experience)
        if asks_model(self.parts.consolidator) and (
            mismatch := await JudgeAndExtract(self._in_scope).vector_mismatch(experience.task, is_paid=True)
        ):
            raise mismatch
        return await Learner(self._in_scope).consolidate(experience, dry_run=dry_run)

    @takes_retrieve_options
    def attempt(self, task: str, /, **options: Unpack[RetrieveKeywords]) -> AsyncAttempt:
        """`async with bank.attempt(task) as attempt`: retrieves, and learns on `attempt.finish(…)` or on a crash.

        The memory never breaks the block: `attempt.notes` and one warning say what failed.
        """
        return AsyncAttempt(self, task, **options)

    # -- does it help? ------------------------------------------------------------------------------------------------

    async def lift(self, *, level: float = 0.95) -> Lift:
        """What memory changed, overall and lesson by lesson, with intervals. `print` it, or read its fields.

        Compares recalls with recalls that were withheld at random (`Evidence(holdout=)`). `level` is the confidence of
        the intervals. Raises UsageError, StoreError.
        """
        level = a_share(level, "level", least=0.5, below=1.0)
        lift = await self.parts.ledger.lift(scope=self.scope, level=level)
        return lift.model_copy(update={"notes": (*lift.notes, OFF)}) if self.options.off else lift

    trial = trial

    async def reflect(
        self, *, topic: str | None = None, runs: int = 40, budget: int = 20_000, dry_run: bool = False
    ) -> Reflected:
        """Look back over the runs of each topic, and draw the few lessons that single ones have in common.

        A topic needs four runs with both outcomes and two lessons. A general lesson names two runs of different tasks
        that show it, and two lessons that it covers. It is kept beside these, and has evidence of its own.

        Args:
            topic: the name or id of one topic; `None`: all, those with the most runs first.
            runs: the latest runs of a topic that are compared.
            budget: the tokens (estimated) that the model is shown in all. It is asked once for each topic.
            dry_run: draw only, and keep nothing.

        Raises:
            UsageError: the bank has no model, or an argument is wrong.
            NotFound: there is no such topic.
            ModelError: the model failed at the first topic; where it fails later, a note says so.
        """
        asked = maybe_text(topic, "topic=")
        a_flag(dry_run, "dry_run=")
        runs, budget = a_count(runs, "runs=", least=LEAST_RUNS), a_count(budget, "budget=", least=2_000)
        if self.options.off:
            return Reflected(notes=notes_of(OFF))
        return await reflect(self._in_scope, asked, runs=runs, budget=budget, dry_run=dry_run)

    # -- several runs of one task -------------------------------------------------------------------------------------

    scale = scale

    # -- handles and views --------------------------------------------------------------------------------------------

    def scoped(self, scope: str | None = None, /, *, writer: str | None = None, key: str | None = None) -> Self:
        """A handle on the same bank for another scope, another writer, or both. Nothing is opened or copied.

        A writer's name is kept in the journal with every change. Names that differ only in case count as one. A name is
        a label: what the handle tells counts as told by this process, unless `key` is the writer's key
        (`admin.add_writer`) or a reviewer's (`admin.add_reviewer`). Raises UsageError; for a wrong key, the first call
        that needs it raises it.
        """
        if key is not None and writer is None:
            raise UsageError("key= belongs to a writer: give scoped(writer=name, key=…) with the key of that writer")
        key = None if key is None else a_text(key, "key=", blank=False)
        bank = copy(self)
        bank.scope = self.scope if scope is None else check_scope(scope)
        if writer is not None:
            bank.writer, bank._key = checked_name(writer, what="writer="), key
        bank.settings = {**self.settings, "scope": bank.scope, "writer": bank.writer}
        bank._is_scoped = True
        return bank

    @property
    def lessons(self) -> AsyncLessons:
        """The lessons of this scope: list, search, add, edit, narrow, approve, quarantine, retire, restore."""
        return AsyncLessons(self._in_scope)

    @property
    def runs(self) -> AsyncRuns:
        """The kept runs of this scope: list, search, correct, retry, audit, unlabelled."""
        return AsyncRuns(self._in_scope)

    @property
    def recalls(self) -> AsyncRecalls:
        """The receipts of this scope: list, get, preview, explain."""
        return AsyncRecalls(self._in_scope)

    @property
    def history(self) -> AsyncHistory:
        """The journal of this scope: list, state, retrieve, diff, rollback, lineage."""
        return AsyncHistory(self._in_scope)

    @property
    def admin(self) -> AsyncAdmin:
        """Counts, export, import, purge; and for the whole file scopes, backup, verify, rebuild."""
        return AsyncAdmin(self._in_scope)

    def in_background(self, work: Callable[[], Coroutine[Any, Any, object]], /, *, lost: str) -> None:
        """Begin `work` on this bank's event loop, without waiting. `drain` and `close` wait for it.

        An error is a warning, which begins with `lost`: what is not done then. Raises UsageError where `work` cannot be
        called.
        """
        self._background.begin(an_action(work, "work"), lost=a_text(lost, "lost="))

    async def drain(self) -> None:
        """Wait until what was submitted is learned."""
        await self._background.drain()

    async def close(self, *, patience: float = PATIENCE) -> None:
        """Wait for what was submitted, then release the store, also for all handles on it. Calling it twice is fine.

        A slow model is waited for. A bank that does not answer for `patience` seconds is not: one warning says what was
        left. What was submitted stays pending, and what waits on this machine waits on. Raises UsageError.
        """
        hurry, patience = safe_getattr(self.store, "hurry"), some_patience(patience)
        if hurry:
            hurry(patience)
        await self._background.end(patience)
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def _in_scope(self) -> ScopedBank:
        return ScopedBank(
            store=self.store,
            scope=self.scope,
            writer=self.writer,
            key=self._key,
            parts=self.parts,
            options=self.options,
            state=self._state,
            is_scoped=self._is_scoped,
        )

    @property
    def _outbox(self) -> Outbox:
        return Outbox(self._in_scope.spool, self.parts.intake, self.writer, self._key)

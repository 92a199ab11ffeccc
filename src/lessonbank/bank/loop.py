"""The loop: retrieve, then judge, extract and consolidate. Everything else in this package serves these lines."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from datetime import UTC, date, datetime, timedelta
from functools import partial
from time import perf_counter
from typing import Any, Final, Self, TypeVar, Unpack, cast

from lessonbank._base.aio import gather
from lessonbank._base.checks import (
    a,
    a_count,
    a_flag,
    a_mapping,
    a_share,
    a_text,
    an_action,
    attribute,
    maybe_text,
    several,
    shown,
)
from lessonbank.contracts.events import (
    Consolidated,
    Event,
    Extracted,
    ExtractionFailed,
    Judged,
    Retrieved,
    Reviewed,
    Settled,
)
from lessonbank.contracts.ports import Consolidator, Extractor, Store
from lessonbank.contracts.records import (
    Change,
    Experience,
    Extraction,
    Json,
    Learned,
    Outcome,
    Recall,
    Reflected,
    Run,
    Settlement,
    Trajectory,
    Usage,
    Verdict,
)
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions, takes_retrieve_options
from lessonbank.contracts.settings import OFF
from lessonbank.contracts.store_calls import count_records, forget, settled_in, settled_runs
from lessonbank.errors import ExtractionError, LessonbankError, ModelError, SpaceMismatch, UsageError
from lessonbank.evidence.lift import Lift
from lessonbank.evidence.receipts import Receipts
from lessonbank.guard import check_scope
from lessonbank.guard.identity import identity_of
from lessonbank.guard.names import checked_name
from lessonbank.guard.quote import quoted
from lessonbank.learning.consolidation import OneWording, append
from lessonbank.learning.consolidation.ask import asks_model
from lessonbank.learning.consolidation.retry import retry_on_conflict
from lessonbank.learning.handed_in import (
    run_from,
    runs_from,
    stays_as_told,
    truths_of,
    with_metadata,
)
from lessonbank.learning.judging import error_verdict, judged, truth_verdict, unknown
from lessonbank.learning.outcome import LearnOutcome, nothing_drawn, taught_by
from lessonbank.learning.prior_runs import (
    PriorRuns,
    Verdicts,
    earlier_settlement,
    find_prior_runs,
    own_receipt,
    settled_by_another,
)
from lessonbank.learning.reflection import LEAST_RUNS
from lessonbank.learning.settlement import changed_settlement, corrected, of_another_task, told_by
from lessonbank.learning.shown_texts import texts_shown
from lessonbank.matts.scale import scale
from lessonbank.search.emptiness import with_reason
from lessonbank.trials.compare import trial

from .attempt import AsyncAttempt
from .commit import Commit, Turns
from .hooks import call_hooks
from .keeping import RunKeeper
from .parts import BankOptions, BankParts
from .retrieval import Recaller
from .views import AsyncAdmin, AsyncHistory, AsyncLessons, AsyncRecalls, AsyncRuns, Handle
from .views.reflecting import reflect
from .views.retention import days_to_keep

T = TypeVar("T", Recall, Learned)
log = logging.getLogger("lessonbank")
KNOWN: Final = 3
"""Lessons of the bank that an extractor is shown."""


class AsyncReasoningBank:
    """Remembers what an agent learned, and recalls it for the next task. Made by `lessonbank.connect_async`."""

    def __init__(self, store: Store, parts: BankParts, options: BankOptions | None = None, /, *, scope: str) -> None:
        self.store, self.parts, self.scope = store, parts, check_scope(scope)
        self.options = options or BankOptions()
        self.writer, self.settings = self.options.writer, dict(self.options.settings)
        self._key: str | None = None
        self._teller: str | None = None
        self._is_scoped = False
        self._receipts, self._turns = Receipts(store), Turns()
        self._fitting, self._learning = set[str](), set[asyncio.Task[None]]()
        self._last_erased = dict[str, tuple[date, float]]()
        self._retention_checked = dict[tuple[str, str | None], date]()

    # -- before a task ------------------------------------------------------------------------------------------------

    @takes_retrieve_options
    async def retrieve(self, task: str, /, **options: Unpack[RetrieveKeywords]) -> Recall:
        """Find what past tasks taught about `task`. `.text` goes into the prompt; `.notes` says why it is empty.

        `limit` counts experiences, or lessons where these are searched. `trusted=True` shows only lessons that are
        active (approved by a person, or trusted by the bank's policy): for a text that goes where instructions stand.
        `metadata` is kept with the receipt, for example `{"user": "u-17"}`. The receipt is on disk if `.kept` says so.
        If it cannot be written within 0.25 seconds, the text is given all the same, and `learn` keeps the receipt.
        Raises UsageError, StoreError.
        """
        asked, begun = RetrieveOptions(**options), perf_counter()
        task = await self.parts.intake.task(a_text(task, "the task", blank=False))
        if self.options.off:
            return Recall(scope=self.scope, task=task, kept=False, notes=(OFF,))
        recall, found = await self._recaller.recall(task, asked, draw=True)
        recall = recall.observed() if self.options.observe else await with_reason(recall, found, self.store)
        kept = await self._receipts.keep(recall)
        unkept = kept.notes[len(recall.notes) :]
        return _noted(
            kept, self._emit(Retrieved(recall=kept, seconds=perf_counter() - begun), notes=(*found.notes, *unkept))
        )

    async def _recall_for_trial(self, task: str, /, *, asked: RetrieveOptions) -> Recall:
        return await self._recaller.for_trial(task, asked=asked)

    @property
    def _recaller(self) -> Recaller:
        return Recaller(store=self.store, scope=self.scope, parts=self.parts, options=self.options)

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
    ) -> Learned:
        """Judge, extract and consolidate one run (a trajectory or its messages), or several runs of one task.

        `outcome` or `reward` is ground truth and beats the judge. `recall` settles its receipt. The runs are on disk
        before a model is asked. When a model fails, or the embedder's vectors do not fit those of the bank, the run
        stays pending: `notes` says why and `errors` has the codes.
        A run that was learned before adds no lesson, but a later outcome corrects its verdict and its receipt. A
        pending run is learned together with its pending siblings. Raises UsageError, FormatError, StoreError.
        """
        if self.options.off:
            return Learned(notes=(OFF,))
        metadata = a_mapping(metadata)
        who = await self._identity()  # a wrong key costs no model
        receipt, unmeasured = await self._receipts.returned(recall, scope=self.scope)
        runs = await runs_from(source, task=task, asked=receipt.task if receipt else None)
        truths, graded = truths_of(runs, outcome=outcome, reward=reward, success_at=self.options.success_at)
        prior = await find_prior_runs(self.store, runs, scope=self.scope)
        swapped = self._keeper(who).swapped(receipt, runs)
        receipt, refused = await own_receipt(self.store, receipt, prior)
        foreign = await settled_by_another(self.store, receipt, who)
        graded = (*unmeasured, *refused, *foreign, *swapped, *graded)
        if foreign:
            receipt, truths = None, truths if prior.new else {}
        if not prior.new:
            return await self._settle_late(prior, receipt, truths, graded)
        return await self._learn_new(prior, receipt, truths, graded, metadata, who=who)

    async def _learn_new(
        self,
        prior: PriorRuns,
        receipt: Recall | None,
        truths: Verdicts,
        graded: tuple[str, ...] = (),
        metadata: Mapping[str, Json] | None = None,
        *,
        who: str | None = None,
    ) -> Learned:
        """Keep the runs, judge them, extract lessons, consolidate these into the bank, and review the evidence."""
        who = await self._identity() if who is None else who
        new = with_metadata(await self.parts.intake.runs(prior.new), metadata)
        keeper = self._keeper(who)
        if waiting := await keeper.keep(new, truths, receipt):
            if teller := await keeper.earlier_teller(waiting) if len(waiting) == len(new) else None:
                return _noted(await self._learn_as(teller, prior.handed_in), stays_as_told(waiting, truths))
            at = self.options.success_at
            truths, receipt = await keeper.with_earlier_word(waiting, truths, receipt, success_at=at)
        decided = {run.id: truths.get(run.id) or prior.verdict(run.id) for run in new}
        misfit = await self._misfit(new[0].task)
        judging = [partial(self._judge_run, run, decided[run.id], misfit) for run in new]
        # One run whose outcome is told asks no judge: a task of its own would only take time.
        is_told = len(new) == 1 and all(decided.values())
        attempts = [await judging[0]()] if is_told else await gather(judging)
        notes = self._emit(*[Judged(trajectory=a.trajectory, verdict=a.verdict) for a in attempts])

        extraction, failed = await self._extract_or_defer(attempts, receipt, misfit)
        event = ExtractionFailed(attempts=attempts, error=failed) if failed else None
        event = event or Extracted(attempts=attempts, extraction=extraction)
        notes += self._emit(event, notes=extraction.notes)

        usage = sum((a.verdict.usage for a in attempts if not decided[a.trajectory.id]), extraction.usage)
        result = LearnOutcome(
            prior, truths, receipt, attempts, extraction, scope=self.scope, failed=failed, usage=usage, graded=graded
        )
        learned, settlement = await self._commit_run(result)
        learned = await self._review(_noted(learned, notes), settlement)
        learned = await self._reflect_if_due(learned)
        return _noted(learned, await self._forget_old_runs())

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
    ) -> tuple[str, ...]:
        """Keep one run (or several of one task) and learn from it in the background; the ids of the runs.

        The runs and what is known of their outcome are on disk when this returns. `close` waits for the learning. After
        a crash, a worker or `runs.retry()` goes on with it. With `Learning(submit="worker")` only workers learn from
        it. Raises UsageError, FormatError, StoreError.
        """
        if self._handle.skips("submit"):
            return ()
        who = await self._identity()
        receipt, unmeasured = await self._receipts.returned(recall, scope=self.scope)
        for note in unmeasured:
            log.warning("%s", note)
        runs = await runs_from(source, task=task, asked=receipt.task if receipt else None)
        truths, _ = truths_of(runs, outcome=outcome, reward=reward, success_at=self.options.success_at)
        kept = with_metadata(await self.parts.intake.runs(runs), a_mapping(metadata))
        # While this process holds the runs, no worker takes them.
        wait = IN_HAND if self.options.submits_here else 0.0
        waiting = await self._keeper(who).keep(kept, truths, receipt, wait=wait)
        known = await settled_runs(self.store, [run.id for run in waiting], scope=self.scope) if waiting else ()
        if known:  # no queue holds these: what is said of them now corrects them, and asks no model
            outcomes = [(run, truths[run.id]) for run in kept if run.id in known]
            await self.learn(
                [run for run, _ in outcomes], recall=receipt, outcome=cast("Any", [one for _, one in outcomes])
            )
        if self.options.submits_here and len(known) < len(kept):
            learn = partial(self.learn, kept, recall=receipt, outcome=outcome, reward=reward)
            self.in_background(learn, lost="a submitted run stays pending")
        return tuple(run.id for run in kept)

    async def _hand_in(
        self,
        runs: Sequence[Trajectory],
        /,
        *,
        recall: Recall | None,
        outcome: Sequence[Outcome],
        reward: Sequence[float],
    ) -> None:
        receipt, _ = await self._receipts.returned(recall, scope=self.scope)
        truths, _ = truths_of(runs, outcome=outcome, reward=reward, success_at=self.options.success_at)
        await self._keeper(await self._identity()).keep(runs, truths, receipt)

    async def keep_unfinished(
        self,
        source: object,
        /,
        *,
        task: str | None = None,
        recall: Recall | str | None = None,
        metadata: Mapping[str, Json] | None = None,
    ) -> None:
        """Keep a run that nobody finished: it can be looked at, teaches nothing and settles nothing.

        Raises UsageError, FormatError, StoreError.
        """
        if self._handle.skips("keep_unfinished"):
            return
        receipt, _ = await self._receipts.returned(recall, scope=self.scope)
        run = await run_from(source, task=task)
        fields = {"unfinished": True, "recall_id": receipt.id if receipt else None}
        kept = [one.model_copy(update=fields) for one in with_metadata(await self.parts.intake.runs([run]), metadata)]
        await self.store.save_runs(kept, scope=self.scope)

    async def judge(
        self, source: object, /, *, task: str | None = None, outcome: Outcome | None = None, reward: float | None = None
    ) -> Verdict:
        """Whether a run did its task. Ground truth beats an error that stopped the run, which beats the judge."""
        run = (await self.parts.intake.runs([await run_from(source, task=task)]))[0]
        truth = truth_verdict(outcome=outcome, reward=reward, success_at=self.options.success_at)
        if self.options.off and truth is None:
            return Verdict(outcome="unknown", confidence=0.0, reason=OFF)
        return (await self._judge_run(run, truth)).verdict

    async def extract(self, attempts: Sequence[Run], /) -> Extraction:
        """Draw lessons from attempts at one task, without keeping them. Raises ExtractionError, ModelError."""
        attempts = several(attempts, "extract", Run)
        if self.options.off:
            return Extraction(notes=(OFF,))
        return await self._draw(await self.parts.intake.attempts(attempts))

    async def consolidate(self, experience: Experience, /, *, dry_run: bool = False) -> tuple[Change, ...]:
        """Decide how the bank changes, and change it; with `dry_run`, decide only.

        Raises UsageError (an experience of another scope), Conflict, SpaceMismatch, StoreError.
        """
        a_flag(dry_run, "dry_run=")
        if a(experience, "consolidate", Experience).scope != self.scope:
            raise UsageError(
                f"this experience belongs to scope {shown(experience.scope)}, and this bank acts in {self.scope!r}: "
                "call it on `scoped()` of that scope"
            )
        if self._handle.skips("consolidate"):
            return ()
        experience = taught_by(await self.parts.intake.experience(experience), await self._identity())
        if asks_model(self.parts.consolidator) and (misfit := await self._misfit(experience.task)):
            raise misfit
        commit = self._commit(experience)
        if dry_run:
            return (await commit.decide(self.parts.consolidator))[0]
        (changes, _, unembedded), notes = await retry_on_conflict(
            commit.decide_and_apply, self.parts.consolidator, last=self._last_resort
        )
        self._emit(Consolidated(experience=experience, changes=changes), notes=notes + unembedded)
        return changes

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
        found = await self.parts.ledger.lift(scope=self.scope, level=level)
        return found.model_copy(update={"notes": (*found.notes, OFF)}) if self.options.off else found

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
            ModelError: the model failed.
        """
        asked = maybe_text(topic, "topic=")
        a_flag(dry_run, "dry_run=")
        runs, budget = a_count(runs, "runs=", least=LEAST_RUNS), a_count(budget, "budget=", least=2_000)
        if self.options.off:
            return Reflected(notes=(OFF,))
        if self.parts.reflector is None:
            raise UsageError("reflect asks a model, and this bank has none: connect with model=")
        return await reflect(self._handle, self.parts.reflector, asked, runs=runs, budget=budget, dry_run=dry_run)

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
        return AsyncLessons(self._handle)

    @property
    def runs(self) -> AsyncRuns:
        """The kept runs of this scope: list, search, correct, retry, audit, unlabelled."""
        return AsyncRuns(self._handle)

    @property
    def recalls(self) -> AsyncRecalls:
        """The receipts of this scope: list, get, preview, explain."""
        return AsyncRecalls(self._handle)

    @property
    def history(self) -> AsyncHistory:
        """The journal of this scope: list, state, search, diff, rollback, lineage."""
        return AsyncHistory(self._handle)

    @property
    def admin(self) -> AsyncAdmin:
        """Counts, export, import, purge; and for the whole file scopes, backup, verify, rebuild."""
        return AsyncAdmin(self._handle)

    def in_background(self, work: Callable[[], Coroutine[Any, Any, object]], /, *, lost: str) -> None:
        """Begin `work` on this bank's event loop, without waiting. `drain` and `close` wait for it.

        An error is a warning, which begins with `lost`: what is not done then. Raises UsageError where `work` cannot be
        called.
        """
        work, lost = an_action(work, "work"), a_text(lost, "lost=")

        async def logged() -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - a part of the caller's own may raise anything; nobody waits here
                log.warning("%s: %s: %s", lost, type(error).__name__, quoted(error))

        task = asyncio.get_running_loop().create_task(logged())
        self._learning.add(task)
        task.add_done_callback(self._learning.discard)

    async def drain(self) -> None:
        """Wait until what was submitted is learned."""
        while self._learning:
            await asyncio.wait(self._learning)

    async def close(self) -> None:
        """Wait for what was submitted, then release the store. Calling it twice is fine."""
        await self.drain()
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- the steps of the loop ----------------------------------------------------------------------------------------

    async def _misfit(self, task: str) -> SpaceMismatch | None:
        """Why vectors that are made now would not fit; asked before anything is paid, until they once did.

        Then the run waits, as after a model that failed: a lesson that is paid for should be found as the others are.
        Where nothing is paid, waiting would save nothing: the lesson is kept, and `reindex` gives it its vector.
        """
        if not self.parts.asks_model or self.scope in self._fitting:
            return None
        try:
            misfit = await self._handle.misfit(task)
        except ModelError:  # the lessons are kept without a vector then, which says nothing of its dimension
            return None
        if misfit is None:
            self._fitting.add(self.scope)
        return misfit

    async def _judge_run(self, run: Trajectory, truth: Verdict | None, misfit: SpaceMismatch | None = None) -> Run:
        """A run and how it ended: by the truth, by an error that the run names, or else by the judge."""
        verdict = truth or error_verdict(run)
        if misfit and not verdict:
            verdict = unknown(quoted(misfit), error=misfit.code)
        with self.parts.intake.in_force():
            verdict = verdict or await judged(self.parts.judge, run)
        return Run(trajectory=run, verdict=await self.parts.intake.reply(verdict))

    async def _draw(self, attempts: Sequence[Run], receipt: Recall | None = None) -> Extraction:
        """The lessons of these runs, drawn with the nearest lessons of the bank in view."""
        extractor = await self._extractor_with_known(attempts)
        with self.parts.intake.in_force():
            drawn = await extractor(attempts)
        if receipt and drawn.repeats:  # what memory had shown cannot speak for itself
            own = {candidate.lesson_id for candidate in receipt.candidates if candidate.shown}
            repeats = {id: again for id, again in drawn.repeats.items() if id not in own}
            drawn = drawn.model_copy(update={"repeats": repeats})
        return await self._admit_drafts(drawn, attempts, receipt)

    async def _draw_without_bank(self, attempts: Sequence[Run]) -> Extraction:
        """What these runs teach by themselves: the extractor is shown nothing that the bank knows."""
        with self.parts.intake.in_force():
            drawn = await self.parts.extractor(attempts)
        return await self._admit_drafts(drawn, attempts, None)

    async def _admit_drafts(self, drawn: Extraction, attempts: Sequence[Run], receipt: Recall | None) -> Extraction:
        """What the gate lets through of what was drawn."""
        runs = [attempt.trajectory for attempt in attempts]
        shown = await texts_shown(self.store, runs, receipt, scope=self.scope)
        return await self.parts.intake.lessons(drawn, attempts, shown=shown)

    async def _extractor_with_known(self, attempts: Sequence[Run]) -> Extractor:
        """The extractor. Where it can say how its lessons stand to those of the bank, it is shown the nearest."""
        knowing = attribute(self.parts.extractor, "knowing") if self.options.shows_known and attempts else None
        if knowing is None:
            return self.parts.extractor
        found = await self.store.search(attempts[0].trajectory.task, scope=self.scope, limit=KNOWN)  # embeds nothing
        near = {lesson.id: lesson for match in found for lesson in match.experience.active_lessons}
        return knowing(list(near.values())[:KNOWN]) if near else self.parts.extractor

    async def _extract_or_defer(
        self, attempts: Sequence[Run], receipt: Recall | None, misfit: SpaceMismatch | None = None
    ) -> tuple[Extraction, ExtractionError | ModelError | SpaceMismatch | None]:
        """The extraction, and the error after which it is to be tried again."""
        if all(a.verdict.outcome == "unknown" for a in attempts):
            return Extraction(notes=tuple(f"not judged: {a.verdict.reason}" for a in attempts)), None
        if misfit:
            return nothing_drawn(misfit), misfit
        try:
            return await self._draw(attempts, receipt), None
        except (ExtractionError, ModelError) as error:
            return await self.parts.intake.reply(nothing_drawn(error)), error

    async def _commit_run(self, result: LearnOutcome) -> tuple[Learned, Settlement | None]:
        """Consolidate into the bank as it is now, which others may have changed since the runs were judged."""
        costs, ids = list[Usage](), result.ids

        async def once(policy: Consolidator) -> tuple[Learned, Settlement | None, Event | None]:
            held = await self.store.experiences("run", ids, scope=self.scope)
            if held and (known := settled_in(held, ids)):
                return result.already_learned(known), None, None
            earlier = held[-1] if held else None
            who = await self._identity()
            experience = result.experience(earlier, writer=self.writer, identity=who)
            commit = self._commit(experience, earlier=earlier, result=result, who=who, costs=costs)
            changes, settlement, notes = await commit.decide_and_apply(policy)
            learned = result.learned(earlier or experience, changes, notes=notes)
            return learned, settlement, Consolidated(experience=experience, changes=changes)

        (learned, settlement, event), notes = await retry_on_conflict(
            once, self.parts.consolidator, last=self._last_resort
        )
        notes += self._emit(event, notes=notes) if event else ()
        learned = learned.model_copy(update={"usage": sum(costs, learned.usage)})
        return _noted(learned, notes), settlement

    async def _settle_late(
        self,
        prior: PriorRuns,
        receipt: Recall | None,
        truths: Verdicts,
        graded: tuple[str, ...] = (),
        *,
        by: tuple[str, str] | None = None,
    ) -> Learned:
        """A truth that is told later: it corrects the verdict of a learned run, and its receipt.

        `by`: who says it and why, for the history.
        """
        writer, changes = self.writer, corrected(prior.experience, truths)
        if by is not None:
            writer, changes = by[0], corrected(prior.experience, truths, reason=by[1])
        async with self._turns.locks.of(self.scope):
            earlier, counted = await earlier_settlement(self.store, receipt, prior, truths)
            settlement = changed_settlement(earlier, receipt, prior.experience, counted)
            settlement = told_by(settlement, await self._identity())
            await self.store.apply(changes, scope=self.scope, writer=writer, settlement=settlement)
        misfits = () if earlier else of_another_task(settlement and receipt, prior.handed_in)
        notes = (*graded, *prior.contradictions(truths), *misfits)
        return await self._review(Learned(known=prior.known, changes=tuple(changes), notes=notes), settlement)

    async def _review(self, learned: Learned, settlement: Settlement | None) -> Learned:
        """`learned`, and what the ledger did because one more outcome is known."""
        if settlement is None:
            return learned
        notes = self._emit(Settled(settlement=settlement))
        acted = await self.parts.ledger.settled(scope=settlement.scope)
        if acted.changes or acted.proposals or acted.notes:
            reviewed = Reviewed(changes=acted.changes, proposals=acted.proposals)
            notes += acted.notes + self._emit(reviewed, notes=acted.notes)
        return _noted(learned.model_copy(update={"changes": (*learned.changes, *acted.changes)}), notes)

    async def _reflect_if_due(self, learned: Learned) -> Learned:
        """`learned`, and what looking back over its topic gave, where it is time to."""
        named = next((lesson.topic.id for lesson in learned.lessons if lesson.topic), None)
        if not self.options.reflect_every or self.parts.reflector is None or named is None:
            return learned
        if (await count_records(self.store, scope=self.scope)).experiences % self.options.reflect_every:
            return learned
        try:
            reflected = await self.reflect(topic=named)
        except LessonbankError as error:
            return _noted(learned, (f"nothing was drawn from looking back: {quoted(error)}",))
        notes = reflected.notes
        if not (reflected.lessons or notes):
            notes = ("looking back over the topic gave nothing general",)
        usage, changes = learned.usage + reflected.usage, (*learned.changes, *reflected.changes)
        return _noted(learned.model_copy(update={"usage": usage, "changes": changes}), notes)

    async def _forget_old_runs(self) -> tuple[str, ...]:
        """Once a day and scope, erase what is older than the bank keeps; a note where that is not what was asked."""
        today = datetime.now(UTC).date()
        if self.options.off or self._retention_checked.get((self.scope, self._key)) == today:
            return ()
        self._retention_checked[self.scope, self._key] = today
        try:
            days, notes = await days_to_keep(self.store, self.options.keep_runs, name=self.writer, key=self._key)
            if days is not None and self._last_erased.get(self.scope) != (today, days):
                self._last_erased[self.scope] = today, days
                before = datetime.now(UTC) - timedelta(days=days)
                await forget(self.store, scope=self.scope, before=before, writer=self.writer)
        except LessonbankError as error:
            return (f"old runs were not erased: {quoted(error)}",)
        return notes

    async def _correct_by_person(self, run: Trajectory, verdict: Verdict, /, *, by: str, reason: str) -> Learned:
        """Put `verdict`, a person's, in the place of the verdict of a kept run. `runs.correct` calls this."""
        prior = await find_prior_runs(self.store, [run], scope=self.scope)
        verdict = await self.parts.intake.reply(verdict)
        if prior.new:
            return await self._learn_new(prior, prior.recall, {run.id: verdict})
        why = await self.parts.intake.sentence(reason)
        return await self._settle_late(prior, prior.recall, {run.id: verdict}, by=(by, why))

    async def _identity(self) -> str:
        """Who calls, as the bank knows it. Raises UsageError for a wrong key."""
        if self._teller is not None:
            return self._teller
        return await identity_of(self.store, name=self.writer, key=self._key)

    async def _learn_as(self, teller: tuple[str, str] | None, runs: Sequence[Trajectory], /, **options: Any) -> Learned:
        """Learn from submitted runs as whoever submitted them, in whose name everything then happens.

        `runs.retry` calls this, and `learn` where the word of an earlier caller stands in the place of this one's.
        """
        bank = copy(self)
        if teller is not None:
            bank._teller, bank.writer = teller
        return await bank.learn(runs, **options)

    def _emit(self, *events: Event, notes: Sequence[str] = ()) -> tuple[str, ...]:
        """Call the hooks; a note for each that failed. What `notes` say becomes events of a fallback."""
        if not self.parts.hooks:
            return ()
        return tuple(note for event in events for note in call_hooks(self.parts.hooks, event, notes=notes))

    def _keeper(self, who: str) -> RunKeeper:
        return RunKeeper(store=self.store, scope=self.scope, receipts=self._receipts, writer=self.writer, who=who)

    def _commit(self, experience: Experience, /, **known: Any) -> Commit:
        return Commit(handle=self._handle, parts=self.parts, turns=self._turns, experience=experience, **known)

    @property
    def _last_resort(self) -> Consolidator:
        """What decides where the bank changes faster than its consolidator."""
        return OneWording(append, self.store) if self.options.unique_wording else append

    @property
    def _handle(self) -> Handle:
        return Handle(
            store=self.store,
            scope=self.scope,
            writer=self.writer,
            key=self._key,
            retriever=self.parts.retriever,
            ledger=self.parts.ledger,
            intake=self.parts.intake,
            limit=self.options.limit,
            learn_as=self._learn_as,
            correct=self._correct_by_person,
            draw=self._draw_without_bank,
            pays=self.parts.asks_model,
            preview=self._recaller.preview,
            is_scoped=self._is_scoped,
            off=self.options.off,
            one_wording=self.options.unique_wording,
            corroborates=self.options.corroborates,
            keep_runs=self.options.keep_runs,
            topics=self.parts.topics,
        )


def _noted(record: T, notes: tuple[str, ...]) -> T:
    return record.model_copy(update={"notes": (*record.notes, *notes)}) if notes else record

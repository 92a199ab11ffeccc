"""The loop: retrieve, then judge, extract and consolidate. Everything else in this package serves these lines."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from datetime import UTC, date, datetime, timedelta
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any, Final, Self, TypeVar, cast

from lessonbank._base.aio import gather, if_there
from lessonbank._base.checks import (
    a,
    a_count,
    a_flag,
    a_mapping,
    a_share,
    a_text,
    an_action,
    attribute,
    maybe_count,
    maybe_text,
    several,
    shown,
)
from lessonbank._base.locks import ScopeLocks
from lessonbank.contracts.agents import AnyAgent, Verifier, check_calls
from lessonbank.contracts.events import (
    Consolidated,
    Event,
    Extracted,
    ExtractionFailed,
    Hook,
    Judged,
    Retrieved,
    Reviewed,
    Settled,
)
from lessonbank.contracts.ports import Consolidator, Extractor, Judge, LanguageModel, Retriever, Store, Vectors
from lessonbank.contracts.records import (
    RECALL,
    UNFINISHED,
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
    Settlement,
    Trajectory,
    Usage,
    Verdict,
)
from lessonbank.contracts.records.ids import digest, new_id
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.settings import OFF
from lessonbank.contracts.store_calls import (
    count_records,
    forget,
    get_recall,
    get_trajectory,
    settled_in,
    settled_runs,
)
from lessonbank.errors import Conflict, ExtractionError, LessonbankError, ModelError, SpaceMismatch, UsageError
from lessonbank.evidence.groups import groups_of
from lessonbank.evidence.ledger import Ledger, Unmeasured
from lessonbank.evidence.lift import Lift
from lessonbank.evidence.receipts import Receipts
from lessonbank.guard import check_scope
from lessonbank.guard.identity import identity_of, seal, teller_of
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.names import checked_name
from lessonbank.guard.quote import quoted
from lessonbank.learning.consolidation import OneWording, append
from lessonbank.learning.consolidation.ask import asks_model
from lessonbank.learning.consolidation.retry import decide, retry_on_conflict, spent
from lessonbank.learning.handed_in import (
    request_of,
    run_from,
    runs_from,
    stays_as_told,
    submission_of,
    submitted_outcome,
    submitted_recall,
    truths_of,
    truths_with_submitted,
    with_metadata,
    with_submission,
)
from lessonbank.learning.judging import SUCCESS_AT, checked_threshold, error_verdict, judged, truth_verdict, unknown
from lessonbank.learning.outcome import LearnOutcome, changed, nothing_drawn, replacing, taught_by
from lessonbank.learning.prior_runs import (
    PriorRuns,
    Verdicts,
    earlier_settlement,
    find_prior_runs,
    own_receipt,
    settled_by_another,
)
from lessonbank.learning.settlement import changed_settlement, corrected, of_another_task, settled_otherwise, told_by
from lessonbank.learning.shown_texts import texts_shown
from lessonbank.learning.topics import Topics, in_topics
from lessonbank.matts.design import Design, Examining, Mode, Selection
from lessonbank.matts.result import Scaled
from lessonbank.matts.rollouts import Progress
from lessonbank.matts.runner import BankMemory, ScaledTask
from lessonbank.matts.scaler import Scaler
from lessonbank.search.contests import one_side, remember
from lessonbank.search.emptiness import with_reason
from lessonbank.search.injection import Injector
from lessonbank.search.one_look import one_look
from lessonbank.search.trusted import Trusted
from lessonbank.trials.design import Design as TrialDesign
from lessonbank.trials.design import Trial, asked
from lessonbank.trials.trial import Tasks, try_again

from .attempt import AsyncAttempt
from .hooks import call_hooks
from .views import AsyncAdmin, AsyncHistory, AsyncLessons, AsyncRecalls, AsyncRuns, Handle
from .views.reflecting import LEAST_RUNS, Reflecting
from .views.retention import days_to_keep
from .views.trying import Tried, Trying

T = TypeVar("T", Recall, Learned)
log = logging.getLogger("lessonbank")
KNOWN: Final = 3
"""Lessons of the bank that an extractor is shown."""
_STALE_TRIES: Final = 5
"""How often a slow decision is made again because another task of this process changed the scope meanwhile."""


class AsyncReasoningBank:
    """Remembers what an agent learned, and recalls it for the next task. Made by `lessonbank.connect_async`."""

    def __init__(
        self,
        store: Store,
        /,
        *,
        scope: str,
        retriever: Retriever,
        judge: Judge,
        extractor: Extractor,
        consolidator: Consolidator,
        injector: Injector,
        trying: Trying | None = None,
        one_wording: bool = False,
        compares: bool = False,
        reflector: LanguageModel | None = None,
        reflect_every: int | None = None,
        ledger: Ledger | None = None,
        topics: Topics | None = None,
        limit: int = 1,
        writer: str = "learn",
        trust_names: bool = False,
        hooks: Sequence[Hook] = (),
        intake: IntakeFilter | None = None,
        scaler: Scaler | None = None,
        success_at: float = SUCCESS_AT,
        pays: bool = True,
        keep_runs: float | None = None,
        submits_here: bool = True,
        observe: bool = False,
        off: bool = False,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        self.store, self.scope, self.limit = store, check_scope(scope), limit
        self.writer = checked_name(writer, what="writer=")
        self._key: str | None = None
        self._teller: str | None = None
        self._trust_names, self._is_named = trust_names, False
        self.settings = dict(settings or {})
        self._retriever, self._injector, self._ledger = retriever, injector, ledger or Unmeasured()
        self._trying = trying
        self._judge, self._extractor, self._consolidator = judge, extractor, consolidator
        self._consolidator_asks = asks_model(consolidator)
        # What decides where the bank changes faster than its consolidator.
        self._appending = OneWording(append, store) if one_wording else append
        self._intake, self._scaler = intake or IntakeFilter(), scaler or Scaler()
        self._success_at, self._observe, self._off = checked_threshold(success_at), observe, off
        self._hooks, self._locks, self._commits = tuple(hooks), ScopeLocks(), Counter[str]()
        self._reflector, self._reflect_every = reflector, reflect_every
        self._one_wording, self._topics, self._pays, self._fitting = one_wording, topics, pays, set[str]()
        self._learning, self._compares = set[asyncio.Task[None]](), compares
        self._is_scoped = False
        self._keep_runs, self._forgotten = keep_runs, dict[str, tuple[date, float]]()
        self._retained = dict[tuple[str, str | None], date]()
        self._receipts, self._submits_here = Receipts(store), submits_here

    # -- before a task ------------------------------------------------------------------------------------------------

    async def retrieve(
        self,
        task: str,
        /,
        *,
        limit: int | None = None,
        trusted: bool = False,
        metadata: Mapping[str, Json] | None = None,
    ) -> Recall:
        """Find what past tasks taught about `task`. `.text` goes into the prompt; `.notes` says why it is empty.

        `limit` counts experiences, or lessons where these are searched. `trusted=True` shows only lessons that are
        active (approved by a person, or trusted by the bank's policy): for a text that goes where instructions stand.
        `metadata` is kept with the receipt, for example `{"user": "u-17"}`. The receipt is on disk if `.kept` says so.
        If it cannot be written within 0.25 seconds, the text is given all the same, and `learn` keeps the receipt.
        Raises UsageError, StoreError.
        """
        told, limit, begun = a_mapping(metadata), maybe_count(limit) or self.limit, perf_counter()
        task = await self._intake.task(a_text(task, "the task", blank=False))
        if self._off:
            return Recall(scope=self.scope, task=task, kept=False, notes=(OFF,))
        search = _of_active(self._retriever, a_flag(trusted, "trusted="))
        recall, found = await self._found(task, search, self._ledger, limit=limit)
        recall = recall.observed() if self._observe else await with_reason(recall, found, self.store)
        recall = recall.model_copy(update={"metadata": told})
        kept = await self._receipts.keep(recall)
        unkept = kept.notes[len(recall.notes) :]
        return _noted(
            kept, self._tell(Retrieved(recall=kept, seconds=perf_counter() - begun), notes=(*found.notes, *unkept))
        )

    async def _found(
        self, task: str, search: Retriever, ledger: Ledger, /, *, limit: int, words: Injector | None = None
    ) -> tuple[Recall, Found]:
        """What a search finds, as a receipt that nobody kept yet, with the draws of `ledger`."""
        found = await ledger.prefer(await search(task, scope=self.scope, limit=limit), scope=self.scope)
        recall_id = new_id()
        apart, every = await ledger.writers(scope=self.scope), [m.experience for m in found.matches]
        groups = {i.id: groups_of(i, one, apart=apart) for one in every for i in one.active_lessons}
        assigned = await ledger.assign(groups, recall_id=recall_id, task=task, scope=self.scope)
        sides = one_side(found, recall_id=recall_id, drawn=assigned.usual is not None)
        found = sides.found
        recall = (words or self._injector).recall(
            found,
            id=recall_id,
            task=task,
            scope=self.scope,
            assigned=sides.assigned(assigned),
            groups=groups,
            retriever=search.name,
            space=search.space,
        )
        return recall, found

    async def _preview(self, task: str, tried: Tried) -> Recall:
        """What would be shown with some settings, without draws and without a receipt."""
        task = await self._intake.task(task)
        if self._off:
            return Recall(scope=self.scope, task=task, kept=False, notes=(OFF,))
        search, words = self._retriever, self._injector
        if not tried.is_own:
            if self._trying is None:
                raise UsageError("other settings can be tried with a bank that `connect` made; here limit= alone can")
            search, words = self._trying(tried)
        search = _of_active(search, tried.trusted)
        recall, found = await self._found(task, search, Unmeasured(), limit=tried.limit or self.limit, words=words)
        recall = await with_reason(recall, found, self.store)
        return recall.model_copy(update={"kept": False, "notes": (*recall.notes, *found.notes)})

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
        if self._off:
            return Learned(notes=(OFF,))
        metadata = a_mapping(metadata)
        who = await self._identity()  # a wrong key costs no model
        receipt, unmeasured = await self._receipts.returned(recall, scope=self.scope)
        runs = await runs_from(source, task=task, asked=receipt.task if receipt else None)
        truths, graded = truths_of(runs, outcome=outcome, reward=reward, success_at=self._success_at)
        prior = await find_prior_runs(self.store, runs, scope=self.scope)
        swapped = self._swapped(receipt, runs)
        receipt, refused = await own_receipt(self.store, receipt, prior)
        foreign = await settled_by_another(self.store, receipt, who)
        graded = (*unmeasured, *refused, *foreign, *swapped, *graded)
        if foreign:
            receipt, truths = None, truths if prior.new else {}
        if not prior.new:
            return await self._correct(prior, receipt, truths, graded)
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
        new = with_metadata(await self._intake.runs(prior.new), metadata)
        if waited := await self._keep(new, truths, receipt, who=who):
            if teller := await self._earlier_teller(waited, who) if len(waited) == len(new) else None:
                return _noted(await self._learn_as(teller, prior.handed_in), stays_as_told(waited, truths))
            truths, receipt = await self._with_earlier_word(waited, truths, receipt)
        decided = {run.id: truths.get(run.id) or prior.verdict(run.id) for run in new}
        misfit = await self._misfit(new[0].task)
        judging = [partial(self._judged, run, decided[run.id], misfit) for run in new]
        # One run whose outcome is told asks no judge: a task of its own would only take time.
        is_told = len(new) == 1 and all(decided.values())
        attempts = [await judging[0]()] if is_told else await gather(judging)
        notes = self._tell(*[Judged(trajectory=a.trajectory, verdict=a.verdict) for a in attempts])

        extraction, failed = await self._extracted(attempts, receipt, misfit)
        event = ExtractionFailed(attempts=attempts, error=failed) if failed else None
        event = event or Extracted(attempts=attempts, extraction=extraction)
        notes += self._tell(event, notes=extraction.notes)

        usage = sum((a.verdict.usage for a in attempts if not decided[a.trajectory.id]), extraction.usage)
        result = LearnOutcome(
            prior, truths, receipt, attempts, extraction, scope=self.scope, failed=failed, usage=usage, graded=graded
        )
        learned, settlement = await self._commit_run(result)
        learned = await self._review(_noted(learned, notes), settlement)
        learned = await self._reflected(learned)
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
        truths, _ = truths_of(runs, outcome=outcome, reward=reward, success_at=self._success_at)
        kept = with_metadata(await self._intake.runs(runs), a_mapping(metadata))
        waited = await self._keep(kept, truths, receipt, who=who, wait=IN_HAND if self._submits_here else 0.0)
        known = await settled_runs(self.store, [run.id for run in waited], scope=self.scope) if waited else ()
        if known:  # no queue holds these: what is said of them now corrects them, and asks no model
            told = [(run, truths[run.id]) for run in kept if run.id in known]
            await self.learn([run for run, _ in told], recall=receipt, outcome=cast("Any", [one for _, one in told]))
        if self._submits_here and len(known) < len(kept):
            learn = partial(self.learn, kept, recall=receipt, outcome=outcome, reward=reward)
            self.in_background(learn, lost="a submitted run stays pending")
        return tuple(run.id for run in kept)

    def _swapped(self, receipt: Recall | None, runs: Sequence[Trajectory]) -> tuple[str, ...]:
        """A note for each run that begins with the task of another recall than the one that it settles."""
        if receipt is None:
            return ()
        asked = [(run, request) for run in runs if (request := request_of(run))]
        other = [(run, self._receipts.mistaken_for(receipt, request)) for run, request in asked]
        notes = [
            f"another task: run {shown(run.id)} begins with {shown(request_of(run))}, for which the recall "
            f"{shown(id)} was made, and it settles that of {shown(receipt.task)}: hand each run to learn with the "
            "recall that it used"
            for run, id in other
            if id
        ]
        return tuple(notes)

    async def _keep(
        self,
        runs: Sequence[Trajectory],
        truths: Verdicts,
        receipt: Recall | None,
        /,
        *,
        who: str,
        wait: float = IN_HAND,
    ) -> list[Trajectory]:
        """Put runs on disk with all that is known of them, before anything slow begins.

        Gives those that the bank had already, with what is known of them now.
        """
        ids = [run.id for run in runs]
        proof = seal(await self._receipts.secret(), who, self.writer, runs=ids, scope=self.scope)
        stamp = partial(
            with_submission,
            recall_id=receipt.id if receipt else None,
            group=ids,
            teller={"identity": who, "writer": self.writer, "seal": proof},
        )
        stamped = [stamp(run, truths[run.id]) if run.id in truths else run for run in runs]
        new = await self.store.save_runs(stamped, scope=self.scope, wait=wait)
        if len(new) == len(ids):
            return []
        return [await get_trajectory(self.store, id, scope=self.scope) for id in ids if id not in new]

    async def _earlier_teller(self, waited: Sequence[Trajectory], who: str) -> tuple[str, str] | None:
        """Who told how runs that wait ended, where that is not `who`, and `who` may not say otherwise."""
        for run in waited:
            noted = submission_of(run)
            if noted.get("identity") != who and submitted_outcome(run) != (None, None):
                return await teller_of(self.store, noted, runs=noted.get("runs", [run.id]), scope=self.scope)
        return None

    async def _with_earlier_word(
        self, waited: Sequence[Trajectory], truths: Verdicts, receipt: Recall | None
    ) -> tuple[Verdicts, Recall | None]:
        """What is known of runs, some of which waited: what was said earlier counts until somebody says otherwise."""
        recall = next(filter(None, map(submitted_recall, waited)), None)
        receipt = receipt or (await if_there(get_recall(self.store, recall, scope=self.scope)) if recall else None)
        return truths_with_submitted(truths, waited, success_at=self._success_at), receipt

    async def _hand_in(
        self,
        runs: Sequence[Trajectory],
        outcome: Sequence[Outcome] | None,
        reward: Sequence[float] | None,
        recall: Recall | None,
        /,
    ) -> None:
        """Put redacted runs on disk, to be learned later."""
        receipt, _ = await self._receipts.returned(recall, scope=self.scope)
        truths, _ = truths_of(runs, outcome=outcome, reward=reward, success_at=self._success_at)
        await self._keep(runs, truths, receipt, who=await self._identity())

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
        named: dict[str, Json] = {RECALL: receipt.id} if receipt else {}
        told = {**a_mapping(metadata), **named, UNFINISHED: True}
        await self.store.save_runs(with_metadata(await self._intake.runs([run]), told), scope=self.scope)

    async def judge(
        self, source: object, /, *, task: str | None = None, outcome: Outcome | None = None, reward: float | None = None
    ) -> Verdict:
        """Whether a run did its task. Ground truth beats an error that stopped the run, which beats the judge."""
        run = (await self._intake.runs([await run_from(source, task=task)]))[0]
        truth = truth_verdict(outcome=outcome, reward=reward, success_at=self._success_at)
        if self._off and truth is None:
            return Verdict(outcome="unknown", confidence=0.0, reason=OFF)
        return (await self._judged(run, truth)).verdict

    async def extract(self, attempts: Sequence[Run], /) -> Extraction:
        """Draw lessons from attempts at one task, without keeping them. Raises ExtractionError, ModelError."""
        attempts = several(attempts, "extract", Run)
        if self._off:
            return Extraction(notes=(OFF,))
        return await self._drawn(await self._intake.attempts(attempts))

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
        experience = taught_by(await self._intake.experience(experience), await self._identity())
        if self._consolidator_asks and (misfit := await self._misfit(experience.task)):
            raise misfit
        if dry_run:
            return (await self._decided(self._consolidator, experience, earlier=None, costs=[]))[0]
        (changes, _, unembedded), notes = await retry_on_conflict(
            lambda policy: self._commit(policy, experience, costs=[]), self._consolidator, last=self._appending
        )
        self._tell(Consolidated(experience=experience, changes=changes), notes=notes + unembedded)
        return changes

    def attempt(
        self,
        task: str,
        /,
        *,
        limit: int | None = None,
        trusted: bool = False,
        metadata: Mapping[str, Json] | None = None,
    ) -> AsyncAttempt:
        """`async with bank.attempt(task) as attempt`: retrieves, and learns on `attempt.finish(…)` or on a crash.

        The memory never breaks the block: `attempt.notes` and one warning say what failed.
        """
        return AsyncAttempt(self, task, limit=limit, trusted=trusted, metadata=metadata)

    # -- does it help? ------------------------------------------------------------------------------------------------

    async def lift(self, *, level: float = 0.95) -> Lift:
        """What memory changed, overall and lesson by lesson, with intervals. `print` it, or read its fields.

        Compares recalls with recalls that were withheld at random (`Evidence(holdout=)`). `level` is the confidence of
        the intervals. Raises UsageError, StoreError.
        """
        level = a_share(level, "level", least=0.5, below=1.0)
        found = await self._ledger.lift(scope=self.scope, level=level)
        return found.model_copy(update={"notes": (*found.notes, OFF)}) if self._off else found

    async def trial(
        self,
        tasks: Tasks,
        agent: AnyAgent,
        /,
        *,
        verify: Verifier,
        without: str | None = None,
        with_: str | None = None,
        placebo: str | bool = False,
        max_runs: int = 400,
        max_cost: float | None = None,
        max_seconds: float | None = None,
        rounds: int = 1,
        min_effect: float = 0.1,
        level: float = 0.95,
        seed: int = 0,
        concurrency: int = 1,
        trusted: bool = False,
        resume: str | PathLike[str] | None = None,
        progress: Callable[[Trial], None] | None = None,
    ) -> Trial:
        """Do `tasks` with and without memory, in pairs, until it is clear what memory changes. `print` the result.

        For worlds that can be reset. Nothing is written into the bank, and nothing is withheld at random. With
        `without`, `with_` or `placebo` the question is about one lesson or group instead of memory as a whole.
        `lessonbank.trials.plan_trial(0.1)` says before how many runs it takes to show an effect of ten points.

        The agent is handed the text, and that is what is measured. The result says how many runs show that text (in the
        run, or as its SHA-256 in `metadata["memory_digest"]`). A run that shows another text ends the trial.

        Args:
            tasks: their texts; or kept recalls of this scope or their ids, for what was shown then.
            agent: `(task, memory)` to a trajectory or its messages, async or not. A parameter `seed` gets the same
                number in both runs of a pair; luck that they share saves most of the runs. What it raises ends the
                trial.
            verify: the world's check of a run: success or not, a score from 0 to 1, or an outcome.
            without: the lesson to leave out of what is shown; or the name of a topic, or the id of a group.
            with_: the lesson to add to what is shown.
            placebo: what to replace with irrelevant words of its length, named as in `without`; `True`: everything.
            max_runs: the largest number of runs; a pair is two.
            max_cost: no pair begins once the runs cost so many US dollars (where they tell `usage.cost`).
            max_seconds: no pair begins once the call took so long. What is under way is finished.
            rounds: how often each side may do each task.
            min_effect: an effect too small to matter; once it is known to be smaller the trial ends. 0: never.
            level: the confidence of the interval, however often one looks.
            seed: decides the order of tasks and sides, and the agent's luck.
            concurrency: how many pairs run at once; a plain function then runs in as many threads.
            trusted: show only active lessons, as `retrieve(trusted=True)` does.
            resume: a file that keeps each run as it ends. A trial that was interrupted goes on from there, if tasks,
                memory, question, seed, level and agent are the same; budgets and rounds may be larger.
            progress: called after every pair with the result so far. What it raises ends the trial.

        Raises:
            UsageError: several of `without`, `with_` and `placebo`, a lesson or a number that cannot be, no tasks,
                recalls of another scope, nothing to compare, or the journal of another trial.
            NotFound: a recall that this scope does not have.
            StoreUnavailable: the journal cannot be read or written.
        """
        return await try_again(
            self.store,
            self._injector,
            tasks,
            agent,
            recaller=partial(self._recall_for_trial, trusted=a_flag(trusted, "trusted=")),
            verify=verify,
            question=asked(without=without, with_=with_, placebo=placebo),
            design=TrialDesign(
                max_runs=max_runs,
                max_cost=max_cost,
                max_seconds=max_seconds,
                rounds=rounds,
                min_effect=min_effect,
                level=level,
                seed=seed,
                concurrency=concurrency,
            ),
            scope=self.scope,
            resume=resume,
            progress=progress,
        )

    async def _recall_for_trial(self, task: str, *, trusted: bool) -> Recall:
        """What a user would see for `task` if nothing were withheld. Its id follows from the words: so does the fence,
        and a trial that goes on later shows the same text."""
        search = _of_active(self._retriever, trusted)
        found = await search(await self._intake.task(task), scope=self.scope, limit=self.limit)
        found = await self._ledger.prefer(found, scope=self.scope)
        found = one_side(found, recall_id="", drawn=False).found
        words = [lesson.text for match in found.matches for lesson in match.experience.active_lessons]
        recall = self._injector.recall(
            found,
            id=digest("\n".join((self.scope, task, *words)))[:32],
            task=task,
            scope=self.scope,
            retriever=self._retriever.name,
            space=self._retriever.space,
        )
        return recall.model_copy(update={"kept": False})

    async def reflect(
        self, *, topic: str | None = None, runs: int = 40, budget: int = 20_000, dry_run: bool = False
    ) -> Reflected:
        """Look back over the runs of each topic, and draw the few lessons that single ones have in common.

        A topic needs four runs with both outcomes and two lessons. A general lesson names two runs of different tasks
        that show it, and two lessons that it covers. It is kept beside these, and each recall draws which side it
        shows; it takes their place when the evidence says so. `lessons.restore` undoes that.

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
        if self._off:
            return Reflected(notes=(OFF,))
        if self._reflector is None:
            raise UsageError("reflect asks a model, and this bank has none: connect with model=")
        return await Reflecting(self._handle, self._reflector).over(asked, runs=runs, budget=budget, dry_run=dry_run)

    # -- several runs of one task -------------------------------------------------------------------------------------

    async def scale(
        self,
        task: str,
        agent: AnyAgent,
        /,
        *,
        k: int = 3,
        mode: Mode = "parallel",
        verify: Verifier | None = None,
        memory: bool = True,
        learn: bool = True,
        labels: bool | None = None,
        choose: Selection = "auto",
        examine: Examining = "act",
        confirm: int = 2,
        concurrency: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        seconds: float | None = None,
        seed: int = 0,
        limit: int | None = None,
        trusted: bool = False,
        metadata: Mapping[str, Json] | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Scaled:
        """Let the agent do `task` up to `k` times under one recall, choose the best run, and learn from all of them.

        This is memory-aware test-time scaling (paper section 3.3). A run that raises is a failed attempt (an agent that
        returns a `Trajectory` with `error=` keeps its steps). Every run is on disk as soon as it ends. When memory
        fails, the agent works without it and `notes` says so. `print` the result, or read its fields.

        Args:
            agent: `(task, memory)` to a trajectory or its messages, async or not. Where it has parameters of these
                names, it gets `seed` (`seed` + 0, 1, …), and in re-examinations `check` (what to do, and the record of
                the run before) and `previous` (that run).
            k: the largest number of runs; the first counts, so 1 is no scaling.
            mode: `parallel`: independent runs and one contrast of all. `sequential`: each run re-examines the one
                before. `vanilla`: independent runs, each learned from alone, in their order: the paper's control.
            verify: the world's check of a run, asked as soon as it ends: success or not, a score from 0 to 1, or an
                outcome. It beats the judge, and is not asked about a run that was stopped by an error.
            memory: `False` for the control without memory: nothing is recalled, shown, kept or learned.
            learn: `False` to leave the bank as it is: the runs are only judged, and the recall stays unsettled.
            labels: whether the contrast is told how each run ended; `None` as the profile does (the paper's hides it).
            choose: `model` compares the runs, by the paper's criteria; `verdicts` takes the likeliest success and asks
                nobody; `auto`: a model where the bank has one. In sequential mode the last sound run is taken.
            examine: in sequential mode `act`: the agent is called again, with the check in `check=`, or after the
                memory if it does not take that. `rewrite`: a model rewrites the answer and nothing is done.
            confirm: in sequential mode, how many re-examinations in a row must leave the answer as it is to stop; of a
                run without an answer, all that it did.
            concurrency: how many runs are made at once; by default at most 8. Under a budget of tokens or money one
                goes first, then as many of these as the budget holds by what they cost so far, unless this says
                otherwise.
            tokens: what all runs together may use. Once it is spent no run begins, and what is under way is finished.
            cost: the same in US dollars. Judging and learning come on top.
            seconds: the same in time. What is under way then is cut off and is a failed attempt, except for a plain
                function, which cannot be cut off.
            limit: how many experiences the recall draws on.
            trusted: show only active lessons, as `retrieve(trusted=True)` does.
            metadata: kept with the recall.
            progress: called after every run. What it raises ends the whole.

        Raises:
            UsageError: an argument that cannot be, or a verifier that returns no outcome.
        """
        design = Design(
            k=k,
            mode=mode,
            memory=a_flag(memory, "memory=") and not self._off,
            learn=a_flag(learn, "learn=") and not self._off,
            labels=labels,
            choose=choose,
            examine=examine,
            confirm=confirm,
            concurrency=concurrency,
            tokens=tokens,
            cost=cost,
            seconds=seconds,
            seed=seed,
        )
        task, limit = a_text(task, "the task", blank=False), maybe_count(limit)
        check_calls(agent, verify=verify, progress=progress)
        if design.asks_model and self._scaler.model is None:
            raise UsageError(f"{design.asks_model} needs a model, and this bank has none: connect with model=")
        bank, notes = self._labelled(labels)
        notes += [OFF] if self._off else []
        options = {"limit": limit, "trusted": a_flag(trusted, "trusted="), "metadata": a_mapping(metadata)}
        memory_of = BankMemory(bank, bank._intake, options, bank._hand_in)
        scaling = ScaledTask(memory_of, self._scaler, design, self.scope, notes)
        with self._intake.in_force():
            return await scaling.run(task, agent, verifier=verify, progress=progress)

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
            bank.writer, bank._key, bank._is_named = checked_name(writer, what="writer="), key, True
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
        if not self._pays or self.scope in self._fitting:
            return None
        try:
            misfit = await self._handle.misfit(task)
        except ModelError:  # the lessons are kept without a vector then, which says nothing of its dimension
            return None
        if misfit is None:
            self._fitting.add(self.scope)
        return misfit

    async def _judged(self, run: Trajectory, truth: Verdict | None, misfit: SpaceMismatch | None = None) -> Run:
        verdict = truth or error_verdict(run)
        if misfit and not verdict:
            verdict = unknown(quoted(misfit), error=misfit.code)
        with self._intake.in_force():
            verdict = verdict or await judged(self._judge, run)
        return Run(trajectory=run, verdict=await self._intake.reply(verdict))

    async def _drawn(self, attempts: Sequence[Run], receipt: Recall | None = None) -> Extraction:
        extractor = await self._knowing(attempts)
        with self._intake.in_force():
            drawn = await extractor(attempts)
        if receipt and drawn.repeats:  # what memory had shown cannot speak for itself
            own = {candidate.lesson_id for candidate in receipt.candidates if candidate.shown}
            told = {id: again for id, again in drawn.repeats.items() if id not in own}
            drawn = drawn.model_copy(update={"repeats": told})
        return await self._admitted(drawn, attempts, receipt)

    async def _drawn_again(self, attempts: Sequence[Run]) -> Extraction:
        """What these runs teach by themselves: the extractor is shown nothing that the bank knows."""
        with self._intake.in_force():
            drawn = await self._extractor(attempts)
        return await self._admitted(drawn, attempts, None)

    async def _admitted(self, drawn: Extraction, attempts: Sequence[Run], receipt: Recall | None) -> Extraction:
        runs = [attempt.trajectory for attempt in attempts]
        shown = await texts_shown(self.store, runs, receipt, scope=self.scope)
        return await self._intake.lessons(drawn, attempts, shown=shown)

    async def _knowing(self, attempts: Sequence[Run]) -> Extractor:
        """The extractor. Where it can say how its lessons stand to those of the bank, it is shown the nearest."""
        knowing = attribute(self._extractor, "knowing") if self._compares and attempts else None
        if knowing is None:
            return self._extractor
        found = await self.store.search(attempts[0].trajectory.task, scope=self.scope, limit=KNOWN)  # embeds nothing
        near = {lesson.id: lesson for match in found for lesson in match.experience.active_lessons}
        return knowing(list(near.values())[:KNOWN]) if near else self._extractor

    async def _extracted(
        self, attempts: Sequence[Run], receipt: Recall | None, misfit: SpaceMismatch | None = None
    ) -> tuple[Extraction, ExtractionError | ModelError | SpaceMismatch | None]:
        """The extraction, and the error after which it is to be tried again."""
        if all(a.verdict.outcome == "unknown" for a in attempts):
            return Extraction(notes=tuple(f"not judged: {a.verdict.reason}" for a in attempts)), None
        if misfit:
            return nothing_drawn(misfit), misfit
        try:
            return await self._drawn(attempts, receipt), None
        except (ExtractionError, ModelError) as error:
            return await self._intake.reply(nothing_drawn(error)), error

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
            changes, settlement, notes = await self._commit(
                policy, experience, costs=costs, earlier=earlier, result=result, who=who
            )
            learned = result.learned(earlier or experience, changes, notes=notes)
            return learned, settlement, Consolidated(experience=experience, changes=changes)

        (learned, settlement, event), notes = await retry_on_conflict(once, self._consolidator, last=self._appending)
        notes += self._tell(event, notes=notes) if event else ()
        learned = learned.model_copy(update={"usage": sum(costs, learned.usage)})
        return _noted(learned, notes), settlement

    async def _commit(
        self,
        policy: Consolidator,
        experience: Experience,
        *,
        costs: list[Usage],
        earlier: Experience | None = None,
        result: LearnOutcome | None = None,
        who: str = "",
    ) -> tuple[tuple[Change, ...], Settlement | None, tuple[str, ...]]:
        """Decide and apply; what was applied, how the receipt is settled, and what a reader should know.

        What decides at once does so under the lock of the scope. What may ask a model decides without it, and anew
        where another task changed the scope meanwhile.
        """
        scope = experience.scope
        decide_now = partial(self._decided, policy, experience, earlier=earlier, costs=costs)
        apply = partial(self._applied, experience, earlier=earlier, result=result, who=who)
        asks = self._consolidator_asks if policy is self._consolidator else asks_model(policy)
        if not asks and not (self._topics and self._topics.asks_model):
            vectors, notes = await self._handle.index([experience])
            async with self._locks.of(scope):
                changes, sorting = await decide_now()
                return await apply(changes, vectors, notes=(*notes, *sorting))
        for left in reversed(range(_STALE_TRIES)):
            seen = self._commits[scope]
            changes, sorting = await decide_now()
            vectors, notes = await self._handle.index(changed(changes))
            async with self._locks.of(scope):
                if not left or self._commits[scope] == seen:
                    return await apply(changes, vectors, notes=(*notes, *sorting))
        raise Conflict("the scope changed during every decision")  # pragma: no cover - the last try is never stale

    async def _decided(
        self, policy: Consolidator, experience: Experience, *, earlier: Experience | None, costs: list[Usage]
    ) -> tuple[tuple[Change, ...], tuple[str, ...]]:
        """What the policy decides, in topics, and what a reader should know. What it took is added to `costs`."""
        with one_look():
            with self._locks.deciding(experience.scope), self._intake.in_force():
                told = await decide(policy, experience)
            costs.append(spent(told))
            changes = replacing(earlier, await self._intake.changes(told, given=experience))
            changes, usage, notes = await in_topics(self._topics, changes)
        costs.append(usage)
        return changes, notes

    async def _applied(
        self,
        experience: Experience,
        changes: tuple[Change, ...],
        vectors: Mapping[str, Vectors],
        *,
        notes: tuple[str, ...],
        earlier: Experience | None,
        result: LearnOutcome | None,
        who: str,
    ) -> tuple[tuple[Change, ...], Settlement | None, tuple[str, ...]]:
        """Apply what was decided, and settle the receipt: another run under it may have been counted meanwhile."""
        new = changed(changes)
        brought = [lesson for one in new for lesson in one.lessons]
        kept = {one.id for one in (*new, *brought)}
        settlement = None
        if result:
            before, others = await earlier_settlement(
                self.store, result.receipt, result.prior, result.truths, besides=result.attempts
            )
            settlement = told_by(result.settlement(experience.id, others), who)
            notes += settled_otherwise(before, result.attempts) if before else ()
        _, misfit = await self._handle.apply_embedded(
            changes,
            {id: vector for id, vector in vectors.items() if id in kept},
            writer=self.writer,
            settlement=settlement,
            unlearned=result.ids if result else (),
            unchanged=[earlier] if earlier else [],
            one_wording=self._one_wording,
        )
        self._commits[experience.scope] += 1
        await remember(self.store, brought, scope=experience.scope)
        return changes, settlement, (*notes, *misfit)

    async def _correct(
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
        async with self._locks.of(self.scope):
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
        notes = self._tell(Settled(settlement=settlement))
        acted = await self._ledger.settled(scope=settlement.scope)
        if acted.changes or acted.proposals or acted.notes:
            reviewed = Reviewed(changes=acted.changes, proposals=acted.proposals)
            notes += acted.notes + self._tell(reviewed, notes=acted.notes)
        return _noted(learned.model_copy(update={"changes": (*learned.changes, *acted.changes)}), notes)

    async def _reflected(self, learned: Learned) -> Learned:
        """`learned`, and what looking back over its topic gave, where it is time to."""
        named = next((lesson.topic.id for lesson in learned.lessons if lesson.topic), None)
        if not self._reflect_every or self._reflector is None or named is None:
            return learned
        if (await count_records(self.store, scope=self.scope)).experiences % self._reflect_every:
            return learned
        try:
            told = await self.reflect(topic=named)
        except LessonbankError as error:
            return _noted(learned, (f"nothing was drawn from looking back: {quoted(error)}",))
        notes = told.notes if told.lessons or told.notes else ("looking back over the topic gave nothing general",)
        usage = learned.usage + told.usage
        return _noted(learned.model_copy(update={"usage": usage, "changes": (*learned.changes, *told.changes)}), notes)

    async def _forget_old_runs(self) -> tuple[str, ...]:
        """Once a day and scope, erase what is older than the bank keeps; a note where that is not what was asked."""
        today = datetime.now(UTC).date()
        if self._off or self._retained.get((self.scope, self._key)) == today:
            return ()
        self._retained[self.scope, self._key] = today
        try:
            days, notes = await days_to_keep(self.store, self._keep_runs, name=self.writer, key=self._key)
            if days is not None and self._forgotten.get(self.scope) != (today, days):
                self._forgotten[self.scope] = today, days
                before = datetime.now(UTC) - timedelta(days=days)
                await forget(self.store, scope=self.scope, before=before, writer=self.writer)
        except LessonbankError as error:
            return (f"old runs were not erased: {quoted(error)}",)
        return notes

    async def _corrected(self, run: Trajectory, verdict: Verdict, /, *, by: str, reason: str) -> Learned:
        """Put `verdict`, a person's, in the place of the verdict of a kept run. `runs.correct` calls this."""
        prior, verdict = await find_prior_runs(self.store, [run], scope=self.scope), await self._intake.reply(verdict)
        if prior.new:
            return await self._learn_new(prior, prior.recall, {run.id: verdict})
        why = await self._intake.sentence(reason)
        return await self._correct(prior, prior.recall, {run.id: verdict}, by=(by, why))

    async def _identity(self) -> str:
        """Who calls, as the bank knows it. Raises UsageError for a wrong key."""
        if self._teller is not None:
            return self._teller
        trusted = self._trust_names and self._is_named
        return await identity_of(self.store, name=self.writer, key=self._key, trust_name=trusted)

    async def _learn_as(self, teller: tuple[str, str] | None, runs: Sequence[Trajectory], /, **told: Any) -> Learned:
        """Learn from submitted runs as whoever submitted them. `runs.retry` calls this."""
        bank = copy(self)
        if teller is not None:
            bank._teller, bank.writer = teller
        return await bank.learn(runs, **told)

    def _tell(self, *events: Event, notes: Sequence[str] = ()) -> tuple[str, ...]:
        if not self._hooks:
            return ()
        return tuple(note for event in events for note in call_hooks(self._hooks, event, notes=notes))

    def _labelled(self, labels: bool | None) -> tuple[Self, list[str]]:
        """This bank, with an extractor whose contrast shows how runs ended, or hides it; or why that cannot be."""
        if labels is None:
            return self, []
        relabel = attribute(self._extractor, "labelled")
        if relabel is None:
            return self, ["labels= changed nothing: this bank's extractor cannot be told whether to show outcomes"]
        bank = copy(self)
        bank._extractor = relabel(labels)
        return bank, []

    @property
    def _handle(self) -> Handle:
        return Handle(
            store=self.store,
            scope=self.scope,
            writer=self.writer,
            key=self._key,
            retriever=self._retriever,
            ledger=self._ledger,
            intake=self._intake,
            limit=self.limit,
            learn_as=self._learn_as,
            correct=self._corrected,
            draw=self._drawn_again,
            pays=self._pays,
            preview=self._preview,
            is_scoped=self._is_scoped,
            off=self._off,
            one_wording=self._one_wording,
            corroborates=self.settings.get("trust") == "corroborated",
            keep_runs=self._keep_runs,
            topics=self._topics,
        )


def _of_active(search: Retriever, trusted: bool, /) -> Retriever:
    """`search`, which with `trusted` shows only lessons that are active."""
    return Trusted(search, "corroborated") if trusted else search


def _noted(record: T, notes: tuple[str, ...]) -> T:
    return record.model_copy(update={"notes": (*record.notes, *notes)}) if notes else record

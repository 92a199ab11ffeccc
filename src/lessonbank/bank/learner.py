"""The second half of the loop: runs are kept, judged and drawn upon, their lessons consolidated, evidence reviewed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from anyio import CancelScope, get_cancelled_exc_class

from lessonbank._base.aio import gather
from lessonbank._base.checks import a_mapping
from lessonbank._base.plural import plural
from lessonbank.contracts.events import Consolidated, Event, Extracted, ExtractionFailed, Judged, Reviewed, Settled
from lessonbank.contracts.ports import Consolidator, RecallFilter
from lessonbank.contracts.records import (
    RECALLS_AGAIN,
    Change,
    Experience,
    Json,
    Learned,
    Outcome,
    Recall,
    Settlement,
    Trajectory,
    Usage,
    Verdict,
    notes_of,
)
from lessonbank.contracts.store_calls import count_records, get_trajectories, settled_in, settlement_of
from lessonbank.errors import LessonbankError
from lessonbank.guard.quote import quoted
from lessonbank.learning.consolidation import OneWording, append
from lessonbank.learning.consolidation.retry import retry_on_conflict
from lessonbank.learning.outcome import LearnOutcome
from lessonbank.learning.run_report import RunReport, find_prior_runs
from lessonbank.learning.settlement import BECAME_KNOWN, corrected, settle

from .additions import link_additions
from .commit import Commit
from .judge_and_extract import JudgeAndExtract
from .recall_again import AFTER, cures_of
from .reflection import reflect
from .retention import forget_old_runs
from .run_keeper import RunKeeper, stays_as_told
from .scoped_bank import ScopedBank, log
from .upkeep import do_upkeep

T = TypeVar("T", Recall, Learned)
_ASTRAY: Final = "in the middle of the run stay without an outcome: make them with `recall=`, the first of the run"


@dataclass(frozen=True, slots=True)
class Learner:
    """Learns from runs in one scope, in the name of one writer."""

    bank: ScopedBank
    limit: CancelScope | None = None
    """What ends the wait until runs are kept; `None` where they are."""

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
        """`bank.learn`, where memory is on."""
        metadata = a_mapping(metadata)
        keeper = RunKeeper(self.bank, await self.bank.identity(), self.limit)  # a wrong key costs no model
        report = await keeper.report(source, task=task, recall=recall, outcome=outcome, reward=reward)
        if self.limit and report.is_short and self.bank.parts.learns_at_once:
            # It just ended, and is kept in the write of its lessons: whatever comes in between costs no time.
            return await self._learn_kept(self.bank.parts.intake.clean(report.runs, metadata), report, keeper)
        return await self._learn_reported(await keeper.with_prior_runs(report), metadata, keeper)

    async def _learn_reported(self, report: RunReport, metadata: Mapping[str, Json], keeper: RunKeeper) -> Learned:
        """Correct what is learned of these runs already, and learn the others."""
        if report.is_learned:
            return await self._settle_late(report)
        changes, notes = corrected(report) if report.known else ((), ())
        if not changes:
            return await self._learn_new(report, metadata, keeper)
        await self.bank.store.apply(changes, scope=self.bank.scope, writer=self.bank.writer)
        report = replace(report, notes=(*report.notes, *notes))
        learned = await self._learn_new(report, metadata, keeper)
        return learned.model_copy(update={"changes": (*changes, *learned.changes)})

    async def _learn_new(self, report: RunReport, metadata: Mapping[str, Json], keeper: RunKeeper) -> Learned:
        """Keep the runs, judge them, extract lessons, consolidate these into the bank, and review the evidence."""
        new = await self.bank.parts.intake.runs(report.new, metadata)
        if waiting := await keeper.keep(new, report):
            later = await keeper.with_prior_runs(report)
            if later.known != report.known:  # another call learned them before this word could be kept
                return await self._learn_reported(later, metadata, keeper)
            if len(waiting) == len(new) and (teller := await keeper.earlier_teller(waiting)):
                return with_notes(await self.learn_as(teller, report.runs), stays_as_told(waiting, report))
            report = await keeper.with_earlier_word(waiting, report)
        try:
            return await self._learn_kept(new, report, keeper)
        except get_cancelled_exc_class():
            subject = f"the run {new[0].id} is" if len(new) == 1 else f"{len(new)} runs are"
            log.warning("learning was interrupted: %s kept with what was said, and runs.retry() goes on", subject)
            raise

    async def _learn_kept(self, new: Sequence[Trajectory], report: RunReport, keeper: RunKeeper) -> Learned:
        bank, stage = self.bank, JudgeAndExtract(self.bank)
        decided = {run.id: report.verdict(run.id) for run in new}
        mismatch = await stage.vector_mismatch(new[0].task)
        judging = [partial(stage.judge, run, decided[run.id], mismatch) for run in new]
        # One run whose outcome is known asks no judge: a task of its own would only take time.
        is_known = len(new) == 1 and all(decided.values())
        attempts = [await judging[0]()] if is_known else await gather(judging)
        notes = bank.emit(*[Judged(trajectory=a.trajectory, verdict=a.verdict) for a in attempts])

        extraction, failed = await stage.extract_or_defer(attempts, report.receipt, mismatch)
        event = ExtractionFailed(attempts=attempts, error=failed) if failed else None
        event = event or Extracted(attempts=attempts, extraction=extraction)
        notes += bank.emit(event, notes=extraction.notes)

        usage = sum([a.verdict.usage for a in attempts if not decided[a.trajectory.id]], extraction.usage)
        unkept = () if report.new else await keeper.submitted(new, report)
        result = LearnOutcome(report, attempts, extraction, scope=bank.scope, failed=failed, usage=usage, unkept=unkept)
        learned, settlement, unmade = await self._commit(result, keeper)
        if self.limit:
            self.limit.deadline = math.inf
        notes = (*unmade, *notes, *await link_additions(bank, learned.lessons))
        learned = await self._review(learned, settlement, new, report.receipt, notes)
        if bank.options.reflect_every:
            learned = await self._reflect_if_due(learned, every=bank.options.reflect_every)
        cared = await do_upkeep(bank, [run.task for run in new])
        return with_notes(learned, (*cared, *await forget_old_runs(bank)))

    async def learn_as(self, teller: tuple[str, str] | None, runs: Sequence[Trajectory], /, **options: Any) -> Learned:
        """Learn from submitted runs as whoever submitted them, in whose name everything then happens.

        `teller`: the identity and the writer; `None`: whoever calls. `runs.retry` calls this, and `learn` where the
        word of an earlier caller stands in the place of this one's.
        """
        if teller is None:
            return await self.learn(runs, **options)
        return await Learner(replace(self.bank, teller=teller[0], writer=teller[1])).learn(runs, **options)

    async def correct(self, run: Trajectory, verdict: Verdict, /, *, by: str, reason: str) -> Learned:
        """Put `verdict`, a person's, in the place of the verdict of a kept run."""
        truths = {run.id: await self.bank.parts.intake.reply(verdict)}
        report = RunReport([run], None, truths, await self.bank.identity())
        report = await find_prior_runs(self.bank.store, report, scope=self.bank.scope)
        if not report.is_learned:
            return await self._learn_new(report, {}, RunKeeper(self.bank, await self.bank.identity()))
        why = await self.bank.parts.intake.sentence(reason)
        return await self._settle_late(report, writer=by, reason=why)

    async def consolidate(self, experience: Experience, /, *, dry_run: bool) -> tuple[Change, ...]:
        """Decide how the bank changes, and change it; with `dry_run`, decide only. Whoever calls taught its lessons."""
        identity = await self.bank.identity()
        sources = [lesson.provenance.model_copy(update={"identity": identity}) for lesson in experience.lessons]
        pairs = zip(experience.lessons, sources, strict=True)
        lessons = tuple([lesson.model_copy(update={"provenance": source}) for lesson, source in pairs])
        experience = experience.model_copy(update={"lessons": lessons})
        commit, policy = Commit(bank=self.bank, experience=experience), self.bank.parts.consolidator
        if dry_run:
            return (await commit.decide(policy))[0]
        (changes, _, unembedded), notes = await retry_on_conflict(
            commit.decide_and_apply, policy, last=self._last_resort
        )
        for note in notes:
            log.warning("%s", note)
        self.bank.emit(Consolidated(experience=experience, changes=changes), notes=notes + unembedded)
        return changes

    async def _commit(
        self, result: LearnOutcome, keeper: RunKeeper
    ) -> tuple[Learned, Settlement | None, tuple[str, ...]]:
        """Consolidate into the bank as it is now, which others may have changed since the runs were judged."""
        bank, costs, ids = self.bank, list[Usage](), [attempt.trajectory.id for attempt in result.attempts]
        # A moment ago nobody held these runs, and few recalls are settled twice. Where a model was asked since, or the
        # store refuses them, they are looked up.
        is_new = not (result.report.experiences or bank.parts.asks_model)

        async def once(policy: Consolidator) -> tuple[Learned, Settlement | None, Event | None]:
            nonlocal is_new
            if result.unkept and not is_new:  # the store refused it: it may have the run, or another end of its recall
                clean = replace(result.report, runs=[attempt.trajectory for attempt in result.attempts])
                known = await keeper.with_prior_runs(clean)
                return await self._learn_reported(known, {}, keeper), None, None
            held = () if is_new else await bank.store.experiences("run", ids, scope=bank.scope)
            if held and settled_in(held, ids):
                return await self._after_another(result), None, None
            earlier = held[-1] if held else None
            experience = result.experience(earlier, writer=bank.writer)
            commit = Commit(
                bank=bank, experience=experience, earlier=earlier, result=result, is_new=is_new, costs=costs
            )
            is_new = False
            changes, settlement, notes = await commit.decide_and_apply(policy)
            learned = result.learned(earlier or experience, changes, notes=notes)
            return learned, settlement, Consolidated(experience=experience, changes=changes)

        (learned, settlement, event), notes = await retry_on_conflict(
            once, bank.parts.consolidator, last=self._last_resort
        )
        notes += bank.emit(event, notes=notes) if event else ()
        if costs:
            learned = learned.model_copy(update={"usage": sum(costs, learned.usage)})
        return learned, settlement, notes

    async def _after_another(self, result: LearnOutcome) -> Learned:
        """What is left to do where another call learned some of the runs meanwhile: correct these, learn the rest."""
        clean, keeper = (
            {attempt.trajectory.id: attempt.trajectory for attempt in result.attempts},
            RunKeeper(self.bank, await self.bank.identity()),
        )
        runs = [clean.get(run.id, run) for run in result.report.runs]
        trajectories = await get_trajectories(self.bank.store, [run.id for run in runs], scope=self.bank.scope)
        # What is kept of a run is the last word on it, which may be that of the other call.
        unsaid = replace(result.report, truths=dict.fromkeys(result.report.truths))
        report = await keeper.with_earlier_word(trajectories, unsaid)
        truths = cast("Any", [report.truths[run.id] for run in runs])
        learned = await self.learn(runs, recall=report.receipt, outcome=truths)
        notes = ("learned by another call or process meanwhile", *result.report.notes, *learned.notes)
        return learned.model_copy(
            update={"usage": result.usage + learned.usage, "notes": notes_of(*dict.fromkeys(notes))}
        )

    def _last_resort(self) -> Consolidator:
        """What decides where the bank changes faster than its consolidator."""
        return OneWording(append, self.bank.store) if self.bank.options.unique_wording else append

    async def _settle_late(
        self, report: RunReport, /, *, writer: str | None = None, reason: str = BECAME_KNOWN
    ) -> Learned:
        """A truth that is told later: it corrects the verdict of a learned run, and its receipt."""
        bank, home = self.bank, report.experiences[-1].id
        changes, corrections = corrected(report, reason=reason)
        async with bank.state.locks.of(bank.scope):
            settlement, counted, doubts = await settle(bank.store, report, home=home)
            await bank.store.apply(changes, scope=bank.scope, writer=writer or bank.writer, settlement=settlement)
        notes, runs = notes_of(*report.notes, *corrections, *doubts), [run.trajectory for run in counted]
        learned = Learned(known=report.known, changes=tuple(changes), notes=notes)
        return await self._review(learned, settlement, runs, report.receipt)

    async def _settle_later_recalls(
        self, runs: Sequence[Trajectory], receipt: Recall | None
    ) -> tuple[list[Settlement], tuple[str, ...]]:
        """Settle the recalls in the middle of runs as their first one, where they are not; a note where that fails."""
        id_lists = [run.metadata.get(RECALLS_AGAIN) for run in runs if not run.imported]
        each = [id for ids in id_lists if isinstance(ids, list) for id in ids if isinstance(id, str)]
        settled, astray, store, scope = list[Settlement](), 0, self.bank.store, self.bank.scope
        if receipt is None or not each:
            return settled, ()
        wanted = RecallFilter(ids=tuple(dict.fromkeys(each)), settlements=True)
        try:
            first = await settlement_of(store, receipt.id, scope=scope)
            for where in (scope, cures_of(scope)):
                for known in await store.recalls(wanted, scope=where):
                    if first is None or known.recall.metadata.get(AFTER) != first.recall_id:
                        astray += 1
                    elif (later := _as_first(first, known.recall)) != known.settlement:
                        await store.apply((), scope=where, writer=self.bank.writer, settlement=later)
                        settled.append(later)
        except LessonbankError as error:
            log.warning("%s", note := f"recalls in the middle of the run are not settled: {quoted(error)}")
            return settled, (f"{note}; hand it to learn again",)
        return settled, (f"{plural(astray, 'recall')} {_ASTRAY}",) if astray else ()

    async def _review(
        self,
        learned: Learned,
        settlement: Settlement | None,
        runs: Sequence[Trajectory],
        receipt: Recall | None,
        notes: tuple[str, ...] = (),
    ) -> Learned:
        """`learned` with notes, and with what the ledgers did because more outcomes are known."""
        later, unsettled = await self._settle_later_recalls(runs, receipt)
        notes += unsettled
        for settled in (*filter(None, [settlement]), *later):
            notes += self.bank.emit(Settled(settlement=settled))
            acted = await self.bank.parts.ledger.on_outcome(scope=settled.scope)
            if acted.changes or acted.proposals or acted.notes:
                reviewed = Reviewed(changes=acted.changes, proposals=acted.proposals)
                notes += acted.notes + self.bank.emit(reviewed, notes=acted.notes)
                learned = learned.model_copy(update={"changes": (*learned.changes, *acted.changes)})
        return with_notes(learned, notes)

    async def _reflect_if_due(self, learned: Learned, *, every: int) -> Learned:
        """`learned`, and what looking back over its topic gave, where the experiences are a multiple of `every` now."""
        topic = next((lesson.topic.id for lesson in learned.lessons if lesson.topic), None)
        if topic is None or self.bank.parts.reflector is None:
            return learned
        try:
            if (await count_records(self.bank.store, scope=self.bank.scope)).experiences % every:
                return learned
            reflected = await reflect(self.bank, topic)
        except LessonbankError as error:
            return with_notes(learned, (f"nothing was drawn from looking back: {quoted(error)}",))
        notes = reflected.notes
        if not (reflected.lessons or notes):
            notes = ("looking back over the topic gave nothing general",)
        usage, changes = learned.usage + reflected.usage, (*learned.changes, *reflected.changes)
        return with_notes(learned.model_copy(update={"usage": usage, "changes": changes}), notes)


def _as_first(first: Settlement, later: Recall) -> Settlement:
    """How the first recall of a run settles a later one."""
    home = first.experience_id if later.scope == first.scope else None
    same = {"recall_id": later.id, "scope": later.scope, "experience_id": home, "cited": (), "another_task": False}
    return first.model_copy(update=same)


def with_notes(record: T, notes: tuple[str, ...], /) -> T:
    """`record` with more notes."""
    return record.model_copy(update={"notes": (*record.notes, *notes_of(*notes))}) if notes else record

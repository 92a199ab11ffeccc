"""The loop: retrieve, then judge, extract and consolidate. Everything else in this package serves these lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ._concurrency import Turn, gather
from .attempt import AsyncAttempt
from .errors import ExtractionError, ModelError
from .events import Consolidated, Extracted, ExtractionFailed, Hook, Judged, Retrieved, tell
from .evidence.ledger import Ledger, Unmeasured
from .guard.intake import IntakeFilter
from .learning import settlement as settling
from .learning.consolidation.decision import Deciding
from .learning.judging import SUCCESS_AT, checked_threshold, error_verdict, judged, truth_verdict
from .learning.prior_runs import Standing, Verdicts, receipt_of, settled_with, standing
from .matts.scaler import Scaler
from .messages import trajectory_from
from .protocols import Consolidator, Extractor, Judge, Retriever, Store
from .retrieving import with_reason
from .retrieving.injection import Injector
from .scaled import Scaling
from .types import Change, Experience, Extraction, Learned, Outcome, Recall, Run, Settlement, Trajectory, Verdict
from .types.ids import new_id


class AsyncReasoningBank(Scaling):
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
        ledger: Ledger | None = None,
        limit: int = 1,
        writer: str = "learn",
        hooks: Sequence[Hook] = (),
        entrance: IntakeFilter | None = None,
        scaler: Scaler | None = None,
        success_at: float = SUCCESS_AT,
        parts: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(store, retriever=retriever, scope=scope, writer=writer)
        self.limit, self.parts, self._ledger = limit, dict(parts or {}), ledger or Unmeasured()
        self._judge, self._extractor, self._consolidator = judge, extractor, consolidator
        self._injector, self._emit, self._turn = injector, partial(tell, tuple(hooks)), Turn()
        self._entrance, self._scaler = entrance or IntakeFilter(), scaler or Scaler()
        self._success_at = checked_threshold(success_at)

    async def retrieve(self, task: str, /, *, limit: int | None = None, scope: str | None = None) -> Recall:
        """Find what past tasks taught about `task`; `.text` goes into the prompt. `limit`: experiences, or lessons.

        The receipt is kept first. `.notes` says why a text is empty. Raises UsageError, StoreError.
        """
        where, most = self._within(scope), self.limit if limit is None else limit
        task = await self._entrance.task(settling.checked_question(task, most))
        found = await self._ledger.prefer(await self._retriever(task, scope=where, limit=most), scope=where)
        ids, recall_id = [i.id for m in found.matches for i in m.experience.active_lessons], new_id()
        recall = self._injector.recall(
            found,
            id=recall_id,
            task=task,
            scope=where,
            assigned=await self._ledger.assign(ids, recall_id=recall_id, task=task, scope=where),
            retriever=self._retriever.name,
            space=self._retriever.space,
        )
        await self.store.record(recall := await with_reason(recall, found, self.store))
        self._emit(Retrieved(recall=recall), notes=found.notes)
        return recall

    async def learn(
        self,
        source: object,
        /,
        *,
        task: str | None = None,
        recall: Recall | str | None = None,
        outcome: Outcome | Sequence[Outcome] | None = None,
        reward: float | Sequence[float] | None = None,
        scope: str | None = None,
    ) -> Learned:
        """Judge, extract and consolidate one run (a trajectory or its messages), or several runs of one task.

        `outcome` or `reward` (a success from `success_at` on) is ground truth and beats the judge. `recall` settles
        its receipt. The runs are on disk before any model is asked. A model that fails costs the lesson, not the run:
        it stays pending, `notes` says why and `errors` has the codes. A run learned before adds no lesson; a truth told
        later corrects its verdict and receipt. A run that waits takes along those that wait with it. Raises UsageError,
        FormatError, StoreError.
        """
        where = self._within(scope)
        receipt = await receipt_of(self.store, recall, scope=where)
        runs = settling.runs_from(source, task=task, asked=receipt.task if receipt else None)
        truths, graded = settling.truths_of(runs, outcome=outcome, reward=reward, success_at=self._success_at)
        before = await standing(self.store, runs, scope=where)
        receipt = receipt or before.recall
        if not before.new:
            return await self._correct(before, receipt, truths, where, graded)
        new = await self._entrance.runs(before.new)
        await self.store.keep(new, scope=where)
        decided = {run.id: truths.get(run.id) or before.verdict(run.id) for run in new}
        attempts = await gather(partial(self._attempt, run, decided[run.id]) for run in new)
        extraction, failed = await self._extract_or_keep(attempts, shown=receipt.text if receipt else "")
        paid = sum((a.verdict.usage for a in attempts if not decided[a.trajectory.id]), extraction.usage)
        drawn = settling.Drawn(
            before, truths, receipt, attempts, extraction, scope=where, failed=failed, usage=paid, graded=graded
        )
        async with self._turn:
            learned, settlement = await Deciding(self._consolidator).until(partial(self._take_in, drawn))
        return await self._acted(learned, settlement)

    async def judge(
        self, source: object, /, *, task: str | None = None, outcome: Outcome | None = None, reward: float | None = None
    ) -> Verdict:
        """Whether a run did its task. Ground truth beats an error that stopped the run, which beats the judge."""
        run = (await self._entrance.runs([trajectory_from(source, task=task)]))[0]
        truth = truth_verdict(outcome=outcome, reward=reward, success_at=self._success_at)
        return (await self._attempt(run, truth)).verdict

    async def extract(self, attempts: Sequence[Run], /) -> Extraction:
        """Draw lessons from attempts at one task, without keeping them. Raises ExtractionError, ModelError."""
        return await self._extract(await self._entrance.attempts(attempts))

    async def consolidate(self, experience: Experience, /, *, dry_run: bool = False) -> tuple[Change, ...]:
        """Decide how the bank changes, and change it; with `dry_run`, decide only. Raises Conflict, StoreError."""
        experience = await self._entrance.experience(experience)
        if dry_run:
            return tuple(await self._consolidator(experience))
        async with self._turn:
            return (await Deciding(self._consolidator).until(partial(self._consolidate, experience)))[0]

    def attempt(self, task: str, /, *, limit: int | None = None, scope: str | None = None) -> AsyncAttempt:
        """`async with bank.attempt(task) as attempt`: retrieves, and learns on `attempt.finish(...)` or on a crash."""
        return AsyncAttempt(self, task, limit=limit, scope=scope)

    async def _attempt(self, run: Trajectory, truth: Verdict | None) -> Run:
        verdict = truth or error_verdict(run) or await judged(self._judge, run)
        self._emit(Judged(trajectory=run, verdict=verdict))
        return Run(trajectory=run, verdict=verdict)

    async def _extract(self, attempts: Sequence[Run], *, shown: str = "") -> Extraction:
        extraction = await self._entrance.lessons(await self._extractor(attempts), attempts, shown=shown)
        self._emit(Extracted(attempts=attempts, extraction=extraction), notes=extraction.notes)
        return extraction

    async def _extract_or_keep(
        self, attempts: Sequence[Run], *, shown: str
    ) -> tuple[Extraction, ExtractionError | ModelError | None]:
        """The extraction, and why it failed and is to be tried again, if it did."""
        if all(a.verdict.outcome == "unknown" for a in attempts):
            return Extraction(notes=tuple(f"not judged: {a.verdict.reason}" for a in attempts)), None
        try:
            return await self._extract(attempts, shown=shown), None
        except (ExtractionError, ModelError) as error:
            nothing = settling.nothing_drawn(error)
            self._emit(ExtractionFailed(attempts=attempts, error=error), notes=nothing.notes)
            return nothing, error

    async def _take_in(self, new: settling.Drawn, deciding: Deciding) -> tuple[Learned, Settlement | None]:
        """Consolidate into the bank as it is now, which others may have changed."""
        if quicker := await self.store.learned(new.ids, scope=new.scope):
            return new.too_late(quicker, cost=deciding.usage), None
        earlier = await self.store.holding(new.ids, scope=new.scope)
        experience = new.experience(earlier, writer=self.writer)
        _, others = await settled_with(self.store, new.receipt, new.before, new.truths, besides=new.attempts)
        settlement = new.settlement(experience.id, others)
        changes, notes = await self._consolidate(experience, deciding, earlier, settlement, new.ids)
        return new.learned(earlier or experience, changes, cost=deciding.usage, notes=notes), settlement

    async def _consolidate(
        self,
        experience: Experience,
        deciding: Deciding,
        earlier: Experience | None = None,
        settlement: Settlement | None = None,
        unlearned: Sequence[str] = (),
    ) -> tuple[tuple[Change, ...], tuple[str, ...]]:
        changes = settling.replacing(earlier, await deciding(experience))
        vectors, unembedded = await self._index(settling.changed(changes))
        await self.store.apply(
            changes,
            scope=experience.scope,
            writer=self.writer,
            vectors=vectors,
            space=self._retriever.space,
            settlement=settlement,
            unlearned=unlearned,
            unchanged=[earlier] if earlier else [],
        )
        notes = (*deciding.notes, *unembedded)
        self._emit(Consolidated(experience=experience, changes=changes), notes=notes)
        return changes, notes

    async def _correct(
        self, before: Standing, receipt: Recall | None, truths: Verdicts, scope: str, graded: tuple[str, ...]
    ) -> Learned:
        changes = settling.corrected(before.experience, truths)
        settled, counted = await settled_with(self.store, receipt, before, truths)
        settlement = settling.settled_anew(settled, receipt, before.experience, counted)
        await self.store.apply(changes, scope=scope, writer=self.writer, settlement=settlement)
        notes = (*graded, *before.contradictions(truths))
        learned = Learned(known=before.known, changes=tuple(changes), notes=notes)
        return await self._acted(learned, settlement)

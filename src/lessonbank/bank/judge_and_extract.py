"""The steps of learning that may ask a model: judge a run, and extract lessons from runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank._base.checks import safe_getattr
from lessonbank.contracts.records import Extraction, Lesson, Recall, Run, Trajectory, Verdict
from lessonbank.errors import ExtractionError, ModelError, SpaceMismatch
from lessonbank.guard.quote import quoted, redacting_with
from lessonbank.guard.shown_texts import texts_shown
from lessonbank.learning.judging import error_verdict, judged, unknown
from lessonbank.learning.outcome import Failure, nothing_drawn

from .scoped_bank import ScopedBank

MOST_KNOWN: Final = 3
"""Lessons of the bank that an extractor is shown."""


@dataclass(frozen=True, slots=True)
class JudgeAndExtract:
    """Judge and extract, in one scope."""

    bank: ScopedBank

    async def vector_mismatch(self, task: str, /, *, is_paid: bool = False) -> SpaceMismatch | None:
        """Return why vectors made now would not fit: a question before a model is paid, until vectors once did fit.

        Then the run waits, as after a model that failed: a lesson that is paid for should be found as the others are.
        Where nothing is paid, waiting would save nothing: the lesson is kept, and `reindex` gives it its vector.
        """
        bank = self.bank
        if not (is_paid or bank.parts.asks_model) or bank.scope in bank.state.vectors_fit:
            return None
        try:
            return await bank.vector_mismatch(task)
        except ModelError:  # the lessons are kept without a vector then, which says nothing of its dimension
            return None

    async def judge(self, run: Trajectory, truth: Verdict | None, mismatch: SpaceMismatch | None = None, /) -> Run:
        """A run and how it ended: by the truth, by an error that the run names, or else by the judge."""
        verdict = truth or error_verdict(run)
        if mismatch and not verdict:
            verdict = unknown(quoted(mismatch), error=mismatch.code)
        if not verdict:
            with redacting_with(self.bank.parts.intake.redactor):
                verdict = await judged(self.bank.parts.judge, run)
        return Run(trajectory=run, verdict=await self.bank.parts.intake.reply(verdict))

    async def extract(
        self, attempts: Sequence[Run], receipt: Recall | None = None, /, *, alone: bool = False
    ) -> Extraction:
        """The lessons of these runs that the gate lets through, drawn with the nearest lessons of the bank in view.

        `alone`: the extractor is shown nothing that the bank knows.
        """
        extractor = self.bank.parts.extractor
        is_shown = self.bank.options.shows_known and attempts and not alone
        if with_known := safe_getattr(extractor, "with_known_lessons") if is_shown else None:
            known = await self._nearest_lessons(attempts[0].trajectory.task)
            extractor = with_known(known) if known else extractor
        with redacting_with(self.bank.parts.intake.redactor):
            drawn = await extractor(attempts)
        runs = [attempt.trajectory for attempt in attempts]
        shown = await texts_shown(self.bank.store, runs, receipt, scope=self.bank.scope)
        drawn = await self.bank.parts.intake.lessons(drawn, attempts, shown=shown)
        if receipt and drawn.repeats:  # what memory had shown cannot speak for itself
            own = {candidate.lesson_id for candidate in receipt.candidates if candidate.shown}
            repeats = {id: again for id, again in drawn.repeats.items() if id not in own}
            drawn = drawn.model_copy(update={"repeats": repeats})
        return drawn

    async def extract_or_defer(
        self, attempts: Sequence[Run], receipt: Recall | None, mismatch: SpaceMismatch | None, /
    ) -> tuple[Extraction, Failure | None]:
        """The extraction, and the error after which it is to be tried again."""
        if not [a for a in attempts if a.verdict.outcome != "unknown"]:
            return Extraction(notes=tuple([f"not judged: {a.verdict.reason}" for a in attempts])), None
        if mismatch:
            return nothing_drawn(mismatch), mismatch
        try:
            return await self.extract(attempts, receipt), None
        except (ExtractionError, ModelError) as error:
            return await self.bank.parts.intake.reply(nothing_drawn(error)), error

    async def _nearest_lessons(self, task: str) -> list[Lesson]:
        """What an extractor is shown that can say how its lessons stand to those of the bank."""
        matches = await self.bank.store.search(task, scope=self.bank.scope, limit=MOST_KNOWN)  # embeds nothing
        near = {lesson.id: lesson for match in matches for lesson in match.experience.active_lessons}
        return list(near.values())[:MOST_KNOWN]

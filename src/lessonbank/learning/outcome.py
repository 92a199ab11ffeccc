"""The result of one call of `learn` before it changes the bank, and the records that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from lessonbank._base.checks import shown
from lessonbank._base.ids import short
from lessonbank._version import VERSION
from lessonbank.contracts.records import (
    TEMPLATE,
    Add,
    Change,
    Experience,
    Extraction,
    Kind,
    Learned,
    Lesson,
    Merge,
    Outcome,
    Replace,
    Run,
    RunRef,
    Usage,
    notes_of,
)
from lessonbank.contracts.records.usage import usage_of
from lessonbank.errors import ExtractionError, ModelError, SpaceMismatch
from lessonbank.guard.gate import MOST_REJECTED
from lessonbank.guard.quote import quoted

from .prior_runs import PriorRuns
from .run_report import RunReport

_OF_KIND: dict[Kind, Outcome] = {"strategy": "success", "guardrail": "failure"}
_STAYS: Final = ("repeats", "imported", "template", "recall_id")
"""Fields of an experience that another try leaves as they are, where it says nothing of them."""


@dataclass(frozen=True, slots=True)
class LearnOutcome:
    """The result of one call of `learn` before it changes the bank."""

    prior: PriorRuns
    report: RunReport
    attempts: Sequence[Run]
    extraction: Extraction
    _: KW_ONLY
    scope: str
    failed: ExtractionError | ModelError | SpaceMismatch | None
    """Why the extraction failed: it is to be tried again."""
    usage: Usage
    """What judging and extracting cost."""

    def experience(self, earlier: Experience | None, /, *, writer: str, identity: str) -> Experience:
        """What is to be consolidated, with its new lessons; under its earlier id when its runs were tried before."""
        attempts, drawn, first = self.attempts, self.extraction, self.attempts[0].trajectory
        template = first.metadata.get(TEMPLATE)
        runs = [(a.trajectory, a.verdict) for a in attempts]
        refs = [RunRef(trajectory_id=run.id, verdict=verdict, n_steps=len(run.steps)) for run, verdict in runs]
        new = Experience(
            scope=self.scope,
            task=first.task,
            lessons=tuple([signed(lesson, attempts, writer=writer, identity=identity) for lesson in drawn.lessons]),
            attempts=tuple(refs),
            rejected=drawn.rejected,
            repeats=drawn.repeats,
            pending=self.failed is not None,
            imported=any(attempt.trajectory.imported for attempt in attempts),
            template=template if isinstance(template, str) else None,
            recall_id=self.report.receipt.id if self.report.receipt else None,
        )
        return new if earlier is None else _tried_again(earlier, new)

    def learned(self, experience: Experience, changes: Sequence[Change], /, *, notes: Sequence[str]) -> Learned:
        """The answer when `changes` were made, without what deciding on them cost."""
        brought = changed(changes)
        kept = ([one for one in brought if one.id == experience.id] or [experience])[0]
        earlier = {lesson.id for c in changes if isinstance(c, Replace) for lesson in c.experience.lessons}
        earlier -= {lesson.id for lesson in self.extraction.lessons}
        codes = [attempt.verdict.error for attempt in self.attempts]
        return Learned(
            experience=kept,
            verdicts=tuple([a.verdict for a in self.attempts if a.trajectory.id in self.report.truths]),
            lessons=tuple([lesson for one in brought for lesson in one.lessons if lesson.id not in earlier]),
            changes=tuple(changes),
            usage=self.usage,
            known=self.prior.known,
            notes=notes_of(
                *self.report.notes,
                *self.extraction.notes,
                *recognised(kept),
                *joined(changes),
                *notes,
            ),
            errors=tuple(dict.fromkeys(filter(None, (*codes, self.failed and self.failed.code)))),
        )


def nothing_drawn(error: ExtractionError | ModelError | SpaceMismatch, /) -> Extraction:
    """The place of an extraction that failed: no lessons, what it cost, and why."""
    why = quoted(error, limit=500)
    note = f"no lesson was drawn, the run is kept for another try: {why}"
    return Extraction(usage=usage_of(error) or Usage(), notes=(note,))


def changed(changes: Sequence[Change], /) -> list[Experience]:
    """The experiences that changes bring in."""
    return [brought for c in changes if (brought := c.brings)]


def recognised(experience: Experience, /) -> tuple[str, ...]:
    """Notes that name the lessons which the bank held already, and say where a model could not tell."""
    known = [*experience.repeats]
    first, more = ", ".join([shown(short(id)) for id in known[:3]]), f" and {len(known) - 3} more" * (len(known) > 3)
    unsure = "is kept as a new lesson, because nobody could tell whether it came again"
    return (
        *((f"taught again, and kept once: the bank had {first}{more}",) if known else ()),
        *[f"{shown(short(id))} {unsure}: {held.why}" for id, held in experience.not_recognised.items()],
    )


def joined(changes: Sequence[Change], /) -> tuple[str, ...]:
    """Notes that say which lessons became one, because the evidence of each ends there."""
    return tuple(
        f"joined: {', '.join(shown(short(id)) for id in one.source_lesson_ids)} are one lesson now, and its evidence "
        "starts again from nothing (lessons.unmerge undoes it)"
        for one in changes
        if isinstance(one, Merge)
    )


def _tried_again(earlier: Experience, new: Experience, /) -> Experience:
    again = {ref.trajectory_id for ref in new.attempts}
    others = [ref for ref in earlier.attempts if ref.trajectory_id not in again]
    told = {name: getattr(new, name) or getattr(earlier, name) for name in _STAYS}
    told |= {"task": new.task, "lessons": new.lessons, "pending": new.pending, "attempts": (*others, *new.attempts)}
    told["rejected"] = (*earlier.rejected, *new.rejected)[-MOST_REJECTED:]
    return earlier.model_copy(update=told)


def signed(lesson: Lesson, attempts: Sequence[Run], /, *, writer: str, identity: str) -> Lesson:
    """`lesson` with everything in its provenance that its extractor left open."""
    source = lesson.provenance
    runs = [a for a in attempts if a.trajectory.id in source.trajectory_ids]
    told: dict[str, Any] = {}
    if not source.trajectory_ids:
        runs = [a for a in attempts if a.verdict.outcome != "unknown"]
        outcomes = {a.verdict.outcome for a in runs}
        told["trajectory_ids"] = tuple(a.trajectory.id for a in runs)
        told["verdict"] = outcomes.pop() if len(outcomes) == 1 else _OF_KIND[lesson.kind]
        told["verdict_source"] = runs[0].verdict.source
    told["prompts"] = tuple(dict.fromkeys((*source.prompts, *[a.verdict.prompt for a in runs if a.verdict.prompt])))
    told |= {"writer": writer, "identity": identity, "package_version": source.package_version or VERSION}
    return lesson.model_copy(update={"provenance": source.model_copy(update=told)})


def taught_by(experience: Experience, identity: str, /) -> Experience:
    """`experience`, whatever it says of itself, as taught by `identity`."""
    lessons = [
        lesson.model_copy(update={"provenance": lesson.provenance.model_copy(update={"identity": identity})})
        for lesson in experience.lessons
    ]
    return experience.model_copy(update={"lessons": tuple(lessons)})


def replacing(earlier: Experience | None, changes: Sequence[Change], /) -> tuple[Change, ...]:
    """`changes` with what they add under an earlier id put in its place: the same as before is no change."""
    told = list[Change]()
    for change in changes:
        if earlier is None or not isinstance(change, Add) or change.experience.id != earlier.id:
            told.append(change)
            continue
        later = change.experience.model_copy(update={"lessons": (*earlier.lessons, *change.experience.lessons)})
        if _state(earlier) != _state(later):
            told.append(Replace(experience=later, reason="judged or extracted again"))
    return tuple(told)


def _state(experience: Experience) -> object:
    """What another try can change."""
    said = {ref.trajectory_id: (ref.verdict.outcome, ref.verdict.source) for ref in experience.attempts}
    return said, experience.model_dump(exclude={"task", "attempts"})

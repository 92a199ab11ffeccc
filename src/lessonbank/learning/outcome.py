"""The result of one call of `learn` before it changes the bank, and the records that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import Any, Final, TypeAlias

from lessonbank._base.ids import short
from lessonbank._version import VERSION
from lessonbank.contracts.records import (
    TEMPLATE,
    Add,
    Change,
    Experience,
    Extraction,
    Learned,
    Lesson,
    Merge,
    Replace,
    Run,
    RunRef,
    Trajectory,
    Usage,
    notes_of,
)
from lessonbank.contracts.records.repeats import with_repeats
from lessonbank.contracts.records.usage import usage_of
from lessonbank.errors import ExtractionError, ModelError, SpaceMismatch
from lessonbank.guard.gate import MOST_REJECTED
from lessonbank.guard.quote import quoted

from .run_report import RunReport

Failure: TypeAlias = ExtractionError | ModelError | SpaceMismatch
"""Why an extraction is to be tried again."""
_STAYS: Final = ("imported", "template", "recall_id")
"""Fields of an experience that another try leaves as they are, where it says nothing of them."""


@dataclass(frozen=True, slots=True)
class LearnOutcome:
    """The result of one call of `learn` before it changes the bank."""

    report: RunReport
    attempts: Sequence[Run]
    extraction: Extraction
    _: KW_ONLY
    scope: str
    failed: Failure | None
    usage: Usage
    """What judging and extracting cost."""
    unkept: Sequence[Trajectory] = ()
    """The runs, where they are kept in the write of their lessons."""

    def experience(self, earlier: Experience | None, /, *, writer: str) -> Experience:
        """What is to be consolidated, with its new lessons; under its earlier id when its runs were tried before."""
        attempts, drawn, first = self.attempts, self.extraction, self.attempts[0].trajectory
        identity, template = self.report.identity, first.metadata.get(TEMPLATE)
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
            imported=any(map(attrgetter("trajectory.imported"), attempts)),
            template=template if isinstance(template, str) else None,
            recall_id=self.report.receipt.id if self.report.receipt else None,
        )
        if earlier is None:
            return new
        again = {ref.trajectory_id for ref in refs}
        others = [ref for ref in earlier.attempts if ref.trajectory_id not in again]
        update = {name: getattr(new, name) or getattr(earlier, name) for name in _STAYS}
        update |= {"task": new.task, "lessons": new.lessons, "pending": new.pending, "repeats": new.repeats}
        update["attempts"] = (*others, *refs)
        update["rejected"] = (*earlier.rejected, *new.rejected)[-MOST_REJECTED:]
        return earlier.model_copy(update=update)

    def learned(self, experience: Experience, changes: Sequence[Change], /, *, notes: Sequence[str]) -> Learned:
        """The answer when `changes` were made, without what deciding on them cost."""
        own = {lesson.id for lesson in self.extraction.lessons}
        brought = {owner.id: (owner, isinstance(c, Replace)) for c in changes if (owner := c.brings)}
        new_experience, is_again = brought.get(experience.id, (experience, True))
        change_notes = _notes_on(new_experience, changes, before=experience if is_again else None)
        codes = [attempt.verdict.error for attempt in self.attempts]
        return Learned(
            experience=new_experience,
            verdicts=tuple([a.verdict for a in self.attempts if a.trajectory.id in self.report.truths]),
            lessons=tuple([i for owner, again in brought.values() for i in owner.lessons if i.id in own or not again]),
            changes=tuple(changes),
            usage=self.usage,
            known=self.report.known,
            notes=notes_of(*self.report.notes, *self.extraction.notes, *change_notes, *notes),
            errors=tuple(dict.fromkeys(filter(None, (*codes, self.failed and self.failed.code)))),
        )


def nothing_drawn(error: Failure, /) -> Extraction:
    """The place of an extraction that failed: no lessons, what it cost, and why."""
    note = f"no lesson was drawn, the run is kept for another try: {quoted(error, limit=500)}"
    return Extraction(usage=usage_of(error) or Usage(), notes=(note,))


def _notes_on(experience: Experience, changes: Sequence[Change], *, before: Experience | None) -> list[str]:
    """Which lessons the bank held already, where a model could not tell, and which became one: what `before` lacks."""
    earlier, unclear = (before.repeats, before.not_recognised) if before else ({}, {})
    known = [repr(short(id)) for id, duplicates in experience.repeats.items() if duplicates != earlier.get(id)]
    more = f" and {len(known) - 3} more" if len(known) > 3 else ""
    again = [f"taught again, and kept once: the bank had {', '.join(known[:3])}{more}"] if known else []
    unsure = "is kept as a new lesson, because nobody could tell whether it came again"
    alone = [
        f"{short(id)!r} {unsure}: {held.why}" for id, held in experience.not_recognised.items() if id not in unclear
    ]
    joined = [", ".join([repr(short(id)) for id in c.source_lesson_ids]) for c in changes if isinstance(c, Merge)]
    undo = "are one lesson now, and its evidence starts again from nothing (lessons.unmerge undoes it)"
    return [*again, *alone, *[f"joined: {ids} {undo}" for ids in joined]]


def signed(lesson: Lesson, attempts: Sequence[Run], /, *, writer: str, identity: str) -> Lesson:
    """`lesson` with everything in its provenance that its extractor left open."""
    source = lesson.provenance
    update: dict[str, Any] = {"writer": writer, "identity": identity}
    update["package_version"] = source.package_version or VERSION
    runs = [a for a in attempts if a.trajectory.id in source.trajectory_ids]
    if not source.trajectory_ids:
        runs = [a for a in attempts if a.verdict.outcome != "unknown"]
        taught = "success" if lesson.kind == "strategy" else "failure"
        update |= {"trajectory_ids": tuple([a.trajectory.id for a in runs]), "verdict_source": runs[0].verdict.source}
        update["verdict"] = taught if len({a.verdict.outcome for a in runs}) > 1 else runs[0].verdict.outcome
    update["prompts"] = tuple(dict.fromkeys((*source.prompts, *[a.verdict.prompt for a in runs if a.verdict.prompt])))
    return lesson.model_copy(update={"provenance": source.model_copy(update=update)})


def replacing(earlier: Experience, changes: Sequence[Change], /) -> tuple[Change, ...]:
    """`changes` with what they add under an earlier id put in its place: the same as before is no change."""
    new_changes = list[Change]()
    for change in changes:
        if isinstance(change, Add) and change.experience.id == earlier.id:
            lessons = (*earlier.lessons, *change.experience.lessons)
            repeats = with_repeats(earlier.repeats, change.experience.repeats)
            later = change.experience.model_copy(update={"lessons": lessons, "repeats": repeats})
            if _state(earlier) != _state(later):
                new_changes.append(Replace(experience=later, reason="judged or extracted again"))
        else:
            new_changes.append(change)
    return tuple(new_changes)


def _state(experience: Experience) -> object:
    """What another try can change."""
    verdicts = {ref.trajectory_id: (ref.verdict.outcome, ref.verdict.source) for ref in experience.attempts}
    return verdicts, experience.model_dump(exclude={"task", "attempts"})

"""What an import may bring into a scope: marked as imported, and without a word about what was there before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from lessonbank.contracts.records import Experience, Recall, Settlement, Trajectory
from lessonbank.errors import UsageError

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Imported


class Before(Protocol):
    """What a scope held before an import began."""

    def has_run(self, id: str, /) -> bool:
        """Whether the scope has this run, or an experience that names it."""
        ...

    def made_recall(self, id: str, /) -> bool:
        """Whether this receipt was made here, and not imported earlier."""
        ...

    def has_lesson(self, id: str, /) -> bool:
        """Whether the scope has this lesson."""
        ...


def marked(portion: Imported, /, *, scope: str) -> Imported:
    """`portion` with every record marked as imported, whatever the records say of themselves.

    A run loses what was said when it was submitted: an outcome, a receipt and other runs. That would be truth here.
    Lessons and settlements lose the identity of who told them: this bank does not know it.

    Raises:
        UsageError: a record of another scope.
    """
    for records in (portion.recalls, portion.experiences, portion.settlements):
        check_scopes(records, scope=scope)
    return replace(
        portion,
        runs=[_marked_run(run) for run in portion.runs],
        recalls=[recall.model_copy(update={"lessons": (), "imported": True}) for recall in portion.recalls],
        experiences=[_marked_experience(experience) for experience in portion.experiences],
        settlements=[told.model_copy(update={"identity": ""}) for told in portion.settlements],
    )


def check_scopes(records: Sequence[Experience | Recall | Settlement], /, *, scope: str) -> None:
    """Refuse records of another scope. Raises UsageError."""
    for record in records:
        if record.scope != scope:
            raise UsageError(
                f"this {type(record).__name__} belongs to the scope {record.scope[:80]!r} and not to {scope!r}"
            )


def _marked_run(run: Trajectory) -> Trajectory:
    return run.model_copy(update={"submission": None, "recall_id": None, "imported": True})


def _marked_experience(experience: Experience) -> Experience:
    sources = [lesson.provenance.model_copy(update={"identity": ""}) for lesson in experience.lessons]
    lessons = (i.model_copy(update={"provenance": p}) for i, p in zip(experience.lessons, sources, strict=True))
    return experience.model_copy(update={"lessons": tuple(lessons), "imported": True})


def without_claims(experience: Experience, before: Before, /) -> Experience:
    """`experience` without what it says of runs, receipts and lessons that were here before it came."""
    attempts = tuple(ref for ref in experience.attempts if not before.has_run(ref.trajectory_id))
    recall_id = None if experience.recall_id and before.made_recall(experience.recall_id) else experience.recall_id
    sources = {id for ids in experience.merged.values() for id in ids}
    merged = {} if any(map(before.has_lesson, sources)) else experience.merged
    told = {"attempts": attempts, "recall_id": recall_id, "merged": merged}
    changed = any(getattr(experience, name) != value for name, value in told.items())
    return experience.model_copy(update=told) if changed else experience

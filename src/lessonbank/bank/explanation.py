"""Why a recall was what it was: every lesson that was found, with what became of it and what the evidence says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lessonbank.contracts.records import Lesson, Match, Outcome, Recall, Record, Settlement
from lessonbank.evidence.effects import LessonLift, points, says_nothing
from lessonbank.evidence.groups import kind_and_label
from lessonbank.guard import one_line


class Explained(Record):
    """One lesson of a recall, or one that did not make it."""

    lesson_id: str
    title: str = ""
    score: float
    rank: int | None = None
    """Its place among what was found; `None` for one that was not."""
    shown: bool = False
    why: str
    rests_on: str = ""
    """The field or message of its run that shows it, where it says so."""
    lift: LessonLift | None = None
    """What the evidence says of it now."""


class Explanation(Record):
    """Why a recall showed what it showed. `print(explanation)` says it in words."""

    recall_id: str
    task: str
    control: bool = False
    withheld: tuple[str, ...] = ()
    """The groups that were withheld, by name."""
    outcome: Outcome | None = None
    """How its task ended, where that is known."""
    lessons: tuple[Explained, ...] = ()
    """What was found, best first."""
    losers: tuple[Explained, ...] = ()
    """What would come next, searched now: the bank may have changed since."""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        ended = f", its task ended as a {self.outcome}" if self.outcome else ", not settled"
        whole = "; memory was withheld whole, to compare with" if self.control else ""
        groups = f"; withheld as a group, to compare with: {'; '.join(self.withheld)}" if self.withheld else ""
        lines = [f"recall {one_line(self.recall_id)}{ended}{whole}{groups}", *map(_line, self.lessons)]
        if self.losers:
            lines += ["not found then, nearest now:", *map(_line, self.losers)]
        return "\n".join([*lines, *(one_line(note, limit=300) for note in self.notes)])


def explained(
    recall: Recall, settlement: Settlement | None, lessons: Mapping[str, Lesson], lifts: Mapping[str, LessonLift], /
) -> Explanation:
    """The explanation of a receipt, before the losers are known."""
    imported = ("an import brought this recall: it is no evidence here",) if recall.imported else ()
    return Explanation(
        recall_id=recall.id,
        task=recall.task,
        control=recall.is_withheld,
        withheld=tuple(kind_and_label(draw.group, *lessons.values()) for draw in recall.groups if draw.withheld),
        outcome=settlement.outcome if settlement else None,
        lessons=tuple(
            Explained(
                **{name: getattr(candidate, name) for name in ("lesson_id", "score", "rank", "shown", "why")},
                **_known(candidate.lesson_id, lessons.get(candidate.lesson_id), lifts),
            )
            for candidate in sorted(recall.candidates, key=lambda candidate: candidate.rank)
        ),
        notes=(*recall.notes, *_fit_of(recall), *imported),
    )


def _fit_of(recall: Recall) -> Iterator[str]:
    if (fit := recall.fit) and fit.is_applied:
        offered = sum(candidate.offered for candidate in recall.candidates)
        tokens = fit.usage.input_tokens + fit.usage.output_tokens
        yield f"fitted by {fit.model} ({fit.how}): {len(fit.kept)} of {offered} offered lessons kept, {tokens} tokens"


def losers(
    recall: Recall, matches: Sequence[Match], lifts: Mapping[str, LessonLift], /, *, most: int
) -> tuple[Explained, ...]:
    """Lessons of `matches` that the receipt does not name, best first."""
    candidate_ids = {candidate.lesson_id for candidate in recall.candidates}
    least = min((c.score for c in recall.candidates), default=None)
    made: dict[str, Explained] = {}
    for match, lesson in ((m, i) for m in matches for i in m.experience.active_lessons):
        if lesson.id in candidate_ids or lesson.id in made or match.lesson_id not in (None, lesson.id):
            continue
        why = f"scores {match.score:.3f}"
        if least is not None and match.score > least:
            why += " now, above the last that was found then: the bank has changed since"
        elif least is not None:
            why += f", behind {least:.3f} of the last that was found"
        made[lesson.id] = Explained(lesson_id=lesson.id, score=match.score, why=why, **_known(lesson.id, lesson, lifts))
    return tuple(made.values())[:most]


def _known(id: str, lesson: Lesson | None, lifts: Mapping[str, LessonLift]) -> dict[str, Any]:
    named = {"title": lesson.title, "rests_on": lesson.rests_on} if lesson else {}
    return {**named, "lift": lifts.get(id)}


def _line(lesson: Explained) -> str:
    effect = f" ({points(lesson.lift.success)})" if lesson.lift and not says_nothing(lesson.lift) else ""
    lift = f"; {lesson.lift.standing}{effect}" if lesson.lift else ""
    title, why = one_line(lesson.title or lesson.lesson_id, limit=80), one_line(lesson.why, limit=200)
    ground = f" (rests on: {one_line(lesson.rests_on, limit=80)})" if lesson.rests_on else ""
    return f"  {'shown' if lesson.shown else 'not shown'}: {title}{ground}: {why}{lift}"

"""Decides which lessons are kept. Rejects lessons that are not lessons, and keeps the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from lessonbank._counting import counted
from lessonbank.guard.sanitise import canonical, one_line
from lessonbank.types import Extraction, Lesson, Rejected, Rule, Run, Trajectory

from ._echo import Shown
from ._echo import codes_in as codes_in
from ._empty import is_ending, is_form, is_talk, is_vague, says_nothing
from ._literals import copies, literal_in, restates
from ._orders import imitates_a_turn
from ._retold import retold
from ._signs import is_disguised, mark_of
from ._things import Things
from .claims import claimed
from .places import beside, place_of, without
from .run_values import RunValues

TITLE: Final = 200
DESCRIPTION: Final = 600
CONTENT: Final = 4000
"""Characters of a field that are kept."""
ONE_RUN: Final = 3
SEVERAL_RUNS: Final = 5
"""Lessons that are kept of one run, and of several runs that are compared (paper, appendix A.1)."""
MOST_REJECTED: Final = 20
"""Rejected lessons that are kept for review: the first of a run, the latest of an experience."""
EXTRACTIVE: Final = "extractive"
"""The method of a lesson that code wrote, without a model."""

_SLOT = re.compile(r"<[^<>\n]{1,80}>")
_LEAST_LETTERS: Final = 12
"""Letters of a lesson that must be left beside its slots: with fewer it teaches nothing."""

NO_LESSON: Final = "may be no lesson"
"""How a platitude is marked, and what sounds like a talk with a reader."""
NOT_CHECKED: Final = "not checked"
"""How a lesson is marked that a model was to check, and did not."""

Check = Callable[[Lesson], str]
"""Returns why a lesson is rejected, or an empty text."""


@dataclass(frozen=True, slots=True)
class LessonGate:
    """Keeps the lessons of a run in canonical form and rejects the rest, without a model.

    Only structure rejects. Words that sound harmful, or like no lesson, mark a lesson: `risk` says how it sounds. It
    stays on probation, and whoever is shown it is told that nobody has checked it.
    """

    one_run: int = ONE_RUN
    several_runs: int = SEVERAL_RUNS

    def __call__(self, extraction: Extraction, attempts: Sequence[Run], /, *, shown: Sequence[str]) -> Extraction:
        """Move the lessons of `extraction` that are not lessons to `rejected`.

        `shown` are the texts that memory showed before these runs. What only looks like one of them is none.
        """
        runs = [attempt.trajectory for attempt in attempts]
        values, things = cache(lambda: RunValues.of(runs)), cache(lambda: Things.of(runs))
        checks = _checks(runs, Shown(tuple(shown)), things)
        most = self.one_run if len(attempts) == 1 else self.several_runs
        kept: list[Lesson] = []
        rejected: list[Rejected] = []
        notes: list[str] = []
        for lesson in map(in_form, extraction.lessons):
            bare = lesson if _quotes(lesson) else _without_values(lesson, values(), things())
            found = _refused(lesson, checks, kept, most) or _emptied(lesson, bare)
            if found is None:
                kept.append(_marked(bare, runs))
                if bare is not lesson:
                    notes.append(f"{one_line(bare.title, limit=60)!r}: values of this one run became slots")
            else:
                rejected.append(_turned_away(lesson, *found))
                notes.append(f"not kept: {one_line(lesson.title, limit=60)!r}: {found[1]}")
        return extraction.model_copy(
            update={
                "lessons": tuple(kept),
                "rejected": tuple(rejected[:MOST_REJECTED]),
                "notes": (*extraction.notes, *notes[:MOST_REJECTED]),
            }
        )


def _without_values(lesson: Lesson, values: RunValues, things: Things, /) -> Lesson:
    """`lesson` with a slot for each value of the runs that belongs to one person or case; itself if it has none."""
    told = {name: getattr(lesson, name) for name in ("title", "description", "content")}
    place = place_of(lesson, [run.task for run in values.runs])

    def masked(text: str) -> str:
        return things.spared(text, values.mask_private)

    bare = {name: beside(place, text, masked) for name, text in told.items()}
    return lesson if bare == told else in_form(lesson.model_copy(update=bare))


def _emptied(lesson: Lesson, bare: Lesson) -> tuple[Rule, str] | None:
    """Why a lesson goes whose values took all of it."""
    left = sum(map(str.isalpha, _SLOT.sub("", bare.content)))
    if bare is lesson or left >= _LEAST_LETTERS:
        return None
    return "literal", "it holds values of this one run and says nothing without them"


def in_form(lesson: Lesson, /) -> Lesson:
    """Put the fields of `lesson` in canonical form and cut them to their length."""
    title = _in_form(lesson.title, limit=TITLE, line=True)
    description = _in_form(lesson.description, limit=DESCRIPTION, line=True)
    content = _in_form(lesson.content, limit=CONTENT)
    told = {"title": title or "-", "description": description, "content": content or "-"}
    return claimed(lesson.model_copy(update=told))


def _in_form(text: str, *, limit: int, line: bool = False) -> str:
    form = canonical(text, limit=limit)
    bare = " ".join(form.split()) if line else form.strip()
    # Without the blanks around it, a text can be another one to a reader of code.
    return form if bare == form else canonical(bare)


def _checks(runs: Sequence[Trajectory], shown: Shown, things: Callable[[], Things]) -> dict[Rule, Check]:
    task, answers = runs[0].task if runs else "", [run.answer or "" for run in runs] or [""]
    return {
        "empty": lambda i: "it says nothing" if says_nothing(i.title, i.content) else "",
        "chatter": lambda i: "it holds parts of a reply's form" if is_form(i.title, i.content) else "",
        "submission": lambda i: "it ends a run" if is_ending(i.content) else "",
        "order": _forged,
        "echo": lambda i: "memory itself had shown it" if not _quotes(i) and shown.has(i.title, i.content) else "",
        "literal": lambda i: "" if _quotes(i) else _leak(i, task, answers, things()),
    }


def _forged(lesson: Lesson) -> str:
    """Why the form of a text says that it is an order: its words do not."""
    if imitates_a_turn(lesson.text, quoting=not _quotes(lesson)):
        return "it imitates a turn of a chat, a marker or a call"
    return "it hides what it recommends behind lookalike letters" if is_disguised(_read_aloud(lesson)) else ""


def _quotes(lesson: Lesson) -> bool:
    """Whether code wrote it from the steps of a run. Then it repeats no lesson and masks the task's values."""
    return lesson.provenance.method == EXTRACTIVE


def _leak(lesson: Lesson, task: str, answers: Sequence[str], things: Things) -> str:
    text = without(place_of(lesson, [task]), lesson.text)
    unnamed = things.without(text)
    leaks = (literal_in(text, task=task, answer=answer, unnamed=unnamed) for answer in answers)
    found = next(filter(None, leaks), None)
    if found:
        return f"it holds {one_line(found, limit=40)!r} of this one task"
    told = any(copies(lesson.content, task=task, answer=answer) for answer in answers)
    return "it tells what this one task was and not what it taught" if told else ""


def _refused(lesson: Lesson, checks: dict[Rule, Check], kept: Sequence[Lesson], most: int) -> tuple[Rule, str] | None:
    for rule, check in checks.items():
        if reason := check(lesson):
            return rule, reason
    if any(lesson.wording == other.wording for other in kept):
        return "duplicate", "another lesson of this run says the same"
    return ("cap", f"a run gives {counted(most, 'lesson')} at most") if len(kept) >= most else None


def _turned_away(lesson: Lesson, rule: Rule, reason: str) -> Rejected:
    # What repeats another lesson is not kept twice: a purge of that lesson must leave no copy.
    title, content = ("", "") if rule in ("echo", "duplicate") else (lesson.title, lesson.content)
    return Rejected(title=title, content=content, rule=rule, reason=reason)


def _marked(lesson: Lesson, runs: Sequence[Trajectory]) -> Lesson:
    """`lesson` as `appraised`; one of a run is also asked whether it teaches anything."""
    told = appraised(lesson)
    if told.risk or not runs:
        return told
    task = runs[0].task
    retold = not _quotes(told) and any(restates(told.content, task=task, answer=run.answer or "") for run in runs)
    vague = retold or is_vague(told.title, told.content, task=task)
    return told.model_copy(update={"risk": NO_LESSON}) if vague else told


def appraised(lesson: Lesson, /) -> Lesson:
    """Set what a new lesson may not say of itself: on probation, and marked if its words sound harmful.

    Nobody has approved it yet, it is in its first wording, and who taught it is for the bank to say.
    """
    source = lesson.provenance.model_copy(update={"identity": ""}) if lesson.provenance.identity else lesson.provenance
    told = {"state": "probation", "risk": doubt(lesson), "approved": False, "version": 1, "provenance": source}
    return lesson.model_copy(update=told)


def doubt(lesson: Lesson, /) -> str | None:
    """How the words of a lesson sound: as something risky, or as no lesson. `None`: neither.

    Words cannot tell whether a risk is recommended or warned of.
    """
    if _quotes(lesson) and (told := retold(lesson)) is not None:
        return mark_of(told, is_retold=True)
    return mark_of(_read_aloud(lesson)) or (NO_LESSON if is_talk(lesson.title, lesson.content) else None)


def _read_aloud(lesson: Lesson) -> str:
    """Its words, each field a sentence of its own. Every question about how it sounds reads this one text, once."""
    return f"{lesson.title}.\n{lesson.description}.\n{lesson.content}"

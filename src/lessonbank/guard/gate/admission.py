"""Decides which lessons are kept. Rejects lessons that are not lessons, and keeps the reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from lessonbank._base.plural import plural
from lessonbank.contracts.records import EXTRACTIVE as EXTRACTIVE
from lessonbank.contracts.records import UNCHECKED, Extraction, Lesson, Rejected, Rule, Run, Trajectory
from lessonbank.guard.sanitise import canonical, canonical_line, one_line

from ._echo import ShownMemory
from ._empty import is_vague, says_nothing
from ._literals import copies, literal_in, restates
from ._phrases import imitates_a_turn, is_ending, is_form, is_talk
from ._things import Things, place_of
from ._wishes import named_in, wished_tools
from .claims import claimed
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

_SLOT = re.compile(r"<[^<>\n]{1,80}>")
_LEAST_LETTERS: Final = 12
"""Letters of a lesson that must be left beside its slots: with fewer it teaches nothing."""

NO_LESSON: Final = "may be no lesson"
"""How a platitude is marked, and what sounds like a talk with a reader."""
NOT_CHECKED: Final = "not checked"
"""How a lesson is marked that a model was to check, and did not. It waits for a person."""
ASKED_BY_A_TEXT: Final = "a text that a tool returned may have asked for its call"
"""How a lesson is marked that tells a call which may be a stranger's wish. It waits for a person in every policy."""


@dataclass(frozen=True, slots=True)
class LessonGate:
    """Keeps the lessons of a run in canonical form and rejects the rest, without a model.

    Only structure rejects: nothing here can tell whether a lesson recommends harm or warns of it. What is kept is
    `UNCHECKED` until a model has checked it, and what sounds like no lesson is marked as that. Agents are told of both.
    """

    one_run: int = ONE_RUN
    several_runs: int = SEVERAL_RUNS

    def __call__(self, extraction: Extraction, attempts: Sequence[Run], /, *, shown: Sequence[str]) -> Extraction:
        """Move the lessons of `extraction` that are not lessons to `rejected`.

        `shown` are the texts that memory showed before these runs. What only looks like one of them is none.
        """
        runs = [attempt.trajectory for attempt in attempts]
        values, things = cache(lambda: RunValues.of(runs)), cache(lambda: Things.of(runs))
        memory, wishes = ShownMemory(tuple(shown)), cache(partial(wished_tools, runs))
        most = self.one_run if len(attempts) == 1 else self.several_runs
        lessons: list[Lesson] = []
        rejected: list[Rejected] = []
        notes: list[str] = []
        for lesson in map(in_form, extraction.lessons):
            quotes = lesson.provenance.method == EXTRACTIVE  # code repeats no lesson, and masks the task's values
            bare, refusal = lesson, _no_lesson(lesson, quotes=quotes)
            if not quotes:
                bare = _without_values(lesson, values(), things())
                refusal = refusal or _no_news(lesson, memory, runs, things())
            refusal = refusal or _too_much(lesson, lessons, most) or (None if bare is lesson else _emptied(bare))
            if refusal is None:
                lessons.append(appraised(bare) if quotes else _marked(bare, runs))
                if (tools := wishes()) and (tool := named_in(bare, tools)):
                    lessons[-1] = lessons[-1].model_copy(update={"state": "quarantined", "risk": ASKED_BY_A_TEXT})
                    reason = f"{ASKED_BY_A_TEXT}, {one_line(tool, limit=60)}"
                    notes.append(f"{one_line(bare.title, limit=60)!r} waits for a person: {reason}")
                if bare is not lesson:
                    notes.append(f"{one_line(bare.title, limit=60)!r}: values of this one run became slots")
            else:
                rejected.append(_turned_away(lesson, *refusal))
                notes.append(f"not kept: {one_line(lesson.title, limit=60)!r}: {refusal[1]}")
        return extraction.model_copy(
            update={
                "lessons": tuple(lessons),
                "rejected": tuple(rejected[:MOST_REJECTED]),
                "notes": (*extraction.notes, *notes[:MOST_REJECTED]),
            }
        )


def _without_values(lesson: Lesson, values: RunValues, things: Things, /) -> Lesson:
    """`lesson` with a slot for each value of the runs that belongs to one person or case; itself if it has none."""
    texts = {name: getattr(lesson, name) for name in ("title", "description", "content")}
    place = place_of(lesson, [run.task for run in values.runs])

    bare = {
        name: things.mask_but_things(place.without_owner(text), values.mask_private, place=place)
        for name, text in texts.items()
    }
    return lesson if bare == texts else in_form(lesson.model_copy(update=bare))


def _emptied(bare: Lesson) -> tuple[Rule, str] | None:
    """Why a lesson goes whose values took all of it."""
    left = sum(map(str.isalpha, _SLOT.sub("", bare.content)))
    return (
        None if left >= _LEAST_LETTERS else ("literal", "it holds values of this one run and says nothing without them")
    )


def in_form(lesson: Lesson, /) -> Lesson:
    """Put the fields of `lesson` in canonical form and cut them to their length."""
    title = canonical_line(lesson.title, limit=TITLE)
    description = canonical_line(lesson.description, limit=DESCRIPTION)
    content = canonical(lesson.content, limit=CONTENT)
    if (bare := content.strip()) != content:  # to a reader of code it can be another text then
        content = canonical(bare)
    fields = {"title": title or "-", "description": description, "content": content or "-"}
    return claimed(lesson.model_copy(update=fields))


def _no_lesson(lesson: Lesson, *, quotes: bool) -> tuple[Rule, str] | None:
    """Why the form of a text says that it is no lesson, or an order: its words do not."""
    if not quotes:  # code writes no reply, and begins with words of its own
        if says_nothing(lesson.title, lesson.content):
            return "empty", "it says nothing"
        if is_form(lesson.title, lesson.content):
            return "chatter", "it holds parts of a reply's form"
        if is_ending(lesson.content):
            return "submission", "it ends a run"
    if imitates_a_turn(lesson.text, quoting=not quotes):
        return "order", "it imitates a turn of a chat, a marker or a call"
    return None


def _no_news(
    lesson: Lesson, memory: ShownMemory, runs: Sequence[Trajectory], things: Things
) -> tuple[Rule, str] | None:
    """Why a lesson teaches nothing but what memory showed, or what one task was."""
    if memory.has(lesson.title, lesson.content):
        return "echo", "memory itself had shown it"
    task, answers = runs[0].task if runs else "", [run.answer or "" for run in runs] or [""]
    place = place_of(lesson, [task])
    wording = place.without_owner(lesson.text)
    text, unnamed = Things().without(wording, place=place), things.without(wording, place=place)
    leaks = (literal_in(text, task=task, answer=answer, unnamed=unnamed) for answer in answers)
    if literal := next(filter(None, leaks), None):
        return "literal", f"it holds {one_line(literal, limit=40)!r} of this one task"
    if any(copies(lesson.content, task=task, answer=answer) for answer in answers):
        return "literal", "it tells what this one task was and not what it taught"
    return None


def _too_much(lesson: Lesson, lessons: Sequence[Lesson], most: int) -> tuple[Rule, str] | None:
    if lessons and lesson.wording in [other.wording for other in lessons]:
        return "duplicate", "another lesson of this run says the same"
    return ("cap", f"a run gives {plural(most, 'lesson')} at most") if len(lessons) >= most else None


def _turned_away(lesson: Lesson, rule: Rule, reason: str) -> Rejected:
    # What repeats another lesson is not kept twice: a purge of that lesson must leave no copy.
    title, content = ("", "") if rule in ("echo", "duplicate") else (lesson.title, lesson.content)
    return Rejected(title=title, content=content, rule=rule, reason=reason)


def _marked(lesson: Lesson, runs: Sequence[Trajectory]) -> Lesson:
    """`lesson` as `appraised`; one of a run is also asked whether it teaches anything."""
    new_lesson = appraised(lesson)
    if not runs or new_lesson.is_doubted:
        return new_lesson
    task = runs[0].task
    retold = any(restates(new_lesson.content, task=task, answer=run.answer or "") for run in runs)
    vague = retold or is_vague(new_lesson.title, new_lesson.content, task=task)
    return new_lesson.model_copy(update={"risk": NO_LESSON}) if vague else new_lesson


def appraised(lesson: Lesson, /) -> Lesson:
    """Set what a new lesson may not say of itself: on probation, and unchecked.

    Nobody has approved it yet, it is in its first wording, and who taught it is for the bank to say.
    """
    source = lesson.provenance.model_copy(update={"identity": ""}) if lesson.provenance.identity else lesson.provenance
    fields = {
        "state": "probation",
        "risk": doubt(lesson) or UNCHECKED,
        "approved": False,
        "version": 1,
        "provenance": source,
    }
    return lesson.model_copy(update=fields)


def doubt(lesson: Lesson, /) -> str | None:
    """What speaks against a lesson without a look at what it recommends: it is a talk with a reader. `None`: nothing.

    What code wrote holds only words of its run.
    """
    is_quoted = lesson.provenance.method == EXTRACTIVE
    return NO_LESSON if not is_quoted and is_talk(lesson.title, lesson.content) else None

"""The pages of lessons: find them, and read one with where it comes from, what became of it and whether it helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from markupsafe import Markup
from starlette.responses import Response

from lessonbank._base.aio import if_there
from lessonbank.contracts.records import Edit, JournalEntry, Kind, Lesson, LessonState, Merge, Replace, Run, Trust
from lessonbank.evidence.lift import points, said_of

from .evidence_steps import deciding_steps
from .reports.forest import Forest
from .reports.html import minus
from .reports.lift_units import numbers
from .reports.plots import LOOKS, SIGN, bar
from .visit import PAGE, Visit

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_RECALLS: Final = 10
_SOURCES: Final = 20
"""Lessons that a merged lesson stands for, as far as its page names them."""
RUNS: Final = 3
"""Runs of a lesson that are read for its page."""


@dataclass(frozen=True, slots=True)
class Version:
    """A lesson's words as somebody wrote them, and the words before."""

    entry: JournalEntry
    words: str
    before: str | None
    by: str
    reason: str


async def listing(visit: Visit) -> Response:
    """Lessons that contain words and are of a state and kind, newest first; or those that a task would find."""
    asked: dict[str, Any] = {
        "text": visit.query("q"),
        "state": _one_of(visit.query("state"), get_args(LessonState)),
        "kind": _one_of(visit.query("kind"), get_args(Kind)),
        "topic": visit.query("topic"),
    }
    retired = visit.query("retired") == "yes"
    by_task = visit.query("by") == "task" and bool(asked["text"])
    late = visit.is_large and bool(by_task or asked["topic"]) and not visit.query("whole")
    found = list[Lesson]()
    if by_task and not late:
        found += (await visit.bank.recalls.preview(asked["text"], limit=PAGE)).lessons[:PAGE]
    elif not late:
        found += await visit.bank.lessons.list(**asked, retired=retired, limit=PAGE + 1, after=visit.query("after"))
    more = found[PAGE - 1].id if len(found) > PAGE else None
    told = {
        "asked": asked,
        "retired": retired,
        "found": found[:PAGE],
        "states": get_args(LessonState),
        "more": more,
        "by_task": by_task,
        "by_words": "lexical" in str((visit.bank.settings or {}).get("retriever", "")),
        "late": late,
    }
    template = "_lessons.html" if visit.is_part else "lessons.html"
    return visit.page(template, {**told, "counts": visit.counts})


async def one(visit: Visit) -> Response:
    """One lesson. What takes long to find out is a page of its own, which this one asks for."""
    id = visit.id
    owner = await visit.bank.lessons.experience(id)
    lesson = next(each for each in owner.lessons if each.id == id)
    runs = await runs_of(visit.bank, lesson)
    told: dict[str, Any] = {
        "lesson": lesson,
        "experience": owner,
        "runs": runs,
        "steps": deciding_steps(lesson, runs),
        "recalls": await visit.bank.recalls.list(lesson=id, limit=_RECALLS),
        "repeats": await visit.bank.lessons.repeats(id),
        "merged": [await if_there(visit.bank.lessons.get(one)) for one in owner.merged.get(id, ())[:_SOURCES]],
        "editing": visit.query("do"),
    }
    return visit.page("lesson.html", told)


async def versions(visit: Visit) -> Response:
    """What a lesson said before, with what changed."""
    lesson = await visit.bank.lessons.get(visit.id)
    story = await visit.bank.history.list(lesson=lesson.id)
    approvals = [entry for entry in story if _approves(entry, lesson.id)]
    told = {"lesson": lesson, "versions": versions_in(story, lesson.id), "story": story, "approvals": approvals}
    return visit.page("_versions.html" if visit.is_part else "versions.html", told)


async def held(visit: Visit) -> Response:
    """Why a lesson is in quarantine, who put it there and when."""
    lesson = await visit.bank.lessons.get(visit.id)
    told = {"lesson": lesson, "held": await why_held(visit, lesson)}
    return visit.page("_held.html" if visit.is_part else "held.html", told)


async def why_held(visit: Visit, lesson: Lesson, /) -> JournalEntry | None:
    """The change that put a lesson into quarantine; `None` if it was born there."""
    story = await visit.bank.history.list(lesson=lesson.id)
    return next((entry for entry in story[::-1] if _holds(entry, lesson.id)), None)


def _holds(entry: JournalEntry, id: str) -> bool:
    told = entry.entry
    return isinstance(told, Trust) and told.state == "quarantined" and id in told.lesson_ids


def _approves(entry: JournalEntry, id: str) -> bool:
    told = entry.entry
    return isinstance(told, Trust) and told.approves and id in told.lesson_ids


async def effect(visit: Visit) -> Response:
    """What showing a lesson changes, with its interval."""
    lesson = await visit.bank.lessons.get(visit.id)
    lift = await visit.bank.lift()
    found = next((each for each in lift.lessons if each.lesson_id == lesson.id), None)
    template = "_effect.html" if visit.is_part else "effect.html"
    if found is None:
        return visit.page(template, {"lesson": lesson, "found": None})
    drawn = bar(found)
    effect = "" if found.success.value is None else f": {minus(points(found.success))}"
    told = {
        "lesson": lesson,
        "found": found,
        "look": LOOKS[found.standing],
        "sentence": f"{SIGN[found.standing]} {said_of(found)}{effect}",
        "strip": Markup(Forest([drawn]).strip(drawn) + Forest([drawn]).ruler()),
        "facts": list(numbers(found)),
    }
    return visit.page(template, told)


def versions_in(story: Sequence[JournalEntry], id: str, /) -> Sequence[Version]:
    """The wordings of a lesson, the newest first. One that did not change the words is left out."""
    found = list[Version]()
    for entry in story:
        words = _worded(entry, id)
        before = found[-1].words if found else None
        if words is not None and words != before:
            told = entry.entry
            by = told.by if isinstance(told, Edit) else entry.writer
            reason = told.reason if isinstance(told, Edit | Replace | Merge) else ""
            found.append(Version(entry, words, before, by, reason))
    return found[::-1]


async def runs_of(bank: AsyncReasoningBank, lesson: Lesson, /) -> Sequence[Run]:
    """The runs that a lesson was drawn from, as far as they are still kept."""
    found = [await if_there(bank.runs.get(id)) for id in lesson.provenance.trajectory_ids[:RUNS]]
    return [run for run in found if run is not None]


def _worded(entry: JournalEntry, id: str) -> str | None:
    told = entry.entry
    if isinstance(told, Edit) and told.lesson_id == id:
        return _text(told.title, told.description, told.content, told.only)
    if (brought := told.brings) is not None:
        same = next((each for each in brought.lessons if each.id == id), None)
        return same and _text(same.title, same.description, same.content, same.only)
    return None


def _text(title: str, when: str, content: str, only: Sequence[str]) -> str:
    return "\n".join([title, when, content, *(f"only for: {one}" for one in only)])


def _one_of(value: str | None, known: Sequence[str]) -> str | None:
    return value if value in known else None

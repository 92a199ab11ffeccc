"""The pages of lessons: find them, and read one with where it comes from, what became of it and whether it helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from markupsafe import Markup
from starlette.responses import Response

from lessonbank._base.aio import get_or_none
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Edit, JournalEntry, Kind, Lesson, LessonState, Merge, Replace, Run, Trust
from lessonbank.evidence.effects import Estimate, LessonLift, points, said_of, says_nothing
from lessonbank.evidence.groups import topics_named

from .evidence_steps import deciding_steps
from .reports.forest import Forest
from .reports.html import minus
from .reports.lift_treatments import numbers
from .reports.plots import LOOKS, SIGN, bar
from .tables import csv_of, every
from .visit import PAGE, Visit, number_of

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


_EFFECTS: Final[Mapping[str, Sequence[str]]] = {
    "helps": ("helps", "likely helps"),
    "harms": ("harms", "likely harms"),
    "waits": (),
}
"""What the effect of a lesson can be filtered by."""
_ORDERS: Final = ("effect", "newest")
_COLUMNS: Final = (
    *("id", "title", "when", "content", "state", "retired", "kind", "topic", "decision"),
    *("effect_points", "low", "high", "shown", "left_out", "created", "writer"),
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address of the list asks for."""

    filters: Mapping[str, Any]
    effect: str | None
    order: str
    by_task: bool

    @property
    def is_ranked(self) -> bool:
        """Whether every lesson and its effect are read."""
        return not self.by_task and (self.order == "effect" or self.effect is not None)

    @property
    def reads_all(self) -> bool:
        """Whether the list takes long in a large scope."""
        return self.by_task or self.is_ranked or bool(self.filters["topic"])


async def listing(visit: Visit) -> Response:
    """Lessons of a state, kind, topic or effect that contain words, by effect or by age; or those a task would find."""
    asked = _asked(visit)
    if visit.query("format") == "csv":
        lifts = await _lifts(visit)
        ranked = await _ranked(visit, asked, lifts)
        topics = topics_named(await visit.topics(ranked))
        return csv_of("lessons", _COLUMNS, [_row(lesson, lifts.get(lesson.id), topics) for lesson in ranked])
    late = visit.is_large and asked.reads_all and not visit.query("whole")
    lifts: Mapping[str, LessonLift] = {} if late or (visit.is_large and not asked.is_ranked) else await _lifts(visit)
    lessons: Sequence[Lesson] = () if late else await _page(visit, asked, lifts)
    names = await visit.topics(lessons)
    rest = len(lessons) > PAGE
    context: dict[str, Any] = {
        "asked": {**asked.filters, "effect": asked.effect, "sort": asked.order if visit.query("sort") else None},
        "topics": topics_named(names),
        "topic": names.get(asked.filters["topic"], asked.filters["topic"]),
        "retired": asked.filters["retired"],
        "found": lessons[:PAGE],
        "states": get_args(LessonState),
        "effects": [*_EFFECTS],
        "orders": _ORDERS,
        "order": asked.order,
        "said": {id: (LOOKS[lift.standing], _write_effect(lift)) for id, lift in lifts.items()},
        "more": lessons[PAGE - 1].id if rest and not asked.is_ranked else None,
        "later": str(_start(visit) + PAGE) if rest and asked.is_ranked else None,
        "by_task": asked.by_task,
        "by_words": "lexical" in str((visit.bank.settings or {}).get("retriever", "")),
        "late": late,
    }
    template = "_lessons.html" if visit.is_part else "lessons.html"
    return visit.page(template, {**context, "counts": visit.counts})


def _asked(visit: Visit) -> _Asked:
    filters: dict[str, Any] = {
        "text": visit.query("q"),
        "state": _one_of(visit.query("state"), get_args(LessonState)),
        "kind": _one_of(visit.query("kind"), get_args(Kind)),
        "topic": visit.query("topic"),
        "retired": visit.query("retired") == "yes",
    }
    return _Asked(
        filters,
        effect=_one_of(visit.query("effect"), [*_EFFECTS]),
        order=_one_of(visit.query("sort"), _ORDERS) or ("newest" if visit.is_large else "effect"),
        by_task=visit.query("by") == "task" and bool(filters["text"]),
    )


def _start(visit: Visit) -> int:
    return number_of(visit.query("start")) or 0


async def _page(visit: Visit, asked: _Asked, lifts: Mapping[str, LessonLift]) -> Sequence[Lesson]:
    """The lessons of one page, and one more where there are more."""
    if asked.by_task:
        return (await visit.bank.recalls.preview(asked.filters["text"], limit=PAGE)).lessons[:PAGE]
    if asked.is_ranked:
        return (await _ranked(visit, asked, lifts))[_start(visit) :][: PAGE + 1]
    return await visit.bank.lessons.list(**asked.filters, limit=PAGE + 1, after=visit.query("after"))


async def _lifts(visit: Visit) -> Mapping[str, LessonLift]:
    """By id: what is known of the effect of each lesson that a task found."""
    return {lift.lesson_id: lift for lift in (await visit.bank.lift()).lessons}


async def _ranked(visit: Visit, asked: _Asked, lifts: Mapping[str, LessonLift]) -> Sequence[Lesson]:
    """Every lesson that is asked for, the largest effect first: what helps, what is open, what harms, the unknown."""
    lessons = await every(visit.bank.lessons.list, lambda lesson: lesson.id, **asked.filters)
    if asked.effect == "waits":
        proposed = {proposal.lesson.id for proposal in await visit.bank.lessons.proposals()}
        lessons = [lesson for lesson in lessons if lesson.state == "quarantined" or lesson.id in proposed]
    elif asked.effect:
        wanted = _EFFECTS[asked.effect]
        lessons = [lesson for lesson in lessons if lesson.id in lifts and lifts[lesson.id].standing in wanted]
    return sorted(lessons, key=lambda lesson: _place(lifts.get(lesson.id))) if asked.order == "effect" else lessons


def _place(lift: LessonLift | None) -> tuple[bool, float]:
    value = lift.success.value if lift else None
    return value is None, -(value or 0.0)


def _write_effect(lift: LessonLift) -> str:
    effect = "" if says_nothing(lift) else f"{minus(points(lift.success))}: "
    times = f"shown {plural(lift.shown, 'time')}, left out {plural(lift.withheld, 'time')}"
    return f"{SIGN[lift.standing]} {effect}{said_of(lift)}; {times}"


def _row(lesson: Lesson, lift: LessonLift | None, topics: Mapping[str, str]) -> Sequence[object]:
    effect = lift.success if lift else Estimate()
    numbers = [
        None if end is None else round(100 * end, 1) for end in (effect.value, effect.always_low, effect.always_high)
    ]
    words = (lesson.id, lesson.title, lesson.description, lesson.content, lesson.state, lesson.retired, lesson.kind)
    topic = topics.get(lesson.topic.id) if lesson.topic else None
    times = (lift.shown, lift.withheld) if lift else (0, 0)
    made = (lesson.created_at.isoformat(), lesson.provenance.writer)
    return (*words, topic, said_of(lift) if lift else None, *numbers, *times, *made)


async def show_lesson(visit: Visit) -> Response:
    """One lesson. What takes long to find out is a page of its own, which this one asks for."""
    id = visit.id
    owner = await visit.bank.lessons.experience(id)
    lesson = next(each for each in owner.lessons if each.id == id)
    runs = await runs_of(visit.bank, lesson)
    context: dict[str, Any] = {
        "lesson": lesson,
        "topics": topics_named(await visit.topics(owner.lessons)),
        "experience": owner,
        "approval": await _approval_before(visit, lesson),
        "runs": runs,
        "steps": deciding_steps(lesson, runs),
        "recalls": await visit.bank.recalls.list(lesson=id, limit=_RECALLS),
        "repeats": await visit.bank.lessons.repeats(id),
        "merged": [
            await get_or_none(visit.bank.lessons.get(source_id)) for source_id in owner.merged.get(id, ())[:_SOURCES]
        ],
        "editing": visit.query("do"),
    }
    return visit.page("lesson.html", context)


async def versions(visit: Visit) -> Response:
    """What a lesson said before, with what changed."""
    lesson = await visit.bank.lessons.get(visit.id)
    story = await visit.bank.history.list(lesson=lesson.id)
    approvals = [entry for entry in story if _approves(entry, lesson.id)]
    context = {"lesson": lesson, "versions": versions_in(story, lesson.id), "story": story, "approvals": approvals}
    return visit.page("_versions.html" if visit.is_part else "versions.html", context)


async def held(visit: Visit) -> Response:
    """Why a lesson is in quarantine, who put it there and when."""
    lesson = await visit.bank.lessons.get(visit.id)
    context = {"lesson": lesson, "held": await why_held(visit, lesson)}
    return visit.page("_held.html" if visit.is_part else "held.html", context)


async def why_held(visit: Visit, lesson: Lesson, /) -> JournalEntry | None:
    """The change that put a lesson into quarantine; `None` if it was born there."""
    story = await visit.bank.history.list(lesson=lesson.id)
    return next((entry for entry in story[::-1] if _holds(entry, lesson.id)), None)


async def _approval_before(visit: Visit, lesson: Lesson) -> JournalEntry | None:
    """Of a lesson in quarantine: the last time that somebody approved it."""
    if lesson.state != "quarantined":
        return None
    story = await visit.bank.history.list(lesson=lesson.id)
    return next((entry for entry in story[::-1] if _approves(entry, lesson.id)), None)


def _holds(entry: JournalEntry, id: str) -> bool:
    change = entry.entry
    return isinstance(change, Trust) and change.state == "quarantined" and id in change.lesson_ids


def _approves(entry: JournalEntry, id: str) -> bool:
    change = entry.entry
    return isinstance(change, Trust) and change.approves and id in change.lesson_ids


async def effect(visit: Visit) -> Response:
    """What showing a lesson changes, with its interval."""
    lesson = await visit.bank.lessons.get(visit.id)
    lift = await visit.bank.lift()
    lesson_lift = next((each for each in lift.lessons if each.lesson_id == lesson.id), None)
    template = "_effect.html" if visit.is_part else "effect.html"
    if lesson_lift is None:
        return visit.page(template, {"lesson": lesson, "found": None})
    drawn = bar(lesson_lift)
    effect = "" if says_nothing(lesson_lift) else f": {minus(points(lesson_lift.success))}"
    context = {
        "lesson": lesson,
        "found": lesson_lift,
        "look": LOOKS[lesson_lift.standing],
        "sentence": f"{SIGN[lesson_lift.standing]} {said_of(lesson_lift)}{effect}",
        "strip": Markup(Forest([drawn]).strip(drawn) + Forest([drawn]).ruler()) if effect else "",
        "facts": list(numbers(lesson_lift)),
    }
    return visit.page(template, context)


def versions_in(story: Sequence[JournalEntry], id: str, /) -> Sequence[Version]:
    """The wordings of a lesson, the newest first. One that did not change the words is left out."""
    versions = list[Version]()
    for entry in story:
        words = _worded(entry, id)
        before = versions[-1].words if versions else None
        if words is not None and words != before:
            change = entry.entry
            by = change.by if isinstance(change, Edit) else entry.writer
            reason = change.reason if isinstance(change, Edit | Replace | Merge) else ""
            versions.append(Version(entry, words, before, by, reason))
    return versions[::-1]


async def runs_of(bank: AsyncReasoningBank, lesson: Lesson, /) -> Sequence[Run]:
    """The runs that a lesson was drawn from, as far as they are still kept."""
    runs = [await get_or_none(bank.runs.get(id)) for id in lesson.provenance.trajectory_ids[:RUNS]]
    return [run for run in runs if run is not None]


def _worded(entry: JournalEntry, id: str) -> str | None:
    change = entry.entry
    if isinstance(change, Edit) and change.lesson_id == id:
        return _text(change.title, change.description, change.content, change.only_for_tasks)
    if (brought := change.brings) is not None:
        same = next((each for each in brought.lessons if each.id == id), None)
        return same and _text(same.title, same.description, same.content, same.only_for_tasks)
    return None


def _text(title: str, when: str, content: str, only: Sequence[str]) -> str:
    return "\n".join([title, when, content, *(f"only for: {task}" for task in only)])


def _one_of(value: str | None, known: Sequence[str]) -> str | None:
    return value if value in known else None

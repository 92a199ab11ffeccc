"""What lies near a lesson: lessons that it may repeat or contradict, and recent tasks that would have shown it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from lessonbank._base.aio import get_or_none
from lessonbank.contracts.records import Lesson, Recall
from lessonbank.text.bm25 import words

from .visit import Visit

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_NEAR: Final = 3
_TASKS: Final = 5
_RECENT: Final = 200
"""Recalls that are looked through."""
_DAYS: Final = 30
_ALIKE: Final = 0.2
"""The share of words in common from which on two tasks are alike."""
_SEARCHED: Final = 8
"""Experiences that are looked through for lessons near one."""


async def page(visit: Visit) -> Response:
    """A part of the page of a lesson that waits. It searches, so it comes after that page."""
    id = visit.id
    owner = await visit.bank.lessons.experience(id)
    lesson = next(lesson for lesson in owner.lessons if lesson.id == id)
    context = {
        "lesson": lesson,
        "near": await _near(visit.bank, lesson, owner.task, but=visit.query("but")),
        "tasks": await _shown_for(visit.bank, owner.task),
        "days": _DAYS,
        "recent": _RECENT,
    }
    return visit.page("_near.html" if visit.is_part else "near.html", context)


async def _near(bank: AsyncReasoningBank, lesson: Lesson, task: str, *, but: str | None) -> Sequence[Lesson]:
    """The lessons that are found for its task, most alike first; `but` the one that its page compares already."""
    lessons = (await bank.recalls.preview(task, limit=_SEARCHED)).lessons
    alike = {other.id: share(lesson.text, other.text) for other in lessons if other.id not in (lesson.id, but)}
    return sorted((other for other in lessons if other.id in alike), key=lambda other: alike[other.id], reverse=True)[
        :_NEAR
    ]


async def _shown_for(bank: AsyncReasoningBank, task: str) -> Sequence[Recall]:
    """Recent tasks, each once, to which `task` is at least as near as one that taught what was shown."""
    since = datetime.now(UTC) - timedelta(days=_DAYS)
    recent = {recall.task: recall for recall in await bank.recalls.list(limit=_RECENT) if recall.created_at >= since}
    alike = sorted(((share(task, recent_task), recent_task) for recent_task in recent), reverse=True)
    recalls = list[Recall]()
    for nearness, recent_task in alike:
        if nearness < _ALIKE or len(recalls) == _TASKS:
            break
        if nearness >= await _weakest(bank, recent[recent_task]):
            recalls.append(recent[recent_task])
    return recalls


async def _weakest(bank: AsyncReasoningBank, recall: Recall) -> float:
    """How near the task is that taught what was shown last; 0 where nothing was shown."""
    shown = {candidate.experience_id: candidate.lesson_id for candidate in recall.candidates if candidate.shown}
    held = [await get_or_none(bank.lessons.experience(id)) for id in shown.values()]
    return min((share(experience.task, recall.task) for experience in held if experience), default=0.0)


def share(a: str, b: str, /) -> float:
    """The share of words that two texts have in common."""
    tokens, other = set(words(a)), set(words(b))
    return len(tokens & other) / len(tokens | other) if tokens and other else 0.0

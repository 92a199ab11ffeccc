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
    lesson = next(one for one in owner.lessons if one.id == id)
    told = {
        "lesson": lesson,
        "near": await _near(visit.bank, lesson, owner.task, but=visit.query("but")),
        "tasks": await _shown_for(visit.bank, owner.task),
        "days": _DAYS,
        "recent": _RECENT,
    }
    return visit.page("_near.html" if visit.is_part else "near.html", told)


async def _near(bank: AsyncReasoningBank, lesson: Lesson, task: str, *, but: str | None) -> Sequence[Lesson]:
    """The lessons that are found for its task, most alike first; `but` the one that its page compares already."""
    found = (await bank.recalls.preview(task, limit=_SEARCHED)).lessons
    alike = {one.id: share(lesson.text, one.text) for one in found if one.id not in (lesson.id, but)}
    return sorted((one for one in found if one.id in alike), key=lambda one: alike[one.id], reverse=True)[:_NEAR]


async def _shown_for(bank: AsyncReasoningBank, task: str) -> Sequence[Recall]:
    """Recent tasks, each once, to which `task` is at least as near as one that taught what was shown."""
    since = datetime.now(UTC) - timedelta(days=_DAYS)
    recent = {one.task: one for one in await bank.recalls.list(limit=_RECENT) if one.created_at >= since}
    alike = sorted(((share(task, said), said) for said in recent), reverse=True)
    found = list[Recall]()
    for nearness, said in alike:
        if nearness < _ALIKE or len(found) == _TASKS:
            break
        if nearness >= await _weakest(bank, recent[said]):
            found.append(recent[said])
    return found


async def _weakest(bank: AsyncReasoningBank, recall: Recall) -> float:
    """How near the task is that taught what was shown last; 0 where nothing was shown."""
    shown = {one.experience_id: one.lesson_id for one in recall.candidates if one.shown}
    held = [await get_or_none(bank.lessons.experience(id)) for id in shown.values()]
    return min((share(one.task, recall.task) for one in held if one), default=0.0)


def share(a: str, b: str, /) -> float:
    """The share of words that two texts have in common."""
    one, other = set(words(a)), set(words(b))
    return len(one & other) / len(one | other) if one and other else 0.0

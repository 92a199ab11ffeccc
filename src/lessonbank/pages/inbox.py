"""The page of what waits for a person: one lesson at a time with its evidence beside it, and the list of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from lessonbank._concurrency import if_there
from lessonbank.text.bm25 import words
from lessonbank.types import Lesson, Proposal, Recall

from .evidence_steps import deciding_steps
from .lessons import runs_of
from .visit import PAGE, Visit

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_NEAR: Final = 3
_RECENT: Final = 200
"""Recalls that are looked through for tasks like that of a lesson."""
_ALIKE: Final = 0.2
"""The share of words in common from which on two tasks are alike."""
_SEARCHED: Final = 8
"""Experiences that are looked through for lessons near one."""
_SHELVES: Final = ("quarantined", "probation")


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing to decide."""

    lesson: Lesson
    proposal: Proposal | None = None
    target: Lesson | None = None
    """The lesson that a proposal would change."""


async def page(visit: Visit) -> Response:
    """What waits, the proposals first; the chosen one is open."""
    shelf = visit.query("state") if visit.query("state") in _SHELVES else "quarantined"
    found, more = await _waiting(visit, str(shelf))
    ids = [one.lesson.id for one in found]
    at = visit.query("at")
    place = ids.index(at) if at in ids else 0
    told = {"found": found, "place": place, "shelf": shelf, "more": more, "shelves": _SHELVES}
    if not found:
        return visit.page("inbox.html", {**told, "open": None})
    chosen = found[place]
    owner = await visit.bank.lessons.experience(chosen.lesson.id)
    runs = await runs_of(visit.bank, chosen.lesson)
    told |= {
        "open": chosen,
        "experience": owner,
        "runs": runs,
        "steps": deciding_steps(chosen.lesson, runs),
        "near": await _near(visit.bank, chosen.lesson, owner.task),
        "tasks": await _tasks_like(visit.bank, owner.task),
        "next": ids[place + 1] if place + 1 < len(ids) else (ids[place - 1] if place else None),
        "doing": visit.query("do"),
    }
    return visit.page("inbox.html", told)


async def _waiting(visit: Visit, shelf: str) -> tuple[Sequence[Waiting], str | None]:
    """What is on a shelf, and after which lesson the next page begins."""
    proposals = await visit.bank.lessons.proposals() if shelf == "quarantined" and not visit.query("after") else ()
    found = [Waiting(one.lesson, one, await _target(visit, one)) for one in proposals[:PAGE]]
    known = {one.lesson.id for one in proposals}
    page = await visit.bank.lessons.list(
        state="quarantined" if shelf == "quarantined" else "probation", limit=PAGE + 1, after=visit.query("after")
    )
    found += [Waiting(lesson) for lesson in page[:PAGE] if lesson.id not in known]
    return found, page[PAGE - 1].id if len(page) > PAGE else None


async def _target(visit: Visit, proposal: Proposal) -> Lesson | None:
    return await if_there(visit.bank.lessons.get(proposal.of)) if proposal.of else None


async def _near(bank: AsyncReasoningBank, lesson: Lesson, task: str) -> Sequence[Lesson]:
    """The lessons that are found for its task, most alike first: it may repeat or contradict one of them."""
    found = (await bank.recalls.preview(task, limit=_SEARCHED)).lessons
    alike = {one.id: _share(lesson.text, one.text) for one in found if one.id != lesson.id}
    return sorted((one for one in found if one.id in alike), key=lambda one: alike[one.id], reverse=True)[:_NEAR]


async def _tasks_like(bank: AsyncReasoningBank, task: str) -> Sequence[Recall]:
    """The last tasks that are most like the one that taught a lesson: for such tasks it would be found."""
    recent = await bank.recalls.list(limit=_RECENT)
    alike = [(_share(task, one.task), one) for one in recent]
    best = sorted((pair for pair in alike if pair[0] >= _ALIKE), key=lambda pair: pair[0], reverse=True)
    return list({one.task: one for _, one in best}.values())[:_NEAR]


def _share(a: str, b: str) -> float:
    """The share of words that two texts have in common."""
    one, other = set(words(a)), set(words(b))
    return len(one & other) / len(one | other) if one and other else 0.0

"""Where the pages begin: does memory help, what is new, what waits, what was taken back; and the evidence in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from markupsafe import Markup
from starlette.responses import Response

from lessonbank._base.aio import if_there
from lessonbank.evidence.lift import spent

from .journal import Line, is_taken_back, latest, line_of
from .reports.html import minus
from .reports.lift_page import answer, content, figures
from .visit import Visit

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_NEW: Final = 5
_LOOKED: Final = 300
"""The last changes that are looked through."""


async def start(visit: Visit) -> Response:
    """What a person wants to know first."""
    bank = visit.bank
    told = {"new": await bank.lessons.list(limit=_NEW), "unlabelled": len(await bank.runs.unlabelled())}
    return visit.page("home.html", {**told, "counts": visit.counts})


async def taken_back(visit: Visit) -> Response:
    """What was taken back last, and why."""
    told = {"back": await _taken_back(visit.bank), "looked": _LOOKED}
    return visit.page("_taken_back.html" if visit.is_part else "taken_back.html", told)


async def helps(visit: Visit) -> Response:
    """Whether memory helps, in a sentence and a picture."""
    lift = await visit.bank.lift()
    drawn = Markup("").join(map(Markup, figures(lift.series)[:2])) if lift.series else ""
    unasked = not lift.recalls and bool(await visit.bank.lessons.list(limit=1))
    told = {"answer": Markup(answer(lift)), "figures": drawn, "unasked": unasked}
    told |= {"recalls": lift.recalls, "known": lift.settled}
    told |= {"spent": minus(spent(lift)), "tokens_known": lift.tokens.value is not None, "measuring": lift.measuring}
    return visit.page("_helps.html" if visit.is_part else "helps.html", told)


async def evidence(visit: Visit) -> Response:
    """All that was measured: the page of `lessonbank lift --html`, among the others."""
    lift = await visit.bank.lift()
    return visit.page("evidence.html", {"content": Markup(content(lift, address=visit.link))})


async def _taken_back(bank: AsyncReasoningBank) -> Sequence[tuple[Line, str]]:
    """What was taken back last, with the title of the first lesson that it was about."""
    lines = [line_of(entry) for entry in await latest(bank, _LOOKED) if is_taken_back(entry)][:_NEW]
    found = [await if_there(bank.lessons.get(line.lessons[0])) if line.lessons else None for line in lines]
    return [(line, lesson.title if lesson else "") for line, lesson in zip(lines, found, strict=True)]

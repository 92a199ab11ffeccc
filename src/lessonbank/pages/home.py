"""Where the pages begin: does memory help, what is new, what waits, what was taken back; and the evidence in full."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from lessonbank.evidence.effects import Standing
from lessonbank.evidence.lift import Lift, sides, spent

from .absence import title_in
from .journal import is_taken_back, latest, line_of
from .reports.html import minus
from .reports.lift_page import answer, content, figure, where_it_ends
from .visit import LARGE, Visit, counted_proposals

_LEAD: Final[Mapping[Standing, str]] = {
    "helps": "Memory helps",
    "likely helps": "Memory likely helps",
    "harms": "Memory harms",
    "likely harms": "Memory likely harms",
}
_NUMBERS: Final = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten")
_NEW: Final = 5
_LOOKED: Final = 300
"""The last changes that are looked through."""


async def start(visit: Visit) -> Response:
    """What a person wants to know first; what takes long in a large scope comes after the page."""
    bank = visit.bank
    context: dict[str, Any] = {"new": await bank.lessons.list(limit=_NEW), "counts": visit.counts}
    context |= {"unlabelled": len(await bank.runs.unlabelled()), "failed": (await bank.runs.queue()).failed}
    context["late"] = visit.is_large or visit.counts.recalls > LARGE
    if not context["late"]:
        context |= {**await _told_of_memory(visit), **await _told_of_undoing(visit)}
    return visit.page("home.html", context)


async def taken_back(visit: Visit) -> Response:
    """What was taken back last, and why."""
    return visit.page("_taken_back.html" if visit.is_part else "taken_back.html", await _told_of_undoing(visit))


async def helps(visit: Visit) -> Response:
    """Whether memory helps, in a sentence and a picture."""
    return visit.page("_helps.html" if visit.is_part else "helps.html", await _told_of_memory(visit))


async def _told_of_memory(visit: Visit) -> dict[str, Any]:
    lift = await visit.bank.lift()
    counts = await visit.bank.admin.counts()
    proposed = await counted_proposals(visit.session, visit.bank, visit.scope, counts)
    drawn = Markup(figure(lift.series)) if lift.series else ""
    unasked = not lift.recalls and bool(await visit.bank.lessons.list(limit=1))
    waiting = counts.quarantined + proposed.besides
    context: dict[str, Any] = {"lead": lead(lift, waiting=waiting)}
    context |= {"answer": Markup(answer(lift, waiting=waiting, brief=True)), "figure": drawn, "unasked": unasked}
    context |= {"recalls": lift.recalls, "known": lift.settled, "ends": where_it_ends(lift)}
    return context | {"spent": minus(spent(lift)), "tokens_known": lift.tokens.value is not None}


def lead(lift: Lift, /, *, waiting: int) -> str:
    """The answer for somebody who leads a team: does memory help, and does anything wait."""
    waits = f" {_number(waiting)} {'decision waits' if waiting == 1 else 'decisions wait'} for you." if waiting else ""
    if lift.missing_differs:
        return f"Nobody can say yet whether memory helps: too many outcomes are missing.{waits}"
    if lift.success.value is None or lift.success_with is None or lift.success_without is None:
        return f"It is too early to say whether memory helps.{waits}"
    by_judge = "By what was told and what the judge thinks: " if lift.truths else "The judge thinks: "
    judged = by_judge if lift.success.basis == "judge" else ""
    with_it, without = sides(lift)
    shares = f"with it {with_it} succeed, without it {without}"
    if lift.standing == "no evidence yet":
        return f"It is too early to say whether memory helps; so far {shares}.{waits}"
    sentence = _LEAD[lift.standing]
    return f"{judged}{sentence[0].lower() + sentence[1:] if judged else sentence}: {shares}.{waits}"


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else f"{count:,}"


async def evidence(visit: Visit) -> Response:
    """All that was measured: the page of `lessonbank lift --html`, among the others."""
    lift = await visit.bank.lift()
    return visit.page("evidence.html", {"content": Markup(content(lift, address=visit.link))})


async def _told_of_undoing(visit: Visit) -> dict[str, Any]:
    """What was taken back last, with the title of the first lesson that it was about, and whether the bank holds it."""
    lines = [line_of(entry) for entry in await latest(visit.bank, _LOOKED) if is_taken_back(entry)][:_NEW]
    return {"back": [(line, *await title_in(visit, line)) for line in lines], "looked": _LOOKED}

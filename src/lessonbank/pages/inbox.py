"""The page of what waits for a person: one lesson at a time with its evidence beside it, and the list of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from lessonbank._base.aio import get_or_none
from lessonbank.contracts.records import FILE, JournalEntry, Lesson, Proposal

from .evidence_steps import deciding_steps
from .lessons import runs_of, why_held
from .tables import csv_of, every
from .visit import PAGE, Visit, counted_proposals

_SHELVES: Final = {"quarantined": "Quarantined", "proposed": "Proposed", "probation": "On probation"}
_WAITING: Final = ("quarantined", "proposed")
"""The shelves that wait for a person, as Home counts them: agents get a lesson on probation without a decision."""
_PROPOSALS: Final = 200


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing to decide."""

    lesson: Lesson
    proposal: Proposal | None = None
    target: Lesson | None = None
    """The lesson that a proposal would change."""
    why: str = ""
    """Why it is in quarantine, in a few words."""


async def page(visit: Visit) -> Response:
    """What waits on a shelf; the chosen one is open."""
    asked = visit.query("state")
    if visit.query("format") == "csv":
        return await _csv(visit)
    if asked in _SHELVES:
        return await _render_shelf(visit, asked, *await _waiting(visit, asked))
    for shelf in _WAITING:
        entries, more = await _waiting(visit, shelf)
        if entries:
            return await _render_shelf(visit, shelf, entries, more)
    return await _render_shelf(visit, "quarantined", (), None, nothing=True)


async def _csv(visit: Visit) -> Response:
    """All that waits: proposals first, then what is in quarantine."""
    proposals = await visit.bank.lessons.proposals()
    held = await every(visit.bank.lessons.list, lambda lesson: lesson.id, state="quarantined")
    rows = [
        ("proposed", proposal.lesson.id, proposal.lesson.title, proposal.reason, proposal.origin)
        for proposal in proposals
    ]
    rows += [("quarantined", lesson.id, lesson.title, "", lesson.provenance.writer) for lesson in held]
    return csv_of("inbox", ("waits_as", "id", "title", "reason", "from"), rows)


async def _render_shelf(
    visit: Visit, shelf: str, entries: Sequence[Waiting], more: str | None, *, nothing: bool = False
) -> Response:
    ids = [entry.lesson.id for entry in entries]
    at = visit.query("at")
    place = ids.index(at) if at in ids else 0
    context = {
        "found": entries,
        "place": place,
        "shelf": shelf,
        "more": more,
        "shelves": list(_SHELVES.items()),
        "nothing": nothing,
    }
    if not entries:
        return visit.page("inbox.html", {**context, "open": None})
    chosen = entries[place]
    owner = await visit.bank.lessons.experience(chosen.lesson.id)
    runs = await runs_of(visit.bank, chosen.lesson)
    context |= {
        "open": chosen,
        "experience": owner,
        "lesson": chosen.lesson,
        "held": await _held(visit, chosen),
        "runs": runs,
        "steps": deciding_steps(chosen.lesson, runs),
        "next": ids[place + 1] if place + 1 < len(ids) else (ids[place - 1] if place else None),
        "doing": visit.query("do"),
    }
    return visit.page("inbox.html", context)


async def _held(visit: Visit, chosen: Waiting) -> JournalEntry | None:
    asked = chosen.lesson.state == "quarantined" and not chosen.proposal and not visit.is_large
    return await why_held(visit, chosen.lesson) if asked else None


async def _waiting(visit: Visit, shelf: str) -> tuple[Sequence[Waiting], str | None]:
    """What is on a shelf, and after which lesson the next page begins."""
    if shelf == "proposed":
        proposals = (await visit.bank.lessons.proposals())[:_PROPOSALS]
        return [Waiting(proposal.lesson, proposal, await _target(visit, proposal)) for proposal in proposals], None
    page = await visit.bank.lessons.list(
        state="quarantined" if shelf == "quarantined" else "probation", limit=PAGE + 1, after=visit.query("after")
    )
    # What a file proposes lies on the shelf of the proposals.
    entries = [
        Waiting(lesson, why=await _why(visit, lesson)) for lesson in page[:PAGE] if lesson.provenance.writer != FILE
    ]
    if shelf == "probation" and not visit.is_large:
        proposed = {proposal.lesson.id for proposal in await visit.bank.lessons.proposals()}
        entries = [entry for entry in entries if entry.lesson.id not in proposed]
    return entries, page[PAGE - 1].id if len(page) > PAGE else None


async def _why(visit: Visit, lesson: Lesson) -> str:
    if lesson.state != "quarantined" or visit.is_large:
        return ""
    entry = await why_held(visit, lesson)
    if entry is None:
        return "the gate doubts it" if lesson.is_doubted else "nobody approved it yet"
    return entry.entry.sentence().reason or f"held by {entry.writer}"


async def proposed(visit: Visit) -> Response:
    """How many proposals wait. It looks through many lessons, so it comes after the page."""
    if not visit.is_part:
        return await _render_shelf(visit, "proposed", *await _waiting(visit, "proposed"))
    counts = await visit.bank.admin.counts()
    tally = await counted_proposals(visit.session, visit.bank, visit.scope, counts)
    where = visit.query("for")
    return visit.page(
        "_proposed.html", {"proposed": tally, "where": where, "waiting": counts.quarantined + tally.besides}
    )


async def _target(visit: Visit, proposal: Proposal) -> Lesson | None:
    return await get_or_none(visit.bank.lessons.get(proposal.of)) if proposal.of else None

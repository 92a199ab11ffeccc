"""The runs that wait to be learned, and those that were given up: look at them, and have them tried again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from lessonbank._base.plural import counted
from lessonbank.contracts.records import Run
from lessonbank.errors import UsageError

from .visit import PAGE, Visit

_AT_ONCE: Final = 20
"""Runs that are tried again by one press: each may ask a model several times, and the page waits for it."""


async def page(visit: Visit) -> Response:
    """How many wait, are in the hands of a worker, or were given up; and the last of them, with what went wrong."""
    told = {
        "queue": await visit.bank.runs.queue(),
        "failed": await visit.bank.runs.list(status="failed", limit=PAGE),
        "pending": await visit.bank.runs.list(status="pending", limit=PAGE),
        "at_once": _AT_ONCE,
    }
    return visit.page("queue.html", told)


async def previewed(visit: Visit) -> Response:
    """Which runs would be tried again, before anything is done."""
    return visit.page("retry.html", {"runs": await _chosen(visit, visit.request.query_params.getlist("run"))})


async def retry(visit: Visit) -> Response:
    """Learn from the runs that the person saw."""
    fields = await visit.form()
    runs = await _chosen(visit, fields.get("run", []))
    learned = await visit.bank.runs.retry(*(run.trajectory.id for run in runs))
    lessons = sum(len(one.lessons) for one in learned)
    left = [await visit.bank.runs.get(run.trajectory.id) for run in runs]
    done = sum(run.status == "learned" for run in left)
    visit.session.told = f"Learned from {done} of {counted(len(runs), 'run')}: {counted(lessons, 'new lesson')}"
    return visit.go(visit.link("queue"))


async def _chosen(visit: Visit, ids: Sequence[str]) -> Sequence[Run]:
    """The runs of these ids that were not learned; `all`: the newest that were given up. Raises UsageError."""
    if "all" in ids:
        return await visit.bank.runs.list(status="failed", limit=_AT_ONCE)
    found = [await visit.bank.runs.get(id) for id in dict.fromkeys(ids[:_AT_ONCE])]
    waiting = [run for run in found if run.status in ("failed", "pending")]
    if not waiting:
        raise UsageError("choose at least one run that was not learned")
    return waiting

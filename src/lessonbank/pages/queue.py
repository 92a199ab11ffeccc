"""The runs that wait to be learned: those to try again, and those of which only somebody's word is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Run
from lessonbank.contracts.store_calls import get_trajectories
from lessonbank.errors import UsageError

from .visit import PAGE, Visit

_AT_ONCE: Final = 20
"""Runs that are tried again by one press: each may ask a model several times, and the page waits for it."""


async def page(visit: Visit) -> Response:
    """How many wait, are in the hands of a worker, or were given up; and the last of them, with what went wrong."""
    failed = await visit.bank.runs.list(status="failed", limit=PAGE)
    pending = await visit.bank.runs.list(status="pending", limit=PAGE)
    open_ = await _without_outcome(visit, (*failed, *pending))
    context = {
        "queue": await visit.bank.runs.queue(),
        "failed": [run for run in failed if run not in open_],
        "pending": [run for run in pending if run not in open_],
        "open": open_,
        "judges": _judges(visit),
        "at_once": _AT_ONCE,
    }
    return visit.page("queue.html", context)


def _judges(visit: Visit) -> bool:
    """Whether this process can say how a run ended."""
    return (visit.bank.settings or {}).get("judge") != "NoJudge"


async def _without_outcome(visit: Visit, runs: Sequence[Run]) -> Sequence[Run]:
    """Runs that another try cannot teach: no outcome was told, and no judge here says one."""
    open_runs = [run for run in runs if run.verdict.outcome == "unknown" and not run.trajectory.error]
    if _judges(visit):
        open_runs = [run for run in open_runs if run.verdict.model is not None and run.verdict.error is None]
    ids = [run.trajectory.id for run in open_runs]
    trajectories = await get_trajectories(visit.bank.store, ids, scope=visit.bank.scope)
    outcome_ids = {
        trajectory.id for trajectory in trajectories if trajectory.submission and trajectory.submission.says_outcome
    }
    return [run for run in open_runs if run.trajectory.id not in outcome_ids]


async def previewed(visit: Visit) -> Response:
    """Which runs would be tried again, before anything is done."""
    return visit.page("retry.html", {"runs": await _chosen(visit, visit.request.query_params.getlist("run"))})


async def retry(visit: Visit) -> Response:
    """Learn from the runs that the person saw."""
    fields = await visit.form()
    runs = await _chosen(visit, fields.get("run", []))
    learned = await visit.bank.runs.retry(*(run.trajectory.id for run in runs))
    lessons = sum(len(learning.lessons) for learning in learned)
    left = [await visit.bank.runs.get(run.trajectory.id) for run in runs]
    done = sum(run.status == "learned" for run in left)
    visit.session.message = f"Learned from {done} of {plural(len(runs), 'run')}: {plural(lessons, 'new lesson')}"
    return visit.go(visit.link("queue"))


async def _chosen(visit: Visit, ids: Sequence[str]) -> Sequence[Run]:
    """The runs of these ids that another try may learn; `all`: the newest that were given up. Raises UsageError."""
    if "all" in ids:
        runs = await visit.bank.runs.list(status="failed", limit=_AT_ONCE)
    else:
        runs = tuple([await visit.bank.runs.get(id) for id in dict.fromkeys(ids[:_AT_ONCE])])
    waiting = [run for run in runs if run.status in ("failed", "pending")]
    open_ = await _without_outcome(visit, waiting)
    waiting = [run for run in waiting if run not in open_]
    if not waiting:
        raise UsageError("choose at least one run that was not learned and that another try can teach")
    return waiting

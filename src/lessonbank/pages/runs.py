"""The pages of runs: find them, and read one as it happened, with what was shown to the agent and how it ended."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, get_args

from markupsafe import Markup
from starlette.responses import Response

from lessonbank._base.aio import get_or_none
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Lesson, Outcome, Recall, Run, RunStatus, Verdict
from lessonbank.contracts.store_calls import get_trajectories
from lessonbank.guard import clean
from lessonbank.learning.settlement import words_of
from lessonbank.text.verdicts import is_open

from .absence import why_absent
from .evidence_steps import named_steps
from .rendering import day
from .tables import csv_of, every
from .visit import PAGE, Visit, number_of

_STEPS: Final = 200
"""Steps of a run on one page."""
_COLUMNS: Final = (
    *("id", "task", "outcome", "by", "status", "time", "seconds", "user"),
    *("steps", "input_tokens", "output_tokens", "us_dollars"),
)
_ID: Final = re.compile(r"0[0-9a-f]{11}7[0-9a-f]{3}[89ab][0-9a-f]{15}")
_USER: Final = 100
"""Characters of a user's name."""
_ENDLESS: Final = 1e12
"""Seconds that no run took: whoever hands one in may say any number."""
_WORDS: Final = 400
"""Characters of a task that its runs are looked for by."""


async def listing(visit: Visit) -> Response:
    """Runs that contain words and ended in a way, newest first."""
    outcome, status = visit.query("outcome"), visit.query("status")
    asked: dict[str, Any] = {
        "text": visit.query("q"),
        "outcome": outcome if outcome in get_args(Outcome) else None,
        "status": status if status in get_args(RunStatus) else None,
    }
    if user := visit.query("user"):
        asked["metadata"] = {"user": user}
    if visit.query("format") == "csv":
        every_run = await every(visit.bank.runs.list, lambda run: run.trajectory.id, **asked)
        return csv_of("runs", _COLUMNS, map(_row, every_run))
    runs = await visit.bank.runs.list(**asked, limit=PAGE + 1, after=visit.query("after"))
    more = runs[PAGE - 1].trajectory.id if len(runs) > PAGE else None
    context: dict[str, Any] = {"asked": {**asked, "user": user}, "found": runs[:PAGE], "more": more}
    context["facts"] = {run.trajectory.id: facts_of(run) for run in runs[:PAGE]}
    start = number_of(visit.query("start")) or 0
    is_whole = not any((*asked.values(), user))
    context |= {"start": start, "total": visit.counts.trajectories if is_whole else None if more else start + len(runs)}
    context["handed_in"] = await handed_in(visit, runs[:PAGE])
    context |= {"outcomes": get_args(Outcome), "statuses": get_args(RunStatus)}
    return visit.page("_runs.html" if visit.is_part else "runs.html", context)


@dataclass(frozen=True, slots=True)
class Facts:
    """When a run was, for whom, and what it took; `None` for what nobody said."""

    at: datetime | None
    seconds: float | None
    user: str | None
    tokens: int | None
    cost: float | None

    @property
    def sentence(self) -> Markup:
        """What is known, as one line."""
        parts = (
            day(self.at) if self.at else None,
            None if self.seconds is None else _lasting(self.seconds),
            clean(f"user {self.user}") if self.user else None,
            plural(self.tokens, "token") if self.tokens else None,
            None if self.cost is None else f"{self.cost:.4f} US dollars",
        )
        return Markup(", ").join(part for part in parts if part)


def _lasting(seconds: float) -> str:
    """How long something took, in the two largest units that say it."""
    if seconds < 60:
        return f"{seconds:,.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"


def facts_of(run: Run, /) -> Facts:
    """What a run says of itself, and when it began, which the id of its recall or its own id tells."""
    usage, seconds, user = run.trajectory.usage, run.metadata.get("seconds"), run.metadata.get("user")
    known = isinstance(seconds, int | float) and not isinstance(seconds, bool) and abs(seconds) < _ENDLESS
    return Facts(
        at=_time_in(run.recall_id or run.trajectory.recall_id or "") or _time_in(run.trajectory.id),
        seconds=float(seconds) if known and isinstance(seconds, int | float) else None,
        user=None if user is None else str(user)[:_USER],
        tokens=(usage.input_tokens + usage.output_tokens) or None,
        cost=usage.cost,
    )


def _time_in(id: str) -> datetime | None:
    """The moment in an id of the package (UUID version 7); other ids have none."""
    if not _ID.fullmatch(id):
        return None
    return datetime.fromtimestamp(int(id[:12], 16) / 1000, UTC)


def _row(run: Run) -> Sequence[object]:
    facts, usage = facts_of(run), run.trajectory.usage
    ended = (
        run.trajectory.id,
        run.trajectory.task,
        run.verdict.outcome,
        None if is_open(run.verdict) else run.verdict.source,
        run.status,
    )
    took = (len(run.trajectory.steps), usage.input_tokens, usage.output_tokens, usage.cost)
    return (*ended, facts.at.isoformat() if facts.at else None, facts.seconds, facts.user, *took)


async def show_run(visit: Visit) -> Response:
    """One run, step by step."""
    run = await visit.bank.runs.get(visit.id)
    recall = await recall_of(visit, run)
    drawn = await _drawn_from(visit, run, recall)
    ending = (await handed_in(visit, (run,))).get(run.trajectory.id)
    first = max(number_of(visit.query("from")) or 1, 1)
    steps = list(enumerate(run.trajectory.steps, 1))[first - 1 : first - 1 + _STEPS]
    context: dict[str, Any] = {
        "run": run,
        "said": ending,
        "facts": facts_of(run),
        "recall": recall,
        "was_empty": was_empty,
        "shown": await shown_by(visit, recall),
        "cited": frozenset(recall.citations(words_of([run.trajectory])) if recall else ()),
        "drawn": drawn,
        "supports": supports(run, drawn),
        "steps": steps,
        "outcomes": get_args(Outcome),
        "next": None if ending else await _next_open(visit, run),
        "more": first + _STEPS if first - 1 + _STEPS < len(run.trajectory.steps) else None,
    }
    return visit.page("run.html", context)


async def _next_open(visit: Visit, run: Run) -> str | None:
    """The next older run of which nobody said how it ended, if this is one."""
    if run.verdict.outcome != "unknown":
        return None
    older = await visit.bank.runs.list(outcome="unknown", limit=PAGE, after=run.trajectory.id)
    known = await handed_in(visit, older)
    return next((other.trajectory.id for other in older if other.trajectory.id not in known), None)


async def handed_in(visit: Visit, runs: Sequence[Run], /) -> Mapping[str, str]:
    """By id: how runs that are not learned yet ended, as it was said when they were handed in."""
    ids = [run.trajectory.id for run in runs if run.status != "learned" and run.verdict.outcome == "unknown"]
    trajectories = await get_trajectories(visit.bank.store, ids, scope=visit.bank.scope) if ids else ()
    return {
        trajectory.id: words
        for trajectory in trajectories
        if trajectory.submission and (words := _handed_in(*trajectory.submission.ending))
    }


def _handed_in(outcome: Verdict | Outcome | None, reward: float | None) -> str | None:
    if isinstance(outcome, Verdict):
        return None if outcome.outcome == "unknown" else outcome.outcome
    return outcome or (None if reward is None else f"a reward of {reward:g}")


async def recall_of(visit: Visit, run: Run, /) -> Recall | None:
    """The receipt of what was shown to the agent, if it is known and still kept."""
    named = run.recall_id or run.trajectory.recall_id
    return await get_or_none(visit.bank.recalls.get(named)) if named else None


def was_empty(recall: Recall, /) -> bool:
    """Whether there was no lesson at all when it was made."""
    return not recall.candidates and any(note.code == "empty" for note in recall.notes)


async def of_task(visit: Visit, task: str, /, *, limit: int) -> Sequence[Run]:
    """The latest runs whose task has the words of this one."""
    return await visit.bank.runs.list(text=task[:_WORDS], limit=limit)


async def shown_by(visit: Visit, recall: Recall | None, /) -> Sequence[tuple[str, Lesson | None, str]]:
    """The lessons in the text of a recall, by id, and of those that the bank does not hold why."""
    ids = [each.lesson_id for each in recall.candidates if each.shown] if recall else []
    lessons = {id: await get_or_none(visit.bank.lessons.get(id)) for id in ids}
    why = await why_absent(visit, [id for id, lesson in lessons.items() if lesson is None])
    return [(id, lesson, why.get(id, "")) for id, lesson in lessons.items()]


def supports(run: Run, lessons: Sequence[Lesson], /) -> Mapping[int, Sequence[Lesson]]:
    """For each step the lessons that name it as what they rest on."""
    support: dict[int, list[Lesson]] = {}
    for lesson in lessons:
        for number in named_steps(lesson).get(run.trajectory.id, ()):
            support.setdefault(number, []).append(lesson)
    return support


async def _drawn_from(visit: Visit, run: Run, recall: Recall | None) -> Sequence[Lesson]:
    """The lessons that this run taught: of those that came of its recall, or of runs of its task."""
    if recall is not None:
        lessons = await visit.bank.lessons.list(recall=recall.id, retired=True, limit=PAGE)
    else:
        lessons = ()
    return [lesson for lesson in lessons if run.trajectory.id in lesson.provenance.trajectory_ids]

"""Two runs side by side: where they went apart, and how each ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from markupsafe import Markup
from starlette.responses import Response

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Json, Run, Step
from lessonbank.errors import UsageError

from .rendering import cut, day
from .runs import of_task, recall_of
from .visit import Visit

_PAIR: Final = 2
_MARKED: Final = 20
"""Steps in which words are marked."""
_STEPS: Final = 100
_OTHERS: Final = 8


async def page(visit: Visit) -> Response:
    """Both runs, step beside step."""
    a, b = visit.query("a"), visit.query("b")
    chosen = visit.request.query_params.getlist("run")
    if len(chosen) == _PAIR:
        a, b = chosen
    if not a or not b:
        raise UsageError("choose two runs: with the boxes on the page Runs, or on the page of a run")
    runs = [await visit.bank.runs.get(a), await visit.bank.runs.get(b)]
    left, right = (run.trajectory.steps for run in runs)
    rows = list(enumerate(zip_longest(left[:_STEPS], right[:_STEPS]), 1))
    parted = first_difference(left, right)
    at = (
        []
        if parted is None
        else [named_action(steps[parted - 1] if parted <= len(steps) else None) for steps in (left, right)]
    )
    context: dict[str, Any] = {
        "runs": runs,
        "rows": rows,
        "parted": parted,
        "longest": max(len(left), len(right)),
        "acts": at,
    }
    context["marks"] = marks(left[:_STEPS], right[:_STEPS])
    labels = zip(("first", "second"), [await label_of(visit, run) for run in runs], strict=True)
    captions = [Markup("the {} run, {}").format(place, label) for place, label in labels]
    return visit.page("compare.html", {**context, "most": _STEPS, "said": captions})


async def others(visit: Visit) -> Response:
    """Other runs that had the same task, or one that holds all its words."""
    run = await visit.bank.runs.get(visit.id)
    runs = await of_task(visit, run.trajectory.task, limit=_OTHERS + 1)
    same = [other for other in runs if other.trajectory.id != run.trajectory.id][:_OTHERS]
    labelled = [(other, await label_of(visit, other)) for other in same]
    return visit.page("_others.html" if visit.is_part else "others.html", {"run": run, "others": labelled})


async def label_of(visit: Visit, run: Run, /) -> Markup:
    """What tells a run from others of its task: how it ended, how long it was, and when memory was asked for it."""
    recall = await recall_of(visit, run)
    parts = (
        run.verdict.outcome,
        plural(len(run.trajectory.steps), "step"),
        *([day(recall.created_at)] if recall else []),
    )
    return Markup(", ").join(parts)


def marks(left: Sequence[Step], right: Sequence[Step], /) -> Mapping[int, tuple[str, str]]:
    """For the first steps that are not worded alike, what stands in each of both."""
    pairs = [
        (number, _text(step), _text(other)) for number, (step, other) in enumerate(zip(left, right, strict=False), 1)
    ]
    return {number: (text, other) for number, text, other in [each for each in pairs if each[1] != each[2]][:_MARKED]}


def _text(step: Step) -> str:
    calls = (f"{call.name}({_arguments(call.arguments)})" for call in step.action.calls)
    return "\n".join([step.action.text, *calls, *(seen.text for seen in step.observations)]).strip()


def first_difference(left: Sequence[Step], right: Sequence[Step], /) -> int | None:
    """The number of the first step in which two runs did different things; `None` if they did the same.

    What an agent says beside a call of a tool is wording; where no tool is called, what it says is what it does.
    """
    for number, (step, other) in enumerate(zip_longest(left, right), 1):
        if step is None or other is None or _done(step) != _done(other):
            return number
    return None


def _done(step: Step) -> object:
    if step.action.calls:
        return [(call.name, call.arguments) for call in step.action.calls]
    return " ".join(step.action.text.split())


def named_action(step: Step | None, /) -> str:
    """What a step did, in a few words."""
    if step is None:
        return "nothing: it had ended"
    if step.action.calls:
        return " and ".join(f"{call.name}({cut(_arguments(call.arguments), 80)})" for call in step.action.calls[:3])
    return f"“{cut(' '.join(step.action.text.split()), 80)}”" if step.action.text.strip() else "nothing"


def _arguments(arguments: Json) -> str:
    if isinstance(arguments, dict):
        return ", ".join(f"{name}={value}" for name, value in arguments.items())
    return str(arguments)

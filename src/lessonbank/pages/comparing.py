"""Two runs side by side: where they went apart, and how each ended."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from starlette.responses import Response

from lessonbank.errors import UsageError
from lessonbank.types import Step

from .visit import Visit

_STEPS: Final = 100
_OTHERS: Final = 8
_WORDS: Final = 400
"""Characters of a task that other runs are looked for by."""


async def page(visit: Visit) -> Response:
    """Both runs, step beside step."""
    a, b = visit.query("a"), visit.query("b")
    if not a or not b:
        raise UsageError("say which two runs: the page of a run names others of its task")
    runs = [await visit.bank.runs.get(a), await visit.bank.runs.get(b)]
    left, right = (run.trajectory.steps for run in runs)
    rows = list(enumerate(zip_longest(left[:_STEPS], right[:_STEPS]), 1))
    told = {"runs": runs, "rows": rows, "parted": first_difference(left, right), "longest": max(len(left), len(right))}
    return visit.page("compare.html", {**told, "most": _STEPS})


async def others(visit: Visit) -> Response:
    """Other runs that had the same task, or one that holds all its words."""
    run = await visit.bank.runs.get(visit.id)
    found = await visit.bank.runs.list(text=run.trajectory.task[:_WORDS], limit=_OTHERS + 1)
    same = [one for one in found if one.trajectory.id != run.trajectory.id][:_OTHERS]
    return visit.page("_others.html" if visit.is_part else "others.html", {"run": run, "others": same})


def first_difference(left: Sequence[Step], right: Sequence[Step], /) -> int | None:
    """The number of the first step in which two runs did different things; `None` if they did the same."""
    for number, (one, other) in enumerate(zip_longest(left, right), 1):
        if one is None or other is None or one.action != other.action:
            return number
    return None

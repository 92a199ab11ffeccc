"""What measuring costs, as numbers and as a sentence: whoever leaves lessons out should see what that takes."""

from __future__ import annotations

from typing import Final

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Record

_OPEN: Final = "how many successes is not known yet"
_LESS_SURE: Final = ": single lessons are less certain than memory as a whole"


class MeasuringCost(Record):
    """What withholding cost."""

    given_up: float = 0.0
    """Successes expected to have been given up by leaving helpful lessons out (below zero: harm that was avoided)."""
    given_up_low: float | None = None
    """The least that this can be, by the intervals that hold however often one looks, and the most."""
    given_up_high: float | None = None
    tasks_without: int = 0
    """Tasks that found lessons of which a draw left out all, whether or not their outcome is known."""
    tasks_with_less: int = 0
    """Tasks that found lessons of which a draw left out some."""


def cost_of(cost: MeasuringCost, recalls: int, /, *, settled: int, is_known: bool) -> str:
    """What measuring has cost so far, as a sentence; empty before the first task. `is_known`: is an effect known?"""
    if not recalls:
        return ""
    ended = "" if settled >= recalls else ", with a known outcome or without"
    tasks = f"{cost.tasks_without:,} of {plural(recalls, 'task')} without memory"
    less = f", {cost.tasks_with_less:,} with only a part of it" if cost.tasks_with_less else ""
    text = _given_up(cost) if is_known else _OPEN
    return f"Measuring has cost so far: {tasks}{less}{ended}; {'together ' if less and is_known else ''}{text}."


def is_open(cost: MeasuringCost, /) -> bool:
    """Whether each task that went without may have cost a success or avoided a failure: no number says a thing then."""
    low, high = cost.given_up_low, cost.given_up_high
    if low is None or high is None or not low < 0 < high:
        return False
    return high - low >= cost.tasks_without + cost.tasks_with_less


def _given_up(cost: MeasuringCost) -> str:
    """`about 118 failures avoided (between 20 and 215)`; nothing where each task may have gone either way."""
    low, high = cost.given_up_low, cost.given_up_high
    value = round(cost.given_up)
    text = f"about {_successes(value)}" if value else "hardly any success"
    if low is None or high is None:
        return text
    if is_open(cost):
        return _OPEN
    ends = sorted((round(low), round(high)), key=abs)
    if ends[0] * ends[1] >= 0 and value:
        return f"{text} (between {abs(ends[0]):,} and {abs(ends[1]):,})"
    why = _LESS_SURE if cost.tasks_with_less else ""
    return f"{text} (between {_successes(min(ends))} and {_successes(max(ends))}{why})"


def _successes(count: int) -> str:
    return f"{plural(-count, 'failure')} avoided" if count < 0 else plural(count, "success", "successes")

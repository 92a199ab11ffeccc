"""What measuring costs, as numbers and as a sentence: whoever leaves lessons out should see what that takes."""

from __future__ import annotations

from typing import Final

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Record

OPEN: Final = "how many successes is not known yet"
_LESS_SURE: Final = ": single lessons are less certain than memory as a whole"


class MeasuringCost(Record):
    """What withholding cost."""

    given_up: float = 0.0
    """Successes expected to have been given up by leaving helpful lessons out (below zero: harm that was avoided)."""
    given_up_low: float = 0.0
    """The least that this can be, by the intervals that hold however often one looks, and the most."""
    given_up_high: float = 0.0
    tasks_without: int = 0
    """Tasks that found lessons of which a draw left out all, whether or not their outcome is known."""
    tasks_with_less: int = 0
    """Tasks that found lessons of which a draw left out some."""


def is_open(cost: MeasuringCost, /) -> bool:
    """Whether each task that went without may have cost a success or avoided a failure: no number says a thing then."""
    low, high = cost.given_up_low, cost.given_up_high
    return low < 0 < high and high - low >= cost.tasks_without + cost.tasks_with_less


def given_up(cost: MeasuringCost, /) -> str:
    """`about 118 failures avoided (between 20 and 215)`; nothing where each task may have gone either way."""
    if is_open(cost):
        return OPEN
    value, ends = round(cost.given_up), sorted((round(cost.given_up_low), round(cost.given_up_high)), key=abs)
    text = f"about {_successes(value)}" if value else "hardly any success"
    if ends[0] * ends[1] >= 0 and value:
        return f"{text} (between {abs(ends[0]):,} and {abs(ends[1]):,})"
    why = _LESS_SURE if cost.tasks_with_less else ""
    return f"{text} (between {_successes(min(ends))} and {_successes(max(ends))}{why})"


def _successes(count: int) -> str:
    return f"{plural(-count, 'failure')} avoided" if count < 0 else plural(count, "success", "successes")

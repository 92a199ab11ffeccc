"""How often tasks succeeded, as a share with the counts beside it: the same words in a terminal, in HTML, on pages."""

from __future__ import annotations

import math

from lessonbank.contracts.records import Record


class Tally(Record):
    """How many tasks succeeded, of those whose outcome counts."""

    successes: float = 0.0
    """Whole numbers, but where rewards lie between 0 and 1."""
    tasks: int = 0


def percent(share: float | None, /) -> str:
    """A share in hundredths with one digit behind the point, as precise as effects are printed."""
    return "not known" if share is None else f"{100 * share:.1f} %"


def share_of(share: float | None, tally: Tally, /, what: str = "") -> str:
    """`84.0 % (42 of 50)`, with `what` behind the number of tasks; without counts where there are none."""
    if share is None or not tally.tasks:
        return percent(share)
    return f"{percent(share)} ({round(tally.successes, 1):,.10g} of {tally.tasks:,}{what})"


def digits(low: float | None, high: float | None, /) -> str:
    """How an amount of dollars is printed: four digits behind the point, and more where its interval needs them."""
    most = max(abs(low or 0.0), abs(high or 0.0))
    return f".{max(4, min(1 - math.floor(math.log10(most)), 9)) if most else 4}f"

"""Intervals that say how far a difference or a rate can be believed."""

from __future__ import annotations

import math

from lessonbank.demo.statistics import Interval as Interval
from lessonbank.demo.statistics import paired_bootstrap as paired_bootstrap
from lessonbank.errors import UsageError


def wilson(successes: int, trials: int, /, *, z: float = 1.959964) -> Interval:
    """A success rate with its score interval (Wilson 1927), 95 % by default; valid at 0 and at 1 too.

    Raises:
        UsageError: no trials, or more successes than trials.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise UsageError(f"wilson needs 0 <= successes <= trials and at least one trial, got {successes} of {trials}")
    rate, square = successes / trials, z * z
    middle = (rate + square / (2 * trials)) / (1 + square / trials)
    half = z / (1 + square / trials) * math.sqrt(rate * (1 - rate) / trials + square / (4 * trials * trials))
    return Interval(rate, max(0.0, middle - half), min(1.0, middle + half))

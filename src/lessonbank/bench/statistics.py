"""Intervals that say how far a difference can be believed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lessonbank.errors import UsageError


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval at the stated level."""

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.estimate:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def paired_bootstrap(
    treated: Sequence[float], control: Sequence[float], /, *, level: float = 0.95, draws: int = 10_000, seed: int = 0
) -> Interval:
    """The mean difference of pairs, with a percentile bootstrap interval over the pairs (Efron and Tibshirani 1993).

    Pair what was drawn together: one value per world, or one per task. Values of one world are not independent of
    each other, so several worlds are compared by their means. Deterministic for a seed.

    Raises:
        UsageError: the two have different lengths, or nothing is in them.
    """
    if len(treated) != len(control) or not treated:
        raise UsageError(f"paired_bootstrap needs two series of one length, got {len(treated)} and {len(control)}")
    differences = np.asarray(treated, dtype=float) - np.asarray(control, dtype=float)
    rows = np.random.default_rng(seed).integers(0, len(differences), size=(draws, len(differences)))
    low, high = np.quantile(differences[rows].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(differences.mean()), float(low), float(high))


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

"""Intervals that say how far a difference can be believed."""

from __future__ import annotations

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

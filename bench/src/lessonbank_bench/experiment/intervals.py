"""How far a mean of differences can be believed, when differences of one seed or one family go together."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np

from lessonbank_bench.statistics import Interval

from .distributions import NORMAL, Floats, student

DRAWS: Final = 4000
FEW: Final = 10
"""Below this many clusters, a bootstrap knows too few samples, and Student's t is used."""
MANY: Final = 1000
"""Above this many, the two agree, and a bootstrap would only take memory."""


def clustered(
    sums: Floats, counts: Floats, /, *, level: float = 0.95, within: tuple[float, float] | None = None
) -> Interval | None:
    """The mean difference with an interval over clusters; `None` where there are fewer than two.

    Whole clusters are drawn (Davison and Hinkley 1997, section 3.8). The percentiles are moved outwards by what
    Student's t and the divisor n - 1 make of the nominal ones (Hesterberg 2015): plain percentiles are too narrow for
    the ten to fifty clusters an experiment has. Deterministic.

    Args:
        sums: (k,): the sum of the differences of each cluster.
        counts: (k,): how many these are.
        level: of the interval.
        within: the least and the most that a mean can be; the interval ends there. It covers as often as before.
    """
    if len(sums) < 2:
        return None
    least, most = within or (-math.inf, math.inf)
    low, high = _ends(sums, counts, level)
    return Interval(float(sums.sum() / counts.sum()), max(least, low), min(most, high))


def _ends(sums: Floats, counts: Floats, level: float) -> tuple[float, float]:
    k = len(sums)
    if not FEW <= k <= MANY:
        estimate, half = float(sums.sum() / counts.sum()), _half(sums, counts, level)
        return estimate - half, estimate + half
    weights = _weights(k)
    drawn = (weights @ sums) / (weights @ counts)
    tail = _tail(k, level)
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


def clustered_many(sums: Floats, /, *, level: float = 0.95) -> tuple[Floats, Floats]:
    """(n,), (n,): the ends of `clustered` for n rows of (n, k) sums of clusters of one size, as means of the clusters.

    For simulation: what ten thousand experiments would print.
    """
    k = sums.shape[1]
    if not FEW <= k <= MANY:
        middle = sums.mean(axis=1)
        half = student(0.5 + level / 2, k - 1) * sums.std(axis=1, ddof=1) / np.sqrt(k)
        return middle - half, middle + half
    tail = _tail(k, level)
    ends = np.quantile(sums @ _weights(k).T / k, [tail, 1 - tail], axis=1)
    return ends[0], ends[1]


def _half(sums: Floats, counts: Floats, level: float) -> float:
    return student(0.5 + level / 2, len(sums) - 1) * error_of(sums, counts)


def error_of(sums: Floats, counts: Floats, /) -> float:
    """The standard error of the mean difference over two clusters or more, as of a ratio (Cochran 1977, 6.3)."""
    k = len(sums)
    left = (sums - sums.sum() / counts.sum() * counts) / counts.mean()
    return float(np.sqrt((left**2).sum() / (k * (k - 1))))


def _tail(k: int, level: float) -> float:
    return NORMAL.cdf(-((k / (k - 1)) ** 0.5) * student(0.5 + level / 2, k - 1))


@lru_cache(maxsize=8)
def _weights(k: int) -> Floats:
    """(DRAWS, k): how often each cluster is drawn; the same for every comparison, so that equal data print equally."""
    draw = np.random.default_rng(k)
    return draw.multinomial(k, np.full(k, 1 / k), size=DRAWS).astype(np.float64)

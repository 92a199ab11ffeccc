"""The few distributions that planning and comparing need, without a statistics library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NORMAL: Final = NormalDist()
_TINY: Final = 1e-300
_TERMS: Final = 400


def log_factorials(n: int, /) -> Floats:
    """(n + 1,): the logs of 0! to n!."""
    return _log_factorials(1 << n.bit_length())[: n + 1]


@lru_cache(maxsize=32)
def _log_factorials(n: int, /) -> Floats:
    """The first of them are the same in every table: one is enough for all that ask for fewer."""
    table = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1, dtype=float)))))
    table.flags.writeable = False
    return table


def binomial(n: int, chance: float, /) -> Floats:
    """(n + 1,): the probabilities of 0 to n successes."""
    if not 0 < chance < 1:
        point = np.zeros(n + 1)
        point[n if chance >= 1 else 0] = 1.0
        return point
    logs = log_factorials(n)
    k = np.arange(n + 1)
    return np.exp(logs[n] - logs - logs[::-1] + k * math.log(chance) + (n - k) * math.log1p(-chance))


def mcnemar(better: int, worse: int, /) -> float:
    """The exact two-sided p-value of "as many pairs went better as worse" (McNemar 1947, binomial form)."""
    n = better + worse
    if n == 0:
        return 1.0
    return float(min(1.0, 2.0 * _fair(n)[: min(better, worse) + 1].sum()))


@lru_cache(maxsize=256)
def _fair(n: int, /) -> Floats:
    """Of a fair coin: simulated experiments have the same few numbers of pairs again and again."""
    return binomial(n, 0.5)


def holm(values: Mapping[str, float], /) -> dict[str, float]:
    """p-values adjusted for their number, such that one below a holds with an overall error of a (Holm 1979)."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, (name, value) in enumerate(sorted(values.items(), key=lambda one: one[1])):
        highest = max(highest, min(1.0, value * (len(values) - rank)))
        adjusted[name] = highest
    return adjusted


@lru_cache(maxsize=4096)
def student(share: float, freedom: int, /) -> float:
    """The value below which `share` of Student's t with so many degrees of freedom lies, for a share above one half."""
    low, high = 0.0, 1.0
    while student_below(high, freedom) < share and high < 1e9:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_below(middle, freedom) < share else (low, middle)
    return high


def student_below(value: float, freedom: int, /) -> float:
    """The share of Student's t below `value`, for a value of zero or more."""
    return 1.0 - _beta(freedom / (freedom + value * value), freedom / 2, 0.5) / 2


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Lentz)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _beta(1 - x, b, a)
    logs = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1))
    total = d
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1.0 / _away(1.0 + term * d), _away(1.0 + term / c)
            total *= c * d
        if abs(c * d - 1.0) < 1e-12:
            break
    return math.exp(logs) * total / a


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY

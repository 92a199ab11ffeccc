"""The regression behind every effect: outcomes on centred draws, with what makes tasks hard taken out first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .episodes import Flags, Floats, Ints

_CLUSTERS = 6.0
_CANDIDATES = 10.0
"""How strongly the difficulty of a cluster, and of a lesson's tasks, is drawn to the mean: the variance of one outcome
over the variance between them, for outcomes that are success or failure."""
FEW_CLUSTERS = 10
"""With fewer clusters than this, each recall counts alone."""
_ENOUGH = 1e-8
_MOST = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """What is known of each recall before anything is drawn: what may explain an outcome besides the draw."""

    cluster: Ints
    """One per row."""
    row: Ints
    lesson: Ints
    """The candidates: row and lesson of each."""
    lessons: int

    @property
    def rows(self) -> int:
        """How many recalls."""
        return len(self.cluster)

    def plain(self) -> Setting:
        """The clusters alone: enough for what varies less than success does, and much less to compute."""
        none = np.empty(0, np.int64)
        return Setting(self.cluster, none, none, 0)


@dataclass(frozen=True, slots=True)
class Draws:
    """What was drawn: one entry for each row and group, where a group is a lesson, or memory as a whole."""

    row: Ints
    group: Ints
    shown: Flags
    probability: Floats
    """Of being shown, above 0 and below 1."""
    groups: int

    @property
    def centred(self) -> Floats:
        """The draw less its probability: zero on average, whatever the task."""
        return self.shown - self.probability


@dataclass(frozen=True, slots=True)
class Fit:
    """Estimates by group, and how each entry of the draws moves its own: enough to combine fits honestly."""

    estimate: Floats
    influence: Floats
    """One per entry of the draws; those of a group add up to the error of its estimate."""


def fit(outcome: Floats, draws: Draws, setting: Setting, /) -> Fit:
    """Least squares of `outcome` (one per row) on the centred draws of every group at once.

    The difficulty of tasks (their cluster, the lessons that fit them, the time) enters as terms drawn to the mean.
    They make the intervals narrower and bias nothing but for a trace that vanishes as recalls come in, because the
    draws do not depend on them: what is estimated is the average change by showing, weighted with p(1 - p).
    Penalised least squares by conjugate gradients.
    """
    z = draws.centred
    outcome = outcome - outcome.mean()  # the level is among the terms: without it there is less to solve for
    known = _Nuisance(setting)
    effects, terms = _solve(outcome, z, draws, known)
    left = outcome - summed(draws.row, z * effects[draws.group], setting.rows) - known.predict(terms)
    free = 1.0 - known.leverage()[draws.row]
    weight = summed(draws.group, z * z * free, draws.groups)
    own = z * z / np.maximum(weight, 1e-12)[draws.group]
    influence = z * left[draws.row] / np.maximum(weight, 1e-12)[draws.group] / np.sqrt(np.maximum(1.0 - own, 0.1))
    effects = np.where(weight > 0, effects, np.nan)
    return Fit(effects, influence)


def precision(influence: Floats, draws: Draws, cluster: Ints, /) -> tuple[Floats, Floats]:
    """Standard errors by group, and their degrees of freedom (after Satterthwaite).

    Influences are added within clusters first, because tasks of one template are not independent. Where a group is
    found in fewer than ten clusters, each recall counts alone: the draws are independent whatever the tasks are,
    so the interval is right about the templates that were seen, and says nothing of others.
    """
    together = _together(influence, draws, cluster[draws.row])
    count = summed(draws.group, np.ones(len(influence)), draws.groups)
    apart = _of_sums(influence, draws.centred**2, draws.group, count, draws.groups)
    many = together[2] >= FEW_CLUSTERS
    return np.where(many, together[0], apart[0]), np.where(many, together[1], apart[1])


def _together(influence: Floats, draws: Draws, unit: Ints) -> tuple[Floats, Floats, Floats]:
    """Standard errors, degrees of freedom and the number of units by group; of a group's sums over each unit."""
    units = int(unit.max(initial=0)) + 1
    place, kept = numbered(draws.group * units + unit)
    group, size = kept // units, len(kept)
    count = summed(group, np.ones(size), draws.groups)
    moved, weight = summed(place, influence, size), summed(place, draws.centred**2, size)
    return *_of_sums(moved, weight, group, count, draws.groups), count


def numbered(names: Ints, /) -> tuple[Ints, Ints]:
    """Whole numbers numbered anew from 0, in their order, and what each new number stood for.

    By counting, where there are not many more numbers than entries: that is several times as fast as sorting.
    """
    most = int(names.max(initial=0)) + 1
    if most > 8 * len(names) + 1024:
        kept, place = np.unique(names, return_inverse=True)
        return place, kept
    seen = np.bincount(names, minlength=most) > 0
    return (np.cumsum(seen) - 1)[names], np.flatnonzero(seen)


def _of_sums(moved: Floats, weight: Floats, group: Ints, count: Floats, groups: int) -> tuple[Floats, Floats]:
    error = np.sqrt(summed(group, moved**2, groups) * count / np.maximum(count - 1, 1))
    squares = np.maximum(summed(group, weight**2, groups), 1e-12)
    return error, np.maximum(summed(group, weight, groups) ** 2 / squares - 1.0, 0.0)


def t_quantile(probability: float, freedom: Floats, /) -> Floats:
    """Quantiles of Student's t, by Cornish and Fisher's expansion around the normal; near enough from 3 degrees."""
    z = NormalDist().inv_cdf(probability)
    v = np.maximum(freedom, 2.0)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    fourth = (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160
    return z + first / v + second / v**2 + third / v**3 + fourth / v**4


class _Nuisance:
    """The terms for difficulty: one for each cluster, one for each candidate lesson, a level and a trend."""

    def __init__(self, setting: Setting) -> None:
        self._of = setting
        self._clusters = int(setting.cluster.max(initial=-1)) + 1
        n = setting.rows
        self._time = np.column_stack([np.ones(n), np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(n)])
        self._per_cluster = np.bincount(setting.cluster, minlength=self._clusters).astype(float)
        self._per_lesson = np.bincount(setting.lesson, minlength=setting.lessons).astype(float)
        self.size = self._clusters + setting.lessons + 2

    def predict(self, terms: Floats) -> Floats:
        of, clusters = self._of, self._clusters
        lessons = summed(of.row, terms[clusters : clusters + of.lessons][of.lesson], of.rows)
        return terms[:clusters][of.cluster] + lessons + self._time @ terms[-2:]

    def collect(self, left: Floats) -> Floats:
        of = self._of
        parts = (
            summed(of.cluster, left, self._clusters),
            summed(of.lesson, left[of.row], of.lessons),
            self._time.T @ left,
        )
        return np.concatenate(parts)

    def penalty(self) -> Floats:
        parts = (np.full(self._clusters, _CLUSTERS), np.full(self._of.lessons, _CANDIDATES), np.full(2, 1e-9))
        return np.concatenate(parts)

    def diagonal(self) -> Floats:
        counts = np.concatenate([self._per_cluster, self._per_lesson, (self._time**2).sum(0)])
        return counts + self.penalty()

    def leverage(self) -> Floats:
        """How much of each row's outcome its own terms explain, 0 to 0.9."""
        of = self._of
        cluster = 1.0 / (self._per_cluster + _CLUSTERS)
        lesson = 1.0 / (self._per_lesson + _CANDIDATES)
        return np.minimum(cluster[of.cluster] + summed(of.row, lesson[of.lesson], of.rows) + 2.0 / max(of.rows, 1), 0.9)


def _solve(outcome: Floats, z: Floats, draws: Draws, known: _Nuisance) -> tuple[Floats, Floats]:
    n = len(outcome)

    def collect(left: Floats) -> Floats:
        return np.concatenate([summed(draws.group, z * left[draws.row], draws.groups), known.collect(left)])

    def predict(x: Floats) -> Floats:
        effects, terms = x[: draws.groups], x[draws.groups :]
        return summed(draws.row, z * effects[draws.group], n) + known.predict(terms)

    penalty = np.concatenate([np.full(draws.groups, 1e-9), known.penalty()])
    diagonal = np.concatenate([summed(draws.group, z * z, draws.groups) + 1e-9, known.diagonal()])
    x = _conjugate(lambda v: collect(predict(v)) + penalty * v, collect(outcome), diagonal)
    return x[: draws.groups], x[draws.groups :]


def _conjugate(apply: Callable[[Floats], Floats], target: Floats, diagonal: Floats) -> Floats:
    """Solve `apply(x) = target` for a symmetric positive map, scaled by its diagonal (Hestenes and Stiefel 1952)."""
    x = np.zeros_like(target)
    left = target.copy()
    scaled = left / diagonal
    way, size = scaled, float(left @ scaled)
    enough = size * _ENOUGH
    for _ in range(_MOST):
        if size <= enough or size == 0.0:
            break
        moved = apply(way)
        step = size / float(way @ moved)
        x = x + step * way
        left = left - step * moved
        scaled = left / diagonal
        before, size = size, float(left @ scaled)
        way = scaled + (size / before) * way
    return x


def summed(place: Ints, values: NDArray[Any], size: int) -> Floats:
    """Values added up by place."""
    summed: NDArray[Any] = np.bincount(place, weights=values, minlength=size)
    return summed.astype(np.float64, copy=False)


def half_width(freedom: Floats, spread: Floats, /, *, level: float) -> Floats:
    """Half of an interval at one look. Infinite where next to nothing is known of the spread."""
    width = t_quantile(0.5 + level / 2, freedom) * spread
    return np.where((freedom >= 2.0) & (spread > 0.0), width, math.inf)

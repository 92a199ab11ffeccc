"""What a treatment changes: unbiased under known odds, with an interval for one look; and what to expect of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from ._e_process import Scores
from ._predictions import compact, guesses
from .confidence_sequences import Outcomes
from .episodes import GROUP_LEVEL, LESSON_LEVEL, Episodes, Floats, Ints

ENOUGH = 5
"""Showings, and withholdings, with an outcome below which there is no estimate."""
_FEW_CLUSTERS = 10
"""With fewer templates than this, each recall counts alone."""
_LEAST = 0.4
"""The spread of one outcome, for `sober`: that of a rate of success of 20 % or 80 %."""
_TINY = 1e-9
"""A standard error of nothing: all runs took the same."""
_MEMORY = 0.04
"""The variance of what memory as a whole may change, before evidence: 20 points either way."""


@dataclass(frozen=True, slots=True)
class Effects:
    """By treatment: the change by showing, in what the outcome is counted in. `nan` and endless: too little to say."""

    estimate: Floats
    low: Floats
    high: Floats
    """The interval of one look."""
    spread: Floats
    """Standard errors."""
    shown: Ints
    """Draws with an outcome in which it was shown, and in which it was withheld."""
    withheld: Ints
    counts: Floats
    """By score: how much it counts, 1 on average over a treatment; not 1 where the agent ran on several models."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """What is to be expected of each treatment as one of many: drawn to its group's mean while its evidence is thin."""

    mean: Floats
    spread: Floats


def effects(scores: Scores, episodes: Episodes, /, *, level: float = 0.95, rate: bool = True) -> Effects:
    """The mean of scores over e (1 - e): no bias though the odds followed the outcomes, as long as they were known.

    The sum of scores over the sum of scales, which the sequences look at, would be a little less noisy where odds move.
    It is biased then, by half a point to two: what seems to help is withheld less, and so its luck stays.

    Where the agent ran on several models this is done for each, and pooled by inverse variance. So what is said is the
    effect that they have in common, or, where it differs, a mean in which the surer ones count more.

    `rate`: the outcome is a rate, of which a few equal ones are no proof that it never varies (Agresti, Caffo).
    """
    scores = scores.where(scores.weight > 0)
    model = _models(scores, episodes.model)
    models = int(model.max(initial=0)) + 1
    cell = scores.group * models + model if models > 1 else scores.group
    each = _apart(scores, cell, scores.groups * models, episodes.cluster, rate=rate)
    value, spread, freedom, weight, shown, withheld = (column.reshape(scores.groups, models) for column in each)
    precise = np.where(np.isfinite(value), np.maximum(spread, _TINY) ** -2.0, 0.0)
    total = precise.sum(axis=1)
    known = total > 0
    share = precise / np.where(known, total, 1.0)[:, None]
    value = np.where(known, (share * np.nan_to_num(value)).sum(axis=1), np.nan)
    spread = np.where(known, np.where(known, total, 1.0) ** -0.5, math.inf)
    freedom = 1.0 / np.where(known, (share**2 / freedom).sum(axis=1), 1.0)  # Satterthwaite 1946
    half = np.where(known, t_quantile(0.5 + level / 2, freedom) * spread, math.inf)
    low, high = (np.where(known, value + side, side) for side in (-half, half))
    counts = share * weight.sum(axis=1, keepdims=True) / np.where(weight > 0, weight, 1.0)
    counts = np.where(known[:, None], counts, 1.0).ravel()[cell]
    return Effects(value, low, high, spread, shown.sum(axis=1), withheld.sum(axis=1), counts)


def _models(scores: Scores, model: Ints) -> Ints:
    """By score: the model that its estimate is made for; models with too few recalls of a treatment count together."""
    if int(model.max(initial=-1)) < 1:
        return np.zeros(len(scores), np.int64)
    own = model[scores.row] + 1
    models = int(own.max(initial=0)) + 1
    cell = scores.group * models + own
    sides = [np.bincount(cell[side], minlength=scores.groups * models) for side in (scores.shown, ~scores.shown)]
    return np.where(np.minimum(*sides)[cell] >= ENOUGH, own, 0)


def _apart(
    scores: Scores, group: Ints, size: int, cluster: Ints, *, rate: bool
) -> tuple[Floats, Floats, Floats, Floats, Ints, Ints]:
    """By group: the effect, its standard error and degrees of freedom, the weight, the counts of both sides."""
    weight: Floats = np.zeros(size) + np.bincount(group, scores.weight, size)
    moved = scores.score / scores.scale
    moved *= scores.weight
    every = np.bincount(group, minlength=size)
    shown = np.bincount(group[scores.shown], minlength=size)
    withheld = every - shown
    known = np.minimum(shown, withheld) >= ENOUGH
    value = np.divide(np.bincount(group, moved, size), weight, out=np.full(size, np.nan), where=known)
    if rate:
        value = np.clip(value, -1.0, 1.0)
    moved -= scores.weight * np.nan_to_num(value)[group]
    if not known.all():
        moved[~known[group]] = 0.0
    variance, freedom = _clustered(moved, group, cluster[scores.row], size)
    spread = np.sqrt(variance) / np.where(known, weight, 1.0)
    if rate:
        spread = np.maximum(spread, np.sqrt((shown + 2.0) ** -2 + (withheld + 2.0) ** -2))
    return value, spread, freedom, weight, shown, withheld


def _clustered(left: Floats, group: Ints, cluster: Ints, size: int) -> tuple[Floats, Floats]:
    """By group: the variance of the sum of what is left, and its degrees of freedom.

    What is left is added up by cluster first, where there are enough clusters. A few large sums make a variance less
    sure than their number says, so freedom follows their fourth moment.
    """
    many = int(cluster.max(initial=0)) + 1
    both, at = compact(group * many + cluster, size * many)
    sums: Floats = np.bincount(at, left, len(both)).astype(np.float64)
    owner = both // many
    clusters = np.bincount(owner, minlength=size)
    few = clusters < _FEW_CLUSTERS
    together, freedom = _variance(sums, owner, size)
    single = np.flatnonzero(few[group]) if few.any() else np.empty(0, np.int64)
    apart, alone = _variance(left[single], group[single], size)
    freedom = np.where(few, alone, np.minimum(freedom, clusters - 1.0))
    return np.where(few, apart, together), np.maximum(freedom, 2.0)


def _variance(values: Floats, group: Ints, size: int) -> tuple[Floats, Floats]:
    count = np.bincount(group, minlength=size)
    squares = values * values
    square, fourth = np.bincount(group, squares, size), np.bincount(group, squares * squares, size)
    freedom = np.divide(2 * square**2, fourth, out=np.ones(size), where=fourth > 0)
    return square * count / np.maximum(count - 1, 1), freedom


def cost_effect(episodes: Episodes, values: Floats, /, *, level: float = 0.95) -> Effects:
    """What memory as a whole changes in what a run took, such as its steps; `values`: by row, `nan` for unknown.

    At least one is known.
    """
    draws, rows, change = episodes.draws, episodes.known & ~np.isnan(values), np.zeros(len(values))
    costs = values[rows]
    low, unit = costs.min(), np.ptp(costs) or 1.0
    costs = (costs - low) / unit
    change[rows] = costs - guesses(costs, episodes.cluster[rows])
    positions = np.flatnonzero((draws.treatment == 0) & rows[draws.row])
    row, chance, shown = draws.row[positions], draws.chance[positions], draws.shown[positions]
    score, scale, weight = (shown - chance) * change[row], chance * (1 - chance), np.ones(len(row))
    whole = Scores(score, scale, score, score, draws.treatment[positions], 1, weight, row=row, shown=shown)
    made = effects(whole, episodes, level=level, rate=False)
    return replace(made, **{name: getattr(made, name) * unit for name in ("estimate", "low", "high", "spread")})


def pooled(effects: Effects, level: Ints, parents: Sequence[Sequence[int]], /) -> Pooled:
    """Empirical Bayes: groups are drawn to the mean of groups, lessons to what is expected of their innermost group.

    The prior's variance is that between true effects (Paule, Mandel 1982). A mean of few is itself drawn to zero, so
    that they do not speak for those that are unknown.
    """
    error = sober(effects)
    seen = np.isfinite(error) & np.isfinite(effects.estimate)
    mean, spread = np.zeros(len(level)), np.full(len(level), 0.1)
    for own in (level < GROUP_LEVEL, level == GROUP_LEVEL, level == LESSON_LEVEL):
        at = np.flatnonzero(own)
        inner = np.array([[-1, *parents[n]][-1] for n in at.tolist()], dtype=np.int64)
        grouped = (inner >= 0) & seen[inner]
        x, v, use = effects.estimate[at], error[at] ** 2, seen[at]
        between = _between(x[use] - np.where(grouped, mean[inner], 0.0)[use], v[use]) if at.any() else _MEMORY
        centre = np.where(grouped, mean[inner], _centre(x[use & ~grouped], v[use & ~grouped], between))
        precise = np.where(use, 1.0 / np.where(use, v, 1.0), 0.0)
        mean[at] = (np.where(use, x, 0.0) * precise + centre / between) / (precise + 1.0 / between)
        spread[at] = np.sqrt(1.0 / (precise + 1.0 / between))
    return Pooled(mean, spread)


def sober(effects: Effects, /) -> Floats:
    """Standard errors that a few equal outcomes cannot make small: by chance alone five failures in a row vary by
    nothing, and whoever went by that would stop looking."""
    with np.errstate(divide="ignore"):
        least = _LEAST * np.sqrt(1.0 / effects.shown + 1.0 / effects.withheld)
    return np.maximum(effects.spread, least)


def t_quantile(share: float, freedom: Floats, /) -> Floats:
    """Quantiles of Student's t (Cornish and Fisher's expansion, right to a thousandth from three degrees on)."""
    z = NormalDist().inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + terms[0] / freedom + terms[1] / freedom**2 + terms[2] / freedom**3


def _centre(x: Floats, v: Floats, between: float) -> float:
    weight = 1.0 / (v + between)
    return float((weight * x).sum() / (weight.sum() + 1.0 / max(between, 1e-4))) if len(x) else 0.0


def _between(x: Floats, v: Floats) -> float:
    """The variance between true effects: where the weighted squares are what they should be; found by halves."""

    def excess(between: float) -> float:
        weight = 1.0 / (v + between)
        centre = (weight * x).sum() / weight.sum()
        return float((weight * (x - centre) ** 2).sum()) - (len(x) - 1)

    if len(x) < 3:
        return 0.01
    low, high = 1e-4, 1.0
    if excess(low) <= 0:
        return low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def sides(
    scores: Scores, counts: Floats, outcome: Floats, outcomes: Outcomes, effect: Floats, /, *, at: Ints
) -> tuple[Floats, Floats]:
    """(len(at),) each: the share with memory and the share without, after the first `at` scores.

    An outcome counts in the inverse proportion of its odds, and by `counts`, as the effect counts it. `nan` where one
    side has too few outcomes for an effect. `scores` are of one treatment, and `outcome` is by row of `Episodes`.
    `effect`: (2, len(at)): between what their difference lies; a share of what lies outside is moved inside.
    """
    change: Floats = np.zeros(len(outcomes.rows))
    change[outcomes.rows] = outcomes.change
    moved = counts * scores.score * scores.weight / scores.scale
    base = counts * (scores.weight * np.nan_to_num(outcome[scores.row]) - change[scores.row])
    given, not_given = scores.shown.astype(float), 1.0 - scores.shown
    columns = (counts * scores.weight, base, given * moved, -not_given * moved, given, not_given)
    weight, level, shown, withheld, *both = (np.r_[0.0, np.cumsum(values)][at] for values in columns)
    weight = np.where(np.minimum(*both) >= ENOUGH, weight, np.nan)
    difference = np.clip(np.clip((shown - withheld) / weight, -1.0, 1.0), *effect)
    half = np.abs(difference) / 2
    middle = np.clip((level + (shown + withheld) / 2) / weight, half, 1.0 - half)
    return middle + difference / 2, middle - difference / 2

"""What showing a lesson changes, and what memory as a whole changes: randomised differences with honest intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ._regression import FEW_CLUSTERS, Draws, Fit, Setting, fit, half_width, numbered, precision, summed, t_quantile
from .calibration import ASSUMED, Errors, believable, by_judge, checked
from .episodes import Episodes, Flags, Floats, Ints

ENOUGH = 5
"""Showings, and withholdings, with an outcome below which there is no estimate."""
_RECTIFIED = 50
"""Truths beside a judge's opinions from which on the judge's errors are measured in each arm, not once for all."""
_PASSED_OVER = 0.05
"""The share of opinions by judges whose errors are not known that may be left out."""
_LEAST = 0.4
"""The spread of one outcome, for `sober`: that of a rate of success of 20 % or 80 %."""


@dataclass(frozen=True, slots=True)
class Effects:
    """By group (a lesson each, or one group for memory as a whole): the change by showing, in the unit of the outcome.

    `nan` and an infinite interval where there is not enough to say.
    """

    estimate: Floats
    low: Floats
    high: Floats
    spread: Floats
    """Standard errors."""
    shown: Ints
    """Recalls with an outcome in which it was shown, and in which it was withheld."""
    withheld: Ints
    freedom: Floats
    basis: str = "truth"
    """What the outcomes are: `truth`, `truth and judge`, `judge`."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """What is to be expected of each lesson when it is one of many: drawn to their mean as its evidence is thin."""

    mean: Floats
    spread: Floats
    between: float
    """The standard deviation of effects between lessons."""


def lesson_effects(episodes: Episodes, /, *, level: float = 0.95) -> Effects:
    """What each lesson changes in the rate of success where it was found and memory was on (intention to treat)."""
    rows = episodes.known & ~episodes.control
    pairs = episodes.pairs
    draws = _Entries(pairs.row, pairs.lesson, ~pairs.withheld, 1.0 - pairs.probability, len(episodes.lessons))
    return _success(episodes, rows, draws, level=level, rectify=False)


def overall_effect(episodes: Episodes, /, *, level: float = 0.95) -> Effects:
    """What memory as a whole changes in the rate of success: recalls as they were against recalls withheld whole."""
    return _success(episodes, episodes.known, _whole(episodes), level=level, rectify=True)


def cost_effect(episodes: Episodes, values: Floats, /, *, level: float = 0.95) -> Effects:
    """The same for what a run took, such as its steps; `values` has one per recall, `nan` where it is not known."""
    rows = episodes.known & ~np.isnan(values)
    if not rows.any():
        return _nothing(1)
    entries, setting, at = _within(episodes, rows, _whole(episodes))
    made = fit(values[at], entries, setting.plain())
    return _effects(made, entries, setting.cluster, level=level)


def pooled(effects: Effects, /) -> Pooled:
    """Empirical Bayes over lessons: a normal prior with the mean and variance of all of them (Paule, Mandel 1982).

    The mean of the prior is itself drawn to zero, so that a few lessons do not speak for those that are unknown.
    """
    error = sober(effects)
    seen = np.isfinite(error) & np.isfinite(effects.estimate)
    x, v = effects.estimate[seen], error[seen] ** 2
    between = _between(x, v)
    weight = 1.0 / (v + between)
    centre = float((weight * x).sum() / (weight.sum() + 1.0 / max(between, 1e-4))) if len(x) else 0.0
    precise = np.where(seen, 1.0 / np.where(seen, error, 1.0) ** 2, 0.0)
    prior = 1.0 / max(between, 1e-6)
    mean = (np.where(seen, effects.estimate, 0.0) * precise + centre * prior) / (precise + prior)
    return Pooled(mean, np.sqrt(1.0 / (precise + prior)), float(np.sqrt(between)))


def sober(effects: Effects, /) -> Floats:
    """Standard errors that a few equal outcomes cannot make small: by chance alone five failures in a row vary by
    nothing, and whoever went by that would stop looking."""
    with np.errstate(divide="ignore"):
        least = _LEAST * np.sqrt(1.0 / effects.shown + 1.0 / effects.withheld)
    return np.maximum(effects.spread, least)


def more_needed(effects: Effects, /, *, difference: float = 0.1, level: float = 0.95, power: float = 0.8) -> Floats:
    """About how many more recalls would show an effect of `difference` with the given power, by group.

    From the spread as it is now; for one look. Infinite where nothing is known yet.
    """
    reach = t_quantile(0.5 + level / 2, np.array([1e6]))[0] + t_quantile(power, np.array([1e6]))[0]
    seen = (effects.shown + effects.withheld).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = ASSUMED if effects.basis == "judge" else 1.0
        factor = (effects.spread / scale * reach / difference) ** 2
        return np.where(np.isfinite(factor), np.maximum(seen * (factor - 1.0), 0.0), np.inf)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Draws before it is known which of them count."""

    row: Ints
    group: Ints
    shown: Flags
    probability: Floats
    groups: int


def _whole(episodes: Episodes) -> _Entries:
    rows = np.arange(len(episodes))
    return _Entries(rows, np.zeros_like(rows), ~episodes.control, 1.0 - episodes.control_probability, 1)


def _within(episodes: Episodes, rows: Flags, entries: _Entries) -> tuple[Draws, Setting, Ints]:
    """The draws and what is known of `rows` alone, numbered anew; and where these rows are."""
    at = np.flatnonzero(rows)
    number = np.cumsum(rows) - 1
    use = rows[entries.row] & (entries.probability > 0.0) & (entries.probability < 1.0)
    draws = Draws(
        number[entries.row[use]], entries.group[use], entries.shown[use], entries.probability[use], entries.groups
    )
    pairs = episodes.pairs
    found = rows[pairs.row]
    cluster, _ = numbered(episodes.cluster[at])
    return draws, Setting(cluster, number[pairs.row[found]], pairs.lesson[found], len(episodes.lessons)), at


def _success(episodes: Episodes, rows: Flags, entries: _Entries, *, level: float, rectify: bool) -> Effects:
    believed = believable(episodes)
    silenced, rows = bool((episodes.known & ~believed.known).any()), rows & believed.known
    if not rows.any():
        return replace(_nothing(entries.groups), basis="truth and judge" if silenced else "truth")
    judged = rows & ~episodes.true
    if not judged.any():
        return _of(believed, rows, entries, believed.outcome, level=level)
    errors = by_judge(believed)
    unmeasured = [judge for judge, measured in errors.items() if measured is None]
    if np.isin(believed.judge[judged], unmeasured).mean() > _PASSED_OVER:
        return _widened(_of(believed, rows, entries, believed.outcome, level=level))
    if rectify and len(errors) == 1 and int((rows & checked(believed)).sum()) >= _RECTIFIED:
        return _rectified(believed, rows, entries, level=level)
    return _unbiased(believed, rows, entries, {j: e for j, e in errors.items() if e is not None}, level=level)


def _of(episodes: Episodes, rows: Flags, entries: _Entries, outcome: Floats, *, level: float) -> Effects:
    draws, setting, at = _within(episodes, rows, entries)
    made = fit(outcome[at], draws, setting)
    return _effects(made, draws, setting.cluster, level=level, rate=True)


def _unbiased(
    episodes: Episodes, rows: Flags, entries: _Entries, errors: Mapping[int, Errors], *, level: float
) -> Effects:
    """Judges' labels put right on average, (label - false successes) / power, as errors were measured (Rogan, Gladen).

    Each judge by its own errors; the few labels of one that was not measured are left out. Holds where a judge errs
    alike whether a lesson was shown or not. How well its errors are known widens the interval.
    """
    outcome, doubt, count = episodes.outcome.copy(), 0.0, rows.sum()
    rows = rows & (episodes.true | np.isin(episodes.judge, list(errors)))
    for judge, measured in errors.items():
        said = rows & ~episodes.true & (episodes.judge == judge)
        outcome[said] = (outcome[said] - measured.false_success) / measured.power
        doubt += float(said.sum() / count / measured.power) ** 2 * measured.variance
    made = _of(episodes, rows, entries, outcome, level=level)
    more = np.sqrt(made.spread**2 + made.estimate**2 * doubt)
    half = half_width(made.freedom, more, level=level)
    return replace(made, low=made.estimate - half, high=made.estimate + half, spread=more, basis="truth and judge")


def _rectified(episodes: Episodes, rows: Flags, entries: _Entries, *, level: float) -> Effects:
    """Prediction-powered inference (Angelopoulos et al. 2023): the truth's estimate where it is known, and the judge's
    over all runs less the judge's over those, weighted so that the sum is as sure as it can be.

    Holds however a judge errs, if of the runs it was asked about those of which the truth is told are a random part.
    A run that no judge was asked about (the framework saw it fail, a verifier spoke) is a stratum of its own, known
    without error: as large a share of it as of the others stands among the runs of which the truth is known.
    """
    opinion = np.where(np.isnan(episodes.judged), episodes.outcome, episodes.judged)
    sample = _sample(episodes, rows)
    parts = [
        _moves(episodes, where, entries, values)
        for where, values in ((sample, episodes.outcome), (rows, opinion), (sample, opinion))
    ]
    (truth, a), (everywhere, b), (there, c) = parts
    difference = b - c
    weight = -float(a @ difference) / max(float(difference @ difference), 1e-12)
    weight = min(max(weight, 0.0), 1.0)
    estimate = truth.estimate + weight * (everywhere.estimate - there.estimate)
    moved = a + weight * difference
    clusters = max(int((moved != 0).sum()), 2)
    error = np.array([np.sqrt(float(moved @ moved) * clusters / (clusters - 1))])
    freedom = np.array([clusters - 1.0])
    half = half_width(freedom, error, level=level)
    shown, withheld = (np.bincount(entries.group[rows & side], minlength=1) for side in (entries.shown, ~entries.shown))
    if min(shown[0], withheld[0]) < ENOUGH:
        return replace(_nothing(1), basis="truth and judge")
    return Effects(estimate, estimate - half, estimate + half, error, shown, withheld, freedom, basis="truth and judge")


def _sample(episodes: Episodes, rows: Flags) -> Flags:
    """Rows of which the truth was checked, and evenly chosen ones that needed no checking, as many in proportion."""
    both, asked = rows & checked(episodes), rows & ~np.isnan(episodes.judged)
    share = float(both.sum() / max(asked.sum(), 1))
    sure = rows & episodes.true & ~asked
    turn = np.floor(np.cumsum(sure) * share)
    return both | (sure & (np.diff(turn, prepend=0.0) > 0))


def _units(episodes: Episodes, rows: Flags) -> Ints:
    """What is independent of one another: clusters, from ten on; else recalls."""
    if len(np.unique(episodes.cluster[rows])) < FEW_CLUSTERS:
        return np.arange(len(episodes))
    return episodes.cluster


def _moves(episodes: Episodes, rows: Flags, entries: _Entries, values: Floats) -> tuple[Fit, Floats]:
    """A fit of one group, and its influences added up by what is independent."""
    draws, setting, at = _within(episodes, rows, entries)
    made, unit = fit(values[at], draws, setting), _units(episodes, episodes.known)
    return made, summed(unit[at][draws.row], made.influence, int(unit.max(initial=0)) + 1)


def _widened(effects: Effects) -> Effects:
    """Nothing but opinions: they move less than outcomes do, so the true effect may be larger by as much as assumed."""
    low = np.where(effects.low < 0, effects.low / ASSUMED, effects.low)
    high = np.where(effects.high > 0, effects.high / ASSUMED, effects.high)
    unknown = ~np.isfinite(effects.estimate)
    return replace(
        effects,
        low=np.where(unknown, -np.inf, np.maximum(low, -1.0)),
        high=np.where(unknown, np.inf, np.minimum(high, 1.0)),
        basis="judge",
    )


def _effects(made: Fit, draws: Draws, cluster: Ints, *, level: float, rate: bool = False) -> Effects:
    """`rate`: the outcome is a rate, of which a few equal ones are no proof that it never varies (Agresti, Caffo)."""
    error, freedom = precision(made.influence, draws, cluster)
    shown = np.bincount(draws.group[draws.shown], minlength=draws.groups)
    withheld = np.bincount(draws.group[~draws.shown], minlength=draws.groups)
    if rate:
        error = np.maximum(error, np.sqrt((shown + 2.0) ** -2 + (withheld + 2.0) ** -2))
    thin = (np.minimum(shown, withheld) < ENOUGH) | ~np.isfinite(made.estimate)
    half = half_width(freedom, error, level=level)
    estimate = np.where(thin, np.nan, made.estimate)
    return Effects(
        estimate=estimate,
        low=np.where(thin, -np.inf, estimate - half),
        high=np.where(thin, np.inf, estimate + half),
        spread=np.where(thin, np.inf, error),
        shown=shown,
        withheld=withheld,
        freedom=freedom,
    )


def _nothing(groups: int) -> Effects:
    none, counts = np.full(groups, np.nan), np.zeros(groups, np.int64)
    endless = np.full(groups, np.inf)
    return Effects(none, -endless, endless, endless, counts, counts, np.zeros(groups))


def _between(x: Floats, v: Floats) -> float:
    """The variance between true effects: where the weighted squares are what they should be; found by halves."""
    if len(x) < 3:
        return 0.01

    def excess(between: float) -> float:
        weight = 1.0 / (v + between)
        centre = (weight * x).sum() / weight.sum()
        return float((weight * (x - centre) ** 2).sum()) - (len(x) - 1)

    low, high = 1e-4, 1.0
    if excess(low) <= 0:
        return low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high

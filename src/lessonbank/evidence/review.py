"""What the bank does automatically on its evidence: which lessons it retires, trusts, or shows less."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from lessonbank.guard.identity import one_of_many

from .calibration import believable
from .episodes import Episodes, Flags, Floats
from .estimates import Effects, Pooled, lesson_effects, overall_effect, pooled, sober
from .sequences import bounds, e_bh, lesson_scores, log_e, overall_scores


@dataclass(frozen=True, slots=True)
class Rates:
    """How often to withhold: what a policy that adapts is allowed to do."""

    usual: float = 0.1
    floor: float = 0.02
    ceiling: float = 0.9


DEFAULT_RATES = Rates()
ALPHA = 0.1
"""The most that may be wrong, on average, of the lessons that are taken back by themselves, and of those trusted."""
_CERTAIN = math.log(40.0)
"""And the interval of each must leave out zero, at 95 % and however often one looks: so much evidence, at least."""
_LIARS = 10
"""One in so many writers may lie, as often as they like, without leading to a wrong action."""
_EVEN = 0.5
"""With several writers, nothing is withheld more often than it is shown: proof comes soonest so."""
_PRIOR = 0.05
"""The standard deviation of the lift of a whole bank before anything is known: five points."""


@dataclass(frozen=True, slots=True)
class Review:
    """What the evidence says now, lesson by lesson, in the order of `Episodes.lessons`."""

    withhold: Floats
    """With which probability to withhold each lesson from now on."""
    control: float
    """With which probability to withhold a whole recall."""
    harmful: Flags
    helpful: Flags
    """Shown to be so, with few false ones among them (e-BH), however often this is asked."""
    effects: Effects
    expected: Floats
    """What each lesson is expected to change in the rate of success; of several writers, if that survives liars."""
    low: Floats
    high: Floats
    """Between what each effect lies, however often one looks."""
    log_harm: Floats
    log_help: Floats
    """Evidence against 'does not harm' and against 'does not help', without the writers who say most: logarithms."""


def review(episodes: Episodes, /, *, rates: Rates = DEFAULT_RATES, alpha: float = ALPHA) -> Review:
    """What to do about each lesson.

    Two responses to two questions. Is it shown to harm? Then it is to be taken back: its interval must leave out zero,
    and its evidence must count among all lessons (e-BH), which takes more of it the more lessons there are. Does it
    probably harm? Then it is withheld more often, in proportion to the probability: that needs no proof, costs little
    when it is wrong, and makes the proof come sooner. Where several writers tell outcomes, both answers must hold
    without any tenth of them.
    """
    believed = believable(episodes)
    scores, leave_out = lesson_scores(believed), left_out(episodes)
    harm, help = (log_e(scores, helps=side, leave_out=leave_out) for side in (False, True))
    low, high = bounds(scores)
    effects = lesson_effects(episodes)
    expected = pooled(effects)
    withhold, control, mean = lesson_rates(expected, rates), control_rate(episodes, rates), expected.mean
    if leave_out:
        told = np.maximum(harm, help) > 0
        withhold, mean = np.where(told, np.minimum(withhold, _EVEN), rates.usual), np.where(told, mean, 0.0)
        whole = [log_e(overall_scores(believed), helps=side, leave_out=leave_out)[0] for side in (False, True)]
        control = min(control, _EVEN) if max(whole) > 0 else rates.usual
    return Review(
        withhold=withhold,
        control=control,
        harmful=e_bh(harm, alpha=alpha) & (harm >= _CERTAIN),
        helpful=e_bh(help, alpha=alpha) & (help >= _CERTAIN),
        effects=effects,
        expected=mean,
        low=low,
        high=high,
        log_harm=harm,
        log_help=help,
    )


def left_out(episodes: Episodes, /) -> int:
    """How many writers may lie: a tenth of all, and one as soon as there are two. A bank that only its own process
    writes to rests on that.

    While writers are still coming, liars may be among the first. As many are unseen as have told one outcome only
    (Good 1953), so these count twice.
    """
    who, told = np.unique(episodes.told_by[episodes.known], return_counts=True)
    if len(who) < 2 and not any(one_of_many(episodes.writers[int(n)]) for n in who if episodes.writers):
        return 0
    return -(-(len(told) + int((told == 1).sum())) // _LIARS)


def lesson_rates(expected: Pooled, rates: Rates, /) -> Floats:
    """With which probability to withhold each lesson: more the likelier it harms, less the surer it helps."""
    unsure = np.minimum(expected.spread / max(expected.between, 0.03), 1.0)
    return _rate(expected.mean / expected.spread, unsure, rates)


def control_rate(episodes: Episodes, rates: Rates, /) -> float:
    """The same for memory as a whole."""
    whole = overall_effect(episodes)
    error = float(sober(whole)[0])
    if not np.isfinite(error) or not np.isfinite(whole.estimate[0]):
        return rates.usual
    precise = 1.0 / error**2
    deviation = np.sqrt(1.0 / (precise + 1.0 / _PRIOR**2))
    mean = whole.estimate[0] * precise * deviation**2
    return float(_rate(np.array([mean / deviation]), np.array([deviation / _PRIOR]), rates)[0])


def _rate(sigmas: Floats, unsure: Floats, rates: Rates) -> Floats:
    """`sigmas`: the expected effect over its standard deviation. `unsure`: 1 while nothing is known, down to 0."""
    neutral = rates.floor + (max(rates.usual, rates.floor) - rates.floor) * unsure
    doubt = np.array([max(0.0, 2.0 * _NORMAL.cdf(-float(z)) - 1.0) for z in sigmas])
    return neutral + (max(rates.ceiling, rates.usual) - neutral) * np.sqrt(doubt)


_NORMAL = NormalDist()

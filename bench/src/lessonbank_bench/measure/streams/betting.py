"""The bets of the published method (Waudby-Smith and Ramdas 2024), made by the simulator itself on exact scores.

The ledger keeps histograms and folds them once for all treatments; here the logarithms of each are summed one by one.
The numbers below are the promises of the guide and of decision 28, written down a second time: a change of one of them
in the ledger shows as a difference at the next review.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .scoring import Told
from .stream import Flags, Floats, Ints

if TYPE_CHECKING:
    from lessonbank.evidence.episodes import Episodes

STAKES: Floats = np.geomspace(0.008, 6.0, 31)
ENOUGH = 5
"""Showings, and withholdings, below which nothing is said."""
COVER = float(np.log(40.0))
"""An interval at 95 % ends where the evidence on a side reaches 2 / .05: a logarithm."""
_SAFE = 0.9
"""A stake that could lose more than this share of the wealth is given up."""
_LIKELY, _LIKELY_LESSON = float(np.log(40.0)), float(np.log(80.0))
_LEVELS = (0.015, 0.01, 0.025)
"""What a bank may be wrong in: of memory as a whole, of groups, of lessons."""
_LESSON = 2


def _prior(centre: float) -> Floats:
    near = np.exp(-0.5 * ((np.log(STAKES) - np.log(centre)) / 0.5) ** 2)
    return np.log(0.9 * near / near.sum() + 0.1 / len(STAKES))


_USUAL, _BOLD = _prior(0.45), _prior(0.8)


def _starts() -> tuple[Ints, Floats]:
    """After how many draws one begins anew to bet on harm, and the logarithm of what is set aside for that."""
    later = sorted({round(40 * 1.25**n) for n in range(64)})
    shares = [0.75, *(0.25 * 8 / ((n + 8) * (n + 9)) for n in range(len(later)))]
    return np.array([0, *later]), np.log(shares)


STARTS, SHARES = _starts()


def likely_from(episodes: Episodes, /) -> Floats:
    """By treatment: the logarithm from which on it is said to help or to harm likely."""
    return np.where(episodes.level == _LESSON, _LIKELY_LESSON, _LIKELY)


def shown_from(episodes: Episodes, /) -> Floats:
    """By treatment: that from which on it is said for sure. Number j of a level has 10 / ((j + 10)(j + 11))."""
    least = list[float]()
    for level, came in zip(episodes.level.tolist(), episodes.turn.tolist(), strict=True):
        share = 10 / ((came + 10) * (came + 11)) if level else 1.0
        least.append(2 / (_LEVELS[level] * share))
    return np.log(least)


def both(own: Told, at: Ints, /) -> tuple[Floats, Floats]:
    """The logs of the evidence that a treatment helps, and that it harms from a start on, after `at` of its scores."""
    won, lost = _sums(own)
    helps = _total(won[at] + _prior_of(own), np.minimum.accumulate(own.lowest)[at - 1])
    harms = np.full(len(at), -np.inf)
    for start, share in zip(STARTS.tolist(), SHARES.tolist(), strict=True):
        later = at > start
        if not later.any():
            break
        worst = -np.maximum.accumulate(own.highest[start:])[at[later] - 1 - start]
        said = _total(lost[at[later]] - lost[start] + _prior_of(own), worst) + share
        harms[later] = np.logaddexp(harms[later], said)
    return helps, harms


def held(own: Told, at: Ints, adds: Floats, /) -> bool:
    """Whether the interval at 95 % held the true average so far at every look: it is cut where evidence reaches 40."""
    won, lost = _sums(own)
    moved = np.cumsum(own.scale * adds)[at - 1][:, None] * STAKES
    above = _total(won[at] + _prior_of(own) - moved, np.minimum.accumulate(own.lowest)[at - 1])
    below = _total(lost[at] + _prior_of(own) + moved, -np.maximum.accumulate(own.highest)[at - 1])
    return bool(max(above.max(), below.max()) < COVER)


def enough(own: Told, at: Ints, /) -> Flags:
    """Whether it was shown and withheld often enough to say something, after its first `at` scores."""
    return np.minimum(np.cumsum(own.shown), np.cumsum(~own.shown))[at - 1] >= ENOUGH


def few(told: Sequence[Told], least: int, /) -> Ints:
    """The treatments with `least` scores or more."""
    return np.array([n for n, own in enumerate(told) if len(own) >= least], np.int64)


def _prior_of(own: Told) -> Floats:
    return _BOLD if own.is_group else _USUAL


def _sums(own: Told) -> tuple[Floats, Floats]:
    """(n + 1, stakes), twice: the logs of what was won by betting on help, and on harm."""
    bets = own.score[:, None] * STAKES
    none = np.zeros((1, len(STAKES)))
    won, lost = (np.cumsum(np.log(np.maximum(1 + side * bets, 1 - _SAFE)), axis=0) for side in (1.0, -1.0))
    return np.concatenate([none, won]), np.concatenate([none, lost])


def _total(logs: Floats, worst: Floats) -> Floats:
    logs = np.where(STAKES * -np.minimum(worst, 0)[:, None] <= _SAFE, logs, -np.inf)
    top = logs.max(axis=1)
    return top + np.log(np.exp(logs - top[:, None]).sum(axis=1))

"""Evidence that may be looked at after every outcome: the wealth of fixed bets, kept as one histogram per group.

Let g be a score between `lowest` and `highest` with conditional mean v * tau given everything that was settled before,
`lowest`, `highest` and v known before the draw. For a fixed stake L with 1 + L * lowest > 0 the product of
(1 + L g) exp(-L v tau) never grows in expectation, whatever tau does from one recall to the next, because
1 + x <= exp(x). Three things follow:

- At tau = 0 the product of (1 + L g) is an e-process for "the average effect so far is not above zero"; with -g for
  "not below zero". This is betting in the sense of Waudby-Smith and Ramdas (2024), on recorded propensities as in
  Karampatziakis, Mineiro and Ramdas (2021); nothing is divided by one, so an extreme one costs information only.
- As a function of the average effect the same wealth is exp(-L V tau) times what it is at zero, V being the sum of v.
  It is inverted for a confidence sequence without another look at the data, and the sequence covers the average over
  what was seen even where the effect drifts.
- A mixture of stakes is as valid as one, and a stake that could be lost at a later draw is given up for good before it.

log(1 + L g) is concave in g: split between the two grid points around g such that their mean is g, a score wins no more
than it would have won itself. So the histogram of such shares stands for the data at every stake, at a loss of about
a thousandth of the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from .episodes import Flags, Floats, Ints

_DANGER = 0.9
_ROUNDS = 5
_SIDE = 64
_BLOCK = 8192
_BINS = 2 * _SIDE + 1
_GRID: Floats = np.sign(np.arange(-_SIDE, _SIDE + 1)) * (np.arange(-_SIDE, _SIDE + 1) / _SIDE) ** 2
STAKES: Floats = np.geomspace(0.008, 6.0, 31)
WINS: Floats = np.log(np.maximum(1 + _GRID[:, None] * STAKES, 1 - _DANGER))


def _log_prior() -> Floats:
    """How wealth is spread over the stakes: most of it where effects of 3 to 40 points are found fastest."""
    bell = np.exp(-0.5 * ((np.log(STAKES) - np.log(0.45)) / 0.5) ** 2)
    return np.log(0.9 * bell / bell.sum() + 0.1 / len(STAKES))


LOG_PRIOR: Floats = _log_prior()


@dataclass(frozen=True, slots=True)
class Scores:
    """One row per draw with a known outcome, in the order in which the outcomes became known."""

    score: Floats
    """(Z - e)(Y - m): what was drawn less its mean, times the outcome less its guess."""
    scale: Floats
    """e (1 - e): what the score's mean is of the effect."""
    lowest: Floats
    """The least that the score could have been, known before the draw."""
    highest: Floats
    """The most that it could have been."""
    group: Ints
    """Whose effect it tells about: the lesson, or 0 for memory as a whole."""
    groups: int
    writer: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Who told the outcome; empty: one writer told all."""

    def __len__(self) -> int:
        return len(self.score)


@dataclass(frozen=True, slots=True)
class Wealth:
    """What was won on each group (or on one group up to several moments): n rows, one column per stake."""

    up: Floats
    """(n, stakes): the log of prior times wealth at an effect of zero, betting that effects are above it."""
    down: Floats
    """(n, stakes): the same, betting that they are below."""
    scale: Floats
    """(n,): the sum of v."""


def wealth(scores: Scores, /) -> Wealth:
    """What was won on each group over all of time."""
    if scores.groups <= _BLOCK:
        return _won(*_tallied(scores, scores.group, scores.groups))
    blocks = [wealth(_block(scores, start)) for start in range(0, scores.groups, _BLOCK)]
    up, down = (np.concatenate([getattr(b, side) for b in blocks]) for side in ("up", "down"))
    return Wealth(up, down, np.concatenate([b.scale for b in blocks]))


def _block(scores: Scores, start: int) -> Scores:
    """The scores of the groups from `start` on that are tallied together: histograms of all would fill the memory."""
    own = (scores.group >= start) & (scores.group < start + _BLOCK)
    return Scores(
        scores.score[own],
        scores.scale[own],
        scores.lowest[own],
        scores.highest[own],
        scores.group[own] - start,
        min(_BLOCK, scores.groups - start),
    )


def surviving(scores: Scores, /, *, leave_out: int) -> Wealth:
    """What is still won on each group when the `leave_out` writers who won most on it are left out, at every stake.

    At a fixed stake the log of wealth is a sum over scores, and so a sum over writers. If at most `leave_out` writers
    lie, the others won this much or more, whatever the liars told, how often, and what they kept to themselves. So it
    is below an e-process of honest draws.
    """
    won = wealth(scores)
    if not leave_out or not len(scores):
        return won
    writers = int(scores.writer.max()) + 1
    pairs, at = np.unique(scores.group * writers + scores.writer, return_inverse=True)
    each, group = wealth(replace(scores, group=at, groups=len(pairs))), pairs // writers
    up, down = (
        getattr(won, side) - _largest(getattr(each, side) - LOG_PRIOR, group, scores.groups, leave_out)
        for side in ("up", "down")
    )
    return Wealth(up, down, won.scale)


def _largest(gains: Floats, group: Ints, groups: int, most: int) -> Floats:
    """(groups, stakes): the sum of the `most` largest gains of each group; losses count nothing. `group` ascends."""
    found: Floats = np.zeros((groups, len(STAKES)))
    rank = np.arange(len(group)) - np.searchsorted(group, group)
    for stake, gain in enumerate(np.maximum(gains, 0.0).T):
        best = np.lexsort((-gain, group))[rank < most]
        found[:, stake] = np.bincount(group[best], gain[best], groups)
    return found


def running(scores: Scores, at: Ints, /) -> Wealth:
    """What was won over the first `at` scores, for each of `at`, which ascends; there is one group."""
    first = np.searchsorted(at, np.arange(len(scores)), side="right")
    shares, scale, lowest, highest = _tallied(scores, first, len(at) + 1)
    return _won(
        np.cumsum(shares[:-1], axis=0),
        np.cumsum(scale[:-1]),
        np.minimum.accumulate(lowest[:-1]),
        np.maximum.accumulate(highest[:-1]),
    )


def _tallied(scores: Scores, group: Ints, groups: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Per group the histogram, the sum of scales, and between what the scores could have been."""
    left, share = _placed(scores.score)
    cell = group * _BINS + left
    size = groups * _BINS
    shares: Floats = np.zeros(size) + np.bincount(cell, 1 - share, size) + np.bincount(cell + 1, share, size)
    scale: Floats = np.zeros(groups) + np.bincount(group, scores.scale, groups)
    lowest, highest = np.zeros(groups), np.zeros(groups)
    np.minimum.at(lowest, group, scores.lowest)
    np.maximum.at(highest, group, scores.highest)
    return shares.reshape(groups, _BINS), scale, lowest, highest


def _placed(score: Floats) -> tuple[Ints, Floats]:
    """The grid point at or below each score, and how much of it belongs to the next one."""
    left = np.floor(np.copysign(np.sqrt(np.abs(score)), score) * _SIDE).astype(np.int64) + _SIDE
    left = np.clip(left, 0, _BINS - 2)
    below = _GRID[left]
    return left, np.clip((score - below) / (_GRID[left + 1] - below), 0.0, 1.0)


def _won(shares: Floats, scale: Floats, lowest: Floats, highest: Floats) -> Wealth:
    return Wealth(
        up=np.where(_safe(lowest), shares @ WINS + LOG_PRIOR, -np.inf),
        down=np.where(_safe(-highest), shares @ WINS[::-1] + LOG_PRIOR, -np.inf),
        scale=scale,
    )


def _safe(lowest: Floats) -> Flags:
    """(n, stakes): whether even the grid point below the lowest possible score leaves a part of the wealth."""
    point = _GRID[_placed(lowest)[0]]
    return STAKES * -point[:, None] <= _DANGER


def log_total(logs: Floats, /) -> Floats:
    """(n,): the log of the sum of exponentials along the last axis."""
    top = logs.max(axis=-1)
    return top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))


def least_effect(logs: Floats, scale: Floats, /, *, threshold: float) -> Floats:
    """(n,): the effect below which wealth reaches exp(`threshold`), approached from below; -1 where nothing is known.

    The log of the mixture is convex and falls in the effect, so Newton's steps from the best single stake never
    overshoot: every iterate is a valid bound.
    """
    shift: Floats = ((logs - threshold) / STAKES).max(axis=-1)
    for _ in range(_ROUNDS):
        now = logs - STAKES * shift[:, None]
        total = log_total(now)
        slope = (STAKES * np.exp(now - total[:, None])).sum(axis=-1)
        shift = shift + np.maximum(total - threshold, 0.0) / slope
    effect = np.divide(shift, scale, out=np.full(len(shift), -1.0), where=scale > 0)
    return np.clip(effect, -1.0, 1.0)

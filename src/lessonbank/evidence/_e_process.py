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

Where outcomes are missing, all this is done three times: without these recalls, with every missing outcome a failure,
and with every one a success. At a fixed stake log(1 + L g) is concave in the value that stands for what is missing, so
the least of the three wealths is not above the wealth at any value between. What is missing may therefore be more often
missing with memory than without, and late or lost because of how it ended. It rests on this alone: the recalls without
an outcome would have ended alike with memory and without (Manski 1990 has the bounds; here they are for every moment).

log(1 + L g) is concave in g: split between the two grid points around g such that their mean is g, a score wins no more
than it would have won itself. So the histogram of such shares stands for the data at every stake, at a loss of about
a thousandth of the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ._predictions import compact, rank_in_group
from .episodes import Flags, Floats, Ints

_DANGER = 0.9
_ROUNDS = 5
_SIDE = 64
_BINS = 2 * _SIDE + 1
_GRID: Floats = np.sign(np.arange(-_SIDE, _SIDE + 1)) * (np.arange(-_SIDE, _SIDE + 1) / _SIDE) ** 2
STAKES: Floats = np.geomspace(0.008, 6.0, 31)
WINS: Floats = np.log(np.maximum(1 + _GRID[:, None] * STAKES, 1 - _DANGER))


def _log_prior(centre: float) -> Floats:
    """How wealth is spread over the stakes: most of it around one, and something on each."""
    bell = np.exp(-0.5 * ((np.log(STAKES) - np.log(centre)) / 0.5) ** 2)
    return np.log(0.9 * bell / bell.sum() + 0.1 / len(STAKES))


LOG_PRIOR: Floats = _log_prior(0.45)
"""Most of it where effects of 3 to 40 points are found fastest."""
BOLD: Floats = _log_prior(0.8)
"""For groups. A topic has few recalls, and only a large effect shows in few: larger stakes find 20 points sooner, and
10 points no later."""
STARTS: Ints = np.r_[0, np.round(40 * 1.25 ** np.arange(64)).astype(np.int64)]
"""After so many draws of a treatment one bets anew that it harms: a turn is found soon after it, wherever it is."""
_EVEN = 8.0
_BLOCK = 32_768
_LATER = np.arange(len(STARTS) - 1) + _EVEN
LOG_STARTS: Floats = np.log(np.r_[0.75, 0.25 * _EVEN / (_LATER * (_LATER + 1))])
"""How wealth is spread over the starts: most of it on the first; the rest thins out, and all of it sums to 1."""
_COLUMNS = ("score", "scale", "lowest", "highest", "group", "weight", "writer", "row", "shown")


@dataclass(frozen=True)  # no slots: `rank` is counted once
class Scores:
    """One row per draw, in the order of recalls."""

    score: Floats
    """(Z - e)(Y - m): what was drawn less its mean, times the outcome less its guess."""
    scale: Floats
    """e (1 - e) times `weight`: what the score's mean is of the effect."""
    lowest: Floats
    """The least that the score could have been, and the most: known before the draw."""
    highest: Floats
    group: Ints
    """Whose effect it tells about: a position in `Episodes.treatments`."""
    groups: int
    weight: Floats = field(default_factory=lambda: np.empty(0))
    writer: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Who told the outcome, -1 for nobody; empty: one writer told all."""
    row: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """The recall in `Episodes`, ascending."""
    shown: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    bold: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    """(groups,): on which to bet with `BOLD` stakes; empty: on none."""

    def __len__(self) -> int:
        return len(self.score)

    def log_prior(self, lowest: Floats, highest: Floats, /) -> tuple[Floats, Floats]:
        """(groups, stakes) upwards and downwards: how wealth is spread over stakes that cannot lose it all."""
        bold = self.bold if len(self.bold) else np.zeros(self.groups, np.bool_)
        prior = np.where(bold[:, None], BOLD, LOG_PRIOR)
        return np.where(_safe(lowest), prior, -np.inf), np.where(_safe(-highest), prior, -np.inf)

    def where(self, own: Flags, /) -> Scores:
        """Some of them."""
        if own.all():
            return self
        at, columns = np.flatnonzero(own), {name: getattr(self, name) for name in _COLUMNS}
        return replace(self, **{name: column.take(at) for name, column in columns.items() if len(column)})

    @cached_property
    def rank(self) -> Ints:
        """By score: how many there are of its group before it."""
        return rank_in_group(self.group)


@dataclass(frozen=True, slots=True)
class CellGains:
    """What was won in each cell: by a group, between two starts, on the outcomes that one writer told."""

    group: Ints
    start: Ints
    """From which of `STARTS` on its scores are."""
    writer: Ints
    up: Floats
    """(fills, cells, stakes): the log of what was won at an effect of zero, betting that effects are above it; for each
    way to fill in what is missing."""
    down: Floats
    """The same, betting that they are below."""
    scale: Floats
    """(fills, cells)."""
    log_prior: tuple[Floats, Floats]
    """See `Scores.log_prior`."""

    @property
    def groups(self) -> int:
        """How many there are, with a cell or without."""
        return len(self.log_prior[0])

    @property
    def each(self) -> Sequence[CellGains]:
        """One for each way to fill in what is missing."""
        ways = zip(self.up, self.down, self.scale, strict=True)
        return [replace(self, up=up[None], down=down[None], scale=scale[None]) for up, down, scale in ways]

    def where(self, own: Flags, /) -> CellGains:
        """Some of the cells."""
        cells = {name: getattr(self, name)[own] for name in ("group", "start", "writer")}
        return replace(self, **cells, **{name: getattr(self, name)[:, own] for name in ("up", "down", "scale")})


def gains_by_cell(scores: Scores, /, *filled: Scores, by_writer: bool = False, by_start: bool = True) -> CellGains:
    """One look at all scores, from which everything else follows. `filled`: what is missing, filled in each way."""
    cell, starts, many = scores.group, 1, 1
    if by_start:
        most = int(scores.rank.max(initial=0)) + 1
        start = (np.searchsorted(STARTS, np.arange(most), side="right") - 1)[scores.rank]
        starts = int(start.max(initial=0)) + 1
        cell = cell * starts + start
    if by_writer and len(scores.writer):
        many = int(scores.writer.max(initial=-1)) + 2
        cell = cell * many + scores.writer + 1
    cells, at = compact(cell, scores.groups * starts * many)
    lowest, highest = np.zeros((2, scores.groups))
    for way in (scores, *filled):  # the least and the most that a score could have been, whatever is filled in
        np.minimum.at(lowest, way.group, way.lowest)
        np.maximum.at(highest, way.group, way.highest)
    known = _gains(scores, at, len(cells))  # what is missing wins nothing here
    is_missing = np.zeros(int(scores.row.max(initial=-1)) + 1, np.bool_)
    for way in filled:
        is_missing[way.row] = True
    own = at[is_missing[scores.row]] if filled else at
    more = ([first + gain for first, gain in zip(known, _gains(way, own, len(cells)), strict=True)] for way in filled)
    up, down, scale = map(np.stack, zip(known, *more, strict=True))
    group, start = np.divmod(cells // many, starts)
    return CellGains(group, start, cells % many, up, down, scale, scores.log_prior(lowest, highest))


def log_wealth_for(cells: CellGains, /, *, helps: bool, leave_out: int = 0) -> Floats:
    """(groups, stakes): the log of prior times wealth, betting on effects above zero, or below.

    The least over all ways to fill in what is missing. Without the `leave_out` writers who won most on a group, at
    every stake: there the log of wealth is a sum over writers. If no more of them lie, the others won this much or
    more, whatever the liars told or kept to themselves. So it is below an e-process of honest draws.
    """
    totals = [_summed(way, cells.group, cells.groups) for way in (cells.up if helps else cells.down)]
    if leave_out:
        ways = zip(totals, cells.up if helps else cells.down, strict=True)
        totals = [total - _largest(way, cells, leave_out) for total, way in ways]
    return np.min(totals, axis=0) + cells.log_prior[0 if helps else 1]


def restarted(cells: CellGains, /, *, leave_out: int = 0) -> tuple[Floats, Ints]:
    """By group: the log of the evidence that it harms from some start on, and which of `STARTS` says most of it.

    A sum over starts with weights that sum to 1 is an e-process (an e-detector: Shin, Ramdas and Rinaldo 2024).
    """
    logs = log_total(log_wealth_for(cells, helps=False, leave_out=leave_out)) + LOG_STARTS[0]
    best, start, (up, down) = logs.copy(), np.zeros(cells.groups, np.int64), cells.log_prior
    for number in range(1, int(cells.start.max(initial=0)) + 1):
        later = cells.where(cells.start >= number)
        present, group = np.unique(later.group, return_inverse=True)
        own = replace(later, group=group, log_prior=(up[present], down[present]))
        log = log_total(log_wealth_for(own, helps=False, leave_out=leave_out)) + LOG_STARTS[number]
        logs[present] = np.logaddexp(logs[present], log)
        start[present] = np.where(log > best[present], number, start[present])
        best[present] = np.maximum(best[present], log)
    return logs, start


def _summed(values: Floats, group: Ints, groups: int) -> Floats:
    """(groups, stakes): rows added up by group; `group` ascends."""
    sums: Floats = np.zeros((groups, values.shape[1]))
    present, first = np.unique(group, return_index=True)
    if len(present):
        sums[present] = np.add.reduceat(values, first)
    return sums


def _largest(gains: Floats, cells: CellGains, most: int) -> Floats:
    """(groups, stakes): the sum of what the `most` writers won who won most of each group; losses count nothing, and
    neither does what nobody told."""
    many = int(cells.writer.max(initial=0)) + 1
    pairs, at = np.unique(cells.group * many + cells.writer, return_inverse=True)
    order, group = np.argsort(at, kind="stable"), pairs // many
    won = np.maximum(_summed(gains[order], at[order], len(pairs)), 0.0) * (pairs % many > 0)[:, None]
    downwards = np.argsort(group[:, None] * (1.0 + won.max(initial=0.0)) - won, axis=0)  # within each group
    best = np.arange(len(group)) - np.searchsorted(group, group) < most
    return _summed(np.take_along_axis(won, downwards, axis=0)[best], group[best], cells.groups)


def _gains(scores: Scores, cell: Ints, cells: int) -> tuple[Floats, Floats, Floats]:
    """(cells, stakes) twice, (cells,): by the histogram of each cell."""
    shares: Floats = np.zeros(cells * _BINS)
    for begin in range(0, len(scores), _BLOCK):  # in blocks that fit into the processor's cache
        block = slice(begin, begin + _BLOCK)
        left, share = _placed(scores.score[block])
        left += cell[block] * _BINS
        np.add.at(shares, left, 1.0 - share)
        np.add.at(shares, left + 1, share)
    shares = shares.reshape(cells, _BINS)
    return shares @ WINS, shares @ WINS[::-1], np.zeros(cells) + np.bincount(cell, scores.scale, cells)


def _placed(score: Floats) -> tuple[Ints, Floats]:
    """The grid point at or below each score, and how much of it belongs to the next one."""
    left = np.floor(np.copysign(np.sqrt(np.abs(score)), score) * _SIDE).astype(np.int64) + _SIDE
    left = np.clip(left, 0, _BINS - 2)
    below = _GRID[left]
    return left, np.clip((score - below) / (_GRID[left + 1] - below), 0.0, 1.0)


def _safe(lowest: Floats) -> Flags:
    """(n, stakes): whether even the grid point below the lowest possible score leaves a part of the wealth."""
    point = _GRID[_placed(lowest)[0]]
    return STAKES * -point[:, None] <= _DANGER


def log_total(logs: Floats, /) -> Floats:
    """(n,): the log of the sum of exponentials along the last axis."""
    top = logs.max(axis=-1)
    return top + np.log(np.exp(logs - top[..., None]).sum(axis=-1))


def least_effect(logs: Floats, scale: Floats, /, *, threshold: Floats) -> Floats:
    """(n,): the effect below which wealth reaches exp(`threshold`); -1 where nothing is known.

    The log of the mixture is convex and falls in the effect, so Newton's steps from the best single stake are valid.
    """
    shift: Floats = ((logs - threshold[:, None]) / STAKES).max(axis=-1)
    for _ in range(_ROUNDS):
        now = logs - STAKES * shift[:, None]
        total = log_total(now)
        slope = (STAKES * np.exp(now - total[:, None])).sum(axis=-1)
        shift = shift + np.maximum(total - threshold, 0.0) / slope
    effect = np.divide(shift, scale, out=np.full(len(shift), -1.0), where=scale > 0)
    return np.clip(effect, -1.0, 1.0)

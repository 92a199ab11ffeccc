"""What may be said about an effect at any moment, however often one looks, because the draws' probabilities are known.

For every draw, e was the probability of being shown, Z what was drawn and Y the outcome. With a guess m of the outcome
that is made from earlier outcomes and without the draw, the score g = (Z - e)(Y - m) has the mean e (1 - e) tau, tau
being what showing changes in this recall; it is bounded; and nothing else is needed. No model, no independence between
tasks, no large numbers: the randomness that counts is our own. What is estimated is the average effect so far, weighted
by e (1 - e): recalls in which the draw was open count most.

Y is the truth. Where an audit drew with probability p what a person labels, R says whether it did, and J is the judge's
opinion, R (Y - m) + (p - R) k (J - m) stands for Y - m: it has p times its mean whatever the judge says, and less noise
where the judge is good (prediction-powered inference, Angelopoulos et al. 2023). k is learned from earlier labels. Only
where next to no truth was told at all, the judge's opinions are taken, and everything says so.

Scores are in the order of recalls, up to the first one that is still waited for (see `rows_that_wait`): an outcome that
comes early or late decides when it is looked at, and never what is seen of the others. What waited long enough is
missing, with memory and without alike, and is filled in three ways (see `_e_process`).

Besides, it rests on this: draws were made with the probabilities recorded, which may depend on everything before; and
what memory does in one task changes neither the outcome of another nor how soon that is told.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ._e_process import LOG_STARTS, CellGains, least_effect, log_total, log_wealth_for
from ._e_process import Scores as Scores
from ._predictions import guesses
from .episodes import GROUP_LEVEL, Episodes, Flags, Floats, Ints
from .lift import TRUTHS

Basis = Literal["truth", "truth and judge", "judge"]
_WEIGHT = 2.0
"""The squares, of what a judge says beside the truth, that stand for "worth nothing" before any was compared."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What becomes of some rows, ready to be scored."""

    rows: Flags
    """Which rows of `Episodes` count, and those that have no outcome. The columns below are of these."""
    change: Floats
    """What stands for the outcome less its guess; between `lowest` and `highest`, which are known beforehand."""
    weight: Floats
    """What the mean of `change` is of that difference; 0 where there is no outcome."""
    lowest: Floats
    highest: Floats
    guess: Floats
    basis: Basis


def outcomes_each_way(episodes: Episodes, /) -> tuple[Outcomes, ...]:
    """What the outcomes are; where some are missing, also what these alone would be as failures, and as successes."""
    known, missing = outcomes(episodes), episodes.missing
    if not missing.any():
        return (known,)
    guess = known.guess[missing[known.rows]]
    weight, lowest, highest = np.ones(len(guess)), -guess, 1 - guess
    each = (Outcomes(missing, value - guess, weight, lowest, highest, guess, known.basis) for value in (0.0, 1.0))
    return (known, *each)


def outcomes(episodes: Episodes, /) -> Outcomes:
    """The truth, as far as it was told or drawn for; opinions alone where next to none was."""
    reports, pool, broke = _kinds(episodes)
    basis: Basis = "truth and judge" if pool.any() else "truth"
    if (episodes.known & ~episodes.true).any() and int((reports | pool).sum()) < TRUTHS:
        reports, pool, broke, basis = episodes.known, np.zeros_like(pool), np.zeros_like(broke), "judge"
    rows = reports | pool | broke | episodes.missing
    truth, among = reports | pool, episodes.known & ~broke
    share = (np.cumsum(truth) - truth + 1.0) / (np.cumsum(among) - among + 1.0)  # of earlier rows that did not break
    return _made(episodes, rows, pool[rows], np.where(broke, share, 1.0)[rows], basis)


def truths_of(episodes: Episodes, /) -> int:
    """How many outcomes were told, of which `TRUTHS` are needed for these to count alone."""
    return int(_kinds(episodes)[0].sum())


def _kinds(episodes: Episodes) -> tuple[Flags, Flags, Flags]:
    """Rows of which the truth was told, rows an audit stands for, and rows that broke."""
    known = episodes.known
    broke, pool = episodes.broke & known, ~np.isnan(episodes.audit_odds) & known
    pool &= (pool & episodes.audited).any()
    return known & episodes.true & ~broke & ~pool, pool, broke & ~pool


def _made(episodes: Episodes, rows: Flags, pool: Flags, share: Floats, basis: Basis) -> Outcomes:
    outcome, opinion = episodes.outcome[rows], episodes.judged[rows]
    known = ~np.isnan(outcome)
    odds, asked = np.where(known, share, 0.0), known
    if pool.any():
        odds = np.where(pool, episodes.audit_odds[rows], odds)
        asked = np.where(pool, episodes.audited[rows], known)
        outcome = np.where(asked | np.isnan(opinion), outcome, opinion)
    placed, number = episodes.placed, np.cumsum(rows) - 1
    pairs = np.flatnonzero(rows[placed.row])
    guess = guesses(outcome, episodes.cluster[rows], number[placed.row[pairs]], placed.treatment[pairs])
    change, lowest, highest = np.where(known, odds * (outcome - guess), 0.0), -odds * guess, odds * (1 - guess)
    if pool.any():
        truth = np.where(known, episodes.outcome[rows] - guess, 0.0)
        judgement = np.where(np.isnan(opinion), 0.0, opinion - guess)
        trust = _trust(truth * judgement * asked, judgement**2 * asked)
        rest = (1 - odds) * trust
        change = np.where(pool, asked * truth + (odds - asked) * trust * judgement, change)
        lowest = np.where(pool, -(guess + rest * (1 - guess)), lowest)
        highest = np.where(pool, 1 - guess + rest * guess, highest)
    return Outcomes(rows, change, odds, lowest, highest, guess, basis)


def _trust(products: Floats, squares: Floats) -> Floats:
    """By row: how far the judge's opinion follows the truth, from the labels before it; 0 not at all, 1 fully."""
    return np.clip((np.cumsum(products) - products) / (np.cumsum(squares) - squares + _WEIGHT), 0.0, 1.0)


_BLOCK = 32_768


def scores(episodes: Episodes, of: Outcomes, /) -> Scores:
    """The scores of all treatments: memory as a whole, groups, lessons."""
    draws, rows = episodes.draws, of.rows
    every = bool(rows.all())  # nothing is copied then
    own = slice(None) if every else np.flatnonzero(rows[draws.row])
    row, chance, shown = draws.row[own], draws.chance[own], draws.shown[own]
    at, made = row if every else (np.cumsum(rows) - 1)[row], np.empty((5, len(row)))
    for begin in range(0, len(row), _BLOCK):  # in blocks that fit into the processor's cache
        block = slice(begin, begin + _BLOCK)
        e = chance[block]
        change, lowest, highest, weight = (c.take(at[block]) for c in (of.change, of.lowest, of.highest, of.weight))
        np.multiply(shown[block] - e, change, out=made[0, block])
        np.multiply(e * (1 - e), weight, out=made[1, block])
        np.minimum((1 - e) * lowest, -e * highest, out=made[2, block])
        np.maximum((1 - e) * highest, -e * lowest, out=made[3, block])
        made[4, block] = weight
    return Scores(
        **dict(zip(("score", "scale", "lowest", "highest", "weight"), made, strict=True)),
        group=draws.treatment[own],
        groups=len(episodes.treatments),
        writer=episodes.writer[row],
        row=row,
        shown=shown,
        bold=episodes.level == GROUP_LEVEL,
    )


def missing_scores(episodes: Episodes, /) -> Scores:
    """The scores of all treatments with "its outcome is known" for an outcome, of recalls that should have one."""
    rows = ~episodes.waiting
    known = episodes.known[rows]
    guess = (np.cumsum(known) - known + 1.0) / (np.arange(len(known)) + 1.0)
    every = np.ones(len(known))
    return scores(episodes, Outcomes(rows, known - guess, every, -guess, 1 - guess, guess, "truth"))


def log_e(cells: CellGains, /, *, helps: bool, leave_out: int = 0) -> Floats:
    """(groups,): the log of the e-value at present, against "does not help", or "does not harm", on average so far.

    Where that is so, the chance that it ever reaches 1 / a is at most a, also if up to `leave_out` writers lie.
    """
    return log_total(log_wealth_for(cells, helps=helps, leave_out=leave_out))


def bounds(cells: CellGains, /, *, level: float = 0.95, start: Ints | None = None) -> tuple[Floats, Floats]:
    """(groups,), (groups,): between what the average effect so far lies; -1 and 1 where there is no evidence.

    With probability `level` or more that is so at every moment at once. Its lower end is above zero only if the e-value
    for "helps" is above 2 / (1 - level). Where outcomes are missing, it reaches over what every way to fill them in
    would say. `start`: of each group, the one that `restarted` chose; such a choice costs width.
    """
    paid, bar = np.zeros(cells.groups), math.log(2 / (1 - level))
    if start is not None and start.any():
        cells, paid = cells.where(cells.start >= start[cells.group]), np.where(start > 0, -LOG_STARTS[start], 0.0)
    ways = [_interval(way, bar + paid) for way in cells.each]
    low: Floats = np.min([lowest for lowest, _ in ways], axis=0)
    high: Floats = np.max([highest for _, highest in ways], axis=0)
    if len(cells.up) > 1:
        helps, harms = (log_e(cells, helps=helps) - paid >= bar for helps in (True, False))
        low, high = np.where(helps, low, np.minimum(low, 0.0)), np.where(harms, high, np.maximum(high, 0.0))
    return low, high


def _interval(way: CellGains, threshold: Floats) -> tuple[Floats, Floats]:
    scale: Floats = np.zeros(way.groups) + np.bincount(way.group, way.scale[0], way.groups)
    low, high = (least_effect(log_wealth_for(way, helps=h), scale, threshold=threshold) for h in (True, False))
    return low, -high

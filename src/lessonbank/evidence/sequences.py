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

It rests on two things. Draws were made with the probabilities recorded; these may depend on everything settled before.
And being shown decides neither whether an outcome becomes known nor whether that is before or after those of other
recalls: `missing_scores` tests it.

Sources: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS B 2024);
Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences" (ICML 2021). See `_bets` for how they meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from lessonbank.errors import UsageError

from ._bets import LOG_STARTS, Tally, Wealth, least_effect, log_total, running, wealth, won
from ._bets import Scores as Scores
from ._predictions import guesses
from .episodes import GROUP_LEVEL, Episodes, Flags, Floats, Ints

Basis = Literal["truth", "truth and judge", "judge"]
TRUTHS = 20
"""Outcomes of which the truth is known below which, beside a judge, only the judge's opinions are looked at."""
_LATER = 20
"""A recall that was followed by so many others with an outcome should have one, too."""
_WEIGHT = 2.0
"""The squares, of what a judge says beside the truth, that stand for "worth nothing" before any was compared."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What becomes of some rows, ready to be scored."""

    rows: Flags
    """Which rows of `Episodes` count. The columns below are of these."""
    change: Floats
    """What stands for the outcome less its guess."""
    weight: Floats
    """What the mean of `change` is of that difference."""
    lowest: Floats
    """The least that `change` could have been, known beforehand."""
    highest: Floats
    basis: Basis


def outcomes(episodes: Episodes, /) -> Outcomes:
    """The truth, as far as it was told or drawn for; opinions alone where next to none was.

    Raises:
        UsageError: an outcome is outside [0, 1], or the columns are not ordered by recall.
    """
    told, pool, broke = _kinds(episodes)
    opinions = episodes.known & ~episodes.true
    if opinions.any() and int((told | pool).sum()) < TRUTHS:
        return _plain(episodes, episodes.known, np.ones(int(episodes.known.sum())), "judge")
    rows = told | pool | broke
    share = np.where(broke, _share_known(told | pool, episodes.known & ~broke), 1.0)[rows]
    if not pool.any():
        return _plain(episodes, rows, share, "truth")
    return _with_predictions(episodes, rows, pool[rows], share)


def _kinds(episodes: Episodes) -> tuple[Flags, Flags, Flags]:
    """Rows of which the truth was told, rows an audit stands for, and rows that broke."""
    known, size = episodes.known, len(episodes)
    broke = episodes.broke & known if len(episodes.broke) else np.zeros(size, np.bool_)
    if not len(episodes.audit_odds):
        return known & episodes.true & ~broke, np.zeros(size, np.bool_), broke
    pool = known & ~np.isnan(episodes.audit_odds)
    if not (pool & episodes.audited).any():
        pool = np.zeros(size, np.bool_)
    told = known & episodes.true & ~broke & np.isnan(episodes.audit_odds)
    return told, pool, broke & ~pool


def _share_known(known: Flags, among: Flags) -> Floats:
    """By row: of how large a part of the earlier rows `among` the truth is known; all of nothing."""
    before = np.cumsum(among) - among
    return (np.cumsum(known) - known + 1.0) / (before + 1.0)


def _plain(episodes: Episodes, rows: Flags, weight: Floats, basis: Basis) -> Outcomes:
    outcome = _checked(episodes.outcome[rows], "outcome")
    guess = _guessed(episodes, rows, outcome)
    return Outcomes(rows, weight * (outcome - guess), weight, -weight * guess, weight * (1 - guess), basis)


def _with_predictions(episodes: Episodes, rows: Flags, pool: Flags, share: Floats) -> Outcomes:
    outcome = _checked(episodes.outcome[rows], "outcome")
    odds = np.where(pool, episodes.audit_odds[rows], share)
    asked = np.where(pool, episodes.audited[rows], True)
    opinion = episodes.judged[rows]
    value = np.where(asked | np.isnan(opinion), outcome, opinion)
    guess = _guessed(episodes, rows, value)
    truth, said = value - guess, np.where(np.isnan(opinion), 0.0, opinion - guess)
    trust = _trust(truth * said * asked, said**2 * asked)
    change = np.where(pool, asked * truth + (odds - asked) * trust * said, share * truth)
    rest = np.where(pool, (1 - odds) * trust, 0.0)
    most = np.where(pool, 1.0, share)
    lowest, highest = -most * (guess + rest * (1 - guess)), most * (1 - guess + rest * guess)
    return Outcomes(rows, change, odds, lowest, highest, "truth and judge")


def _trust(products: Floats, squares: Floats) -> Floats:
    """By row: how far the judge's opinion follows the truth, from the labels before it; 0 not at all, 1 fully."""
    return np.clip((np.cumsum(products) - products) / (np.cumsum(squares) - squares + _WEIGHT), 0.0, 1.0)


def _guessed(episodes: Episodes, rows: Flags, value: Floats) -> Floats:
    """What each row's outcome may be guessed to be, by its template and the lessons that were found for it."""
    placed = episodes.placed
    for ordered in (placed.row, episodes.draws.row):
        if (np.diff(ordered) < 0).any():
            raise UsageError("the draws are not ordered by recall, so none is known to be earlier; sort them by `row`")
    number = np.cumsum(rows) - 1
    kept = rows[placed.row]
    return guesses(value, episodes.cluster[rows], number[placed.row[kept]], placed.unit[kept])


def scores(episodes: Episodes, found: Outcomes, /) -> Scores:
    """The scores of all units: memory as a whole, groups, lessons.

    Raises:
        UsageError: a chance is outside [0, 1].
    """
    draws = episodes.draws
    kept = found.rows[draws.row]
    row, chance = draws.row[kept], _checked(draws.chance[kept], "chance of being shown")
    at = (np.cumsum(found.rows) - 1)[row]
    lowest, highest = found.lowest[at], found.highest[at]
    return Scores(
        (draws.shown[kept] - chance) * found.change[at],
        chance * (1 - chance) * found.weight[at],
        np.minimum((1 - chance) * lowest, -chance * highest),
        np.maximum((1 - chance) * highest, -chance * lowest),
        draws.unit[kept],
        groups=len(episodes.units),
        weight=found.weight[at],
        writer=episodes.told_by[row],
        row=row,
        shown=draws.shown[kept],
        bold=episodes.level == GROUP_LEVEL,
    )


def missing_scores(episodes: Episodes, /) -> Scores:
    """The scores of all units with "its outcome is known" for an outcome, of recalls that should have one by now.

    An outcome that goes missing more often where a lesson is shown (it hangs the run) makes a difference by itself.
    """
    known, at = episodes.known, episodes.at if len(episodes.at) else np.arange(len(episodes), dtype=float)
    others = np.sort(at[known])
    due = at < others[-_LATER] if len(others) >= _LATER else np.zeros(len(at), np.bool_)
    order = np.argsort(at, kind="stable")
    came = (known & due)[order]
    guess: Floats = np.empty(len(at))
    guess[order] = (np.cumsum(came) - came + 1.0) / (np.cumsum(due[order]) - due[order] + 1.0)
    guess, rows = np.minimum(guess[due], 1.0), due
    change = known[due] - guess
    return scores(episodes, Outcomes(rows, change, np.ones(len(change)), -guess, 1 - guess, "truth"))


def _checked(values: Floats, what: str) -> Floats:
    if len(values) and not (values.min() >= 0 and values.max() <= 1):
        wrong = values[~((values >= 0) & (values <= 1))][0]
        raise UsageError(f"{what} {wrong:g} is outside [0, 1]; bring it into that range first")
    return values


def log_e(told: Tally, /, *, helps: bool, leave_out: int = 0) -> Floats:
    """(groups,): the natural log of the e-value at present; 0 where there is no evidence.

    With `helps`, against "the average effect so far is not above zero"; without, against "it is not below zero". Where
    that is so, the chance that the e-value ever reaches 1 / a is at most a, however often one looks. That still holds
    when up to `leave_out` writers lie, because the writers who say most are left out.
    """
    return log_total(won(told, helps=helps, leave_out=leave_out))


def bounds(told: Tally, /, *, level: float = 0.95, start: Ints | None = None) -> tuple[Floats, Floats]:
    """(groups,), (groups,): between what the average effect so far lies; -1 and 1 where there is no evidence.

    With probability `level` or more that is so at every moment at once: a confidence sequence, seen at its present end.
    Its lower end is above zero exactly when the e-value for "helps" is above 2 / (1 - level). `start`: of each group,
    the start that `restarted` chose, from which on the effect is looked at; such a choice costs width.

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    if start is None or not start.any():
        return _interval(wealth(told), level, np.zeros(told.groups))
    return _interval(wealth(told.since(start)), level, np.where(start > 0, -LOG_STARTS[start], 0.0))


def path(scores: Scores, /, *, level: float = 0.95, at: Ints) -> tuple[Floats, Floats]:
    """(len(at),), (len(at),): the bounds of a single group as they stood after the first `at` scores, for each of `at`.

    Raises:
        UsageError: there is more than one group, `at` does not ascend from 0 to len(scores), or `level` is not between
            0 and 1.
    """
    if scores.groups != 1:
        raise UsageError(f"a path is drawn for one group, and these scores are of {scores.groups}; take one group's")
    if len(at) and (at[0] < 0 or at[-1] > len(scores) or (np.diff(at) < 0).any()):
        raise UsageError(f"a path over {len(scores)} scores is asked for at places that ascend from 0 to {len(scores)}")
    return _interval(running(scores, at), level, np.zeros(len(at)))


def _interval(gained: Wealth, level: float, paid: Floats) -> tuple[Floats, Floats]:
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}; give a number between 0 and 1, such as 0.95")
    threshold = math.log(2 / (1 - level)) + paid
    low = least_effect(gained.up, gained.scale, threshold=threshold)
    return low, -least_effect(gained.down, gained.scale, threshold=threshold)

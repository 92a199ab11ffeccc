"""What may be said about an effect at any moment, however often one looks, because the draws' probabilities are known.

For every draw, e was the probability of being shown, Z what was drawn and Y the outcome. With a guess m of the outcome
that is made from earlier outcomes and without the draw, the score g = (Z - e)(Y - m) has the mean e (1 - e) tau, tau
being what showing changes in this recall; it is bounded; and nothing else is needed. No model, no independence between
tasks, no large numbers: the randomness that counts is our own. What is estimated is the average effect so far, weighted
by e (1 - e): recalls in which the draw was open count most.

It rests on two things. Draws were made with the probabilities recorded; these may depend on everything settled before.
And being shown decides neither whether an outcome becomes known nor whether that is before or after those of other
recalls.

Sources: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS B 2024);
Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences" (ICML 2021); Wang and Ramdas, "False discovery
rate control with e-values" (JRSS B 2022). How the first two meet here is told in `_betting`.
"""

from __future__ import annotations

import math

import numpy as np

from lessonbank.errors import UsageError

from ._bets import Scores as Scores
from ._bets import Wealth, least_effect, log_total, running, surviving, wealth
from ._predictions import guesses
from .episodes import Episodes, Flags, Floats, Ints


def lesson_scores(episodes: Episodes, /) -> Scores:
    """The scores of all lessons: pairs for which something was drawn, in recalls with an outcome and with memory.

    Raises:
        UsageError: an outcome or a probability is outside [0, 1], or the pairs are not ordered by recall.
    """
    pairs = episodes.pairs
    if (np.diff(pairs.row) < 0).any():
        raise UsageError("the pairs are not ordered by recall, so that none is known to be earlier; sort them by `row`")
    used = episodes.known & ~episodes.control
    place = np.cumsum(used) - 1
    kept = used[pairs.row]
    row, lesson, outcome = place[pairs.row[kept]], pairs.lesson[kept], _checked(episodes.outcome[used], "outcome")
    guess = guesses(outcome, episodes.cluster[used], row, lesson)
    shown = 1.0 - _checked(pairs.probability[kept], "probability of withholding")
    drawn = (shown > 0) & (shown < 1)
    row = row[drawn]
    return _scores(
        ~pairs.withheld[kept][drawn],
        shown[drawn],
        outcome[row],
        guess[row],
        lesson[drawn],
        groups=len(episodes.lessons),
        writer=episodes.told_by[used][row],
    )


def overall_scores(episodes: Episodes, /, outcome: Floats | None = None) -> Scores:
    """The scores of memory as a whole: recalls that might have been withheld and were not, against those that were.

    Args:
        episodes: the recalls.
        outcome: (n,): something else that is to be compared, brought into [0, 1]; nan where it is unknown.

    Raises:
        UsageError: an outcome or a probability is outside [0, 1], or there is not one outcome per recall.
    """
    values = episodes.outcome if outcome is None else outcome
    if values.shape != episodes.outcome.shape:
        raise UsageError(f"{values.size} outcomes were given for {len(episodes)} recalls; give one for each")
    known = ~np.isnan(values)
    result = _checked(values[known], "outcome")
    guess = guesses(result, episodes.cluster[known])
    shown = 1.0 - _checked(episodes.control_probability[known], "probability of withholding")
    drawn = (shown > 0) & (shown < 1)
    group = np.zeros(int(drawn.sum()), dtype=np.int64)
    return _scores(
        ~episodes.control[known][drawn],
        shown[drawn],
        result[drawn],
        guess[drawn],
        group,
        groups=1,
        writer=episodes.told_by[known][drawn],
    )


def _checked(values: Floats, what: str) -> Floats:
    if len(values) and not (values.min() >= 0 and values.max() <= 1):
        wrong = values[~((values >= 0) & (values <= 1))][0]
        raise UsageError(f"{what} {wrong:g} is outside [0, 1]; bring it into that range first")
    return values


def _scores(
    shown: Flags, chance: Floats, outcome: Floats, guess: Floats, group: Ints, *, groups: int, writer: Ints
) -> Scores:
    score = (shown - chance) * (outcome - guess)
    lowest = -np.maximum((1 - chance) * guess, chance * (1 - guess))
    highest = np.maximum((1 - chance) * (1 - guess), chance * guess)
    return Scores(score, chance * (1 - chance), lowest, highest, group, groups, writer)


def log_e(scores: Scores, /, *, helps: bool, leave_out: int = 0) -> Floats:
    """(groups,): the natural log of the e-value at present; 0 where there is no evidence.

    With `helps`, against "the average effect so far is not above zero"; without, against "it is not below zero". Where
    that is so, the chance that the e-value ever reaches 1 / a is at most a, however often one looks. That still holds
    when up to `leave_out` writers lie, because the writers who say most are left out.
    """
    won = surviving(scores, leave_out=leave_out)
    return log_total(won.up if helps else won.down)


def bounds(scores: Scores, /, *, level: float = 0.95) -> tuple[Floats, Floats]:
    """(groups,), (groups,): between what the average effect so far lies; -1 and 1 where there is no evidence.

    With probability `level` or more that is so at every moment at once: a confidence sequence, seen at its present end.
    Its lower end is above zero exactly when the e-value for "helps" is above 2 / (1 - level).

    Raises:
        UsageError: `level` is not between 0 and 1.
    """
    return _interval(wealth(scores), level)


def path(scores: Scores, /, *, level: float = 0.95, at: Ints, narrowing: bool = False) -> tuple[Floats, Floats]:
    """(len(at),), (len(at),): the bounds of a single group as they stood after the first `at` scores, for each of `at`.

    With `narrowing` a bound once reached is kept. That is right for an effect that stays the same; where it drifts, the
    average so far may leave a narrowed interval.

    Raises:
        UsageError: there is more than one group, `at` does not ascend from 0 to len(scores), or `level` is not between
            0 and 1.
    """
    if scores.groups != 1:
        raise UsageError(f"a path is drawn for one group, and these scores are of {scores.groups}; take one group's")
    if len(at) and (at[0] < 0 or at[-1] > len(scores) or (np.diff(at) < 0).any()):
        raise UsageError(f"a path over {len(scores)} scores is asked for at places that ascend from 0 to {len(scores)}")
    low, high = _interval(running(scores, at), level)
    return (np.maximum.accumulate(low), np.minimum.accumulate(high)) if narrowing else (low, high)


def _interval(won: Wealth, level: float) -> tuple[Floats, Floats]:
    if not 0 < level < 1:
        raise UsageError(f"level is {level:g}; give a number between 0 and 1, such as 0.95")
    threshold = math.log(2 / (1 - level))
    low = least_effect(won.up, won.scale, threshold=threshold)
    return low, -least_effect(won.down, won.scale, threshold=threshold)


def e_bh(logs: Floats, /, *, alpha: float) -> Flags:
    """Which of several null hypotheses are rejected, such that at most `alpha` of the rejections are wrong on average.

    The k largest e-values are taken, for the largest k at which each of them is at least n / (alpha k). It holds
    whatever the dependence between them. It holds as well for everything rejected at any of many looks, so long as n is
    the same: each had its n / (alpha k) when it was first rejected, with a k no larger than the final count, and an
    e-process stopped at that moment is an e-value.

    Raises:
        UsageError: `alpha` is not between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha is {alpha:g}; give a number between 0 and 1, such as 0.05")
    order = np.argsort(-logs, kind="stable")
    ranks = np.arange(1, len(logs) + 1)
    passed = np.flatnonzero(logs[order] >= np.log(len(logs) / (alpha * ranks)))
    rejected = np.zeros(len(logs), dtype=np.bool_)
    rejected[order[: passed[-1] + 1 if len(passed) else 0]] = True
    return rejected

"""Evidence from pairs of runs, after each of which one may look and stop, and how many pairs that takes.

For every pair, d is the outcome with the lesson less the outcome without it, from -1 to 1, with the mean t before the
pair is run. For a stake L below 1 the product of (1 + L d) / (1 + L t) is a martingale. log(1 + L t) is concave in t,
so with m for the average of t over the n pairs so far the product of (1 + L d), divided by (1 + L m) ** n, is never
above it: whatever the effect does from task to task, the chance that this ever exceeds 1 / a is at most a. At m = 0 it
is an e-value against "no effect on average"; as a function of m it is inverted for an interval. A mixture of stakes is
as valid as one. For outcomes that are successes or failures it is a mixture test of McNemar's kind: ties cost nothing.

Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting" (JRSS B 2024).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from lessonbank._base.checks import a_share
from lessonbank.contracts.records import Record

STAKES: Final = (0.03, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 0.95, 0.98, 0.99)
"""Every second one is large: where both runs of a pair share their luck, a lesson that helps never loses a pair, and
only large stakes make the most of that. Seven wins are then enough. The small ones cost a tenth more wins at most."""
_HALVINGS: Final = 40


@dataclass(slots=True)
class PairedTest:
    """Evidence about the mean of paired differences."""

    level: float = 0.95
    n: int = 0
    _up: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))
    _down: list[float] = field(default_factory=lambda: [0.0] * len(STAKES))

    def add(self, difference: float, /) -> None:
        """One more pair: from -1 to 1."""
        self.n += 1
        if difference:
            self._up = [log + math.log1p(stake * difference) for log, stake in zip(self._up, STAKES, strict=True)]
            self._down = [log + math.log1p(-stake * difference) for log, stake in zip(self._down, STAKES, strict=True)]

    def above(self, effect: float, /) -> bool:
        """Whether the average effect so far is shown to be above `effect`."""
        return self._log(self._up, effect) >= _bar(self.level)

    def below(self, effect: float, /) -> bool:
        """Whether the average effect so far is shown to be below `effect`."""
        return self._log(self._down, -effect) >= _bar(self.level)

    def interval(self) -> tuple[float, float]:
        """Between what the average effect so far lies; right at every moment at once."""
        return self._least(self._up), -self._least(self._down)

    def _log(self, logs: Sequence[float], effect: float) -> float:
        """The log of the wealth that bets on more than `effect` have won."""
        now = [log - self.n * math.log1p(stake * effect) for log, stake in zip(logs, STAKES, strict=True)]
        top = max(now)
        return top + math.log(sum(math.exp(log - top) for log in now) / len(STAKES))

    def _least(self, logs: Sequence[float]) -> float:
        """The effect at which wealth falls to the bar, from below: what is returned is never too high."""
        bar, low, high = _bar(self.level), -1.0, 1.0
        if self._log(logs, low) < bar:
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self._log(logs, middle) >= bar else (low, middle)
        return low


def _bar(level: float) -> float:
    return math.log(2 / (1 - level))


class TrialPlan(Record):
    """How many runs a trial takes until an effect of this size is shown. `print(plan)` says it in words."""

    effect: float
    level: float
    median: int
    """Runs, where the two runs of a pair share their luck: half of all trials need no more, and four in five."""
    likely: int
    median_unshared: int
    """The same where each run has luck of its own and half of all runs succeed, which is the hardest case."""
    likely_unshared: int

    def __str__(self) -> str:
        points = f"{100 * self.effect:g} points"
        return (
            f"A trial shows an effect of {points} within {self.likely:,} runs (four times in five; half of the time "
            f"within {self.median:,}), if `seed` fixes the luck of a run. If each run has luck of its own, within "
            f"{self.likely_unshared:,} (half of the time within {self.median_unshared:,})."
        )


def plan_trial(effect: float = 0.1, /, *, level: float = 0.95) -> TrialPlan:
    """Say before a trial how many runs it takes, pairs of two, to show an effect: 0.1 is ten points of success.

    With shared luck the count is exact: a lesson that helps loses no pair. With luck of its own in each run it is
    Wald's, log(wealth needed) / (growth a pair), with constants from simulated trials, right to a tenth from 5 points.

    Raises:
        UsageError: an effect that is not above 0 and below 1, or a level that cannot be.
    """
    effect = a_share(effect, "effect", "is above 0 and below 1", least=0.001, below=1.0)
    level = a_share(level, "level", least=0.5, below=1.0)
    wins = _wins_needed(level)
    return TrialPlan(
        effect=effect,
        level=level,
        median=2 * _pairs_until(wins, effect, share=0.5),
        likely=2 * _pairs_until(wins, effect, share=0.8),
        median_unshared=2 * _pairs_of_own_luck(effect, level, 1.21, -0.40, 0.18),
        likely_unshared=2 * _pairs_of_own_luck(effect, level, 1.47, 1.19, 0.54),
    )


def _wins_needed(level: float) -> int:
    test = PairedTest(level)
    while not test.above(0.0):
        test.add(1.0)
    return test.n


def _pairs_until(wins: int, chance: float, *, share: float) -> int:
    """The number of pairs by which so many wins have come in this share of trials."""
    pairs, exactly = wins, chance**wins
    before = exactly
    while before < share:
        exactly *= (1 - chance) * pairs / (pairs - wins + 1)
        before, pairs = before + exactly, pairs + 1
    return pairs


def _pairs_of_own_luck(effect: float, level: float, wealth: float, fixed: float, ratio: float) -> int:
    """Half of all runs succeed, so that a pair differs about every second time, mostly by chance."""
    differing = (1 + effect**2) / 2
    won = (1 + effect / differing) / 2
    growth = math.log(2) + won * math.log(won) + (1 - won) * math.log1p(-won)
    return math.ceil((wealth * _bar(level) + fixed + ratio * math.log(differing / effect)) / (differing * growth))

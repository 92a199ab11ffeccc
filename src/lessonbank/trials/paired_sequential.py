"""Evidence from pairs of runs, after each of which one may look and stop.

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

"""How many runs a person has to label until a verdict can be expected: what an audit costs, said before it is made."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Final

_PRICE: Final = 0.8
"""What betting costs while the best stake is not known, in logs of evidence: by simulation."""
_LUCK: Final = 0.84
"""So many standard deviations below its mean the evidence is once in five times."""
_DANGER: Final = 0.5
"""The part of the wealth that one recall may take: beyond it what is lost outweighs what is won, by simulation."""


def labels_needed(
    *,
    pool: int,
    labelled: int,
    weight: float,
    effect: float,
    spread: float,
    residual: float,
    reach: float,
    threshold: float,
) -> int | None:
    """About how many more labels of a pool decide, with a chance of 80 %; `None` where all of them would not.

    Scores are as in `sequences`: where chance p drew the truth Y beside a judge's opinion J, with a guess m and k the
    trust in the judge, the noise of a recall is E (Y - m)^2 + (1/p - 1) E (Y - m - k (J - m))^2.

    Args:
        pool: recalls with a judge's opinion that an audit can draw from, or drew from.
        labelled: those of them that were drawn and have a label.
        weight: the sum of e (1 - e) over the pool, e being the chance of being shown.
        effect: the effect to be shown, on the truth.
        spread: the mean of (Y - m)^2; about p (1 - p) of the rate of success.
        residual: the mean of (Y - m - k (J - m))^2: what the judge leaves open.
        reach: how large a score can be: it limits what is bet where labels are few. At most 1.
        threshold: the log of the evidence that a verdict asks for.
    """

    def is_enough(labels: int) -> bool:
        odds = labels / pool
        mean, variance = odds * weight * abs(effect), odds**2 * weight * (spread + (1 / odds - 1) * residual)
        stake = min(mean / variance, _DANGER / reach)
        grown = stake * mean - stake**2 * variance / 2
        return grown - _LUCK * stake * math.sqrt(variance) >= threshold + _PRICE

    if pool < 1 or not is_enough(pool):
        return None
    return max(1, bisect_left(range(1, pool + 1), True, key=is_enough) + 1 - labelled)

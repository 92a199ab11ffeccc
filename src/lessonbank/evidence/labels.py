"""How many runs a person has to label until a verdict can be expected: what an audit costs, said before it is made."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import Final

import numpy as np

from .calibration import checked
from .episodes import Episodes, Flags
from .review import LIKELY, Review

_CHECKED: Final = 20
_TRUST: Final = 0.6
"""What a judge is taken to be worth while it was hardly checked: right eight times in ten."""
_PRICE: Final = 0.8
"""What betting costs while the best stake is not known, in logs of evidence: by simulation."""
_LUCK: Final = 0.84
"""So many standard deviations below its mean the evidence is once in five times."""
_DANGER: Final = 0.5
"""The part of the wealth that one recall may take: beyond it what is lost outweighs what is won, by simulation."""


def more_labels(episodes: Episodes, found: Review, /) -> int | None:
    """About how many more labels bring the next verdict on memory as a whole; `None`: no number of them would, or
    there is nothing to label."""
    pool = episodes.known & ~np.isnan(episodes.judged) & _opinion(episodes)
    draws = episodes.draws
    rows = np.flatnonzero((draws.unit == 0) & pool[draws.row])
    standing = found.standing[0] if found.acts else "no evidence yet"
    if len(rows) < _CHECKED or standing in ("helps", "harms"):
        return None
    said, chance = episodes.judged[draws.row[rows]], draws.chance[rows]
    guess = float(said.mean())
    v = chance * (1 - chance)
    trust = _trust(episodes)
    effect = float(((draws.shown[rows] - chance) * (said - guess)).sum() / v.sum()) / max(trust, 0.1)
    spread = max(guess * (1 - guess), 0.01)
    return labels_needed(
        pool=len(rows),
        labelled=int(episodes.true[draws.row[rows]].sum()),
        weight=float(v.sum()),
        effect=effect,
        spread=spread,
        residual=spread * (1 - trust**2),
        reach=min(float(np.maximum(chance, 1 - chance).max()) * max(guess, 1 - guess) * (1 + trust), 1.0),
        threshold=LIKELY if standing == "no evidence yet" else float(found.least[0]),
    )


def _opinion(episodes: Episodes) -> Flags:
    """The rows that rest on a judge's word, or whose truth an audit asked for."""
    return ~episodes.true | (episodes.audited if len(episodes.audited) else np.zeros(len(episodes), np.bool_))


def _trust(episodes: Episodes) -> float:
    """How far a judge's opinion follows the truth, from 0 to 1."""
    both = checked(episodes)
    if int(both.sum()) < _CHECKED:
        return _TRUST
    return float(np.clip(2 * (1 - np.abs(episodes.judged[both] - episodes.outcome[both]).mean()) - 1, 0.0, 0.99))


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

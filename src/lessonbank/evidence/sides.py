"""The two shares of success of which an effect is the difference: weighted as the effect is, so that they agree."""

from __future__ import annotations

import numpy as np

from .episodes import Floats, Ints
from .estimates import ENOUGH
from .sequences import Outcomes, Scores


def sides(
    scores: Scores, counts: Floats, outcome: Floats, found: Outcomes, effect: Floats, /, *, at: Ints
) -> tuple[Floats, Floats, Floats]:
    """(len(at),) each: the share with memory, the share without, and their difference, after the first `at` scores.

    An outcome counts in the inverse proportion of its odds, which is how the effect counts it. `nan` where one side has
    too few outcomes for an effect.

    Args:
        scores: of one unit.
        counts: by score: how much it counts.
        outcome: by row of `Episodes`.
        found: what stands for the outcomes in the scores.
        effect: (2, len(at)): between what the effect lies; a share of what lies outside is moved inside.
        at: ascending counts of scores.
    """
    change: Floats = np.zeros(len(found.rows))
    change[found.rows] = found.change
    moved = counts * scores.score * scores.weight / scores.scale
    base = counts * (scores.weight * np.nan_to_num(outcome[scores.row]) - change[scores.row])
    weight, level, shown, withheld = (
        _sums(values, at)
        for values in (
            counts * scores.weight,
            base,
            np.where(scores.shown, moved, 0.0),
            np.where(scores.shown, 0.0, -moved),
        )
    )
    fewer = np.minimum(_sums(scores.shown.astype(float), at), _sums((~scores.shown).astype(float), at))
    weight = np.where(fewer >= ENOUGH, weight, np.nan)
    difference = np.clip(np.clip((shown - withheld) / weight, -1.0, 1.0), *effect)
    half = np.abs(difference) / 2
    middle = np.clip((level + (shown + withheld) / 2) / weight, half, 1.0 - half)
    return middle + difference / 2, middle - difference / 2, difference


def _sums(values: Floats, at: Ints) -> Floats:
    return np.concatenate([[0.0], np.cumsum(values)])[at]

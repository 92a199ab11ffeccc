"""What each lesson is expected to change, learned from all draws of a recall at once.

A draw for memory as a whole or for a topic leaves out several lessons together, and the next task finds others of the
topic. Whoever looks at each lesson alone learns nothing from that. Here the outcome less its guess is a sum over the
lessons that had a place: the effect of each, times whether it was shown less the probability of that. These factors
have a mean of zero whatever the tasks are like, so nothing but our own draws is learned from (Robins, Mark and
Newey 1992). What comes of it sets odds and is called expected. No verdict rests on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from .episodes import LESSON_LEVEL, Episodes, Floats, Ints
from .estimates import Pooled
from .sequences import Outcomes

_LESSONS: Final = 200
"""The lessons that were found most often are looked at together; of others next to nothing is known."""
_RECALLS: Final = 20_000
"""The last so many recalls: what is longer ago may have changed, and a review must not take long."""
_SPREAD: Final = 0.1
"""The spread of true effects that is expected before anything is known."""
_LEAST: Final = 0.05
"""The variance of an outcome that a few equal ones cannot go below."""


def jointly(told: Pooled, episodes: Episodes, found: Outcomes, /) -> Pooled:
    """The same with what all draws together say of the lessons that were found most often."""
    placed, number = episodes.placed, np.cumsum(found.rows) - 1
    kept = found.rows[placed.row] & (episodes.level[placed.unit] == LESSON_LEVEL)
    row, unit = number[placed.row[kept]], placed.unit[kept]
    recent = row >= len(found.change) - _RECALLS
    row, unit = row[recent], unit[recent]
    lessons = _most_found(unit, len(episodes.units))
    if not len(lessons):
        return told
    at = np.full(len(episodes.units), -1)
    at[lessons] = np.arange(len(lessons))
    own = at[unit] >= 0
    row, lesson = row[own], at[unit[own]]
    drawn = (placed.shown[kept].astype(float) - placed.chance[kept])[recent][own] * found.weight[row]
    mean, spread = _solved(row, lesson, drawn, found.change, len(lessons))
    expected, spreads = told.mean.copy(), told.spread.copy()
    expected[lessons], spreads[lessons] = mean, spread
    return replace(told, mean=expected, spread=spreads)


def _most_found(unit: Ints, units: int) -> Ints:
    counts = np.bincount(unit, minlength=units)
    best = np.argsort(-counts, kind="stable")[:_LESSONS]
    return best[counts[best] > 0]


def _solved(row: Ints, lesson: Ints, drawn: Floats, change: Floats, lessons: int) -> tuple[Floats, Floats]:
    """The mean and the spread of the posterior of a linear model with normal errors, one row per place."""
    noise = max(float((change[np.unique(row)] ** 2).mean()), _LEAST)
    first, second = _pairs(row)
    cells = lesson[first] * lessons + lesson[second]
    squares = np.bincount(cells, drawn[first] * drawn[second], lessons * lessons).reshape(lessons, lessons)
    products = np.bincount(lesson, drawn * change[row], lessons)
    inverse = np.linalg.inv(squares / noise + np.eye(lessons) / _SPREAD**2)
    return inverse @ products / noise, np.sqrt(np.diag(inverse))


def _pairs(row: Ints) -> tuple[Ints, Ints]:
    """All pairs of places of one recall, each place with itself too; `row` ascends."""
    counts = np.bincount(row)[row]
    start = np.searchsorted(row, row)
    first = np.repeat(np.arange(len(row)), counts)
    offset = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, start[first] + offset

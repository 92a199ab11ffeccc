"""What each lesson is expected to change, learned from all draws of a recall at once.

A draw for memory as a whole or for a topic leaves out several lessons together, and the next task finds others of the
topic. Whoever looks at each lesson alone learns nothing from that. Here the outcome less its guess is a sum over the
lessons that had a place: the effect of each, times whether it was shown less the probability of that. These factors
have a mean of zero whatever the tasks are like, so nothing but our own draws is learned from (Robins, Mark and Newey
1992). What comes of it sets odds and is called expected. No verdict rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from .episodes import LESSON_LEVEL, Episodes, Flags, Floats, Ints
from .estimates import Pooled, innermost
from .sequences import Outcomes

_LESSONS: Final = 100
"""The lessons that were found most often are looked at together; of others next to nothing is known."""
_RECALLS, _PAIRS = 20_000, 500_000
"""The last recalls, and pairs of lessons in them, that are looked at: what is longer ago may have changed, and a review
must not take long."""
_SPREADS: Final = tuple(product((0.03, 0.1), (0.03, 0.1)))
"""The spreads of true effects that may be: of each lesson, and of what those of a group have in common. The evidence
chooses (empirical Bayes)."""
_COMMON: Final = 0.04
"""That of what all lessons of the bank have in common."""
_LEAST: Final = 0.05
"""The variance of an outcome that a few equal ones cannot go below."""


@dataclass(frozen=True, slots=True)
class _Places:
    """One row per lesson that had a place, ordered by recall."""

    recall: Ints
    unit: Ints
    drawn: Floats
    """Whether it was shown, less the probability of that."""
    change: Floats
    """By recall: what stands for the outcome less its guess."""


def jointly(told: Pooled, episodes: Episodes, found: Outcomes, /, *, turned: Flags) -> Pooled:
    """The same, with what all draws together say of the lessons that were found most often.

    `turned`: by unit: whether it did something else before. Its expectation stays as it is: the model knows no time.
    """
    places = _last_places(episodes, found)
    counts = np.bincount(places.unit, minlength=len(episodes.units))
    lessons = np.argsort(-counts, kind="stable")[: min(_LESSONS, int((counts > 0).sum()))]
    if not len(lessons):
        return told
    group = np.array([innermost(episodes.parents, int(n)) for n in lessons])
    mean, spread = told.mean.copy(), told.spread.copy()
    mean[lessons], spread[lessons] = _posterior(*_learned(places, lessons, len(episodes.units)), group)
    return Pooled(np.where(turned, told.mean, mean), np.where(turned, told.spread, spread))


def _last_places(episodes: Episodes, found: Outcomes) -> _Places:
    placed, rows = episodes.placed, np.flatnonzero(found.rows)[-_RECALLS:]
    change, weight = (column[len(column) - len(rows) :] for column in (found.change, found.weight))
    number = np.full(len(episodes), -1)
    number[rows] = np.arange(len(rows))
    begin = int(np.searchsorted(placed.row, int(rows[0]))) if len(rows) else len(placed)
    last = slice(begin, None)
    recall, unit = number[placed.row[last]], placed.unit[last]
    kept = (recall >= 0) & (episodes.level[unit] == LESSON_LEVEL)
    pairs = np.bincount(recall[kept], minlength=len(rows) + 1) ** 2
    kept &= np.cumsum(pairs[::-1])[::-1][recall] <= _PAIRS
    drawn = placed.shown[last][kept] - placed.chance[last][kept]
    return _Places(recall[kept], unit[kept], drawn * weight[recall[kept]], change)


def _learned(places: _Places, lessons: Ints, units: int) -> tuple[Floats, Floats]:
    """(n, n), (n,): the information in the draws, and that times the effects: sums of a linear model."""
    at = np.full(units, -1)
    at[lessons] = np.arange(len(lessons))
    own = at[places.unit] >= 0
    recall, lesson, drawn = places.recall[own], at[places.unit[own]], places.drawn[own]
    noise = max(float((places.change[np.unique(recall)] ** 2).mean()), _LEAST)
    first, second = _pairs(recall)
    many = len(lessons)
    squares = np.bincount(lesson[first] * many + lesson[second], drawn[first] * drawn[second], many * many)
    return squares.reshape(many, many) / noise, np.bincount(lesson, drawn * places.change[recall], many) / noise


def _posterior(information: Floats, moved: Floats, group: Ints) -> tuple[Floats, Floats]:
    """The means and the spreads of effects, with normal errors and the prior under which what was seen is likeliest.

    `group`: of each lesson; -1 for none.
    """
    best, mean, spread = -np.inf, moved, moved
    for own, of_group in _SPREADS:
        same = (group[:, None] == group) & (group >= 0)
        prior = np.diag(np.full(len(group), own**2)) + _COMMON**2 + np.where(same, of_group**2, 0.0)
        both = np.eye(len(group)) + information @ prior
        variance = prior @ np.linalg.inv(both)
        likely = float(moved @ variance @ moved - np.linalg.slogdet(both)[1])
        if likely > best:
            best, mean, spread = likely, variance @ moved, np.sqrt(np.diag(variance))
    return mean, spread


def _pairs(recall: Ints) -> tuple[Ints, Ints]:
    """All pairs of places of one recall, each place with itself too; `recall` ascends."""
    counts = np.bincount(recall)[recall]
    begin = np.searchsorted(recall, recall)
    first = np.repeat(np.arange(len(recall)), counts)
    return first, np.repeat(begin - np.cumsum(counts) + counts, counts) + np.arange(len(first))

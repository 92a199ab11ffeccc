"""What others do with the same episodes: count, compare, learn a value; and how a ranking is scored."""

from __future__ import annotations

import numpy as np

from .columns import Episodes, Flags, Floats, Ints


def _shown(episodes: Episodes) -> tuple[Ints, Floats]:
    """The lesson and the outcome of every time one was shown and the outcome is known, in order."""
    pairs = episodes.pairs
    there = ~pairs.withheld & ~episodes.control[pairs.row] & episodes.known[pairs.row]
    return pairs.lesson[there], episodes.outcome[pairs.row[there]]


def counters(episodes: Episodes, /) -> Floats:
    """How often tasks succeeded when the lesson was shown, shape (N,); 0.5 for what was never shown."""
    lesson, outcome = _shown(episodes)
    return _share(_sums(episodes, lesson, outcome), _sums(episodes, lesson), never=0.5)


def with_without(episodes: Episodes, /) -> Floats:
    """That, less how often they succeeded in all other episodes, shape (N,)."""
    lesson, outcome = _shown(episodes)
    known = episodes.outcome[episodes.known]
    wins, times = _sums(episodes, lesson, outcome), _sums(episodes, lesson)
    return counters(episodes) - _share(known.sum() - wins, len(known) - times, never=0.0)


def q_learning(episodes: Episodes, /, *, alpha: float = 0.1) -> Floats:
    """A value per lesson that moves by `alpha` towards each outcome it was shown for, from 0.5, shape (N,).

    Outcomes count less by the power of how many came after them, so it is one weighted sum.
    """
    lesson, outcome = _shown(episodes)
    order = np.argsort(lesson, kind="stable")
    lesson, outcome = lesson[order], outcome[order]
    times = _sums(episodes, lesson).astype(np.int64)
    after = np.cumsum(times)[lesson] - 1 - np.arange(len(lesson))
    keeps = (1.0 - alpha) ** after
    return 0.5 * (1.0 - alpha) ** times + _sums(episodes, lesson, alpha * keeps * outcome)


def spearman(one: Floats, other: Floats, /) -> float:
    """Rank correlation, ties sharing their average rank."""
    return float(np.corrcoef(_ranks(one), _ranks(other))[0, 1])


def auc(score: Floats, positive: Flags, /) -> float:
    """The probability that a positive scores above another, ties counting half."""
    ranks, ones = _ranks(score) + 1.0, int(positive.sum())
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * (len(score) - ones)))


def _sums(episodes: Episodes, lesson: Ints, of: Floats | None = None) -> Floats:
    return np.bincount(lesson, weights=of, minlength=len(episodes.lessons)).astype(np.float64)


def _share(part: Floats, whole: Floats, *, never: float) -> Floats:
    return np.where(whole > 0, part / np.maximum(whole, 1.0), never)


def _ranks(values: Floats) -> Floats:
    _, which, times = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(times) - (times + 1) / 2)[which]

"""A guess of each outcome made from earlier ones only, so that what a task's difficulty explains is no noise."""

from __future__ import annotations

import numpy as np

from .episodes import Floats, Ints

_FIRST = 0.5
_LESSON_STRENGTH = 10.0
_CLUSTER_STRENGTH = 4.0


def guesses(outcome: Floats, cluster: Ints, /, row: Ints | None = None, lesson: Ints | None = None) -> Floats:
    """What each row's outcome may be guessed to be from the rows before it; within the range of outcomes and 0.5.

    The mean of its cluster so far, drawn towards the mean over the lessons that were up for showing (whatever was then
    drawn for them), and that towards the mean of everything so far. Neither the row's own outcome nor its own draws
    have a part in it, which is what lets it be subtracted from the outcome without harm to any guarantee.

    Args:
        outcome: (n,), in the order in which they became known.
        cluster: (n,): tasks that resemble each other share a number.
        row: (k,): the row of each pair, ascending; without pairs, lessons have no say.
        lesson: (k,): the lesson of each pair, at most once in a row.
    """
    count = np.arange(len(outcome))
    overall = (np.cumsum(outcome) - outcome + _FIRST) / (count + 1.0)
    if row is not None and lesson is not None and len(row):
        overall = _by_lessons(outcome, overall, row, lesson)
    return _means_before(outcome, overall, cluster, strength=_CLUSTER_STRENGTH)


def _by_lessons(outcome: Floats, overall: Floats, row: Ints, lesson: Ints) -> Floats:
    """(n,): the mean over a row's lessons of each one's mean so far; `overall` for a row without lessons."""
    means = _means_before(outcome[row], overall[row], lesson, strength=_LESSON_STRENGTH)
    pairs = np.bincount(row, minlength=len(outcome))
    total = np.bincount(row, means, len(outcome))
    return np.where(pairs > 0, total / np.maximum(pairs, 1), overall)


def _means_before(values: Floats, prior: Floats, group: Ints, *, strength: float) -> Floats:
    """For each value the mean of the earlier ones of its group, as if `strength` of them had been `prior`."""
    order, counts = _by_group(group)
    ordered = values[order]
    sums = np.cumsum(ordered)
    sums -= ordered
    starts = np.cumsum(counts) - counts
    filled = counts > 0
    rank = np.arange(len(values), dtype=np.float64) - np.repeat(starts, counts)
    sums -= np.repeat(sums[starts[filled]], counts[filled])
    means = np.empty(len(values))
    means[order] = (sums + strength * prior[order]) / (rank + strength)
    return means


def compact(keys: Ints, size: int, /) -> tuple[Ints, Ints]:
    """The keys that there are, ascending, and by row the place of its own; `size` is above every key.

    As `numpy.unique` with its inverse, without a sort where a table of all keys is about as long as the rows.
    """
    if size > 4 * len(keys) + 1024:
        found, at = np.unique(keys, return_inverse=True)
        return found, at
    found = np.flatnonzero(np.bincount(keys, minlength=size))
    place = np.zeros(size, np.int64)
    place[found] = np.arange(len(found))
    return found, place[keys]


def _by_group(group: Ints) -> tuple[Ints, Ints]:
    """The positions sorted by group, earlier ones first, and how many there are of each."""
    if len(group) and (group.min() < 0 or group.max() > 4 * len(group)):
        group = np.unique(group, return_inverse=True)[1].astype(np.int64)
    counts = np.bincount(group)
    narrow = group.astype(np.uint16) if len(counts) <= 2**16 else group  # numpy sorts short integers by radix
    return np.argsort(narrow, kind="stable"), counts

"""A guess of each outcome made from earlier ones only, so that what a task's difficulty explains is no noise."""

from __future__ import annotations

import numpy as np

from .episodes import Flags, Floats, Ints

_FIRST = 0.5
_LESSON_STRENGTH = 10.0
_CLUSTER_STRENGTH = 4.0
_NO_PAIRS: Ints = np.empty(0, np.int64)


def guesses(outcome: Floats, cluster: Ints, row: Ints = _NO_PAIRS, lesson: Ints = _NO_PAIRS, /) -> Floats:
    """(n,): within the range of outcomes and 0.5. `outcome` is in the order of recalls; `nan` is part of no guess.

    The mean of its cluster so far, drawn towards the mean over the lessons that were up for showing (whatever was then
    drawn for them), and that towards the mean of everything so far. Neither the row's own outcome nor its own draws
    have a part in it, which is what lets it be subtracted from the outcome without harm to any guarantee.

    Args:
        outcome: (n,).
        cluster: (n,): tasks that resemble each other share a number.
        row: (k,): the row of each pair, ascending; without pairs, lessons have no say.
        lesson: (k,): the lesson of each pair, at most once in a row.
    """
    known = ~np.isnan(outcome)
    value, before = outcome, np.arange(len(outcome))
    if not known.all():
        value, before = np.where(known, outcome, 0.0), np.cumsum(known) - known
    overall = (np.cumsum(value) - value + _FIRST) / (before + 1.0)
    if len(row):
        means = _means_before(lesson, value[row], known[row], overall[row], strength=_LESSON_STRENGTH)
        pairs, total = np.bincount(row, minlength=len(outcome)), np.bincount(row, means, len(outcome))
        overall = np.where(pairs > 0, total / np.maximum(pairs, 1), overall)
    return _means_before(cluster, value, known, overall, strength=_CLUSTER_STRENGTH)


def rank_in_group(group: Ints, /) -> Ints:
    """By row: how many there are of its group before it."""
    order, first = _sorted(group)
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - first
    return rank


def _sorted(group: Ints) -> tuple[Ints, Ints]:
    """The rows sorted by group, earlier ones first; and for each, in this order, where its group begins."""
    if len(group) and (group.min() < 0 or group.max() > 4 * len(group)):
        group = np.unique(group, return_inverse=True)[1]
    counts = np.bincount(group)
    narrow = group.astype(np.uint16) if len(counts) <= 2**16 else group  # numpy sorts short integers by radix
    return np.argsort(narrow, kind="stable"), np.repeat(np.cumsum(counts) - counts, counts)


def _means_before(group: Ints, values: Floats, counted: Flags, prior: Floats, /, *, strength: float) -> Floats:
    """For each value the mean of the earlier counted ones of its group, as if `strength` had been `prior`.

    What is not counted is zero.
    """
    order, first = _sorted(group)
    sums = _before(values[order], first)
    sums += strength * prior[order]
    every = counted.all()
    sums /= strength + (np.arange(len(first)) - first if every else _before(counted[order].astype(float), first))
    means = np.empty(len(values))
    means[order] = sums
    return means


def _before(ordered: Floats, first: Ints) -> Floats:
    """The sum of the earlier ones of each one's group."""
    sums = np.cumsum(ordered)
    sums -= ordered
    sums -= sums[first]
    return sums


def compact(keys: Ints, size: int, /) -> tuple[Ints, Ints]:
    """The keys that there are, ascending, and by row the place of its own; `size` is above every key.

    As `numpy.unique` with its inverse, without a sort where a table of all keys is about as long as the rows.
    """
    if size > 4 * len(keys) + 1024:
        distinct_keys, at = np.unique(keys, return_inverse=True)
        return distinct_keys, at
    distinct_keys = np.flatnonzero(np.bincount(keys, minlength=size))
    place = np.zeros(size, np.int64)
    place[distinct_keys] = np.arange(len(distinct_keys))
    return distinct_keys, place.take(keys)

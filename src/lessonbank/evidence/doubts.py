"""Signs that outcomes were joined with the wrong recalls, or with some of them only: what the report warns of."""

from __future__ import annotations

import numpy as np

from lessonbank._counting import counted

from .episodes import Episodes, Flags, Floats, Ints

_AGAIN = 3600.0
"""Seconds within which another recall of the same task is taken for another try at it."""
_FEW = 0.01
_ELSEWHERE = (
    "recall was settled by a run of another task than it was made for",
    "recalls were settled by runs of another task than they were made for",
)


def superseded(task: Ints, at: Floats, known: Flags, /) -> int:
    """How many recalls have no outcome although a later one of the same task has: tries before the last one.

    Args:
        task: (n,): equal tasks share a number.
        at: (n,): when each recall was made, in seconds.
        known: (n,): which have an outcome.
    """
    order = np.lexsort((at, task))
    task, at, known = task[order], at[order], known[order]
    place = np.where(known, np.arange(len(order)), len(order))
    following = np.minimum.accumulate(place[::-1])[::-1]
    open_ = np.flatnonzero(~known & (following < len(order)))
    later = following[open_]
    return int(((task[later] == task[open_]) & (at[later] - at[open_] <= _AGAIN)).sum())


def doubts(episodes: Episodes, /) -> tuple[str, ...]:
    """One sentence for each sign that there is."""
    notes, few = list[str](), max(2.0, _FEW * len(episodes))
    if (tries := episodes.superseded) > few:
        notes.append(
            f"only the last try counts: {tries} recalls have no outcome, and the same task was tried again within an "
            "hour and has one. Effects look smaller than they are: hand every try to learn, also those that failed"
        )
    if others := episodes.another_task:
        notes.append(
            f"another task: {counted(others, *_ELSEWHERE)}; hand each run to learn with the recall that it used"
        )
    return tuple(notes)

"""The best tasks of one scope by their words: the sums of all at once, and the best scored as in every store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from heapq import nlargest
from typing import Any, Final, TypeAlias

import numpy as np

from lessonbank.text.bm25 import K1, B, bounds, full_score, scores

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Places: TypeAlias = Array
"""The tasks that hold a word: the `number` of each, how many `times` it holds it, and how many `words` it has."""
Look: TypeAlias = Callable[[Sequence[int]], Mapping[int, int]]
"""Of tasks by their numbers, the best first, those that may be found, each with its time."""
_MORE: Final = 32
"""Tasks looked at beyond the limit: not every one may be found."""


def best_tasks(
    asked: Sequence[str], places: Mapping[str, Places], look: Look, /, *, documents: int, total: int, limit: int
) -> list[tuple[float, int, int]]:
    """Score, time and number of the best tasks, best first; of very many equal ones, those that came last.

    `places` has every task of the scope with one of the words; `documents` tasks with `total` words are in the scope.
    """
    if not documents or not any(map(len, places.values())):
        return []
    sums = _sums(asked, places, documents=documents, total=total)
    (numbers,), most = sums.nonzero(), limit + _MORE
    shares = np.round(sums[numbers], 9)
    while True:
        least = np.partition(shares, -most)[-most] if most < len(numbers) else 0.0
        top = np.flatnonzero(shares >= least)[::-1]
        known = look(numbers[top[np.argsort(-shares[top], kind="stable")][:most]].tolist())
        if len(known) >= limit or most >= len(numbers):
            break
        most *= 4
    wanted = np.isin(np.arange(len(sums)), [*known])
    there = {word: held[wanted[held["number"]]].tolist() for word, held in places.items()}
    task_scores = scores(
        asked,
        {word: {number: times for number, times, _ in rows} for word, rows in there.items()},
        {number: length for rows in there.values() for number, _, length in rows},
        documents=documents,
        total=total,
        holders={word: len(held) for word, held in places.items()},
    )
    return nlargest(limit, ((score, known[number], number) for number, score in task_scores.items()))


def _sums(asked: Sequence[str], places: Mapping[str, Places], *, documents: int, total: int) -> Array:
    """What each task adds up to, by its number, as a share of the question's own sum."""
    most = bounds(asked, {word: len(held) for word, held in places.items()}, documents=documents)
    sums = np.zeros(1 + max(int(held["number"].max()) for held in places.values() if len(held)))
    for word, held in places.items():
        drag = K1 * (1 - B) + K1 * B * documents / max(total, 1) * held["words"]
        sums[held["number"]] += most[word] * held["times"] / (held["times"] + drag)
    return np.minimum(sums / full_score(Counter(asked), most, documents=documents, total=total), 1.0)

"""Effects that differ between tasks, and lessons that say the same: how often they are found, and found wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar

import numpy as np

from lessonbank.evidence.redundancy import Together, together
from lessonbank.evidence.sequences import outcomes, scores
from lessonbank.evidence.splits import differences
from lessonbank_bench.measure.streams import Pure, Stream, making, play

from .reaching import trial_periods
from .sampling import Sampling, told
from .table import Row, counted

_RUNS, _TASKS = 200, 3000
Make: TypeAlias = "Callable[[int, int], Stream]"
T = TypeVar("T")


def rows(sampling: Sampling, /) -> list[Row]:
    """What is looked at once, after 3,000 tasks."""
    seeds = sampling.seeds(_RUNS)
    on = f"{len(seeds)} runs of {_TASKS} tasks, one look at the end, {told(seeds)}"
    opposite = _ended(making.opposite, seeds, differing)
    plain = _ended(making.grouped_nulls, seeds, lambda bank: (differing(bank), _sets(bank)))
    twins = _ended(making.twins, seeds, _same)
    return [
        counted(
            "+20 on one template, −20 on another: said to differ",
            ["lesson-0" in units for units in opposite],
            on=on,
            beside=(
                (
                    "of a lesson that does nothing",
                    100 * float(np.mean([bool(units - {"lesson-0", "*"}) for units in opposite])),
                ),
            ),
        ),
        counted(
            "nothing has an effect (5 topics): any effect said to differ",
            [bool(units) for units, _ in plain],
            on=on,
            most=5.0,
        ),
        counted("three lessons, any one of which adds 20: said to say the same", twins, on=on),
        counted(
            "nothing has an effect (5 topics): any lessons said to go together",
            [bool(sets) for _, sets in plain],
            on=on,
        ),
    ]


def _ended(make: Make, seeds: range, look: Callable[[Pure], T]) -> list[T]:
    """What is seen of a bank at the end of each run. No bank is kept: each has 35 MB."""
    found: list[T] = []
    for seed in seeds:
        stream = make(_TASKS, seed)
        bank = Pure(stream, trial_periods(f"{seed}"), truth=False)
        play(stream, bank)
        bank.review()
        found.append(look(bank))
    return found


def differing(bank: Pure, /) -> set[str]:
    """The units whose effects differ between templates, as is said of them."""
    episodes = bank.reviews[-1].episodes
    every = scores(episodes, outcomes(episodes))
    return {episodes.units[one.unit] for one in differences(every, episodes.cluster[every.row]) if one.differs}


def _sets(bank: Pure) -> list[Together]:
    episodes = bank.reviews[-1].episodes
    found, residual = outcomes(episodes), np.full(len(episodes), np.nan)
    residual[found.rows] = found.change
    parents = [episodes.parents[unit] for unit in range(len(episodes.units))]
    return [one for one in together(episodes.draws, episodes.placed, parents, residual) if one.says]


def _same(bank: Pure) -> bool:
    units = bank.reviews[-1].episodes.units
    return any(
        {units[n] for n in one.lessons} == {"lesson-0", "lesson-1", "lesson-2"} and one.says == "same"
        for one in _sets(bank)
    )

"""How well anybody could rank the lessons: an estimator that is told everything but the one thing asked."""

from __future__ import annotations

import numpy as np

from .columns import Floats, Ints
from .playing import Run
from .world import World


def oracle(world: World, run: Run, /) -> Floats:
    """The expected effect of each lesson for one who knows the base rate of every task, what all other lessons do,
    which effects were planted how often, and how every run truly ended, shape (N,).

    Nothing that learns from these episodes can rank better on average: it is the bound beside an estimate that falls
    short. It is for worlds whose lessons do the same in every family and do not interact.
    """
    pairs, hidden = run.episodes.pairs, run.hidden
    shown = ~pairs.withheld & ~run.episodes.control[pairs.row]
    row, lesson, when = pairs.row[shown], pairs.lesson[shown], run.when
    adds = world.tasks.effect[world.tasks.template[hidden.task[when[row]]], lesson]
    total = hidden.chance_of_nothing[when] + np.bincount(row, weights=adds, minlength=len(when))
    values, times = np.unique(world.families.effect[0].round(9), return_counts=True)
    rest, won = total[row] - adds, hidden.outcome[when[row]] > 0
    logs = [_log_likelihood(world, np.clip(rest + value, *world.bounds), won, lesson) for value in values]
    weighed = np.array(logs) + np.log(times)[:, None]
    odds = np.exp(weighed - weighed.max(axis=0))
    return values @ (odds / odds.sum(axis=0))


def _log_likelihood(world: World, chance: Floats, won: np.ndarray, lesson: Ints) -> Floats:
    return np.bincount(lesson, weights=np.log(np.where(won, chance, 1.0 - chance)), minlength=world.lessons)

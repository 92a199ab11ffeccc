"""However often one looks: does the sequence hold the truth at every moment?"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lessonbank.evidence._e_process import Scores, gains_by_cell, least_effect
from lessonbank.evidence.confidence_sequences import outcomes, scores
from lessonbank_bench.measure.simulator import Episodes, Run, Scatter, World, play

from .sampling import Sampling, told
from .table import Row, averaged, counted

Floats = NDArray[np.float64]
_RUNS, _RUNS_OF_LESSONS, _EPISODES = 400, 200, 2000
_LEVEL = 0.95
_FEW = 5
"""Recalls on a side below which the usual interval is boundless."""


def rows(sampling: Sampling, /) -> list[Row]:
    """Coverage at every moment."""
    return [
        whole_covered(sampling.seeds(_RUNS, least=4)),
        lessons_covered(sampling.seeds(_RUNS_OF_LESSONS, least=2)),
    ]


def whole_covered(seeds: range, /) -> Row:
    """The share of sequences of memory as a whole that hold, after every outcome, the average lift so far."""
    held = [_whole(play(_world(seed), _EPISODES, withhold=0.0, control=0.3, seed=seed)) for seed in seeds]
    sound, usual = map(list, zip(*held, strict=True))
    beside = (("the usual interval, looked at as often", 100 * float(np.mean(usual))),)
    on = f"{len(seeds)} runs of {_EPISODES} episodes, a look after every outcome, {told(seeds)}"
    claim = "memory as a whole within its sequence at every moment: drift, clusters"
    return counted(claim, sound, on=on, least=95.0, beside=beside)


def lessons_covered(seeds: range, /) -> Row:
    """The same of lessons."""
    held = [float(np.mean(_each(_world(seed), _run(_world(seed), seed)))) for seed in seeds]
    on = f"{len(seeds)} runs of {_EPISODES} episodes, 10 lessons, a look after every outcome, {told(seeds)}"
    claim = "a lesson within its sequence at every moment: drift, clusters"
    return averaged(claim, held, on=on, least=95.0)


@lru_cache(maxsize=4)
def _world(seed: int) -> World:
    """Tasks that get harder and easier, templates in which lessons do more or less."""
    scatter = Scatter(templates=20, tasks=3, difficulty=0.1, effects=0.05)
    return World.draw(seed, lessons=10, families=3, drift=0.1, scatter=scatter)


def _run(world: World, seed: int) -> Run:
    return play(world, _EPISODES, withhold=0.3, control=0.1, seed=seed)


def _scores(run: Run, treatment: int) -> Scores:
    """What the ledger looks at: of memory as a whole (0), or of a lesson (1 and on)."""
    episodes = run.episodes.as_evidence()
    every = scores(episodes, outcomes(episodes))
    own = every.where(every.group == treatment)
    return replace(own, group=np.zeros(len(own), np.int64), groups=1, bold=every.bold[treatment : treatment + 1])


def _path(own: Scores) -> tuple[Floats, Floats]:
    """The bounds of one treatment as they stood after each of its scores."""
    each = gains_by_cell(replace(own, group=np.arange(len(own)), groups=len(own), bold=np.empty(0)))
    up, down, scale = (np.cumsum(made[0], axis=0) for made in (each.up, each.down, each.scale))
    bets = own.log_prior(np.minimum.accumulate(own.lowest), np.maximum.accumulate(own.highest))
    bar = np.full(len(own), math.log(2 / (1 - _LEVEL)))
    return least_effect(up + bets[0], scale, threshold=bar), -least_effect(down + bets[1], scale, threshold=bar)


def _drawn(run: Run, treatment: int) -> tuple[NDArray[np.integer[Any]], Floats]:
    """The recalls that tell something of it, and what each counts in the truth: chance (1 - chance)."""
    draws = run.episodes.as_evidence().draws
    own = draws.treatment == treatment
    return draws.row[own], draws.chance[own] * (1 - draws.chance[own])


def _whole(run: Run) -> tuple[bool, bool]:
    """Whether the sequence holds the average lift so far throughout, and whether the usual interval does.

    Where nothing else is withheld, the lift of a recall is what all that was found adds.
    """
    own, hidden, when = _scores(run, 0), run.hidden, run.when
    lift = (hidden.chance_of_everything - hidden.chance_of_nothing)[when]
    row, weight = _drawn(run, 0)
    so_far = _average(lift[row], weight)
    low, high = _path(own)
    return _inside(so_far, low, high), _inside(so_far, *_usual(run.episodes))


def _usual(episodes: Episodes) -> tuple[Floats, Floats]:
    """A difference of means with 1.96 standard errors, after every outcome; boundless while there are few."""
    difference, error = _compared(episodes)
    return difference - 1.96 * error, difference + 1.96 * error


def _compared(episodes: Episodes) -> tuple[Floats, Floats]:
    control, outcome = episodes.control, episodes.outcome
    m, n = np.cumsum(control), np.cumsum(~control)
    lost, won = np.cumsum(outcome * control), np.cumsum(outcome * ~control)
    few = np.minimum(m, n) < _FEW
    m, n = np.maximum(m, 1), np.maximum(n, 1)
    mean = (won + lost) / (m + n)
    error = np.sqrt(mean * (1 - mean) * (1 / m + 1 / n))
    return won / n - lost / m, np.where(few, np.inf, error)


def _each(world: World, run: Run) -> list[bool]:
    adds, held = _adds(world, run), list[bool]()
    pairs = run.episodes.pairs
    for lesson in range(world.lessons):
        own = _scores(run, lesson + 1)
        low, high = _path(own)
        by_row = np.zeros(len(run.episodes))
        mine = pairs.lesson == lesson
        by_row[pairs.row[mine]] = adds[mine]
        row, weight = _drawn(run, lesson + 1)
        held.append(_inside(_average(by_row[row], weight), low, high))
    return held


def _adds(world: World, run: Run) -> Floats:
    """What showing a lesson adds in a recall, given what else is drawn there: one entry per pair."""
    pairs, hidden = run.episodes.pairs, run.hidden
    adds = world.tasks.effect[world.tasks.template[hidden.task[run.when[pairs.row]]], pairs.lesson]
    total = hidden.chance_of_nothing[run.when] + np.bincount(pairs.row, adds * ~pairs.withheld, len(run.episodes))
    rest = total[pairs.row] - adds * ~pairs.withheld
    return np.clip(rest + adds, *world.bounds) - np.clip(rest, *world.bounds)


def _average(values: Floats, weight: Floats) -> Floats:
    return np.cumsum(values * weight) / np.cumsum(weight)


def _inside(so_far: Floats, low: Floats, high: Floats) -> bool:
    return bool(np.all((low <= so_far + 1e-9) & (so_far <= high + 1e-9)))

"""The planted world through a real bank: does what it says of its lessons agree with what was planted?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lessonbank_bench.measure.simulator import World, drive, planted_bank
from lessonbank_bench.measure.streams import making
from lessonbank_bench.measure.streams.real import beside

from .sampling import Sampling, told
from .table import Row, averaged

_SEEDS, _EPISODES, _SIZE, _AGREEING = 4, 1500, 0.3, 300


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What a bank says of its lessons after a run."""

    agree: float
    """Of the lessons that help or harm, the share whose expected effect has the planted sign."""
    decided: float
    """Of the same, the share of which the bank says that they help or harm, or that it took back."""
    wrong: int
    """Lessons of which it says what is not so."""
    along: int = 0
    """Lessons that do no harm, of which it says nothing, and that were taken back with their group."""


def rows(sampling: Sampling, /) -> list[Row]:
    """Signs, verdicts and false verdicts, of the bank's own report."""
    seeds, episodes = sampling.seeds(_SEEDS, least=1), sampling.size(_EPISODES)
    found = [driven(seed, episodes) for seed in seeds]
    on = f"{told(seeds)}, {episodes} tasks each, 12 lessons: a third adds 30 points, a third takes as many away"
    return [
        averaged("a real bank: planted signs found", [one.agree for one in found], on=on, least=90.0),
        averaged("a real bank: lessons that help or harm and are said to", [one.decided for one in found], on=on),
        Row(
            claim="a real bank: verdicts that are not so",
            value=sum(one.wrong for one in found),
            most=0.0,
            unit="",
            on=on,
            beside=(("lessons without harm that went with a harmful group", float(sum(one.along for one in found))),),
        ),
        *map(agreement, seeds),
    ]


def agreement(seed: int, /, *, tasks: int = _AGREEING) -> Row:
    """By how much values and bounds of a bank's report differ from those of the simulator's columns, at most."""
    lift, found, straight = beside(making.mixed(tasks, seed))
    treatments = straight.episodes().treatments
    told = {"*": lift.success} | {one.lesson_id: one.success for one in lift.lessons}
    off = 0.0
    for treatment, estimate in told.items():
        place = treatments.index(treatment)
        ours = found.effects.estimate[place], found.low[place], found.high[place]
        theirs = estimate.value, estimate.always_low, estimate.always_high
        off = max([off, *(abs(a - b) for a, b in zip(ours, theirs, strict=True) if b is not None)])
    return Row(
        claim="a real bank: its report beside a review of the simulator's own columns, the largest difference",
        value=100 * float(off),
        most=0.05,
        unit=" points",
        on=f"{tasks} tasks, six lessons, seed {seed}",
    )


def driven(seed: int, episodes: int, /) -> Verdicts:
    """A world with large effects, put through a bank that may act, and the bank's report on it."""
    world = World.draw(seed, lessons=12, families=4, helpful=1 / 3, harmful=1 / 3, size=_SIZE, candidates=3)
    with planted_bank(world, seed=seed, holdout=0.3) as bank:
        drive(world, episodes, bank, seed=seed)
        lift = bank.lift()
    planted = dict(zip(world.names, world.families.effect[0], strict=True))
    said = {"helps": 1, "likely helps": 1, "no evidence yet": 0, "likely harms": -1, "harms": -1}
    acting = [lesson for lesson in lift.lessons if planted[lesson.lesson_id]]
    verdicts = {lesson.lesson_id: said[lesson.standing] for lesson in lift.lessons}
    gone = {lesson.lesson_id for lesson in lift.lessons if lesson.retired}
    return Verdicts(
        agree=float(np.mean([(lesson.success.value or 0.0) * planted[lesson.lesson_id] > 0 for lesson in acting])),
        decided=float(np.mean([verdicts[one.lesson_id] != 0 or one.retired for one in acting])),
        wrong=sum(verdict not in (0, np.sign(planted[id])) for id, verdict in verdicts.items()),
        along=sum(verdicts[id] == 0 and planted[id] >= 0 for id in gone),
    )

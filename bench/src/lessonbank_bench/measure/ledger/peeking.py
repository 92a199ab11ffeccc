"""However often one looks: does the sequence hold the truth at every moment, and is nothing said where nothing is?"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache

import numpy as np

from lessonbank.evidence.episodes import Episodes, Flags, Floats
from lessonbank.evidence.estimates import ENOUGH
from lessonbank.evidence.review import Rates, review
from lessonbank.evidence.sequences import Scores, e_bh, lesson_scores, log_e, overall_scores, path
from lessonbank_bench.measure.simulator import Run, Scatter, Standing, World, play, stream

from .sampling import Sampling, told
from .table import Row, averaged, counted

_RUNS, _RUNS_OF_LESSONS, _RUNS_ADAPTING, _NULL_RUNS, _LONG_RUNS = 1000, 200, 60, 10_000, 300
_EPISODES, _NULL_EPISODES, _LONG = 2000, 500, 5000
_LOOKS = 12
"""At all lessons together; at each alone, and at memory as a whole, it is after every outcome."""


def rows(sampling: Sampling, /) -> list[Row]:
    """Coverage at every moment, and what is said where no lesson does anything."""
    return [
        whole_covered(sampling.seeds(_RUNS, least=4)),
        lessons_covered(sampling.seeds(_RUNS_OF_LESSONS, least=2)),
        lessons_covered(sampling.seeds(_RUNS_ADAPTING, least=1), adapting=True),
        *null(sampling.seeds(_NULL_RUNS, least=12), _NULL_EPISODES),
        *null(sampling.seeds(_LONG_RUNS, least=2), _LONG, lessons=False),
    ]


def whole_covered(seeds: range, /) -> Row:
    """The share of sequences of memory as a whole that hold, after every outcome, the average lift so far."""
    held = [_whole(play(_world(seed), _EPISODES, withhold=0.0, control=0.3, seed=seed)) for seed in seeds]
    sound, usual = map(list, zip(*held, strict=True))
    beside = (("the usual interval, looked at as often", 100 * float(np.mean(usual))),)
    on = f"{len(seeds)} runs of {_EPISODES} episodes, a look after every outcome, {told(seeds)}"
    claim = "memory as a whole within its sequence at every moment: drift, clusters"
    return counted(claim, sound, on=on, least=95.0, beside=beside)


def lessons_covered(seeds: range, /, *, adapting: bool = False) -> Row:
    """The same of lessons."""
    held = [float(np.mean(_each(_world(seed), _run(_world(seed), seed, adapting)))) for seed in seeds]
    how = "probabilities follow the evidence" if adapting else "fixed probabilities"
    on = f"{len(seeds)} runs of {_EPISODES} episodes, 10 lessons, a look after every outcome, {told(seeds)}"
    claim = f"a lesson within its sequence at every moment: drift, clusters, {how}"
    return averaged(claim, held, on=on, least=95.0)


@lru_cache(maxsize=4)
def _world(seed: int) -> World:
    """Tasks that get harder and easier, templates in which lessons do more or less."""
    scatter = Scatter(templates=20, tasks=3, difficulty=0.1, effects=0.05)
    return World.draw(seed, lessons=10, families=3, drift=0.1, scatter=scatter)


def _run(world: World, seed: int, adapting: bool) -> Run:
    if not adapting:
        return play(world, _EPISODES, withhold=0.3, control=0.1, seed=seed)
    start = Standing.of(world.lessons, withhold=0.1, control=0.1)
    return stream(world, _EPISODES, _following, every=100, start=start, seed=seed)


def _following(episodes: Episodes) -> Standing:
    found = review(episodes, rates=Rates())
    return Standing(found.withhold, found.control, np.zeros(len(found.withhold), bool))


def _whole(run: Run) -> tuple[bool, bool]:
    """Whether the sequence holds the average lift so far throughout, and whether the usual interval does.

    Where nothing else is withheld, the lift of a recall is what all that was found adds.
    """
    scores, hidden, when = overall_scores(run.episodes), run.hidden, run.when
    lift = (hidden.chance_of_everything - hidden.chance_of_nothing)[when]
    so_far = _average(lift, scores.scale)
    low, high = path(scores, at=np.arange(1, len(scores) + 1))
    return _inside(so_far, low, high), _inside(so_far, *_usual(run.episodes))


def _usual(episodes: Episodes) -> tuple[Floats, Floats]:
    """A difference of means with 1.96 standard errors, after every outcome; boundless while there are few."""
    difference, error = _compared(episodes)
    return difference - 1.96 * error, difference + 1.96 * error


def _compared(episodes: Episodes) -> tuple[Floats, Floats]:
    control, outcome = episodes.control, episodes.outcome
    m, n = np.cumsum(control), np.cumsum(~control)
    lost, won = np.cumsum(outcome * control), np.cumsum(outcome * ~control)
    few = np.minimum(m, n) < ENOUGH
    m, n = np.maximum(m, 1), np.maximum(n, 1)
    mean = (won + lost) / (m + n)
    error = np.sqrt(mean * (1 - mean) * (1 / m + 1 / n))
    return won / n - lost / m, np.where(few, np.inf, error)


def _each(world: World, run: Run) -> list[bool]:
    scores, adds = lesson_scores(run.episodes), _adds(world, run)
    held = []
    for lesson in range(world.lessons):
        own = scores.group == lesson
        alone = only(scores, own)
        low, high = path(alone, at=np.arange(1, len(alone) + 1))
        held.append(_inside(_average(adds[own], alone.scale), low, high))
    return held


def _adds(world: World, run: Run) -> Floats:
    """What showing a lesson adds in a recall, given what else is shown there: one entry per score."""
    pairs, hidden, control = run.episodes.pairs, run.hidden, run.episodes.control
    shown = ~pairs.withheld & ~control[pairs.row]
    adds = world.tasks.effect[world.tasks.template[hidden.task[run.when[pairs.row]]], pairs.lesson]
    total = hidden.chance_of_nothing[run.when] + np.bincount(pairs.row, adds * shown, len(run.episodes))
    rest = total[pairs.row] - adds * shown
    changes = np.clip(rest + adds, *world.bounds) - np.clip(rest, *world.bounds)
    return changes[~control[pairs.row] & (pairs.probability > 0)]


def only(scores: Scores, own: Flags, /) -> Scores:
    """The scores of one group."""
    columns = {f.name: getattr(scores, f.name) for f in fields(scores)}
    kept = {name: value[own] for name, value in columns.items() if isinstance(value, np.ndarray)}
    return replace(scores, **kept | {"group": np.zeros(int(own.sum()), np.int64), "groups": 1})


def _average(values: Floats, weight: Floats) -> Floats:
    return np.cumsum(values * weight) / np.cumsum(weight)


def _inside(so_far: Floats, low: Floats, high: Floats) -> bool:
    return bool(np.all((low <= so_far + 1e-9) & (so_far <= high + 1e-9)))


def null(seeds: range, episodes: int, /, *, lessons: bool = True) -> list[Row]:
    """What is said in worlds where no lesson does anything."""
    told_of = [_nothing(seed, episodes, lessons=lessons) for seed in seeds]
    whole, naive, each, acted = map(list, zip(*told_of, strict=True))
    on = f"{len(seeds)} runs of {episodes} episodes, {told(seeds)}"
    beside = (("z test, looked at as often", 100 * float(np.mean(naive))),)
    first = counted(
        f"A/A, {episodes} episodes: memory as a whole ever said to help or to hurt, a look after every outcome",
        whole,
        on=on,
        most=5.0,
        beside=beside,
    )
    if not lessons:
        return [first]
    return [
        first,
        counted(
            f"A/A, {episodes} episodes: a lesson ever said to help or to hurt, a look after every outcome",
            each,
            on=on,
            most=5.0,
        ),
        counted(
            f"A/A, {episodes} episodes: anything ever taken back or trusted by itself (e-BH over lessons)",
            acted,
            on=f"{on}, {_LOOKS} looks at 6 lessons",
            most=5.0,
        ),
    ]


def _nothing(seed: int, episodes: int, *, lessons: bool) -> tuple[bool, bool, bool, bool]:
    """A run under half or a tenth withheld, in turns."""
    rate = 0.5 if seed % 2 else 0.1
    world = World.draw(seed, lessons=6, families=2, helpful=0.0, harmful=0.0, candidates=2)
    made = play(world, episodes, withhold=rate, control=rate, seed=seed).episodes
    difference, error = _compared(made)
    naive = bool(np.any(np.abs(difference) > 1.96 * error))
    whole = _says(overall_scores(made))
    if not lessons:
        return whole, naive, False, False
    scores = lesson_scores(made)
    return whole, naive, _says(only(scores, scores.group == seed % 6)), _acts(scores)


def _says(scores: Scores) -> bool:
    low, high = path(scores, at=np.arange(1, len(scores) + 1))
    return bool(np.any(low > 0) or np.any(high < 0))


def _acts(scores: Scores) -> bool:
    for end in np.linspace(0, len(scores), _LOOKS + 1)[1:].astype(int):
        now = replace(only(scores, np.arange(len(scores)) < end), group=scores.group[:end], groups=scores.groups)
        if any(e_bh(log_e(now, helps=helps), alpha=0.05).any() for helps in (False, True)):
            return True
    return False

"""Does an interval hold the truth as often as it says? Lessons and memory as a whole, however outcomes become known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lessonbank.evidence.review import Review, review
from lessonbank_bench.measure.simulator import Episodes, Judging, Scatter, Silence, Truth, World, simulate, truth

from .sampling import Sampling, told
from .table import Row, averaged, counted

Floats, Flags = NDArray[np.float64], NDArray[np.bool_]
_WORLDS, _EPISODES, _WITHHOLD, _CONTROL = 4, 3000, 0.3, 0.3
_REPLICATIONS, _POPULATION, _SAMPLE = 400, 3000, 100_000
_TRUTH, _EACH = "as if all labels were true", "as if no two tasks were alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How outcomes become known."""

    name: str
    judge: Judging | None = None
    drift: float = 0.0
    silence: Silence | None = None
    quiet: Silence | None = None
    """Outcomes of recalls that were withheld whole and are never told; `None`: no different."""
    bounds: tuple[float | None, float | None] = (93.0, 97.0)
    """Of the coverage of memory as a whole, in percent; `(None, None)`: told, a limit of what can be known."""
    of_lessons: tuple[float | None, float | None] | None = None
    """The same of lessons, where it differs."""


_LIMIT = (None, None)
SETTINGS = (
    Setting(name="the truth is told of every run"),
    Setting(name="base rates swing by 15 points", drift=0.15),
    Setting(name="a fifth of outcomes is missing, at random", silence=Silence(success=0.2, failure=0.2)),
    Setting(
        name="a judge errs (20 % of failures, 10 % of successes), 30 % checked",
        judge=Judging(false_success=0.2, false_failure=0.1, audited=0.3),
    ),
    Setting(
        name="a judge errs (20 % of failures, 10 % of successes), 10 % checked",
        judge=Judging(false_success=0.2, false_failure=0.1, audited=0.1),
    ),
    Setting(
        name="limit: a judge errs (20 % of failures, 10 % of successes), nothing checked (said to be by the judge)",
        judge=Judging(false_success=0.2, false_failure=0.1),
        bounds=_LIMIT,
    ),
    Setting(
        name="a judge errs more where memory was shown (15 / 30 % against 5 / 20 %), 30 % checked",
        judge=Judging(
            false_success=0.15, false_failure=0.3, bare_false_success=0.05, bare_false_failure=0.2, audited=0.3
        ),
    ),
    Setting(
        name="harmful lessons fool the judge (+15 % each), 30 % checked",
        judge=Judging(false_success=0.1, false_failure=0.1, fooled=0.15, audited=0.3),
    ),
    Setting(
        name="limit: a judge errs in 35 %, nothing checked (said to be by the judge)",
        judge=Judging(false_success=0.35, false_failure=0.35),
        bounds=_LIMIT,
    ),
    Setting(
        name="limit: a fifth of failures is never told, with memory or without",
        silence=Silence(failure=0.2),
        bounds=_LIMIT,
    ),
    Setting(
        name="limit: a fifth of failures is never told, with memory only",
        silence=Silence(failure=0.2),
        quiet=Silence(),
        bounds=_LIMIT,
    ),
)


def rows(sampling: Sampling, /, *, settings: Sequence[Setting] = SETTINGS) -> list[Row]:
    """Four rows for each setting: one look and always, lessons and memory as a whole."""
    sample, made = sampling.size(_SAMPLE), list[Row]()
    for setting in settings:
        wanted = _REPLICATIONS // 2 if setting.bounds == _LIMIT else _REPLICATIONS
        made += _of(setting, sampling.seeds(wanted, least=8), sample)
    return made


@dataclass(frozen=True, slots=True)
class _Held:
    """What one replication's intervals hold."""

    lessons: float
    """The share of lessons whose interval for one look holds the truth."""
    always: float
    """The same of the intervals that hold at any time."""
    whole: bool
    whole_always: bool
    naive: bool
    """Whether the interval of somebody holds it who takes labels for the truth, or where they are, tasks for alone."""
    off: float
    """The estimate of memory as a whole less the truth."""


def _of(setting: Setting, seeds: range, sample: int) -> list[Row]:
    held = [_held(setting, seed, sample) for seed in seeds]
    on = f"{len(seeds)} × {_EPISODES} episodes, 30 lessons, {told(seeds)}"
    beside = ((_TRUTH if setting.judge else _EACH, 100 * float(np.mean([one.naive for one in held]))),)
    (least, most), (low, high) = setting.bounds, setting.of_lessons or setting.bounds
    always, always_each = (None if bounds == _LIMIT else 95.0 for bounds in (setting.bounds, (low, high)))
    off = np.array([one.off for one in held])
    bias = ("bias of the whole, in points", 100 * float(off.mean()))
    whole = [one.whole_always for one in held]
    return [
        averaged(f"{setting.name}: one look, lessons", [one.lessons for one in held], on=on, least=low, most=high),
        averaged(f"{setting.name}: always-valid, lessons", [one.always for one in held], on=on, least=always_each),
        counted(
            f"{setting.name}: one look, memory as a whole",
            [one.whole for one in held],
            on=on,
            least=least,
            most=most,
            beside=(*beside, bias),
        ),
        counted(f"{setting.name}: always-valid, memory as a whole", whole, on=on, least=always),
    ]


def _held(setting: Setting, seed: int, sample: int) -> _Held:
    planted, world = population(seed % _WORLDS, setting.drift, sample), base(seed % _WORLDS, setting.drift)
    world = replace(world.renewed(seed), judge=setting.judge, silence=setting.silence or Silence())
    episodes = _played(world, setting, seed)
    true = np.array([planted.lift, *planted.lesson])
    found, plain = review(episodes.as_evidence()), review(_plain(episodes).as_evidence())
    once, always = _once(found, true), (found.low <= true) & (true <= found.high)
    return _Held(
        lessons=float(once[1:].mean()),
        always=float(always[1:].mean()),
        whole=bool(once[0]),
        whole_always=bool(always[0]),
        naive=bool(_once(plain, true)[0]),
        off=float(found.effects.estimate[0] - planted.lift),
    )


def _once(found: Review, true: Floats) -> Flags:
    return (found.effects.low <= true) & (true <= found.effects.high)


@lru_cache
def base(number: int, drift: float) -> World:
    """Families and lessons whose templates are drawn anew for each replication; templates differ in what lessons do."""
    scatter = Scatter(templates=40, tasks=3, difficulty=0.12, effects=0.08)
    return World.draw(number + 7, scatter=scatter, drift=drift)


@lru_cache
def population(number: int, drift: float, sample: int) -> Truth:
    """What is true of all the templates there could be."""
    many = base(number, drift).renewed(999, templates=_POPULATION)
    return truth(many, withhold=_WITHHOLD, sample=sample, horizon=_EPISODES)


def _plain(episodes: Episodes) -> Episodes:
    """What somebody makes of them who takes labels for the truth, or where they are, tasks for independent."""
    if not episodes.true[episodes.known].all():
        return replace(episodes, true=episodes.known)
    return replace(episodes, cluster=np.arange(len(episodes)))


def _played(world: World, setting: Setting, seed: int) -> Episodes:
    """Episodes, fewer of whose outcomes are told on one side where the setting says so."""
    if setting.quiet is None:
        return simulate(world, _EPISODES, withhold=_WITHHOLD, control=_CONTROL, seed=seed)
    episodes = simulate(replace(world, silence=Silence()), _EPISODES, withhold=_WITHHOLD, control=_CONTROL, seed=seed)
    there, bare = setting.silence or Silence(), setting.quiet
    chance = np.where(
        episodes.outcome > 0,
        np.where(episodes.control, bare.success, there.success),
        np.where(episodes.control, bare.failure, there.failure),
    )
    lost = np.random.default_rng((seed, 7)).random(len(episodes)) < chance
    return replace(episodes, outcome=np.where(lost, np.nan, episodes.outcome), true=episodes.true & ~lost)

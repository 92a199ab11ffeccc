"""A bank of which three lessons in ten do harm: what memory is worth when it acts on evidence, and when it does not."""

from __future__ import annotations

import numpy as np

from lessonbank.evidence.episodes import Episodes, Floats
from lessonbank.evidence.review import Rates, review
from lessonbank_bench.measure.simulator import Run, Standing, World, stream

from .sampling import Sampling, told
from .table import Row, averaged

_SEEDS, _EPISODES, _FROM, _WINDOW, _EVERY = 30, 3000, 1000, 500, 50
_START = 0.1
_RATES = Rates(usual=_START)


def rows(sampling: Sampling, /) -> list[Row]:
    """The lift from episode 1,000 on; with fewer helpful lessons, to see how much depends on them."""
    return [
        *poisoned(sampling.seeds(_SEEDS, least=2), helpful=0.2),
        *poisoned(sampling.seeds(_SEEDS, least=2), helpful=0.1),
    ]


def poisoned(seeds: range, /, *, helpful: float) -> list[Row]:
    """Success less that of the same tasks without memory, as the planted chances have it: in windows of 500 episodes
    averaged over seeds, the lowest of which counts; and of single seeds."""
    lifts = np.array([_lifts(seed, helpful) for seed in seeds])
    ours, naive, held, best = (lifts[:, arm] for arm in range(4))
    windows = ours[:, _FROM:].reshape(len(seeds), -1, _WINDOW).mean(axis=2)
    lowest = int(windows.mean(axis=0).argmin())
    on = f"{told(seeds)}, 30 lessons, 30 % take 15 points away, {helpful:.0%} add 15; episodes {_FROM}–{_EPISODES}"
    beside = (
        ("always shown", 100 * float(naive[:, _FROM:].mean())),
        ("10 % withheld and nothing done about it", 100 * float(held[:, _FROM:].mean())),
        ("the first 1,000 episodes", 100 * float(ours[:, :_FROM].mean())),
        ("bound: what harms is never shown", 100 * float(best[:, _FROM:].mean())),
    )
    name = f"poisoned bank, {helpful:.0%} of lessons help"
    whole = ours[:, _FROM:].mean(axis=1)
    return [
        averaged(
            f"{name}: lift in the lowest window", windows[:, lowest], on=on, least=-1.0, unit=" points", beside=beside
        ),
        Row(
            claim=f"{name}: lift of the worst seed, all windows",
            value=100 * float(whole.min()),
            on=on,
            unit=" points",
            least=-1.0,
            beside=(
                ("the next worst", 100 * float(np.sort(whole)[1])),
                ("always shown, the same seed", 100 * float(naive[whole.argmin(), _FROM:].mean())),
            ),
        ),
        averaged(
            f"{name}: lift where everything is always shown",
            naive[:, _FROM:].mean(axis=1),
            on=on,
            most=-5.0,
            unit=" points",
        ),
    ]


def _lifts(seed: int, helpful: float) -> list[Floats]:
    """Episode by episode: reviewed, always shown, withheld without consequence, and without what harms."""
    world = World.draw(seed, lessons=30, families=5, harmful=0.3, helpful=helpful, size=0.15)
    usual = Standing.of(world.lessons, withhold=_START, control=_START)
    knowing = Standing(np.zeros(world.lessons), 0.0, world.harmful)
    ours = stream(world, _EPISODES, reviewed, every=_EVERY, start=usual, seed=seed)
    held = stream(world, _EPISODES, None, every=_EVERY, start=usual, seed=seed)
    best = stream(world, _EPISODES, None, every=_EVERY, start=knowing, seed=seed)
    nothing = ours.hidden.chance_of_nothing
    return [_lift(ours), ours.hidden.chance_of_everything - nothing, _lift(held), _lift(best)]


def reviewed(episodes: Episodes, /) -> Standing:
    """What the ledger says holds next."""
    found = review(episodes, rates=_RATES)
    return Standing(found.withhold, found.control, found.harmful)


def _lift(run: Run) -> Floats:
    return run.hidden.chance - run.hidden.chance_of_nothing

"""Which lessons help and which harm: how well effects are ranked, and how many are found out, beside what others do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lessonbank.evidence.review import review
from lessonbank_bench.measure.simulator import (
    Episodes,
    Run,
    World,
    counters,
    oracle,
    play,
    q_learning,
    simulate,
    spearman,
    with_without,
)

from .sampling import Sampling, told
from .table import Row, averaged

Floats, Flags, Ints = NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]
_WITHHOLD, _SEEDS = 0.3, 200
_STAKES: Floats = np.geomspace(0.1, 5.0, 20)


def weighted_difference(episodes: Episodes, /) -> Floats:
    """By lesson: the mean outcome where it was shown less that where it was withheld, each recall weighted by one over
    the probability of what it got (Hajek 1971). Nothing is adjusted: a check on the ledger's own."""
    pairs = episodes.pairs
    use = (episodes.known & ~episodes.control)[pairs.row] & (pairs.probability > 0) & (pairs.probability < 1)
    lesson, shown, outcome = pairs.lesson[use], ~pairs.withheld[use], episodes.outcome[pairs.row[use]]
    weight = 1.0 / np.where(shown, 1.0 - pairs.probability[use], pairs.probability[use])
    means = [_mean(lesson[s], outcome[s], weight[s], len(episodes.lessons)) for s in (shown, ~shown)]
    return means[0] - means[1]


def _mean(lesson: Ints, outcome: Floats, weight: Floats, lessons: int) -> Floats:
    total = np.bincount(lesson, weights=weight, minlength=lessons)
    summed = np.bincount(lesson, weights=weight * outcome, minlength=lessons)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, summed / total, np.nan)


OTHERS = {
    "counters": counters,
    "with/without": with_without,
    "Q(.1)": q_learning,
    "plain weighted difference": weighted_difference,
}
"""What others do, from episodes to one score per lesson."""


def rows(sampling: Sampling, /) -> list[Row]:
    """Ranking at 2,000 and 5,000 episodes; what is flagged at 5,000."""
    seeds = sampling.seeds(_SEEDS, least=6)
    return [ranked(2000, seeds, least=0.75), ranked(5000, seeds), *flagged(seeds)]


def expected(episodes: Episodes, /) -> Floats:
    """What the ledger expects of each lesson."""
    return review(episodes.as_evidence()).expected.mean[1:]


def ranked(episodes: int, seeds: range, /, *, least: float | None = None) -> Row:
    """Spearman's correlation with the planted effects, of the ledger's expectation and of what others do."""
    ours, others = [], []
    for seed in seeds:
        world = World.credit(seed)
        run, planted = play(world, episodes, withhold=_WITHHOLD, control=0.0, seed=seed), world.families.effect[0]
        ours.append(spearman(expected(run.episodes), planted))
        scores = [score(run.episodes) for score in OTHERS.values()] + [oracle(world, run)]
        others.append([spearman(np.nan_to_num(score), planted) for score in scores])
    names = (*OTHERS, "bound: told all but the effect asked for")
    return averaged(
        f"ranking 30 lessons after {episodes} episodes, effects of ±15 points: Spearman",
        ours,
        on=f"{told(seeds)}, {_WITHHOLD:.0%} withheld",
        by=1.0,
        unit="",
        least=least,
        beside=tuple(zip(names, map(float, np.mean(others, axis=0)), strict=True)),
    )


def flagged(seeds: range, /, *, episodes: int = 5000) -> list[Row]:
    """The shares of harmful and of null lessons that are said to harm, in four ways."""
    found = [_found(seed, episodes) for seed in seeds]
    harm, null = (np.array([told[side] for told in found]) for side in (0, 1))
    on = f"{told(seeds)}, {episodes} episodes, {_WITHHOLD:.0%} withheld"
    (_, always, _, bound) = harm.mean(axis=0) * 100
    beside = ("reference: best single stake, chances known", float(bound))
    later = [
        (f"after {n} episodes", 100 * _at_any_time(seeds[: len(seeds) // 4 + 1], n))
        for n in (2 * episodes, 4 * episodes)
    ]
    ways = (
        ("by the interval for one look", 0, (85.0, 5.0), (("at any time", float(always)),)),
        ("as likely to harm, or as harming", 1, (85.0, 1.0), (beside, *later)),
        ("as harming, for sure: it is taken back", 2, (None, 5.0), (beside,)),
    )
    made = []
    for way, at, (least, most), others in ways:
        made.append(averaged(f"harmful lessons flagged {way}", harm[:, at], on=on, least=least, beside=others))
        made.append(averaged(f"null lessons flagged as harmful {way}", null[:, at], on=on, most=most))
    return made


def _at_any_time(seeds: range, episodes: int) -> float:
    """The share of harmful lessons that are likely to harm, or said to, after so many episodes."""
    worlds = [World.credit(seed) for seed in seeds]
    runs = [
        simulate(w, episodes, withhold=_WITHHOLD, control=0.0, seed=seed) for w, seed in zip(worlds, seeds, strict=True)
    ]
    flags = [_ways(made)[1] for made in runs]
    return float(np.mean([flag[w.harmful].mean() for w, flag in zip(worlds, flags, strict=True)]))


def _found(seed: int, episodes: int) -> tuple[list[float], list[float]]:
    world = World.credit(seed)
    run = play(world, episodes, withhold=_WITHHOLD, control=0.0, seed=seed)
    null = np.array([kind == "null" for kind in world.kinds])
    flags = [*_ways(run.episodes), _knowing(world, run) > np.log(40)]
    return [float(f[world.harmful].mean()) for f in flags], [float(f[null].mean()) for f in flags]


def _ways(episodes: Episodes) -> tuple[Flags, Flags, Flags]:
    found = review(episodes.as_evidence())
    said = np.array(found.standing[1:])
    return found.effects.high[1:] < 0, np.isin(said, ("likely harms", "harms")), said == "harms"


def _knowing(world: World, run: Run) -> Floats:
    """By lesson: the log of what one stake wins on harm, chosen afterwards for all lessons together, for somebody who
    knows each run's chances. A reference and no strict bound: a stake for each lesson could win somewhat more."""
    pairs, hidden = run.episodes.pairs, run.hidden
    adds = world.tasks.effect[world.tasks.template[hidden.task[run.when[pairs.row]]], pairs.lesson]
    shown = ~pairs.withheld
    total = hidden.chance_of_nothing[run.when] + np.bincount(pairs.row, adds * shown, len(run.episodes))
    rest, e = total[pairs.row] - adds * shown, 1.0 - pairs.probability
    low, high = world.bounds
    guess = (1 - e) * np.clip(rest + adds, low, high) + e * np.clip(rest, low, high)
    score = -(shown - e) * (run.episodes.outcome[pairs.row] - guess)
    harmful = world.harmful[pairs.lesson]
    won = [np.log(np.maximum(1 + stake * score, 1e-12)) for stake in _STAKES]
    best = max(won, key=lambda logs: float(logs[harmful].sum()))
    return np.bincount(pairs.lesson, best, world.lessons)

"""Trials in pairs: how many runs until an effect is shown, and how often one is shown where there is none."""

from __future__ import annotations

import numpy as np

from lessonbank.trials.design import Design, PairEvidence, TrialRun

from .sampling import Sampling, told
from .table import Row, counted

_TRIALS, _MOST, _BASE = 1000, 4000, 0.5
_REACH = {0.2: 76.0, 0.1: 152.0}
"""Runs to show an effect of this size with shared luck, at most, half of the time."""


def rows(sampling: Sampling, /) -> list[Row]:
    """Effects of 20 and of 10 points, with luck that a pair shares and with luck of each run's own; and none at all."""
    seeds, made = sampling.seeds(_TRIALS, least=20), list[Row]()
    on = f"{len(seeds)} trials, half of the runs without memory succeed, {told(seeds)}"
    for effect, most in _REACH.items():
        for name, shared in (("shared", True), ("its own for each run", False)):
            runs = np.array([trial(effect, seed, shared=shared)[0] for seed in seeds])
            middle, most_of = (float(np.percentile(runs, share)) for share in (50, 80))
            made.append(
                Row(
                    claim=f"a trial of +{100 * effect:g} points, luck {name}: runs until it is shown, the median",
                    value=middle,
                    most=most if shared else None,
                    unit=" runs",
                    on=on,
                    beside=(("four trials in five", most_of),),
                )
            )
    wrong = [trial(0.0, seed, shared=False, most=400)[1] for seed in seeds]
    return [*made, counted("a trial of nothing, 400 runs: an effect ever shown", wrong, on=on, most=5.0)]


def trial(effect: float, seed: int, /, *, shared: bool, most: int = _MOST) -> tuple[int, bool]:
    """After how many runs a trial stops, and whether an effect was shown."""
    g, evidence = np.random.default_rng((seed, 21)), PairEvidence(Design(max_runs=most, min_effect=0.0))
    for pair in range(most // 2):
        luck = g.random(2)
        chances = (_BASE + effect, _BASE)
        outcomes = [float(luck[0 if shared else arm] < chance) for arm, chance in enumerate(chances)]
        runs = [_run(pair, arm, outcome) for arm, outcome in zip(("with", "without"), outcomes, strict=True)]
        if evidence.take(runs) == "effect shown":
            return 2 * (pair + 1), True
    return most, False


def _run(pair: int, arm: str, outcome: float) -> TrialRun:
    return TrialRun.model_construct(
        task=f"{pair}", round=0, arm=arm, seed=pair, memory_digest="", outcome=outcome, proven=True
    )

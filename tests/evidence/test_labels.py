"""What is said of labels comes true: after so many of them the verdict arrives, eight times in ten."""

from __future__ import annotations

import numpy as np
import pytest

from lessonbank.evidence._bets import Scores, gains_by_cell, log_total, log_wealth
from lessonbank.evidence.labels import labels_needed

THRESHOLD = float(np.log(40))


def verdict(seed: int, pool: int, labels: int, effect: float, *, chance: float, right: float, trust: float) -> bool:
    """Whether so many labels, drawn at random, decide in one world where a judge is right so often."""
    draw = np.random.default_rng(seed)
    shown = draw.random(pool) < chance
    truth = (draw.random(pool) < 0.5 + effect * (shown - chance)).astype(float)
    said = np.where(draw.random(pool) < right, truth, 1 - truth)
    odds, guess = labels / pool, 0.5
    asked = draw.random(pool) < odds
    change = asked * (truth - guess) + (odds - asked) * trust * (said - guess)
    score, most = (shown - chance) * change, 0.5 * (1 + trust) * max(chance, 1 - chance)
    scale, bound = np.full(pool, chance * (1 - chance) * odds), np.full(pool, most)
    won = log_wealth(gains_by_cell(Scores(score, scale, -bound, bound, np.zeros(pool, np.int64), 1)))
    return float(log_total(won.up)[0]) >= THRESHOLD


@pytest.mark.full
@pytest.mark.parametrize(
    ("pool", "effect", "chance", "right"),
    [(1_500, 0.2, 0.8, 0.85), (3_000, 0.15, 0.8, 0.9), (800, 0.3, 0.7, 0.75), (4_000, 0.15, 0.9, 0.95)],
)
def test_after_the_labels_that_were_named_the_verdict_comes_eight_times_in_ten(
    pool: int, effect: float, chance: float, right: float
) -> None:
    trust = 2 * right - 1
    needed = labels_needed(
        pool=pool,
        labelled=0,
        weight=pool * chance * (1 - chance),
        effect=effect,
        spread=0.25,
        residual=0.25 * (1 - trust**2),
        reach=0.5 * (1 + trust) * max(chance, 1 - chance),
        threshold=THRESHOLD,
    )
    assert needed is not None
    told = {"chance": chance, "right": right, "trust": trust}
    came = np.mean([verdict(seed, pool, needed, effect, **told) for seed in range(120)])
    sooner = np.mean([verdict(seed, pool, max(needed // 3, 1), effect, **told) for seed in range(60)])
    assert 0.65 < came < 0.95
    assert sooner < came - 0.2


def test_labels_that_exist_count_and_a_pool_that_is_too_small_says_so() -> None:
    told = {"weight": 320.0, "effect": 0.25, "spread": 0.25, "residual": 0.08, "reach": 0.7, "threshold": THRESHOLD}
    first = labels_needed(pool=2_000, labelled=0, **told)
    assert first is not None
    assert labels_needed(pool=2_000, labelled=30, **told) == first - 30
    assert labels_needed(pool=2_000, labelled=first, **told) == 1
    assert labels_needed(pool=2_000, labelled=0, **(told | {"effect": 0.02})) is None
    assert labels_needed(pool=0, labelled=0, **told) is None

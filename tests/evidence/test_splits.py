"""An effect that is another one for other tasks is found, and no difference is found where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from planted import SEEDS

from lessonbank.evidence._bets import STAKES, Scores, log_total, tally, wealth
from lessonbank.evidence.episodes import Ints
from lessonbank.evidence.splits import ALPHA, LEAST, differences


def world(
    seed: int, size: int, effects: Any, *, base: Any = 0.5, chance: Any = 0.7, share: Any = None
) -> tuple[Scores, Ints]:
    """Scores of one unit on tasks of several parts; `effects`, `base` and `chance` are by part."""
    draw = np.random.default_rng(seed)
    parts = len(effects)
    part = draw.choice(parts, size, p=share)
    before, e = (np.broadcast_to(told, (parts,))[part] for told in (base, chance))
    shown = draw.random(size) < e
    outcome = (draw.random(size) < before + np.asarray(effects)[part] * shown).astype(float)
    guess = (np.cumsum(outcome) - outcome + 0.5) / (np.arange(size) + 1)
    lowest = -np.maximum((1 - e) * guess, e * (1 - guess))
    highest = np.maximum((1 - e) * (1 - guess), e * guess)
    score = (shown - e) * (outcome - guess)
    return Scores(score, e * (1 - e), lowest, highest, np.zeros(size, np.int64), 1), part


def test_twenty_points_up_on_some_tasks_and_down_on_others_are_found_and_each_is_told() -> None:
    found = [differences(*world(seed, 1_200, (0.2, -0.2)))[0] for seed in range(10)]
    assert sum(one.differs for one in found) >= 8
    for one in found:
        effects = {part.part: part for part in one.parts}
        assert effects[0].low <= 0.2 <= effects[0].high
        assert effects[1].low <= -0.2 <= effects[1].high
        assert sum(part.draws for part in one.parts) == 1_200


def test_the_part_that_stands_out_comes_first() -> None:
    found = [differences(*world(seed, 3_000, (0.0, 0.35, 0.0, 0.0)))[0] for seed in range(6)]
    assert [one.parts[0].part for one in found if one.differs] == [1] * 6


@pytest.mark.full
@pytest.mark.parametrize(
    "told",
    [
        {"effects": (0.15,) * 4},
        {"effects": (0.0,) * 3, "base": (0.1, 0.5, 0.9)},
        {"effects": (-0.2, -0.2), "chance": (0.5, 0.95)},
        {"effects": (0.1,) * 6, "share": (0.5, 0.3, 0.1, 0.05, 0.03, 0.02)},
    ],
)
def test_where_all_tasks_share_one_effect_no_difference_is_told_however_often_one_looks(told: dict[str, Any]) -> None:
    wrong, worth = 0, list[float]()
    for seed in range(20):
        scores, part = world(seed, 800, **told)
        looks = [differences(scores.where(np.arange(800) < size), part[:size]) for size in (100, 200, 400, 800)]
        wrong += any(one.differs for look in looks for one in look)
        worth.append(np.exp(looks[-1][0].log_e))
    assert wrong == 0
    assert np.mean(worth) < 1


@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_the_evidence_is_no_more_than_what_any_one_effect_for_all_tasks_leaves(seed: int) -> None:
    scores, part = world(seed, 300, (0.4, -0.4))
    (found,) = differences(scores, part)
    own, rest = (wealth(tally(scores.where(part == n))) for n in (0, 1))
    least = min(_bet(own, rest, effect) for effect in np.linspace(-1, 1, 201))
    assert -0.02 < found.log_e - least - np.log(1 / 3 + 1 / 6) < 1e-9


def _bet(own: Any, rest: Any, effect: float) -> float:
    shifts = STAKES * own.scale * effect, STAKES * rest.scale * effect
    above = log_total(own.up - shifts[0]) + log_total(rest.down + shifts[1])
    below = log_total(own.down + shifts[0]) + log_total(rest.up - shifts[1])
    return float(np.logaddexp(above, below)[0] - np.log(2))


def test_a_part_of_few_draws_is_not_looked_at_and_one_part_alone_is_no_comparison() -> None:
    scores, _ = world(1, 200, (0.0,))
    for rare in (0, LEAST - 1):
        part = (np.arange(200) < rare).astype(np.int64)
        assert differences(scores, part) == ()
    part = (np.arange(200) < LEAST).astype(np.int64)
    assert [sorted(one.part for one in found.parts) for found in differences(scores, part)] == [[0, 1]]
    assert differences(scores, np.full(200, -1)) == ()


def test_units_share_the_error_in_the_order_in_which_they_came_up() -> None:
    one, part = world(3, 600, (0.3, -0.3))
    many = 30
    names = ("score", "scale", "lowest", "highest")
    told = {name: np.tile(getattr(one, name), many) for name in names}
    scores = Scores(**told, group=np.repeat(np.arange(many), 600), groups=many)
    found = differences(scores, np.tile(part, many))
    assert [one.unit for one in found] == list(range(many))
    assert {round(one.log_e, 9) for one in found} == {round(found[0].log_e, 9)}
    first = [one.differs for one in found]
    assert first == sorted(first, reverse=True)
    thresholds = [(n + 20) * (n + 21) / 20 / ALPHA for n in range(many)]
    assert first == [found[0].log_e >= np.log(threshold) for threshold in thresholds]

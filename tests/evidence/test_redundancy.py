"""Lessons that say the same, that need each other, and that each do their part are told from one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from lessonbank.evidence.episodes import Flags, Floats, Ints
from lessonbank.evidence.redundancy import Together, together

WHOLE, LESSONS = 0, (1, 2, 3)


@dataclass(frozen=True)
class Columns:
    row: Ints
    unit: Ints
    shown: Flags
    chance: Floats


def world(
    seed: int, size: int, effect: tuple[float, ...], *, control: float = 0.2, held: float = 0.3
) -> tuple[Together, ...]:
    """Three lessons that are always found together; `effect` by how many of them are shown."""
    draw, control = np.random.default_rng(seed), 0.2
    whole = draw.random(size) >= control
    each = draw.random((size, 3)) >= held
    outcome = draw.random(size) < 0.4 + np.array(effect)[(each & whole[:, None]).sum(axis=1)]
    guess = (np.cumsum(outcome) - outcome + 0.5) / (np.arange(size) + 1)
    rows = [(n, WHOLE, bool(whole[n]), 1 - control) for n in range(size)]
    rows += [(n, 1 + k, bool(each[n, k]), 1 - held) for n in range(size) if whole[n] for k in range(3)]
    row, unit, shown, chance = (np.array(column) for column in zip(*sorted(rows), strict=True))
    everywhere = np.arange(size)
    placed = Columns(np.repeat(everywhere, 3), np.tile(LESSONS, size), np.empty(0, bool), np.empty(0))
    return together(Columns(row, unit, shown, chance), placed, ((),) * 4, outcome - guess)


@pytest.mark.full
def test_three_lessons_that_say_the_same_are_named_with_what_they_do_together_and_alone() -> None:
    found = [world(seed, 4_000, (0.0, 0.25, 0.25, 0.25))[0] for seed in range(4)]
    assert [one.says for one in found] == ["same"] * 4
    assert {one.lessons for one in found} == {LESSONS}
    assert abs(np.mean([one.joint for one in found]) - 0.25 * (1 - 0.3**3)) < 0.03
    assert np.abs(np.mean([one.alone for one in found], axis=0) - 0.25 * 0.3**2).max() < 0.03


@pytest.mark.full
def test_lessons_that_only_help_together_are_named() -> None:
    found = [world(seed, 4_000, (0.0, 0.0, 0.0, 0.5), held=0.2)[0] for seed in range(4)]
    assert [one.says for one in found] == ["need each other"] * 4


@pytest.mark.full
@pytest.mark.parametrize("each", [0.0, 0.1])
def test_lessons_that_each_do_their_part_are_not_named(each: float) -> None:
    found = [world(seed, 2_000, (0.0, each, 2 * each, 3 * each))[0] for seed in range(12)]
    assert [one.says for one in found] == [""] * 12
    worth = [np.exp(log) for one in found for log in (one.log_same, one.log_need)]
    assert np.mean(worth) < 1.5


def test_lessons_that_are_seldom_found_together_are_not_compared() -> None:
    assert world(1, 39, (0.0,) * 4) == ()
    assert [one.recalls for one in world(1, 60, (0.0,) * 4)] == [60]

"""What follows from the evidence: more is withheld of what seems to harm, and only proof takes a lesson back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import SEEDS, episodes

from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.review import DEFAULT_RATES, Rates, control_rate, review


def played(seed: int, *, n: int, effects: tuple[float, ...], lift: float = 0.0, shown: float = 0.6) -> Episodes:
    """Every lesson is found alone, one after the other; each is shown with the same probability."""
    g = np.random.default_rng(seed)
    lesson = np.arange(n) % max(len(effects), 1)
    withheld, control = g.random(n) >= shown, g.random(n) < 0.3
    rate = 0.5 + np.where(control, 0.0, lift + np.array(effects)[lesson] * ~withheld)
    return episodes(
        (g.random(n) < rate).astype(float),
        control=control,
        control_probability=0.3,
        cluster=g.integers(0, 30, n),
        lessons=lesson[:, None],
        withheld=withheld,
        probability=1 - shown,
        names=len(effects),
    )


def test_lessons_that_harm_and_help_are_told_from_those_that_do_nothing() -> None:
    told = review(played(0, n=6000, effects=(0.3, 0.0, -0.3, 0.0)))
    assert told.helpful.tolist() == [True, False, False, False]
    assert told.harmful.tolist() == [False, False, True, False]
    assert told.withhold[2] == pytest.approx(DEFAULT_RATES.ceiling, abs=0.01)
    assert told.withhold[0] < DEFAULT_RATES.usual
    assert told.expected == pytest.approx([0.3, 0.0, -0.3, 0.0], abs=0.1)


def test_nothing_is_done_about_lessons_that_change_nothing() -> None:
    flagged = [review(played(seed, n=600, effects=(0.0,) * 6)) for seed in range(40)]
    assert sum(int((one.harmful | one.helpful).sum()) for one in flagged) == 0


def test_where_nothing_is_known_everything_stays_as_usual() -> None:
    unknown = played(1, n=20, effects=(0.1, 0.1))
    told = review(replace(unknown, outcome=np.full(20, np.nan)))
    assert told.withhold == pytest.approx([DEFAULT_RATES.usual] * 2)
    assert (told.control, told.harmful.any(), told.helpful.any()) == (DEFAULT_RATES.usual, False, False)
    assert len(review(played(1, n=0, effects=())).withhold) == 0


@pytest.mark.full
@given(SEEDS, st.integers(1, 150), st.sampled_from([(0.3, -0.3), (0.0,), (-0.5, -0.5, 0.5)]))
def test_rates_stay_between_floor_and_ceiling(seed: int, n: int, effects: tuple[float, ...]) -> None:
    rates = Rates(usual=0.2, floor=0.05, ceiling=0.6)
    one = played(seed, n=n, effects=effects, lift=0.1)
    told = review(one, rates=rates)
    assert ((told.withhold >= 0.05 - 1e-12) & (told.withhold <= 0.6 + 1e-12)).all()
    assert 0.05 - 1e-12 <= told.control <= 0.6 + 1e-12


@given(SEEDS)
def test_what_helps_success_harms_failure(seed: int) -> None:
    one = played(seed, n=800, effects=(0.4, 0.0, -0.4))
    here, there = review(one), review(replace(one, outcome=1.0 - one.outcome))
    assert there.harmful.tolist() == here.helpful.tolist()
    assert there.helpful.tolist() == here.harmful.tolist()
    assert there.log_harm == pytest.approx(here.log_help, abs=1e-6)
    assert there.expected == pytest.approx(-here.expected, abs=1e-3)


def test_a_bank_that_helps_is_withheld_less_and_one_that_harms_more() -> None:
    helps, harms = (played(3, n=2000, effects=(0.0,), lift=lift) for lift in (0.3, -0.3))
    assert control_rate(helps, DEFAULT_RATES) < DEFAULT_RATES.usual
    assert control_rate(harms, DEFAULT_RATES) > 0.8


def test_a_stricter_error_rate_takes_back_no_more() -> None:
    one = played(4, n=1200, effects=(-0.25, -0.2, -0.15, 0.0))
    flags = [review(one, alpha=alpha).harmful for alpha in (0.001, 0.05, 0.5)]
    assert not (flags[0] & ~flags[1]).any()
    assert not (flags[1] & ~flags[2]).any()
    assert flags[2].any()


def turned(one: Episodes, seed: int, **more: Any) -> Episodes:
    """Labels of a judge that is wrong nine times in ten, and the truth of a tenth of the runs."""
    g = np.random.default_rng(seed)
    said = np.where(g.random(len(one)) < 0.9, 1.0 - one.outcome, one.outcome)
    true = g.random(len(one)) < 0.1
    return replace(
        one, outcome=np.where(true, one.outcome, said), judged=said, true=true, judge=np.zeros(len(one), int), **more
    )


def test_a_lesson_is_not_taken_back_on_the_word_of_a_judge_that_is_measured_to_be_wrong() -> None:
    told = review(turned(played(5, n=3000, effects=(0.4, 0.0)), 5))
    assert not told.harmful.any()

"""Intervals against values known from elsewhere, and curves against their definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.demo.curves import ASCII, bars, moving_rate, thinned
from lessonbank.errors import UsageError
from lessonbank_bench import Interval, paired_bootstrap, wilson


def test_wilson_gives_the_published_values() -> None:
    # Newcombe (1998), table I: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
    for successes, trials, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        interval = wilson(successes, trials)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_the_bootstrap_agrees_with_the_normal_interval_on_many_pairs() -> None:
    draw = np.random.default_rng(1)
    control = draw.normal(0, 1, 400)
    treated = control + draw.normal(0.3, 1, 400)
    interval = paired_bootstrap(treated.tolist(), control.tolist())
    differences = treated - control
    half = 1.96 * differences.std(ddof=1) / math.sqrt(400)
    assert interval.estimate == pytest.approx(differences.mean())
    assert interval.low == pytest.approx(differences.mean() - half, abs=0.01)
    assert interval.high == pytest.approx(differences.mean() + half, abs=0.01)


def test_pairs_without_spread_have_an_interval_without_width() -> None:
    assert paired_bootstrap([1, 2, 3], [0, 1, 2]) == Interval(1.0, 1.0, 1.0)


def test_the_bootstrap_repeats_itself_and_covers_its_level() -> None:
    draw = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        pairs = draw.normal(0.5, 1, 60)
        interval = paired_bootstrap(pairs.tolist(), [0.0] * 60, draws=500)
        covered += interval.low <= 0.5 <= interval.high
    assert 0.89 <= covered / 200 <= 0.99
    assert paired_bootstrap([1, 0, 1], [0, 0, 1]) == paired_bootstrap([1, 0, 1], [0, 0, 1])


def test_what_cannot_be_compared_is_refused_in_one_sentence() -> None:
    for treated, control in (([1.0], []), ([], [])):
        with pytest.raises(UsageError, match="two series of one length"):
            paired_bootstrap(treated, control)
    for successes, trials in ((0, 0), (3, 2), (-1, 5)):
        with pytest.raises(UsageError, match="wilson needs"):
            wilson(successes, trials)


@given(st.integers(1, 400), st.data())
def test_a_wilson_interval_holds_its_estimate_and_stays_within_bounds(trials: int, data: st.DataObject) -> None:
    interval = wilson(data.draw(st.integers(0, trials)), trials)
    assert 0 <= interval.low <= interval.estimate + 1e-12
    assert interval.estimate - 1e-12 <= interval.high <= 1


def test_a_moving_rate_looks_back_as_far_as_its_window() -> None:
    assert moving_rate([True, False, False, True], window=2) == [1.0, 0.5, 0.0, 0.5]
    assert moving_rate([]) == []


def test_bars_are_as_high_as_their_rates() -> None:
    assert bars([0.0, 0.5, 1.0], height=2) == ["  █", "▁██"]
    assert bars([0.0, 1.0], height=1, glyphs=ASCII) == [".@"]
    assert bars([], height=2) == ["", ""]


def test_thinning_keeps_the_end() -> None:
    assert thinned([1, 2, 3, 4, 5, 6], columns=3) == [2, 4, 6]
    assert thinned([1, 2], columns=3) == [1, 2]

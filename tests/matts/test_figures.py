"""Pass@1, best-of-n and Pass@k say what they are defined to say."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.errors import UsageError
from lessonbank.matts import pass_at
from lessonbank.matts.figures import of_group, of_rounds

pytestmark = pytest.mark.full

OUTCOMES = st.lists(st.sampled_from(["success", "failure", "unknown"]), max_size=8)


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_success(n: int, data: st.DataObject) -> None:
    wins, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = list(combinations([True] * wins + [False] * (n - wins), k))
    assert pass_at(k, n=n, successes=wins) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("k", "n", "wins"), [(0, 3, 1), (4, 3, 1), (1, 3, 4), (1, 3, -1)])
def test_pass_at_k_refuses_numbers_that_cannot_be(k: int, n: int, wins: int) -> None:
    with pytest.raises(UsageError, match="k from 1 to n"):
        pass_at(k, n=n, successes=wins)


def test_the_figures_of_three_runs_of_which_one_succeeded() -> None:
    told = of_group(["failure", "success", "failure"], 1)
    assert (told.pass_at_1, told.best_of_n, told.mixed) == (pytest.approx(1 / 3), 1.0, True)
    assert told.pass_at_k == (pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0)


def test_a_run_of_unknown_end_counts_on_neither_side() -> None:
    told = of_group(["unknown", "success", "unknown"], 0)
    assert (told.pass_at_1, told.best_of_n, told.pass_at_k, told.mixed) == (1.0, None, (1.0,), False)
    assert of_group([], None) == of_group(["unknown"], None)


@pytest.mark.parametrize("figures", [of_group, of_rounds])
def test_where_every_run_crashed_the_best_of_them_is_no_success_and_not_unknown(figures: Any) -> None:
    told = figures(["failure", "failure", "failure"], None)
    assert (told.pass_at_1, told.best_of_n, told.pass_at_k) == (0.0, 0.0, (0.0, 0.0, 0.0))


def test_rounds_are_told_in_their_order_and_not_averaged() -> None:
    told = of_rounds(["failure", "success", "failure"], 2)
    assert (told.pass_at_1, told.best_of_n, told.pass_at_k) == (0.0, 0.0, (0.0, 1.0, 1.0))
    assert of_rounds([], None).pass_at_1 is None


@given(OUTCOMES, st.booleans())
def test_figures_lie_between_zero_and_one_and_pass_at_k_never_falls(outcomes: list[Any], rounds: bool) -> None:
    told = (of_rounds if rounds else of_group)(outcomes, 0 if outcomes else None)
    assert all(0.0 <= value <= 1.0 for value in told.pass_at_k)
    assert list(told.pass_at_k) == sorted(told.pass_at_k)
    known = [outcome for outcome in outcomes if outcome != "unknown"]
    assert len(told.pass_at_k) == len(known)
    if known and not rounds:
        assert told.pass_at_1 is not None
        assert math.isclose(told.pass_at_1, known.count("success") / len(known))

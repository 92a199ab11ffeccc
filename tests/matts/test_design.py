"""What the caller asks for is checked first, and a budget says when it is spent."""

from __future__ import annotations

from typing import Any

import pytest

from lessonbank import Trajectory, Usage
from lessonbank.contracts.agents import check_calls, stated, taken
from lessonbank.errors import UsageError
from lessonbank.matts.design import Design, Meter


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"k": 0}, "k is a whole number"),
        ({"k": True}, "k is a whole number"),
        ({"k": 2.0}, "k is a whole number"),
        ({"k": 1001}, "from 1 to 1000"),
        ({"mode": "serial"}, "mode is 'parallel', 'sequential' or 'vanilla'"),
        ({"choose": "best"}, "choose is "),
        ({"examine": "think"}, "examine is 'act' or 'rewrite'"),
        ({"confirm": 0}, "confirm is a whole number"),
        ({"concurrency": 0}, "concurrency is a whole number"),
        ({"tokens": 0}, "tokens is a budget for all runs"),
        ({"cost": -1.0}, "cost is a budget for all runs"),
        ({"cost": float("nan")}, "cost is a budget for all runs"),
        ({"seconds": "9"}, "seconds is a budget for all runs"),
        ({"labels": True, "mode": "vanilla"}, "labels= has no effect here"),
        ({"labels": False, "memory": False}, "labels= has no effect here"),
        ({"seed": "x"}, "seed is a whole number"),
    ],
)
def test_an_argument_that_cannot_be_is_named_in_one_sentence(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        Design(**wrong)
    assert "\n" not in str(caught.value)


def test_at_most_eight_runs_are_made_at_once_unless_the_caller_says_how_many() -> None:
    assert Design(k=5).concurrent_runs == 5
    assert Design(k=64).concurrent_runs == 8
    assert Design(k=64, concurrency=64).concurrent_runs == 64
    assert Design(k=5, concurrency=2).concurrent_runs == 2
    assert Design(k=2, concurrency=9).concurrent_runs == 2
    assert Design(k=5, seconds=60).concurrent_runs == 5
    assert meter(k=5, seconds=60)[0].wave() == meter(k=5, tokens=9, concurrency=3)[0].wave() == 5


def test_under_a_budget_one_run_goes_first_and_then_as_many_as_it_holds() -> None:
    spending, _ = meter(k=9, tokens=1000, cost=1.0)
    assert spending.wave() == 1
    spending.add(Usage(input_tokens=190, output_tokens=10, cost=0.05))
    assert spending.wave() == 4
    spending.add(Usage(input_tokens=200, cost=0.55))
    assert spending.wave() == 1
    spending.add(Usage(input_tokens=700, cost=0.0))
    assert (spending.wave(), spending.spent()) == (1, "tokens")
    silent, _ = meter(k=9, tokens=1000)
    silent.add(Usage())
    assert silent.wave() == 9


def test_a_run_that_broke_off_without_a_word_is_not_the_price_of_the_others() -> None:
    spending, _ = meter(k=9, tokens=1000)
    spending.add(Usage(), broken=True)
    assert spending.wave() == 1
    spending.add(Usage(output_tokens=200))
    spending.add(Usage(), broken=True)
    assert spending.wave() == 4
    spending.add(Usage(output_tokens=200), broken=True)
    assert spending.wave() == 3


def meter(**budget: Any) -> tuple[Meter, list[float]]:
    now = [100.0]
    made = Meter(Design(**budget), lambda: now[0])
    made.start()
    return made, now


def test_a_budget_in_tokens_counts_what_was_read_and_written() -> None:
    spending, _ = meter(tokens=100)
    spending.add(Usage(input_tokens=60, output_tokens=39))
    assert spending.spent() is None
    spending.add(Usage(output_tokens=1))
    assert spending.spent() == "tokens"


def test_a_budget_in_money_counts_what_runs_say_they_cost() -> None:
    spending, _ = meter(cost=0.5)
    spending.add(Usage(cost=0.25))
    assert spending.spent() is None
    spending.add(Usage(cost=0.25))
    assert spending.spent() == "cost"
    assert spending.blind() is None


def test_a_budget_in_seconds_has_a_moment_at_which_it_is_over() -> None:
    spending, now = meter(seconds=5)
    now[0] += 4.9
    assert spending.spent() is None
    now[0] += 0.1
    assert (spending.spent(), spending.deadline) == ("seconds", 105.0)
    assert meter()[0].deadline == float("inf")


def test_a_budget_that_cannot_be_kept_says_so() -> None:
    for budget, told in (({"cost": 1.0}, "in money"), ({"tokens": 9}, "in tokens")):
        spending, _ = meter(**budget)
        assert spending.blind() is None
        spending.add(Usage())
        assert told in (spending.blind() or "")


def test_what_a_verifier_says_is_an_outcome_or_a_reward() -> None:
    assert stated(True) == ("success", None)
    assert stated("failure") == ("failure", None)
    assert stated(0.4) == (None, 0.4)
    for wrong in ("yes", 2, -0.1, None, float("nan"), 10**400):
        with pytest.raises(UsageError, match="verify= gives a bool"):
            stated(wrong)


def test_an_agent_is_refused_before_it_is_paid_if_it_cannot_be_called() -> None:
    def good(task: str, memory: str, *, seed: int = 0) -> Trajectory: ...  # type: ignore[empty-body]

    def checked(task: str, memory: str, check: str = "", previous: object = None) -> Trajectory: ...  # type: ignore[empty-body]

    check_calls(good, outcome=None)
    check_calls(checked)
    assert taken(checked, "check", "seed", "previous") == ("check", "previous")
    for agent in ("agent", lambda task: task, lambda task, memory, third: task):
        with pytest.raises(UsageError, match="agent"):
            check_calls(agent)
    with pytest.raises(UsageError, match="progress= takes a function"):
        check_calls(good, progress="bar")

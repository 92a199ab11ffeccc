"""A run that is surely short is read where it is: to start a thread for it takes longer."""

from __future__ import annotations

import pytest

from lessonbank import Action, Observation, Step, ToolCall, Trajectory
from lessonbank.contracts.records import Json
from lessonbank.contracts.records.runs import is_brief

MOST = 4096


def run(*arguments: dict[str, Json] | str) -> Trajectory:
    calls = tuple(ToolCall(name="find_order", arguments=given) for given in arguments)
    return Trajectory(task="Find it", steps=(Step(action=Action(calls=calls), observations=(Observation(text="ok"),)),))


@pytest.mark.parametrize(
    "given", ["", '{"id": 7}', {}, {"id": "O-7", "page": 2, "exact": True, "sum": 1.5, "by": None}]
)
def test_a_run_with_short_calls_is_brief(given: dict[str, Json] | str) -> None:
    assert is_brief(run(given, given), most=MOST)


@pytest.mark.parametrize(
    "given",
    [
        "x" * MOST,
        {"text": "x" * MOST},
        {"number": 10**MOST},
        {"rows": [1, 2]},
        {"filter": {"id": 7}},
        {f"field_{number}": "" for number in range(100)},
    ],
)
def test_a_run_whose_calls_may_hold_much_is_not(given: dict[str, Json] | str) -> None:
    assert not is_brief(run(given), most=MOST)


def test_a_run_with_a_few_words_about_it_is_brief_and_one_with_much_is_not() -> None:
    assert is_brief(run().model_copy(update={"metadata": {"seconds": 1.5, "user": "u-17"}}))
    for much in ({"note": "x" * MOST}, {"recalls_again": ["a"]}, {"seen": {"page": 7}}):
        assert not is_brief(run().model_copy(update={"metadata": much}))


def test_many_short_calls_are_no_brief_run() -> None:
    calls: list[dict[str, Json]] = [{"id": "O-7"}] * 100
    assert not is_brief(run(*calls), most=MOST)

"""Mind2Web's figures are what a hand makes of them, in each of the two lines of papers."""

from __future__ import annotations

import pytest
from linear import FAR, growth

from lessonbank_bench.environments.mind2web_metrics import (
    MISSED,
    Gold,
    Said,
    StepScore,
    action_f1,
    averages,
    read_action,
    score,
    task_scores,
)


@pytest.mark.parametrize(
    ("said", "wanted", "f1"),
    [
        ("CLICK", "CLICK", 1.0),
        ("", "", 1.0),
        ("", "CLICK", 0.0),
        ("TYPE Paris", "TYPE Paris", 1.0),
        ("TYPE Paris", "TYPE paris", 0.5),  # 1 of 2 and 1 of 2 shared: case counts
        ("TYPE Paris", "TYPE New York", 0.4),  # P 1/2, R 1/3
        ("TYPE York New", "TYPE New York", 1.0),  # a set has no order
        ("TYPE New New York", "TYPE New York", 1.0),  # nor repetition
        ("TYPE New - York", "TYPE New York", 1.0),  # a word of punctuation alone is left out
        ("SELECT 2 guests", "TYPE 2 guests", 2 / 3),  # 2 of 3 and 2 of 3
        ("CLICK", "TYPE Paris", 0.0),
    ],
)
def test_action_f1_is_of_sets_of_words(said: str, wanted: str, f1: float) -> None:
    assert action_f1(said, wanted) == pytest.approx(f1, abs=1e-12)


TYPED = Gold("TYPE", "New York", "5", {"5", "6"})
CLICKED = Gold("CLICK", "", "5", {"5", "6"})


@pytest.mark.parametrize(
    ("said", "gold", "mind2web", "awm"),
    [
        (Said("CLICK", "5"), CLICKED, StepScore(True, 1.0, True), StepScore(True, 1.0, True)),
        # another of the right elements: right in one line, wrong in the other
        (Said("CLICK", "6"), CLICKED, StepScore(True, 1.0, True), StepScore(False, 1.0, False)),
        (Said("CLICK", "9"), CLICKED, StepScore(False, 1.0, False), StepScore(False, 1.0, False)),
        # the words of the value in another order: a set of words is the same, a string is not
        (Said("TYPE", "5", "York New"), TYPED, StepScore(True, 1.0, True), StepScore(True, 1.0, False)),
        # a click that is given a value: {CLICK, x} against {CLICK} is 2/3; the other line drops it before F1 only
        (Said("CLICK", "5", "x"), CLICKED, StepScore(True, 2 / 3, False), StepScore(True, 1.0, False)),
        (Said("TYPE", "5", "New"), TYPED, StepScore(True, 0.8, False), StepScore(True, 0.8, False)),
        (Said(), CLICKED, MISSED, MISSED),
        (Said("CLICK", "5"), Gold("CLICK", "", "5", ()), MISSED, MISSED),
    ],
)
def test_a_step_is_scored_as_each_line_does(said: Said, gold: Gold, mind2web: StepScore, awm: StepScore) -> None:
    for variant, expected in (("mind2web", mind2web), ("awm", awm)):
        found = score(said, gold, variant)  # type: ignore[arg-type]
        assert (found.element, found.right) == (expected.element, expected.right), variant
        assert found.action_f1 == pytest.approx(expected.action_f1), variant


def test_macro_and_micro_averages_are_what_a_hand_makes_of_them() -> None:
    short = task_scores([StepScore(True, 1.0, True)], 0)
    long = task_scores([StepScore(True, 0.5, False), MISSED, MISSED, StepScore(True, 1.0, True)], 2)
    found = averages([short, long])
    assert (found.tasks, found.steps, found.not_asked, found.success) == (2, 5, 2, 0.5)
    # tasks: 1 and 2/4; 1 and 1.5/4; 1 and 1/4
    assert found.macro == pytest.approx((0.75, 0.6875, 0.625))
    # steps: 3/5, 2.5/5, 2/5
    assert found.micro == pytest.approx((0.6, 0.5, 0.4))


def test_averages_of_nothing_or_of_something_else_are_refused() -> None:
    for rows in ([], [{}], [{"reward": 1.0}]):
        with pytest.raises(ValueError, match="mind2web's rows"):
            averages(rows)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("I could CLICK [3], but:\nTYPE [10] [New York]", Said("TYPE", "10", "New York")),
        ("`SELECT [11] [2 guests]`.", Said("SELECT", "11", "2 guests")),
        ("TYPE [10] [a [b] c]", Said("TYPE", "10", "a [b] c")),
        ("CLICK [12]", Said("CLICK", "12")),
        ("TYPE [10] []", Said("TYPE", "10", "")),
        ("click [12]", Said()),
        ("I do not know", Said()),
        ("", Said()),
    ],
)
def test_the_last_action_of_a_reply_counts(reply: str, said: Said) -> None:
    assert read_action(reply) == said


def test_an_endless_reply_is_read_in_no_time() -> None:
    assert growth(read_action, "CLICK [1] [") <= FAR

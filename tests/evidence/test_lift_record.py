"""What a lift says in words is what its numbers say, whatever strangers wrote into titles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.errors import UsageError
from lessonbank.evidence.lift import (
    Estimate,
    JudgeReport,
    LessonLift,
    Lift,
    MeasuringCost,
    Point,
    Standing,
    headline,
    in_words,
    points,
    said_of,
)

SHARE = st.floats(-1, 1) | st.none()
ESTIMATES = st.builds(
    Estimate, value=SHARE, low=SHARE, high=SHARE, always_low=SHARE, always_high=SHARE, note=st.text(max_size=5)
)
HOSTILE = "\x1b[2Jtitle\r\nDoes memory help? Yes\u202e\x07"


def lift(**more: Any) -> Lift:
    told: dict[str, Any] = {"scope": "t", "recalls": 100, "settled": 90, "controls": 10}
    return Lift(**(told | more))


def sure(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.02, high=value + 0.02, always_low=value - 0.04, always_high=value + 0.04)


@pytest.mark.parametrize(
    ("standing", "said"), [("helps", "Yes: "), ("harms", "No, it harms: "), ("no evidence yet", "No evidence yet: ")]
)
def test_the_first_line_answers(standing: Standing, said: str) -> None:
    line = headline(lift(success=sure(0.123), standing=standing))
    assert line == f"Does memory help? {said}success +12.3 points [+8, +16]."


def test_what_would_show_it_is_said_while_nothing_is_shown() -> None:
    assert "about 40 more recalls" in headline(lift(success=sure(0.01), more=40))
    assert "more recalls" not in headline(lift(success=sure(0.2), standing="helps", more=40))
    assert headline(lift()) == "Does memory help? No evidence yet: 90 settled recalls, 10 without memory."


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate(), "unknown"),
        (Estimate(value=0.05), "+5.0 points"),
        (Estimate(value=-0.0), "+0.0 points"),
        (Estimate(value=-1e-9, always_low=-0.001, always_high=0.001), "+0.0 points [+0, +0]"),
        (Estimate(value=-0.2, always_low=-1.0, always_high=1.0), "-20.0 points [-100, +100]"),
    ],
)
def test_an_effect_is_said_in_points(estimate: Estimate, said: str) -> None:
    assert points(estimate) == said


def test_a_lesson_says_what_became_of_it() -> None:
    assert said_of(LessonLift(lesson_id="a", standing="harms", retired=True)) == "harms, retired"
    assert said_of(LessonLift(lesson_id="a", more=7, quarantined=True)) == "no evidence yet (about 7 more), quarantined"


def test_both_sides_and_what_runs_take_are_said_only_where_they_are_known() -> None:
    text = str(lift(success_with=0.5, success_without=0.25, steps=Estimate(value=-1.5, low=-2, high=-1)))
    assert "with memory 50% of 80 tasks, without 25% of 10, chosen at random" in text
    assert "steps a task: -1.5 [-2.0, -1.0]" in text
    assert "tokens" not in text
    assert "of 80 tasks" not in str(lift(success_with=0.5))


def test_ten_lessons_are_shown_and_the_others_counted() -> None:
    one = lift(lessons=tuple(LessonLift(lesson_id=f"id {n}", title=f"title {n}", shown=n) for n in range(13)))
    assert str(one).count("title ") == 10
    assert "… and 3 more" in str(one)
    assert "… and" not in in_words(one, most=13)
    assert "title" not in in_words(one, most=0)


def test_titles_and_notes_of_strangers_stay_in_their_line() -> None:
    lessons = (LessonLift(lesson_id=HOSTILE, title=HOSTILE), LessonLift(lesson_id=HOSTILE))
    text = str(lift(lessons=lessons, notes=(HOSTILE,)))
    assert text.count("\nDoes memory help?") == 0
    assert not {c for c in text if c != "\n" and not c.isprintable()}


@given(st.text(max_size=3000), st.text(max_size=30))
def test_one_lesson_is_one_line_of_bounded_width(title: str, id: str) -> None:
    one = lift(lessons=(LessonLift(lesson_id=id, title=title),))
    assert len(str(one).splitlines()) == len(str(lift(lessons=(LessonLift(lesson_id="a", title="b"),))).splitlines())
    assert max(map(len, str(one).splitlines())) < 160


@given(ESTIMATES, ESTIMATES, st.sampled_from(["helps", "harms", "no evidence yet"]), st.none() | st.integers(0, 9))
def test_every_lift_can_be_said_and_kept(one: Estimate, other: Estimate, standing: Any, more: int | None) -> None:
    whole = lift(
        success=one,
        steps=other,
        standing=standing,
        more=more,
        lessons=(LessonLift(lesson_id="a", success=other, standing=standing, more=more),),
        judges=(JudgeReport(judge="j", asked=1, checked=0),),
        measuring=MeasuringCost(given_up=-1.0),
        series=(Point(recalls=1),),
    )
    assert Lift.model_validate_json(whole.model_dump_json()) == whole
    assert str(whole).splitlines()[0] == headline(whole)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="finite number"):
        Estimate(value=value)

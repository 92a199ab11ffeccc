"""What a lift says in words is what its numbers say, whatever strangers wrote into titles."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st
from linear import FAR, growth_of

from lessonbank.errors import UsageError
from lessonbank.evidence.effects import (
    Estimate,
    GroupLift,
    LessonLift,
    Point,
    Standing,
    points,
    said_of,
)
from lessonbank.evidence.lift import (
    OPINIONS,
    PROMISE,
    Lift,
    MeasuringCost,
    advice,
    distinct_groups,
    distinct_lessons,
    headline,
    in_words,
    spent,
)

SHARE = st.floats(-1, 1) | st.none()
ESTIMATES = st.builds(Estimate, value=SHARE, low=SHARE, high=SHARE, always_low=SHARE, always_high=SHARE)
HOSTILE = "\x1b[2Jtitle\r\nDoes memory help? Yes\u202e\x07"


def lift(**more: Any) -> Lift:
    told: dict[str, Any] = {"scope": "t", "recalls": 100, "settled": 90, "controls": 10}
    return Lift(**(told | more))


def sure(value: float) -> Estimate:
    return Estimate(value=value, low=value - 0.02, high=value + 0.02, always_low=value - 0.04, always_high=value + 0.04)


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        ("helps", "Yes, keep it: "),
        ("likely helps", "Likely yes, keep it: "),
        ("harms", "No, take it out: "),
        ("likely harms", "Likely no, take it out: "),
        ("no evidence yet", "Undecided, at most 16 points either way: "),
    ],
)
def test_the_first_line_answers(standing: Standing, said: str) -> None:
    line = headline(lift(success=sure(0.123), standing=standing))
    assert line == f"Does memory help? {said}success +12.3 points [+8, +16]."


def test_while_nothing_is_shown_the_advice_is_to_go_on() -> None:
    assert "Go on: more outcomes decide it." in str(lift(success=sure(0.03)))
    assert "Go on" not in str(lift(success=sure(0.2), standing="helps"))
    assert headline(lift()) == "Does memory help? Undecided, too few tasks: 90 known outcomes, 10 without memory."


def test_what_is_shown_to_change_next_to_nothing_is_said_to_do_nothing() -> None:
    nothing = sure(0.0)
    one = LessonLift(lesson_id="a", success=nothing)
    assert said_of(one) == "does nothing, at most 4 points either way"
    whole = lift(success=nothing, lessons=(one, one.model_copy(update={"retired": True})))
    line = "Does memory help? No, it does nothing, at most 4 points either way: success +0.0 points [-4, +4]."
    assert headline(whole) == line
    told = "Make room, or let the setting keep_lessons do it: 1 lesson does nothing, and can be retired."
    assert advice(whole) == (told,)


def test_a_decision_is_keep_or_take_out_or_undecided_with_the_most_that_the_effect_can_be() -> None:
    said = {word: said_of(LessonLift(lesson_id="a", standing=word, success=sure(0.1))) for word in get_args(Standing)}
    assert said == {
        "helps": "keep: helps",
        "likely helps": "keep: likely helps",
        "harms": "take out: harms",
        "likely harms": "take out: likely harms",
        "no evidence yet": "undecided, at most 14 points either way",
    }
    wide = Estimate(value=0.1, always_low=-1.0, always_high=1.0)
    assert said_of(LessonLift(lesson_id="a", success=wide)) == "undecided, too few tasks"


def test_the_second_line_says_what_measuring_has_cost_in_tasks_and_successes() -> None:
    def second(cost: MeasuringCost, **more: Any) -> str:
        return str(lift(success=sure(0.3), measuring=cost, **more)).splitlines()[1]

    cost = MeasuringCost(given_up=4.2, given_up_low=1, given_up_high=6, tasks_without=10, tasks_with_less=3)
    harm = MeasuringCost(given_up=-1.0, given_up_low=-4, given_up_high=-1, tasks_without=10, tasks_with_less=3)
    told = "  Measuring has cost so far: 10 of 100 tasks without memory, 3 with only a part of it; together about "
    assert second(cost, settled=100) == f"{told}4 successes (between 1 and 6)."
    assert second(harm, settled=100) == f"{told}1 failure avoided (between 1 and 4)."
    bare = MeasuringCost(tasks_without=10)
    assert "10 of 100 tasks without memory; hardly any success (" in second(bare, settled=100)
    assert "10 of 100 tasks without memory, with a known outcome or without; hardly" in second(bare)
    assert "how many successes is not known yet" in str(lift(measuring=cost))


def test_a_cost_that_may_be_of_either_sign_says_why_where_lessons_were_left_out_one_by_one() -> None:
    cost = MeasuringCost(given_up=16, given_up_low=-5, given_up_high=43, tasks_without=40, tasks_with_less=25)
    effect = Estimate(value=0.35, always_low=0.03, always_high=0.71)
    told = str(lift(success=effect, measuring=cost)).splitlines()[1]
    assert "together about 16 successes (between 5 failures avoided and 43 successes: single lessons are less" in told
    alone = str(lift(success=effect, measuring=cost.model_copy(update={"tasks_with_less": 0})))
    assert "together" not in alone
    assert "single lessons are less" not in alone


def test_dollars_have_as_many_digits_as_their_interval_needs() -> None:
    def dollars(value: float, low: float, high: float) -> str:
        return spent(lift(cost=Estimate(value=value, low=low, high=high)))

    assert dollars(0.00003, -0.00006, 0.00012) == "US dollars +0.00003 [-0.00006, +0.00012; one look]"
    assert dollars(0.02, 0.01, 0.03) == "US dollars +0.0200 [+0.0100, +0.0300; one look]"
    assert dollars(0.0, 0.0, 0.0) == "US dollars +0.0000 [+0.0000, +0.0000; one look]"


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [
        (191.2, 60.4, 320, "about 191 successes (between 60 and 320)."),
        (-118, -215, -20, "about 118 failures avoided (between 20 and 215)."),
        (3.4, -4, 5, "about 3 successes (between 4 failures avoided and 5 successes)."),
        (3.4, -75, 82, "how many successes is not known yet."),
        (0.2, -6, 6, "how many successes is not known yet."),
        (0.2, -1, 1, "hardly any success (between 1 failure avoided and 1 success)."),
        (4, 0, 9, "about 4 successes (between 0 and 9)."),
    ],
)
def test_what_measuring_has_cost_stands_beside_how_far_chance_could_have_moved_it(
    value: float, low: float, high: float, said: str
) -> None:
    cost = MeasuringCost(given_up=value, given_up_low=low, given_up_high=high, tasks_without=10)
    assert str(lift(success=sure(0.3), measuring=cost)).splitlines()[1].endswith(said)


def test_each_set_of_lessons_has_one_row() -> None:
    """All lessons are memory itself, one lesson has its own row, and of equal groups the narrowest is named."""
    named = {"source/a": "written by people", "topic/a": "refunds", "topic/b": "parcels", "source/b": "one alone"}
    counts = {"source/a": 2, "topic/a": 2, "topic/b": 1, "source/b": 1}
    groups = tuple(GroupLift(group=id, name=name, lessons=counts[id], success=sure(0.1)) for id, name in named.items())
    lessons = tuple(
        LessonLift(lesson_id=id, title=id, groups=own)
        for id, own in (
            ("l1", ("source/a", "topic/a")),
            ("l2", ("source/a", "topic/a")),
            ("l3", ("source/b", "topic/b")),
        )
    )
    assert [group.group for group in distinct_groups(lift(groups=groups, lessons=lessons))] == ["topic/a"]
    assert distinct_groups(lift(groups=groups[:2], lessons=lessons[:2])) == ()
    text = str(lift(success=sure(0.1), groups=groups, lessons=lessons))
    assert "refunds" in text
    assert "written by people" not in text
    assert "parcels" not in text


@pytest.mark.parametrize(
    ("estimate", "said"),
    [
        (Estimate(), "not known yet"),
        (Estimate(value=0.05), "+5.0 points"),
        (Estimate(value=-0.0), "+0.0 points"),
        (Estimate(value=-1e-9, always_low=-0.001, always_high=0.001), "+0.0 points [+0, +0]"),
        (Estimate(value=-0.2, always_low=-1.0, always_high=1.0), "-20.0 points so far"),
    ],
)
def test_an_effect_is_said_in_points(estimate: Estimate, said: str) -> None:
    assert points(estimate) == said


def test_a_lesson_says_what_became_of_it() -> None:
    assert said_of(LessonLift(lesson_id="a", standing="harms", retired=True)) == "take out: harms, retired"
    open_yet = LessonLift(lesson_id="a", success=sure(0.03), quarantined=True)
    assert said_of(open_yet) == "undecided, at most 7 points either way, quarantined"


def test_both_sides_and_what_runs_take_are_said_only_where_they_are_known() -> None:
    shares = {"success_with": 0.5, "success_without": 0.25, "shown": 1_080, "withheld": 1}
    text = str(lift(**shares, steps=Estimate(value=-1.5, low=-2, high=-1)))
    assert "with memory 50.0 %, without 25.0 %, chosen at random\n" in text
    assert "a task: steps -1.5 [-2.0, -1.0; one look]" in text
    told = "with memory 50.0 % of 1,080 tasks, without 25.0 % of 1 task, chosen at random\n"
    assert told in str(lift(success=sure(0.25), **shares))
    assert "tokens" not in text
    assert "with memory" not in str(lift(success_with=0.5)).splitlines()[1]


def test_six_lessons_are_shown_and_the_others_counted() -> None:
    one = lift(lessons=tuple(LessonLift(lesson_id=f"id {n}", title=f"title {n}", shown=n) for n in range(13)))
    assert str(one).count("title ") == 6
    assert "… and 7 more" in str(one)
    assert "… and" not in in_words(one, most=13)
    assert "title" not in in_words(one, most=0)


def test_titles_and_notes_of_strangers_stay_in_their_line() -> None:
    lessons = (LessonLift(lesson_id=HOSTILE, title=HOSTILE), LessonLift(lesson_id=HOSTILE))
    text = str(lift(lessons=lessons, notes=(HOSTILE,)))
    assert text.count("\nDoes memory help?") == 0
    assert not {c for c in text if c != "\n" and not c.isprintable()}


@given(any_text(max_size=3000), any_text(max_size=30))
def test_one_lesson_is_one_line_of_bounded_width(title: str, id: str) -> None:
    one = lift(lessons=(LessonLift(lesson_id=id, title=title),))
    assert len(str(one).splitlines()) == len(str(lift(lessons=(LessonLift(lesson_id="a", title="b"),))).splitlines())
    rows = [line for line in str(one).splitlines() if line.startswith("  ")]
    assert max(map(len, rows)) < 160


@pytest.mark.full
@given(ESTIMATES, ESTIMATES, st.sampled_from(get_args(Standing)))
def test_every_lift_can_be_said_and_kept(one: Estimate, other: Estimate, standing: Any) -> None:
    whole = lift(
        success=one,
        steps=other,
        standing=standing,
        lessons=(LessonLift(lesson_id="a", success=other, standing=standing),),
        measuring=MeasuringCost(given_up=-1.0),
        series=(Point(recalls=1),),
    )
    assert Lift.model_validate_json(whole.model_dump_json()) == whole
    assert str(whole).splitlines()[0] == headline(whole)


def a_usual_bank(**more: Any) -> Lift:
    named = [(f"topic/{n:08x}", f"topic {n}") for n in range(9)]
    told: dict[str, Any] = {
        "recalls": 2000,
        "settled": 1900,
        "controls": 250,
        "success_with": 0.6,
        "success_without": 0.5,
        "success": sure(0.1),
        "standing": "likely helps",
        "steps": Estimate(value=-1.5, low=-2, high=-1),
        "groups": tuple(GroupLift(group=id, name=name, lessons=4, success=sure(0.05)) for id, name in named),
        "lessons": tuple(LessonLift(lesson_id=f"{n}", title=f"title {n}", success=sure(0.1)) for n in range(40)),
        "notes": ("all outcomes come from one writer",),
    }
    return lift(**(told | more))


def test_the_answer_comes_first_then_what_to_do_next_then_groups_lessons_and_the_promise() -> None:
    text = str(a_usual_bank())
    parts = (
        "Does memory help? Likely yes, keep it: success +10.0 points [+6, +14].",
        "chosen at random\n  a task: steps",
        "What to do next: Go on: more outcomes decide it",
        "the decision on each group",
        "4 lessons, undecided, at most 9 points either way: topic 2",
        "… and 6 more",
        "the decision on each lesson",
        "undecided, at most 14 points either way: title 5",
        "… and 34 more",
        PROMISE,
        "Note: all outcomes come from one writer",
    )
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert text.count(PROMISE) == 1
    assert len(text.splitlines()) <= 25


def test_what_rests_on_opinions_alone_says_so_everywhere_and_promises_nothing() -> None:
    by_judge = sure(0.3).model_copy(update={"basis": "judge"})
    lessons = (LessonLift(lesson_id="a", title="A", success=by_judge, standing="likely helps"),)
    groups = (GroupLift(group="topic/1", name="G", success=by_judge),)
    text = str(lift(success=by_judge, standing="helps", lessons=lessons, groups=groups))
    assert "Yes, by the judge: success +30.0" in text
    assert "undecided: likely helps, by the judge: A" in text
    assert "undecided, by the judge, at most 34 points either way: G" in text
    assert OPINIONS in text
    assert PROMISE not in text
    assert "What to do next: Let a person label some runs: an audit draws them at random." in text
    assert "Go on" not in text


def test_nothing_is_advised_because_of_opinions_alone() -> None:
    nothing, harm = (sure(value).model_copy(update={"basis": "judge"}) for value in (0.0, -0.3))
    lesson = LessonLift(lesson_id="a", success=nothing)
    told = "Let a person label some runs: an audit draws them at random."
    for standing, effect in (("no evidence yet", nothing), ("harms", harm), ("likely harms", harm)):
        whole = lift(success=effect, standing=standing, lessons=(lesson,))
        assert advice(whole) == (told,)
        assert "does nothing" not in str(whole)


def test_many_lessons_are_told_apart_from_their_parts_in_one_pass() -> None:
    def asked(size: int) -> Callable[[], object]:
        lessons = tuple(LessonLift(lesson_id=f"{n}", part_of=f"{n + 1}" if n % 2 else None) for n in range(size))
        return partial(distinct_lessons, lift(lessons=lessons))

    assert growth_of(asked, size=1_000) <= FAR


def test_where_some_outcomes_were_told_no_report_says_that_only_a_judge_graded() -> None:
    by_judge = sure(0.3).model_copy(update={"basis": "judge"})
    text = str(lift(success=by_judge, standing="helps", truths=4, opinions=5))
    assert "Only 4 outcomes were told, and 5 are a judge's opinion: the numbers mix both" in text
    assert OPINIONS not in text
    assert PROMISE not in text


def test_what_to_do_next_follows_from_what_is_known() -> None:
    asked = LessonLift(lesson_id="a", standing="harms", proposed=True)
    assert "among the proposals" in advice(lift(success=sure(0.1), lessons=(asked,)))[0]
    assert "Label 3 runs" in advice(lift(success=sure(0.1), unlabelled=3))[0]
    for settled in (40, 66):
        assert f"Tell more outcomes: {settled} of 100 recalls have one" in advice(lift(settled=settled))[0]
    assert "observe=True" in advice(lift(success=sure(-0.1), standing="harms"))[0]
    assert "a trial is quicker" in advice(lift(success=sure(0.03)))[0]
    assert advice(lift(success=sure(0.1), standing="helps")) == ("Nothing. Keep going.",)


CALL = re.compile(r"\b(?:bank|lessons|runs)\.[a-z]+\b|Learning\(|\b(?:learn|retrieve)\(|\b(?:recall|outcome)=")


@pytest.mark.parametrize(
    "given",
    [
        {"recalls": 0, "settled": 0, "empty": 3, "unfinished": 2, "success": Estimate()},
        {"recalls": 0, "settled": 0, "success": Estimate()},
        {"settled": 0, "success": Estimate()},
        {"settled": 9},
        {"missing_differs": True},
        {"unlabelled": 3},
        {"lessons": (LessonLift(lesson_id="a", standing="helps", proposed=True),)},
        {"standing": "likely harms", "lessons": (LessonLift(lesson_id="a", standing="harms", proposed=True),)},
        {"success": sure(0.3).model_copy(update={"basis": "judge"})},
    ],
)
def test_advice_names_no_call_of_the_library_for_nobody_calls_python_from_a_page(given: dict[str, Any]) -> None:
    said = " ".join(advice(lift(**({"success": sure(0.0)} | given))))
    assert not CALL.search(said), said
    assert "let your program ask" in advice(lift(recalls=0, settled=0))[0]


def test_where_outcomes_go_missing_on_one_side_there_is_no_verdict_and_a_way_on() -> None:
    missing = lift(success=sure(0.1), missing_differs=True, missing_with=0.4, missing_without=0.1)
    assert headline(missing) == (
        "Does memory help? No verdict: outcomes are missing for 40% of recalls with memory and 10% without."
    )
    assert [word for word in advice(missing) if "Find out why outcomes are missing" in word]
    assert "Go on" not in str(missing)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(value: float) -> None:
    with pytest.raises(UsageError, match="finite number"):
        Estimate(value=value)


def test_a_bound_that_everybody_knew_is_not_said() -> None:
    wide = Estimate(value=0.1, low=-0.3, high=0.5, always_low=-0.6, always_high=0.7)
    assert headline(lift(success=wide)).endswith("Undecided, too few tasks: 90 known outcomes, 10 without memory.")
    assert said_of(LessonLift(lesson_id="a", success=wide)) == "undecided, too few tasks"
    most = Estimate(value=0.28, low=0.0, high=0.5, always_low=-0.03, always_high=0.54)
    assert headline(lift(success=most)) == "Does memory help? Undecided: success +28.0 points [-3, +54]."


def test_a_lesson_that_helps_while_memory_is_undecided_is_explained() -> None:
    helps = LessonLift(lesson_id="a", standing="helps", success=sure(0.3))
    said = advice(lift(success=sure(0.2), lessons=(helps,), withheld=39))[0]
    assert said.startswith("Keep memory: 1 lesson is shown to help.")
    assert "39 tasks without it" in said


def test_there_is_always_something_to_do_next_and_what_the_bank_did_is_said() -> None:
    out = LessonLift(lesson_id="a", standing="harms", retired=True)
    kept = LessonLift(lesson_id="b")
    assert advice(lift(success=sure(0.0), lessons=(out, kept))) == (
        "1 lesson that harms is taken out already; keep the others.",
    )
    assert advice(lift(success=sure(0.0), lessons=(out,)))[0].endswith("taken out already, and no other is left.")
    assert advice(lift(success=sure(0.0))) == ("Nothing. Keep going.",)


def test_the_effect_that_is_printed_is_the_difference_of_the_shares_beside_it() -> None:
    found = Lift(
        scope="t",
        level=0.05,
        recalls=80,
        settled=80,
        controls=30,
        shown=50,
        withheld=30,
        standing="helps",
        success=Estimate(value=0.54549, basis="truth", always_low=0.3, always_high=0.8),
        success_with=0.96361,
        success_without=0.41812,
    )
    assert "with memory 96.3 %" in in_words(found)
    assert "without 41.8 %" in in_words(found)
    assert "success +54.5 points" in headline(found)

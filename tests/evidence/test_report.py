"""The report counts what is there, says what it does not know, and has a number only where there is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from planted import SEEDS, episodes

from lessonbank.contracts.records import Lesson
from lessonbank.evidence.episodes import Draws, Episodes
from lessonbank.evidence.lift import Lift
from lessonbank.evidence.report import report


def played(
    seed: int,
    n: int,
    *,
    effects: tuple[float, ...] = (0.4, 0.0, -0.4),
    lift: float = 0.0,
    whole: float = 0.3,
    held: float = 0.4,
) -> Episodes:
    """Each recall finds two of the lessons."""
    g = np.random.default_rng(seed)
    lesson = np.argsort(g.random((n, len(effects))), axis=1)[:, :2]
    withheld, control = g.random(lesson.shape) < held, g.random(n) < whole
    rate = 0.5 + np.where(control, 0.0, lift + (np.array(effects)[lesson] * ~withheld).sum(1) / 2)
    return episodes(
        (g.random(n) < rate).astype(float),
        control=control,
        control_probability=whole,
        cluster=g.integers(0, 25, n),
        steps=np.where(control, 12.0, 8.0) + g.normal(0, 1, n),
        lessons=lesson,
        withheld=withheld,
        probability=held,
        names=len(effects),
    )


def told(one: Episodes, **more: Any) -> Lift:
    return report(one, scope="t", **more)


def test_it_counts_recalls_outcomes_and_both_sides() -> None:
    one = played(0, 400)
    one = replace(one, outcome=np.where(np.arange(400) < 300, one.outcome, np.nan))
    lift = told(one)
    known, control = one.known, one.without
    assert (lift.recalls, lift.settled, lift.controls) == (400, 300, int((known & control).sum()))
    assert (lift.shown, lift.withheld) == (int((known & ~control).sum()), int((known & control).sum()))
    assert lift.missing_with == pytest.approx((~known & ~control).sum() / (~control).sum())
    assert lift.missing_without == pytest.approx((~known & control).sum() / control.sum())


@pytest.mark.parametrize("n", [40, 140, 600])
def test_the_difference_of_the_two_shares_is_the_effect_and_the_series_ends_there(n: int) -> None:
    for seed in range(6):
        lift = told(moving_odds(played(seed, n, lift=0.3, whole=0.2)))
        assert lift.success.value is not None
        assert lift.success_with is not None
        assert lift.success_without is not None
        assert lift.success_with - lift.success_without == pytest.approx(lift.success.value)
        assert (lift.series[-1].with_memory, lift.series[-1].without) == (lift.success_with, lift.success_without)
        for share in (share for p in lift.series for share in (p.with_memory, p.without) if share is not None):
            assert 0 <= share <= 1


def moving_odds(one: Episodes) -> Episodes:
    """Memory was withheld rarely at first and often later: plain shares weigh the two times otherwise on each side."""
    g = np.random.default_rng(9)
    odds = np.where(np.arange(len(one)) < len(one) // 2, 0.9, 0.4)
    shown = g.random(len(one)) < odds
    own = one.draws.treatment == 0
    row = one.draws.row[own]
    drawn, chance = one.draws.shown.copy(), one.draws.chance.copy()
    drawn[own], chance[own] = shown[row], odds[row]
    return replace(one, draws=replace(one.draws, shown=drawn, chance=chance))


@pytest.mark.full
def test_the_shares_are_those_of_the_world_on_average() -> None:
    lifts = [told(moving_odds(played(seed, 400, effects=(0.0, 0.0), whole=0.2))) for seed in range(20)]
    assert np.mean([lift.success_with or 0 for lift in lifts]) == pytest.approx(0.5, abs=0.03)
    assert np.mean([lift.success_without or 0 for lift in lifts]) == pytest.approx(0.5, abs=0.03)


def test_a_task_that_lacks_several_lessons_costs_one_success_at_most() -> None:
    one = played(3, 40, effects=(0.4, 0.4, 0.4), whole=0.0, held=0.5)
    cost = told(one).measuring
    tasks = cost.tasks_without + cost.tasks_with_less
    assert cost.given_up_low is not None
    assert cost.given_up_high is not None
    assert (~one.placed.shown).sum() > tasks, "else no task lacks two"
    assert -tasks <= cost.given_up_low <= cost.given_up <= cost.given_up_high <= tasks


def test_tasks_that_measuring_left_without_lessons_are_counted() -> None:
    one = played(6, 200)
    shown = np.bincount(one.placed.row, one.placed.shown.astype(float), len(one))
    lift = told(one)
    assert lift.measuring.tasks_without == lift.controls == int(one.without.sum())
    assert lift.measuring.tasks_with_less == int(((shown < 2) & ~one.without).sum())


def test_what_runs_never_counted_is_not_compared() -> None:
    """A change of nothing by nothing, with an interval of nothing, would look like knowledge."""
    one = played(2, 200)
    assert [told(replace(one, steps=np.full(200, count))).steps.value for count in (0.0, 1.0)] == [None, None]


def test_what_helps_and_what_harms_comes_first_and_is_called_so() -> None:
    lift = told(played(1, 6000))
    assert [(i.lesson_id, i.standing) for i in lift.lessons] == [
        ("lesson 2", "harms"),
        ("lesson 0", "helps"),
        ("lesson 1", "no evidence yet"),
    ]
    assert lift.lessons[0].success.high is not None
    assert lift.lessons[0].success.high < 0


def test_what_a_run_takes_is_compared_too() -> None:
    lift = told(played(2, 1500))
    assert lift.steps.value == pytest.approx(-4.0, abs=0.4)
    assert lift.tokens.value is lift.cost.value is lift.seconds.value is None


@pytest.mark.full
def test_an_effect_lies_in_its_interval_and_no_interval_leaves_what_can_be() -> None:
    """Few recalls of great effects: plain arithmetic would say more than a hundred points."""
    lifts = [told(played(seed, 40, effects=(1.0, 0.0, -1.0), held=0.2)) for seed in range(40)]
    effects = [treatment.success for lift in lifts for treatment in (lift, *lift.lessons)]
    known = [
        (e.low, e.value, e.high) for e in effects if e.low is not None and e.value is not None and e.high is not None
    ]
    assert len(known) > 40
    assert [(low, value, high) for low, value, high in known if not -1 <= low <= value <= high <= 1] == []


def test_lessons_bear_the_names_and_states_that_the_bank_knows() -> None:
    known = {
        "lesson 0": Lesson(id="lesson 0", title="Look first", content="Look.", kind="guardrail", retired=True),
        "lesson 1": Lesson(id="lesson 1", title="Wait", content="Wait.", state="quarantined"),
    }
    lessons = {i.lesson_id: i for i in told(played(3, 60), lessons=known).lessons}
    assert (lessons["lesson 0"].title, lessons["lesson 0"].kind, lessons["lesson 0"].retired) == (
        "Look first",
        "guardrail",
        True,
    )
    assert (lessons["lesson 1"].quarantined, lessons["lesson 2"].title, lessons["lesson 2"].kind) == (True, "", None)


def test_a_lesson_that_was_never_found_is_not_in_the_report() -> None:
    one = played(4, 60)
    never = replace(one, treatments=(*one.treatments, "never"), level=np.r_[one.level, 2], turn=np.r_[one.turn, 3])
    found = told(replace(never, parents=(*one.parents, ())), lessons={}).lessons
    assert {i.lesson_id for i in found} == set(one.treatments[1:])


def test_withholding_costs_what_it_left_out() -> None:
    helps, harms = (told(played(6, 4000, effects=(e, e), whole=0.1)).measuring for e in (0.3, -0.3))
    assert helps.given_up > 0 > harms.given_up
    one = played(6, 4000, effects=(0.3, 0.3), whole=0.1)
    lost = 0.15 * int((~one.placed.shown & ~one.without[one.placed.row]).sum()) + 0.18 * int(one.without.sum())
    assert helps.given_up == pytest.approx(lost, rel=0.35)


def test_the_series_ends_where_the_report_is() -> None:
    lift = told(played(8, 500))
    last = lift.series[-1]
    assert (len(lift.series), last.recalls) == (60, 500)
    assert [p.recalls for p in lift.series] == sorted({p.recalls for p in lift.series})


def test_the_series_counts_tasks_and_no_recall_in_the_middle_of_a_run() -> None:
    one, again = played(8, 500), np.arange(500) % 5 == 4
    drawn = one.draws
    own = ~again[drawn.row] | (drawn.treatment != 0)
    draws = Draws(drawn.row[own], drawn.treatment[own], drawn.shown[own], drawn.chance[own])
    lift = told(replace(one, again=again, draws=draws))
    assert (lift.settled, lift.series[-1].recalls) == (400, 400)


class TestNotes:
    def test_outcomes_that_are_missing_alike_on_both_sides_are_said(self) -> None:
        one, gone = played(7, 600), np.random.default_rng(1).random(600) < 0.25
        lost = told(replace(one, outcome=np.where(gone, np.nan, one.outcome)))
        assert f"{lost.settled} of 600 recalls have one, and effects are those in these. Give each run" in str(lost)
        assert "Tell more outcomes" not in str(told(one))

    def test_no_control_no_answer(self) -> None:
        lift = told(played(10, 300, whole=0.0))
        assert any("withheld whole" in note for note in lift.notes)
        assert (lift.success.value, lift.standing, lift.success_without) == (None, "no evidence yet", None)

    @pytest.mark.parametrize(("share", "said"), [(0.0, "Only a judge graded"), (0.3, "truth was told")])
    def test_opinions_are_called_opinions(self, share: float, said: str) -> None:
        one = played(11, 600)
        true = np.random.default_rng(1).random(600) < share
        lift = told(replace(one, true=true))
        assert said in str(lift)
        assert lift.success.basis == ("judge" if share == 0.0 else "truth")

    def test_how_many_were_told_and_how_many_a_judge_graded_is_said_where_numbers_mix_both(self) -> None:
        one, true = played(11, 600), np.arange(600) < 7
        lift = told(replace(one, true=true))
        assert "Only 7 outcomes were told, and 593 are a judge's opinion: the numbers mix both" in str(lift)
        assert (lift.truths, lift.opinions, lift.success.basis) == (7, 593, "judge")
        assert "Only a judge graded" not in str(lift)


def test_what_waits_for_an_earlier_outcome_is_said_beside_what_counts() -> None:
    lift = told(replace(played(11, 60), waiting=np.arange(60) >= 50))
    every = told(played(11, 60))
    of = {lesson.lesson_id: lesson for lesson in lift.lessons}
    for whole in every.lessons:
        lesson = of[whole.lesson_id]
        assert whole.shown > lesson.shown
    assert any("10 outcomes do not count yet" in note for note in lift.notes)
    assert not any("count yet" in note for note in every.notes)
    one = played(11, 60)
    lift = told(replace(one, outcome=np.where(np.arange(60) == 50, np.nan, one.outcome), waiting=np.arange(60) >= 50))
    assert (lift.recalls, lift.settled) == (60, 59)
    assert any(note.startswith("9 outcomes do not count yet: an earlier recall has none") for note in lift.notes)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_a_surer_interval_is_wider(level: float) -> None:
    one = played(12, 500)
    here, usual = told(one, level=level), told(one)
    wider = level > 0.95
    for lesson, other in zip(sorted(here.lessons, key=_id), sorted(usual.lessons, key=_id), strict=True):
        a, b = lesson.success, other.success
        assert a.high is not None
        assert b.high is not None
        assert (a.high > b.high) == wider
        assert a.value == b.value


def _id(lesson: Any) -> str:
    return str(lesson.lesson_id)


@pytest.mark.full
@example(13, 1, 0.3, 0.4)
@example(14, 40, 1e-17, 0.4)
@given(SEEDS, st.integers(0, 40), st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 1e-9, 0.5, 1.0]))
def test_whatever_happened_the_report_is_made_kept_and_said(seed: int, n: int, whole: float, held: float) -> None:
    one = played(seed, n, whole=whole, held=held)
    g = np.random.default_rng(seed)
    one = replace(one, outcome=np.where(g.random(n) < 0.2, np.nan, one.outcome), true=g.random(n) < 0.5)
    lift = told(one)
    assert Lift.model_validate_json(lift.model_dump_json()) == lift
    assert str(lift).startswith("Does memory help?")
    for estimate in (lift.success, *(i.success for i in lift.lessons)):
        if estimate.value is not None and estimate.always_low is not None and estimate.always_high is not None:
            assert -1 <= estimate.always_low <= estimate.always_high <= 1


def test_a_bank_of_one_lesson_has_one_decision() -> None:
    g = np.random.default_rng(5)
    n, control = 1500, g.random(1500) < 0.3
    withheld = g.random((n, 1)) < 0.1
    good = g.random(n) < np.where(control | withheld[:, 0], 0.4, 0.65)
    one = episodes(
        good.astype(float),
        control=control,
        control_probability=0.3,
        lessons=np.zeros((n, 1), np.int64),
        withheld=withheld,
        probability=0.1,
        names=1,
    )
    lift = told(one)
    assert lift.standing != "no evidence yet"
    assert lift.lessons[0].standing == lift.standing


@pytest.mark.parametrize(
    ("outcome", "said"),
    [(0.0, "all 60 outcomes are failures,"), (1.0, "all 60 outcomes are successes,"), (0.5, "all 60 rewards are 0.5,")],
)
def test_outcomes_that_are_all_alike_are_said(outcome: float, said: str) -> None:
    alike = replace(played(3, 60), outcome=np.full(60, outcome))
    assert [note for note in told(alike).notes if note.startswith(said)]
    assert not [note for note in told(played(3, 60)).notes if note.startswith("all 60")]

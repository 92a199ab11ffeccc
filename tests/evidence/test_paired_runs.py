"""Pairs of runs: their order, the test that may be looked at after each of them, and what is told in the end."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.errors import UsageError
from lessonbank.trials.design import Design, PairEvidence, Trial, TrialRun, lesson_in_question, order
from lessonbank.trials.paired_sequential import PairedTest

IDS = [f"{n:032x}" for n in range(20)]
TIMES = 800 if "LESSONBANK_SOAK" in os.environ else 400
ABOUT = Trial(scope="t", treatment="i", title="Look twice", runs=8)


def row(with_: float | None, without: float | None, *, id: str = "r") -> list[TrialRun]:
    of = {"task": id, "round": 0, "seed": 1, "memory_digest": "a"}
    return [TrialRun(arm="with", outcome=with_, **of), TrialRun(arm="without", outcome=without, **of)]


def played(*pairs: list[TrialRun], design: Design | None = None) -> Trial:
    evidence = PairEvidence(design or Design(min_effect=0.05))
    stopped = next(filter(None, map(evidence.take, pairs)), None) or "nothing left to run"
    return evidence.with_findings(ABOUT.model_copy(update={"min_effect": 0.05, "stopped": stopped}))


def walk(differences: list[float], *, level: float = 0.95) -> PairedTest:
    test = PairedTest(level)
    for difference in differences:
        test.add(difference)
    return test


def test_the_file_of_a_trial_calls_its_treatment_what_older_files_call_it() -> None:
    line = '{"scope":"t","unit":"i","title":"Look twice","runs":8}'
    assert Trial.model_validate_json(line) == ABOUT
    assert ABOUT.model_dump_json(exclude_defaults=True) == line


# --- the question ----------------------------------------------------------------------------------------------------


def test_one_thing_is_compared_at_a_time_and_memory_as_a_whole_where_none_is_named() -> None:
    assert lesson_in_question() is None
    assert lesson_in_question(without="a") == lesson_in_question(with_="a") == "a"
    with pytest.raises(UsageError, match="one of without=id, with_=id"):
        lesson_in_question(without="a", with_="b")
    for wrong in ("", True, 3):
        with pytest.raises(UsageError, match="without= takes an id"):
            lesson_in_question(without=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_runs": 1},
        {"max_cost": 0.0},
        {"max_seconds": float("nan")},
        {"rounds": 1.5},
        {"concurrency": True},
        {"min_effect": 1.0},
        {"min_effect": -0.1},
        {"level": 1.0},
    ],
)
def test_a_design_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Design(**wrong)  # type: ignore[arg-type]


# --- the order -------------------------------------------------------------------------------------------------------


def test_every_round_does_every_task_once_in_an_order_of_its_own() -> None:
    pairs = [one.task for one in order(IDS, Design(rounds=3))]
    rounds = [pairs[:20], pairs[20:40], pairs[40:]]
    assert all(sorted(one) == IDS for one in rounds)
    assert len({tuple(one) for one in rounds}) == 3


def test_the_same_seed_plans_the_same_and_another_seed_otherwise() -> None:
    first, again, other = (list(order(IDS, Design(seed=seed, rounds=2))) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert first[:20] == list(order(IDS, Design(seed=1, rounds=1)))
    assert len({one.seed for one in first}) == 40
    assert all(0 <= one.seed < 2**32 for one in first)


def test_which_side_goes_first_is_a_coin() -> None:
    firsts = Counter(one.first for one in order(IDS, Design(rounds=50)))
    assert abs(firsts["with"] - 500) < 60


# --- the test --------------------------------------------------------------------------------------------------------


def test_nothing_is_known_before_the_first_pair() -> None:
    assert PairedTest().interval() == (-1.0, 1.0)


def test_ties_are_no_evidence_for_an_effect_and_narrow_the_interval() -> None:
    test = walk([0.0] * 300)
    low, high = test.interval()
    assert -0.03 < low < 0 < high < 0.03
    assert low == pytest.approx(-high)


def test_wins_alone_show_an_effect_after_seven_of_them() -> None:
    tests = [walk([1.0] * n) for n in range(1, 15)]
    assert next(test.n for test in tests if test.above(0.0)) == 7
    assert walk([1.0] * 2000).interval()[0] > 0.95


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_the_interval_excludes_zero_exactly_when_the_evidence_says_so(differences: list[float]) -> None:
    test = walk(differences)
    low, high = test.interval()
    assert (low > 0) == test.above(0.0)
    assert (high < 0) == test.below(0.0)


@pytest.mark.full
@given(st.lists(st.floats(-1, 1), max_size=60))
def test_what_speaks_for_one_side_speaks_against_the_other(differences: list[float]) -> None:
    low, high = walk(differences).interval()
    assert walk([-d for d in differences]).interval() == pytest.approx((-high, -low))
    assert low <= high


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=80), st.floats(-0.9, 0.9))
def test_an_effect_outside_the_interval_is_excluded_and_one_inside_is_not(
    differences: list[float], effect: float
) -> None:
    test = walk(differences)
    low, high = test.interval()
    assert test.above(effect) == (effect <= low) or abs(effect - low) < 1e-6
    assert test.below(effect) == (effect >= high) or abs(effect - high) < 1e-6


def drawn(rng: random.Random, wins: float, losses: float) -> float:
    chance = rng.random()
    return 1.0 if chance < wins else -1.0 if chance < wins + losses else 0.0


@pytest.mark.full
@pytest.mark.parametrize("discordant", [0.1, 0.6])
def test_without_an_effect_one_is_rarely_shown_however_often_one_looks(discordant: float) -> None:
    rng, wrong = random.Random(5), 0
    for _ in range(TIMES):
        test = PairedTest()
        for _ in range(120):
            test.add(drawn(rng, discordant / 2, discordant / 2))
            if test.above(0.0) or test.below(0.0):
                wrong += 1
                break
    assert wrong / TIMES <= 0.05


@pytest.mark.full
def test_the_interval_holds_the_average_effect_at_every_moment_while_it_drifts() -> None:
    rng, missed = random.Random(6), 0
    for _ in range(150):
        test, total = PairedTest(), 0.0
        for n in range(1, 101):
            effect = 0.3 if n < 50 else -0.3
            total += effect
            test.add(drawn(rng, 0.3 + effect / 2, 0.3 - effect / 2))
            if test.above(total / n) or test.below(total / n):
                missed += 1
                break
    assert missed / 150 <= 0.05


# --- what is told ----------------------------------------------------------------------------------------------------


def test_a_trial_stops_when_an_effect_is_shown() -> None:
    helped = played(*[row(1, 0)] * 30)
    assert (helped.stopped, helped.standing) == ("effect shown", "helps")
    assert helped.pairs == helped.wins < 12
    assert helped.low is not None and helped.low > 0
    harmed = played(*[row(0, 1)] * 30)
    assert (harmed.standing, harmed.losses, harmed.effect) == ("harms", helped.wins, -1.0)


def test_a_trial_stops_when_whatever_there_is_would_be_too_small() -> None:
    told = played(*[row(1, 1)] * 400)
    assert (told.stopped, told.standing, told.effect) == ("too small to matter", "no evidence yet", 0.0)
    assert told.pairs < 150
    assert "The lesson 'Look twice' changes less than 5 points: success +0.0 points [" in str(told)
    assert played(*[row(1, 1)] * 400, design=Design(min_effect=0.0)).pairs == 400


def test_a_trial_that_runs_out_says_that_there_is_no_evidence_yet() -> None:
    told = played(row(1, 0), row(0.25, 0.5), row(0.5, 0.5))
    assert (told.stopped, told.standing) == ("nothing left to run", "no evidence yet")
    assert (told.wins, told.losses, told.ties) == (1, 1, 1)
    assert told.effect == pytest.approx(0.25)
    assert "No evidence yet that the lesson 'Look twice' changes anything: success +25.0 points" in str(told)
    assert "Stopped: nothing left to run." in str(told)


def test_a_pair_without_an_outcome_does_not_count_and_is_spoken_of() -> None:
    told = played(row(1, None), row(1, 0), row(None, None))
    assert (told.pairs, told.effect) == (1, 1.0)
    assert told.notes == ("no outcome is known of 1 run with it and 2 runs without: their pairs are left out",)
    assert "changes: no pair of runs has two known outcomes." in str(played(row(1, None)))


def test_a_trial_goes_through_json_and_stays_the_same() -> None:
    told = played(*[row(1, 0)] * 30)
    assert Trial.model_validate_json(told.model_dump_json()) == told


def test_a_title_from_strangers_cannot_drive_a_terminal() -> None:
    told = PairEvidence(Design()).with_findings(ABOUT.model_copy(update={"title": "a\x1b[2Jb\nc"}))
    assert "\x1b" not in str(told)
    assert "\nc" not in str(told)


# --- how many runs it takes ------------------------------------------------------------------------------------------


def runs_of_a_trial(effect: float, *, shared: bool, seed: str) -> int:
    """Until it stops by itself, in a world where half of all runs succeed and a lesson adds `effect`."""
    rng, evidence = random.Random(seed), PairEvidence(Design())
    low, high = 0.5 - effect / 2, 0.5 + effect / 2
    for runs in range(2, 20_000, 2):
        luck = rng.random()
        other = luck if shared else rng.random()
        if evidence.take(row(float(luck < high), float(other < low))):
            return runs
    raise AssertionError("it never stopped")


@pytest.mark.full
@pytest.mark.parametrize(
    ("effect", "shared", "mean", "half", "most"),
    [
        (0.2, True, 76, 68, 88),
        (0.1, True, 152, 134, 180),
        (0.2, False, 270, 216, 362),
        pytest.param(0.1, False, 1100, 874, 1504, marks=pytest.mark.release),
    ],
)
def test_simulated_trials_take_what_the_guide_says(
    effect: float, shared: bool, mean: int, half: int, most: int
) -> None:
    took = [runs_of_a_trial(effect, shared=shared, seed=f"fresh {effect} {shared} {n}") for n in range(TIMES)]
    within = [sum(runs <= planned for runs in took) / TIMES for planned in (half, most)]
    print(f"\n{effect:+.2f} {shared=}: mean {sum(took) / TIMES:.1f} runs, within {half}/{most}: {within}")
    assert sum(took) / TIMES <= mean
    assert 0.42 < within[0] < 0.62
    assert 0.74 < within[1] < 0.9

"""Effects that were planted are found, intervals hold them, and nothing that means nothing moves an estimate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import SEEDS, episodes

from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.estimates import (
    ENOUGH,
    Effects,
    cost_effect,
    lesson_effects,
    more_needed,
    overall_effect,
    pooled,
    sober,
)


def played(
    seed: int, *, n: int = 3000, effects: tuple[float, ...] = (0.25, 0.0, -0.25), lift: float = 0.1, **more: Any
) -> Episodes:
    """Two of several lessons are found in each recall; a tenth to a half of everything is withheld."""
    g = np.random.default_rng(seed)
    lessons = np.argsort(g.random((n, len(effects))), axis=1)[:, :2]
    chance = g.choice([0.1, 0.5], lessons.shape)
    withheld, odds = g.random(lessons.shape) < chance, g.choice([0.2, 0.5], n)
    control, cluster = g.random(n) < odds, g.integers(0, 40, n)
    moved = (np.array(effects)[lessons] * ~withheld).sum(1) + lift
    rate = 0.35 + g.normal(0, 0.1, 40)[cluster] + np.where(control, 0.0, moved)
    return episodes(
        (g.random(n) < rate).astype(float),
        control=control,
        control_probability=odds,
        lessons=lessons,
        withheld=withheld,
        probability=chance,
        names=len(effects),
        cluster=cluster,
        **more,
    )


def judged(one: Episodes, seed: int, *, called_success: tuple[float, float], told: float) -> Episodes:
    """A judge calls failures and successes a success this often; of a share `told` the truth is known as well."""
    g = np.random.default_rng(seed)
    said = (g.random(len(one)) < np.where(one.outcome > 0.5, called_success[1], called_success[0])).astype(float)
    true = g.random(len(one)) < told
    return replace(
        one, outcome=np.where(true, one.outcome, said), judged=said, true=true, judge=np.zeros(len(one), np.int64)
    )


def within(effects: Effects, truth: Any) -> bool:
    return bool(((effects.low <= truth) & (truth <= effects.high)).all())


def test_planted_effects_of_lessons_are_found_though_lessons_are_found_together() -> None:
    found = lesson_effects(played(1))
    assert found.estimate == pytest.approx([0.25, 0.0, -0.25], abs=0.06)
    assert within(found, np.array([0.25, 0.0, -0.25]))
    assert (found.basis, found.low[0] > 0, found.high[2] < 0) == ("truth", True, True)


def test_memory_as_a_whole_is_compared_with_recalls_that_went_without() -> None:
    found = overall_effect(played(3, effects=(0.0, 0.0), lift=0.2))
    assert found.estimate[0] == pytest.approx(0.2, abs=0.05)
    assert within(found, 0.2)


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    truth = np.array([0.25, 0.0, -0.25])
    found = [lesson_effects(played(seed, n=400)) for seed in range(80)]
    held = np.mean([(one.low <= truth) & (truth <= one.high) for one in found])
    assert 0.9 <= held <= 0.99


@given(SEEDS)
def test_what_helps_success_harms_failure(seed: int) -> None:
    one = played(seed, n=120)
    other = replace(one, outcome=1.0 - one.outcome)
    for ask in (lesson_effects, overall_effect):
        here, there = ask(one), ask(other)
        assert there.estimate == pytest.approx(-here.estimate, abs=1e-4, nan_ok=True)
        assert there.low == pytest.approx(-here.high, abs=1e-3)
        assert (there.shown == here.shown).all()


@pytest.mark.full
@given(SEEDS)
def test_a_lesson_that_was_never_found_changes_nothing(seed: int) -> None:
    one = played(seed, n=100)
    other = replace(one, lessons=(*one.lessons, "never found"))
    here, there = lesson_effects(one), lesson_effects(other)
    assert there.estimate[:-1] == pytest.approx(here.estimate, abs=1e-6, nan_ok=True)
    assert (math.isnan(there.estimate[-1]), there.low[-1], there.high[-1]) == (True, -math.inf, math.inf)
    assert overall_effect(other).estimate == pytest.approx(overall_effect(one).estimate, abs=1e-4, nan_ok=True)


@given(SEEDS, st.floats(0.001, 1000), st.floats(-100, 100))
def test_costs_in_another_unit_have_effects_in_that_unit(seed: int, unit: float, zero: float) -> None:
    one = played(seed, n=100)
    values = np.random.default_rng(seed).gamma(2.0, 5.0, len(one))
    here, there = cost_effect(one, values), cost_effect(one, unit * (values + zero))
    for name in ("estimate", "spread"):
        assert getattr(there, name) / unit == pytest.approx(getattr(here, name), abs=0.05, nan_ok=True)


def test_a_cost_that_is_known_of_some_recalls_is_compared_among_these() -> None:
    one = played(5, n=600)
    steps = np.where(one.control, 12.0, 8.0) + np.random.default_rng(5).normal(0, 1, 600)
    steps[::3] = np.nan
    found = cost_effect(one, steps)
    assert found.estimate[0] == pytest.approx(-4.0, abs=0.5)
    assert found.shown[0] + found.withheld[0] == 400


def test_where_nothing_is_known_nothing_is_said() -> None:
    unknown = replace(played(6, n=50), outcome=np.full(50, np.nan))
    for found in (lesson_effects(unknown), overall_effect(unknown), cost_effect(unknown, np.ones(50))):
        assert np.isnan(found.estimate).all()
        assert np.isinf(found.low).all()
        assert not found.shown.any()
    nobody = episodes(np.empty(0))
    assert len(lesson_effects(nobody).estimate) == 0
    assert math.isnan(overall_effect(nobody).estimate[0])


@pytest.mark.parametrize(("withheld", "said"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_four_recalls_on_one_side_say_nothing(withheld: int, said: bool) -> None:
    control = np.arange(30) < withheld
    outcome = np.random.default_rng(0).integers(0, 2, 30).astype(float)
    found = overall_effect(episodes(outcome, control=control, control_probability=0.2))
    assert math.isfinite(found.estimate[0]) == math.isfinite(found.high[0]) == said
    assert found.withheld[0] == withheld


@pytest.mark.parametrize("certain", [0.0, 1.0])
def test_what_was_certain_was_not_drawn_and_does_not_count(certain: float) -> None:
    one = played(7, n=400)
    sure = one.pairs.row % 2 == 0
    pairs = replace(
        one.pairs,
        probability=np.where(sure, certain, one.pairs.probability),
        withheld=np.where(sure, certain > 0, one.pairs.withheld),
    )
    found = lesson_effects(replace(one, pairs=pairs))
    counted = ~sure & ~one.control[one.pairs.row]
    assert int((found.shown + found.withheld).sum()) == int(counted.sum())
    every = lesson_effects(replace(one, pairs=replace(pairs, probability=np.full(len(pairs), certain))))
    assert np.isnan(every.estimate).all()


def test_recalls_without_memory_say_nothing_of_lessons() -> None:
    one = played(8, n=300)
    other = replace(one, outcome=np.where(one.control, 1.0 - one.outcome, one.outcome))
    assert lesson_effects(other).estimate == pytest.approx(lesson_effects(one).estimate, abs=1e-9)


def test_equal_outcomes_are_no_proof_that_nothing_ever_changes() -> None:
    found = overall_effect(episodes(np.ones(40), control=np.arange(40) % 2 == 0, control_probability=0.5))
    assert found.estimate[0] == pytest.approx(0.0, abs=1e-6)
    assert found.high[0] - found.low[0] > 0.1


def test_shares_of_successes_count_as_shares() -> None:
    one = played(9, n=2000, effects=(0.0, 0.0), lift=0.0)
    share = 0.4 + 0.2 * ~one.control + np.random.default_rng(9).uniform(-0.2, 0.2, 2000)
    found = overall_effect(replace(one, outcome=share))
    assert found.estimate[0] == pytest.approx(0.2, abs=0.03)
    assert found.spread[0] < 0.01


def test_tasks_of_one_template_are_not_counted_as_if_they_were_independent() -> None:
    g = np.random.default_rng(10)
    cluster, control = np.repeat(np.arange(20), 30), g.random(600) < 0.5
    gain = g.normal(0, 0.4, 20)[cluster]
    outcome = np.clip(0.5 + np.where(control, 0, gain), 0, 1)
    one = episodes(outcome, control=control, control_probability=0.5, cluster=cluster)
    apart = replace(one, cluster=np.arange(600))
    assert overall_effect(one).spread[0] > 2 * overall_effect(apart).spread[0]


class TestOpinions:
    def test_opinions_alone_widen_the_interval(self) -> None:
        one = played(11, effects=(0.0, 0.0), lift=0.3)
        said = judged(one, 1, called_success=(0.2, 0.8), told=0.0)
        found = overall_effect(said)
        raw = overall_effect(replace(said, true=np.ones(len(said), np.bool_)))
        assert found.basis == "judge"
        assert found.high[0] == pytest.approx(min(2 * raw.high[0], 1.0))
        assert found.low[0] == raw.low[0] > 0
        assert within(found, 0.3)

    def test_few_truths_put_the_labels_of_a_judge_right_on_average(self) -> None:
        one = played(12, n=8000)
        said = judged(one, 2, called_success=(0.3, 0.8), told=0.1)
        found = lesson_effects(said)
        assert found.basis == "truth and judge"
        assert found.estimate == pytest.approx([0.25, 0.0, -0.25], abs=0.1)
        assert within(found, np.array([0.25, 0.0, -0.25]))
        assert (found.spread > lesson_effects(one).spread).all()

    def test_a_random_part_of_the_truth_puts_right_a_judge_that_is_fooled_by_memory(self) -> None:
        one = played(13, n=6000, effects=(0.0, 0.0), lift=0.1)
        g = np.random.default_rng(13)
        flattered = ~one.control & (g.random(6000) < 0.4)
        said = np.where(flattered, 1.0, one.outcome)
        true = g.random(6000) < 0.2
        found = overall_effect(
            replace(one, outcome=np.where(true, one.outcome, said), judged=said, true=true, judge=np.zeros(6000, int))
        )
        assert found.basis == "truth and judge"
        assert within(found, 0.1)
        assert found.high[0] < 0.25

    def test_what_is_known_of_one_judge_is_not_believed_of_another(self) -> None:
        held = []
        for seed in range(30):
            g = np.random.default_rng(seed)
            control = g.random(2000) < 0.5
            truth = (g.random(2000) < np.where(control, 0.3, 0.7)).astype(float)
            judge = (g.random(2000) < 0.5).astype(np.int64)
            said = np.where(g.random(2000) < np.array([0.05, 0.3])[judge], 1.0 - truth, truth)
            true = (judge == 0) & (np.cumsum(judge == 0) <= 45)
            one = episodes(np.where(true, truth, said), control=control, control_probability=0.5, true=true)
            found = overall_effect(replace(one, judged=said, judge=judge, judges=("old", "new")))
            held.append(within(found, 0.4))
        assert np.mean(held) > 0.8

    def test_a_judge_no_better_than_a_coin_says_nothing_and_the_truth_alone_counts(self) -> None:
        said = judged(played(14), 3, called_success=(0.5, 0.5), told=0.1)
        truth = replace(said, outcome=np.where(said.true, said.outcome, np.nan))
        found, alone = lesson_effects(said), lesson_effects(truth)
        assert found.basis == "truth"
        assert np.array_equal(found.estimate, alone.estimate, equal_nan=True)

    def test_the_truth_beside_opinions_of_nobody_is_the_truth(self) -> None:
        one = played(15, n=300)
        assert lesson_effects(one).basis == overall_effect(one).basis == "truth"

    def test_an_interval_without_an_estimate_stays_endless(self) -> None:
        said = judged(played(16, n=12), 4, called_success=(0.2, 0.8), told=0.0)
        found = lesson_effects(said)
        assert np.isnan(found.estimate).all()
        assert np.isinf(found.high).all()

    def test_tasks_of_a_single_template_do_not_make_the_truth_certain(self) -> None:
        one = replace(played(17, n=800), cluster=np.zeros(800, np.int64))
        found = overall_effect(judged(one, 5, called_success=(0.1, 0.9), told=0.25))
        assert found.high[0] - found.low[0] > 0.05

    def test_runs_that_broke_are_no_random_part_of_the_truth(self) -> None:
        one = played(18, n=4000, effects=(0.0, 0.0), lift=0.3)
        g = np.random.default_rng(18)
        broke = g.random(4000) < 0.3
        true = np.where(broke, 0.0, one.outcome)
        said = judged(replace(one, outcome=true), 6, called_success=(0.1, 0.9), told=0.05)
        said = replace(
            said,
            outcome=np.where(broke, 0.0, said.outcome),
            true=broke | said.true,
            judged=np.where(broke, np.nan, said.judged),
            judge=np.where(broke, -1, 0),
        )
        assert within(overall_effect(said), 0.3 * 0.7)


class TestPooled:
    @pytest.mark.parametrize("effect", [0.5, -0.5, 0.0])
    def test_one_lesson_is_drawn_to_zero_and_keeps_its_sign(self, effect: float) -> None:
        told = pooled(some([effect], [0.1]))
        assert abs(told.mean[0]) <= abs(effect)
        assert np.sign(told.mean[0]) == np.sign(effect)
        assert 0 < told.spread[0] <= 0.1 + 1e-9 or told.spread[0] < sober(some([effect], [0.1]))[0]

    def test_nothing_known_is_the_prior(self) -> None:
        told = pooled(some([math.nan, math.nan], [math.inf, math.inf], seen=0))
        assert told.mean.tolist() == [0.0, 0.0]
        assert np.isfinite(told.spread).all()
        assert len(pooled(some([], [])).mean) == 0

    def test_equal_lessons_are_taken_for_equal(self) -> None:
        told = pooled(some([0.1] * 20, [0.05] * 20))
        assert told.between <= 0.02
        assert told.mean == pytest.approx([told.mean[0]] * 20)
        assert 0 < told.mean[0] <= 0.1

    def test_no_spread_at_all_is_not_believed(self) -> None:
        told = pooled(some([1.0, -1.0, 0.0], [0.0, 0.0, 0.0], seen=5))
        assert np.isfinite(told.mean).all()
        assert (told.spread > 0.05).all()

    def test_a_lesson_of_which_little_is_known_is_drawn_further(self) -> None:
        told = pooled(some([0.3, 0.3, -0.2, 0.0, 0.1], [0.05, 0.5, 0.05, 0.05, 0.05]))
        assert told.mean[1] < told.mean[0] < 0.3

    @given(SEEDS)
    def test_the_order_of_lessons_means_nothing_and_signs_are_alike(self, seed: int) -> None:
        g = np.random.default_rng(seed)
        size = int(g.integers(1, 12))
        x, v, turned = g.normal(0, 0.3, size), g.uniform(0.01, 0.5, size), g.permutation(size)
        here, there, minus = pooled(some(x, v)), pooled(some(x[turned], v[turned])), pooled(some(-x, v))
        assert there.mean == pytest.approx(here.mean[turned])
        assert minus.mean == pytest.approx(-here.mean)
        assert minus.between == pytest.approx(here.between)

    def test_pooling_brings_estimates_nearer_to_the_truth(self) -> None:
        g = np.random.default_rng(0)
        truth, error = g.normal(0.03, 0.08, 200), g.uniform(0.05, 0.3, 200)
        x = truth + g.normal(0, 1, 200) * error
        told = pooled(some(x, error, seen=10_000))
        assert ((told.mean - truth) ** 2).mean() < 0.5 * ((x - truth) ** 2).mean()
        assert told.between == pytest.approx(0.08, abs=0.04)
        assert np.mean(np.abs(told.mean - truth) < 1.96 * told.spread) > 0.9


def some(estimate: Any, spread: Any, *, seen: int = 1000) -> Effects:
    x, v = np.asarray(estimate, float), np.asarray(spread, float)
    counts = np.full(len(x), seen)
    return Effects(x, x - 2 * v, x + 2 * v, v, counts, counts, counts.astype(float))


def test_more_recalls_are_needed_while_less_is_known_and_none_once_it_is_enough() -> None:
    told = more_needed(some([0.0, 0.0, 0.0, math.nan], [0.2, 0.1, 0.01, math.inf]))
    assert told[0] > told[1] > told[2] == 0.0
    assert math.isinf(told[3])
    assert more_needed(some([0.0], [0.1]))[0] == pytest.approx(2000 * ((0.1 * 2.8 / 0.1) ** 2 - 1), rel=0.01)


def test_a_few_equal_outcomes_do_not_make_anybody_sure() -> None:
    assert sober(some([0.0, 0.0], [0.0, 0.5], seen=8)).tolist() == pytest.approx([0.2, 0.5])
    assert math.isinf(sober(some([math.nan], [math.inf], seen=0))[0])

"""Effects that were planted are found without bias, intervals hold them, and what means nothing moves no estimate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import SEEDS, episodes

from lessonbank.evidence import Estimate
from lessonbank.evidence.confidence_sequences import outcomes, scores
from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.estimates import ENOUGH, Effects, cost_effect, effects, pooled, sober, t_quantile
from lessonbank.evidence.report import report
from lessonbank.evidence.review import review

PLANTED = (0.25, 0.0, -0.25)


def played(
    seed: int, *, n: int = 3000, effects: tuple[float, ...] = PLANTED, lift: float = 0.1, **more: Any
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


def found(one: Episodes, *, level: float = 0.95) -> Effects:
    """Treatment 0 is memory as a whole."""
    return effects(scores(one, outcomes(one)), one, level=level)


def test_planted_effects_are_found_though_lessons_are_found_together() -> None:
    told = found(played(1))
    assert told.estimate[1:] == pytest.approx(PLANTED, abs=0.09)
    assert ((told.low[1:] <= PLANTED) & (told.high[1:] >= PLANTED)).all()
    assert (told.low[1] > 0, told.high[3] < 0) == (True, True)
    whole = found(played(3, effects=(0.0, 0.0), lift=0.2))
    assert whole.estimate[0] == pytest.approx(0.2, abs=0.06)


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    told = [found(played(seed, n=400)) for seed in range(80)]
    held = np.mean([(one.low[1:] <= PLANTED) & (one.high[1:] >= PLANTED) for one in told])
    assert 0.9 <= held <= 0.99


def following(g: np.random.Generator, runs: int, n: int, effect: float) -> list[Episodes]:
    """Memory is withheld the likelier the more its runs failed so far: the odds follow the outcomes."""
    outcome, control, odds = (np.empty((runs, n)) for _ in range(3))
    won, lost, shown, off = (np.ones(runs) for _ in range(4))
    for t in range(n):
        odds[:, t] = np.clip(0.3 - 1.5 * (won / shown - lost / off), 0.05, 0.8)
        control[:, t] = g.random(runs) < odds[:, t]
        outcome[:, t] = g.random(runs) < 0.5 + effect * (control[:, t] == 0)
        won, shown = won + outcome[:, t] * (control[:, t] == 0), shown + (control[:, t] == 0)
        lost, off = lost + outcome[:, t] * control[:, t], off + control[:, t]
    return [episodes(outcome[r], control=control[r] > 0, control_probability=odds[r]) for r in range(runs)]


@pytest.mark.full
@pytest.mark.parametrize("effect", [0.0, 0.15])
def test_odds_that_follow_the_outcomes_make_no_bias(effect: float) -> None:
    told = np.array([found(one).estimate[0] for one in following(np.random.default_rng(1), 150, 500, effect)])
    assert abs(told.mean() - effect) < 3 * told.std() / math.sqrt(len(told))


@pytest.mark.full
@given(SEEDS)
def test_what_helps_success_harms_failure(seed: int) -> None:
    one = played(seed, n=120)
    here, there = found(one), found(replace(one, outcome=1.0 - one.outcome))
    assert there.estimate == pytest.approx(-here.estimate, abs=1e-9, nan_ok=True)
    assert there.low == pytest.approx(-here.high, abs=1e-9)
    assert (there.shown == here.shown).all()


@pytest.mark.full
@given(SEEDS, st.floats(0.001, 1000), st.floats(-100, 100))
def test_costs_in_another_unit_have_effects_in_that_unit(seed: int, unit: float, zero: float) -> None:
    one = played(seed, n=100)
    values = np.random.default_rng(seed).gamma(2.0, 5.0, len(one))
    here, there = cost_effect(one, values), cost_effect(one, unit * (values + zero))
    for name in ("estimate", "spread"):
        assert getattr(there, name) / unit == pytest.approx(getattr(here, name), abs=0.05, nan_ok=True)


def test_a_cost_that_is_known_of_some_recalls_is_compared_among_these() -> None:
    one = played(5, n=600)
    steps = np.where(one.without, 12.0, 8.0) + np.random.default_rng(5).normal(0, 1, 600)
    steps[::3] = np.nan
    told = cost_effect(one, steps)
    assert told.estimate[0] == pytest.approx(-4.0, abs=0.6)
    assert told.shown[0] + told.withheld[0] == 400


def test_where_nothing_is_known_nothing_is_said() -> None:
    unknown = replace(played(6, n=50), outcome=np.full(50, np.nan))
    told = found(unknown)
    assert np.isnan(told.estimate).all()
    assert np.isinf(told.low).all()
    assert not told.shown.any()
    assert report(unknown, scope="t").steps == Estimate()
    assert math.isnan(found(episodes(np.empty(0))).estimate[0])


@pytest.mark.parametrize(("withheld", "said"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_four_recalls_on_one_side_say_nothing(withheld: int, said: bool) -> None:
    outcome = np.random.default_rng(0).integers(0, 2, 30).astype(float)
    told = found(episodes(outcome, control=np.arange(30) < withheld, control_probability=0.2))
    assert math.isfinite(told.estimate[0]) == math.isfinite(told.high[0]) == said
    assert told.withheld[0] == withheld


def test_equal_outcomes_are_no_proof_that_nothing_ever_changes() -> None:
    told = found(episodes(np.ones(40), control=np.arange(40) % 2 == 0, control_probability=0.5))
    assert told.estimate[0] == pytest.approx(0.0, abs=0.02)
    assert told.high[0] - told.low[0] > 0.1


def test_tasks_of_one_template_are_not_counted_as_if_they_were_independent() -> None:
    g = np.random.default_rng(10)
    cluster, control = np.repeat(np.arange(20), 30), g.random(600) < 0.5
    gain = g.normal(0, 0.4, 20)[cluster]
    outcome = np.clip(0.5 + np.where(control, 0, gain), 0, 1)
    one = episodes(outcome, control=control, control_probability=0.5, cluster=cluster)
    assert found(one).spread[0] > 1.5 * found(replace(one, cluster=np.arange(600))).spread[0]


class TestPooled:
    def test_a_lesson_of_which_little_is_known_is_drawn_to_its_group(self) -> None:
        told = some([0.0, 0.3, -0.2, 0.3, math.nan, 0.2, -0.25], [0.05, 0.05, 0.05, 0.5, math.inf, 0.05, 0.05])
        level = np.array([0, 1, 1, 2, 2, 2, 2])
        made = pooled(told, level, [(), (), (), (2,), (1,), (1,), (2,)])
        assert made.mean[3] < 0
        assert made.mean[4] == pytest.approx(made.mean[1])
        assert made.mean[1] > 0.1
        assert made.spread[4] > made.spread[5]

    @pytest.mark.parametrize("effect", [0.5, -0.5, 0.0])
    def test_one_lesson_is_drawn_to_zero_and_keeps_its_sign(self, effect: float) -> None:
        told = lone([effect], [0.1])
        assert abs(told.mean[0]) <= abs(effect)
        assert np.sign(told.mean[0]) == np.sign(effect)

    def test_nothing_known_is_the_prior(self) -> None:
        told = lone([math.nan, math.nan], [math.inf, math.inf], seen=0)
        assert told.mean.tolist() == [0.0, 0.0]
        assert np.isfinite(told.spread).all()

    def test_no_spread_at_all_is_not_believed(self) -> None:
        told = lone([1.0, -1.0, 0.0], [0.0, 0.0, 0.0], seen=5)
        assert np.isfinite(told.mean).all()
        assert (told.spread > 0.05).all()

    @given(SEEDS)
    def test_the_order_of_lessons_means_nothing_and_signs_are_alike(self, seed: int) -> None:
        g = np.random.default_rng(seed)
        size = int(g.integers(1, 12))
        x, v, turned = g.normal(0, 0.3, size), g.uniform(0.01, 0.5, size), g.permutation(size)
        here, there, minus = lone(x, v), lone(x[turned], v[turned]), lone(-x, v)
        assert there.mean == pytest.approx(here.mean[turned])
        assert minus.mean == pytest.approx(-here.mean)

    def test_pooling_brings_estimates_nearer_to_the_truth(self) -> None:
        g = np.random.default_rng(0)
        truth, error = g.normal(0.03, 0.08, 200), g.uniform(0.05, 0.3, 200)
        x = truth + g.normal(0, 1, 200) * error
        told = lone(x, error, seen=10_000)
        assert ((told.mean - truth) ** 2).mean() < 0.5 * ((x - truth) ** 2).mean()
        assert np.mean(np.abs(told.mean - truth) < 1.96 * told.spread) > 0.9


def some(estimate: Any, spread: Any, *, seen: int = 1000) -> Effects:
    x, v = np.asarray(estimate, float), np.asarray(spread, float)
    counts = np.full(len(x), seen)
    return Effects(x, x - 2 * v, x + 2 * v, v, counts, counts, np.ones(0))


def lone(estimate: Any, spread: Any, *, seen: int = 1000) -> Any:
    told = some(estimate, spread, seen=seen)
    return pooled(told, np.full(len(told.estimate), 2), [()] * len(told.estimate))


def test_a_few_equal_outcomes_do_not_make_anybody_sure() -> None:
    assert sober(some([0.0, 0.0], [0.0, 0.5], seen=8)).tolist() == pytest.approx([0.2, 0.5])
    assert math.isinf(sober(some([math.nan], [math.inf], seen=0))[0])


def test_quantiles_of_student_are_those_of_the_tables() -> None:
    told = t_quantile(0.975, np.array([4.0, 10.0, 30.0, 1e6]))
    assert told == pytest.approx([2.776, 2.228, 2.042, 1.960], abs=0.01)


def by_turns(seed: int, effects_by_model: tuple[float, float], n: int = 4_000) -> Episodes:
    """Two models by turns of 25 tasks; the second one succeeds less often, and the odds fall halfway."""
    g = np.random.default_rng(seed)
    model = np.arange(n) // 25 % 2
    odds = np.where(np.arange(n) < n // 2, 0.3, 0.1)
    off = g.random(n) < odds
    rate = np.where(model == 0, 0.5, 0.1) + np.array(effects_by_model)[model] * ~off
    made = episodes((g.random(n) < rate).astype(float), control=off, control_probability=odds)
    return replace(made, model=model, models=("day", "night"))


def test_models_are_pooled_by_inverse_variance_and_the_sides_agree_with_the_effect() -> None:
    one = by_turns(3, (0.2, 0.2))
    both, alone = found(one), found(replace(one, model=np.empty(0, np.int64)))
    assert both.estimate[0] == pytest.approx(0.2, abs=0.04)
    assert both.spread[0] < alone.spread[0]
    seen = report(one, scope="t")
    assert seen.success_with is not None and seen.success_without is not None and seen.success.value is not None
    assert seen.success_with - seen.success_without == pytest.approx(seen.success.value)
    (note,) = [note for note in seen.notes if note.startswith("the agent runs on several models")]
    assert "with day (2,000 tasks)" in note
    assert "with night (2,000 tasks)" in note


def test_a_change_of_model_for_good_is_said_with_what_each_model_shows() -> None:
    one = by_turns(4, (0.3, 0.0))
    model = (np.arange(len(one)) >= 2_000).astype(np.int64)
    at = 1e9 + 60.0 * np.arange(len(one))
    (note,) = [n for n in report(replace(one, model=model, at=at), scope="t").notes if n.startswith("the agent")]
    assert note.startswith("the agent changed to the model night on 2001-09-10: every number here pools all models")


@pytest.mark.full
def test_a_verdict_does_not_flicker_while_two_models_take_turns() -> None:
    one = by_turns(5, (0.4, 0.4), n=1_200)
    words = [review(replace(one, waiting=np.arange(1_200) >= n)).standing[0] for n in range(100, 1_201, 25)]
    said = [word != "no evidence yet" for word in words]
    assert said[said.index(True) :] == [True] * (len(said) - said.index(True))

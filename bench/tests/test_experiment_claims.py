"""What is planned, claimed and reported of an experiment holds in simulation, and says no more than it may."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.errors import UsageError
from lessonbank_bench.experiment import comparison as comparing
from lessonbank_bench.experiment.comparison import Compared, compare, compare_two
from lessonbank_bench.experiment.curves import course
from lessonbank_bench.experiment.distributions import binomial, holm, mcnemar, student, student_below
from lessonbank_bench.experiment.intervals import clustered, clustered_many
from lessonbank_bench.experiment.plan import discordant, in_words, mcnemar_power, plan, power, seeds_needed
from lessonbank_bench.experiment.records import AttemptRow, Experiment, Failure, Question, made, read_experiment
from lessonbank_bench.experiment.report import page

from .experiments import made_row


def asked(**more: Any) -> Experiment:
    told: dict[str, Any] = {
        "seeds": "1-12",
        "tasks": 10,
        "arms": [{"name": "none"}, {"name": "a/a", "again": True}, {"name": "new"}],
        "environment": "null",
    }
    return made({**told, **more}, source="test")


def row(arm: str, seed: int, place: int, success: bool | None, **more: Any) -> AttemptRow:
    told: dict[str, Any] = {
        "family": f"family {place % 5}",
        "steps": 3 + (arm == "none"),
        "tokens": 100,
        "error": None if success is not None else Failure(stage="attempt", code="model", message="gone"),
    }
    return made_row(arm, seed, place, success, **{**told, **more})


def drawn(experiment: Experiment, rates: dict[str, float], seed: int = 0) -> list[AttemptRow]:
    draw = np.random.default_rng(seed)
    return [
        row(arm.name, world, place, bool(draw.random() < rates[arm.name]))
        for world in experiment.seeds
        for place in range(experiment.tasks)
        for arm in experiment.arms
    ]


def claims(question: Question, seeds: int, tasks: int, *, runs: int, seed: int = 0) -> float:
    """The share of simulated experiments in which a difference is shown; tasks of a seed do not go together."""
    gained, lost = discordant(question)
    drawn = np.random.default_rng(seed).multinomial(tasks, [gained, lost, 1 - gained - lost], size=(runs, seeds))
    better, worse = drawn[..., 0], drawn[..., 1]
    low, high = clustered_many((better - worse) / tasks)
    known: dict[tuple[int, int], float] = {}
    p = [
        known.setdefault(one, mcnemar(*one)) for one in zip(better.sum(1).tolist(), worse.sum(1).tolist(), strict=True)
    ]
    return float((((low > 0) | (high < 0)) & (np.array(p) < 0.05)).mean())


def test_the_distributions_are_those_of_the_tables() -> None:
    assert student(0.975, 19) == pytest.approx(2.0930, abs=1e-4)
    assert student(0.975, 1) == pytest.approx(12.7062, abs=1e-4)
    assert student(0.95, 1000) == pytest.approx(1.6464, abs=1e-4)
    assert student_below(0.0, 7) == pytest.approx(0.5)
    assert binomial(10, 0.3).sum() == pytest.approx(1.0)
    assert mcnemar(1, 9) == pytest.approx(22 / 1024)
    assert mcnemar(0, 0) == mcnemar(5, 5) == 1.0
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})


@given(st.lists(st.integers(-8, 8), min_size=2, max_size=40))
def test_an_interval_holds_its_estimate_and_turns_with_its_sign(sums: list[int]) -> None:
    counts = np.full(len(sums), 8.0)
    one, other = clustered(np.array(sums, dtype=float), counts), clustered(-np.array(sums, dtype=float), counts)
    assert one is not None
    assert other is not None
    assert one.low - 1e-9 <= one.estimate <= one.high + 1e-9
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low), abs=1e-9)


def test_intervals_of_rates_end_at_what_is_possible_where_two_seeds_disagree() -> None:
    experiment = asked(seeds=[1, 2], tasks=4, arms=[{"name": "none"}, {"name": "new"}])
    rows = [row("none", seed, place, success=seed == 1) for seed in (1, 2) for place in range(4)]
    rows += [row("new", seed, place, success=seed == 2) for seed in (1, 2) for place in range(4)]
    (one,) = compare(experiment, rows)
    assert one.by_seed is not None
    assert one.by_family is not None
    assert (one.by_seed.low, one.by_seed.high) == (-1.0, 1.0)
    assert -1.0 <= one.by_family.low <= one.by_family.high <= 1.0
    assert "[-100.0, +100.0]" in comparing.in_words([one])
    told = course(rows, lambda row: float(bool(row.success)), level=0.95, within=(0.0, 1.0))
    assert told is not None
    assert 0.0 <= told.low.min() <= told.high.max() <= 1.0


def test_of_experiments_without_an_effect_at_most_one_in_twenty_shows_one() -> None:
    for seeds, tasks in ((20, 40), (12, 10), (5, 40)):
        assert claims(Question(effect=0.0), seeds, tasks, runs=1000) <= 0.05


def test_an_interval_over_seeds_is_as_sure_as_it_says_when_tasks_of_a_seed_go_together() -> None:
    draw = np.random.default_rng(1)
    shared = draw.normal(0, 0.1, size=(2000, 20))
    means = np.clip(draw.normal(shared, 0.12), -1, 1)
    low, high = clustered_many(means)
    assert 0.935 <= ((low <= 0) & (high >= 0)).mean() <= 0.97


@pytest.mark.parametrize(("effect", "base", "tasks"), [(0.08, 0.4, 10), (0.15, 0.4, 5), (-0.1, 0.5, 10)])
def test_the_seeds_that_are_planned_are_those_a_simulation_finds(effect: float, base: float, tasks: int) -> None:
    question = Question(effect=effect, base=base, clustering=0.0)
    planned = seeds_needed(question, tasks)
    assert planned is not None
    assert claims(question, planned, tasks, runs=1500) >= 0.8 - 0.02
    fewer = int(planned * 0.93)
    assert claims(question, fewer, tasks, runs=1500) < 0.8
    assert power(question, planned, tasks) >= 0.8 > power(question, planned - 1, tasks)


def test_more_arms_more_clustering_and_fewer_seeds_take_power() -> None:
    question = Question()
    full = power(question, 20, 20)
    assert power(question, 20, 20, comparisons=5) < full
    assert power(question.model_copy(update={"clustering": 0.05}), 20, 20) < full
    assert power(question, 4, 100) < full
    assert power(question, 1, 400) == 0.0
    assert mcnemar_power(20_001, 0.2, 0.18, 0.05) == pytest.approx(mcnemar_power(20_000, 0.2, 0.18, 0.05), abs=0.01)


def test_a_question_that_no_pairs_can_have_is_told() -> None:
    with pytest.raises(UsageError, match=r"between -0\.78 and 0\.85"):
        discordant(Question(correlation=0.99))
    with pytest.raises(UsageError, match="outside of 0 to 1"):
        discordant(Question(base=0.95, effect=0.1))


def test_a_plan_says_what_it_takes_and_what_it_costs() -> None:
    experiment = asked(price={"attempt": 0.02, "seconds": 30})
    told = plan(experiment)
    assert (told.pairs, told.attempts, told.comparisons, told.can_answer) == (120, 360, 1, False)
    assert told.cost == pytest.approx(7.2)
    assert told.seeds_needed is not None
    assert told.attempts_needed == told.seeds_needed * 30
    text = in_words(told, experiment.question)
    assert f"It takes {told.seeds_needed} seeds of 10 tasks" in text
    assert text.endswith("It cannot answer its question.")
    assert plan(asked(seeds=list(range(told.seeds_needed)))).can_answer
    assert told.smallest is not None
    assert plan(asked(question={"effect": told.smallest})).can_answer
    assert plan(asked(question={"effect": 0.0})).seeds_needed is None


def test_the_experiment_of_the_guide_can_answer_its_question(tmp_path: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "experiments.md"
    block = re.search(r"^```toml\n(.*?)^```$", guide.read_text(encoding="utf-8"), re.M | re.S)
    assert block is not None
    (tmp_path / "desk.toml").write_text(block[1], encoding="utf-8")
    assert plan(read_experiment(tmp_path / "desk.toml")).can_answer


def by_name(found: tuple[Compared, ...]) -> dict[str, Compared]:
    return {one.arm: one for one in found}


def test_a_large_effect_is_shown_beside_the_noise_of_the_baseline() -> None:
    experiment = asked()
    rows = drawn(experiment, {"none": 0.3, "a/a": 0.3, "new": 0.8})
    found = by_name(compare(experiment, rows))
    new, noise = found["new"], found["a/a"]
    assert (new.shown, new.pairs, new.seeds, new.families) == ("more successes", 120, 12, 5)
    assert noise.by_seed is not None
    assert new.floor == max(abs(noise.by_seed.low), abs(noise.by_seed.high))
    assert new.always.low > 0
    assert new.steps is not None
    assert (new.steps.low, new.steps.high) == (-1.0, -1.0)
    text = comparing.in_words(tuple(found.values()))
    assert "new against none: more successes, +" in text
    assert f"noise floor (A/A): up to {100 * new.floor:.1f} points" in text
    assert "a/a against none: the baseline once more; what differs is noise" in text
    other = by_name(compare(experiment, rows, baseline="new"))
    assert (other["none"].shown, other["a/a"].again) == ("fewer successes", False)


def test_where_an_interval_crosses_zero_no_difference_is_shown_and_nobody_wins() -> None:
    experiment = asked()
    rows = drawn(experiment, {"none": 0.4, "a/a": 0.4, "new": 0.42})
    found = by_name(compare(experiment, rows))
    span = found["new"].by_seed
    assert span is not None
    assert span.low <= 0 <= span.high
    for text in (comparing.in_words(tuple(found.values())), page(experiment, rows)):
        assert "no difference shown" in text
        assert not re.search(r"\b(win|wins|won|winner|better than|beats)\b", text)


def test_one_seed_shows_nothing_however_large_the_difference() -> None:
    experiment = asked(seeds=[3])
    found = by_name(compare(experiment, drawn(experiment, {"none": 0.0, "a/a": 0.0, "new": 1.0})))
    assert found["new"].shown == "no difference shown"
    assert "one seed is not enough" in comparing.in_words(tuple(found.values()))


def test_many_arms_are_adjusted_for_their_number_and_the_repetition_does_not_count() -> None:
    experiment = asked(arms=[{"name": n, "again": n == "again"} for n in ("none", "again", "a", "b", "c")])
    rows = drawn(experiment, {"none": 0.4, "again": 0.4, "a": 0.6, "b": 0.4, "c": 0.4}, seed=0)
    found = by_name(compare(experiment, rows))
    assert found["a"].adjusted == pytest.approx(3 * max(found["a"].p, found["a"].p_seeds))
    assert found["again"].adjusted == max(found["again"].p, found["again"].p_seeds)


def grown(draw: np.random.Generator, seeds: int, tasks: int, *, apart: float, within: float) -> np.ndarray:
    """(seeds, tasks) differences without an effect, a part `apart` of them not zero, correlated within a seed."""
    moved = np.clip(draw.normal(0.0, math.sqrt(within * apart), size=seeds), -apart, apart)
    rates = np.stack([(apart + moved) / 2, (apart - moved) / 2, np.full(seeds, 1 - apart)], axis=-1)
    return np.array([draw.choice([1, -1, 0], size=tasks, p=rate) for rate in rates])


same_row = cache(row)


def found_of(differences: np.ndarray, arm: str) -> Compared:
    """One arm beside none, of rows that are made once: other experiments have the same ones."""
    keys = [(seed, place, "t") for seed in range(differences.shape[0]) for place in range(differences.shape[1])]
    treated = {key: same_row(arm, key[0], key[1], bool(differences[key[:2]] > 0)) for key in keys}
    control = {key: same_row("none", key[0], key[1], bool(differences[key[:2]] < 0)) for key in keys}
    return comparing.compared(arm, "none", treated, control)


@pytest.mark.parametrize("within", [0.0, 0.05])
def test_eight_arms_without_an_effect_show_one_in_one_experiment_of_twenty(within: float) -> None:
    draw = np.random.default_rng(3)
    wrong = 0
    for _ in range(30):
        worlds = [grown(draw, 14, 12, apart=0.35, within=within) for _ in range(8)]
        alone = [found_of(world, f"arm {n}") for n, world in enumerate(worlds)]
        wrong += any(one.shown != "no difference shown" for one in comparing._together(alone))
    assert wrong <= 4


def test_two_experiments_that_may_have_stopped_early_are_compared_as_such() -> None:
    first, second = asked(stop=True), asked(stop=True, tasks=12)
    old = drawn(first, {"none": 0.3, "a/a": 0.3, "new": 0.3}, seed=1)
    new = drawn(second, {"none": 0.3, "a/a": 0.3, "new": 0.9}, seed=2)
    found = by_name(compare_two(("A", first, old), ("B", second, new)))
    assert all(one.early for one in found.values())
    assert found["a/a (B)"].again


def test_tasks_without_an_outcome_and_training_are_left_out() -> None:
    experiment = asked(seeds=[1, 2])
    rows = [row(arm, seed, place, True) for seed in (1, 2) for place in range(4) for arm in ("none", "a/a", "new")]
    rows += [row("new", 1, 4, None), row("none", 1, 4, True), row("none", 1, 5, True)]
    rows += [row(arm, 1, 9, False, phase="train") for arm in ("none", "new")]
    new = by_name(compare(experiment, rows))["new"]
    assert (new.pairs, new.left_out, new.success) == (8, 2, 1.0)
    with pytest.raises(UsageError, match="no arm 'nobody'"):
        compare(experiment, rows, baseline="nobody")
    assert by_name(compare(experiment, []))["new"].pairs == 0


def test_two_experiments_are_compared_on_the_tasks_they_share() -> None:
    first, second = asked(), asked(tasks=12)
    old = drawn(first, {"none": 0.3, "a/a": 0.3, "new": 0.3}, seed=1)
    new = drawn(second, {"none": 0.3, "a/a": 0.3, "new": 0.9}, seed=2)
    found = by_name(compare_two(("A", first, old), ("B", second, new)))
    assert found["new (B)"].shown == "more successes"
    assert (found["new (B)"].pairs, found["new (B)"].baseline) == (120, "new (A)")
    moved = [r.model_copy(update={"task_id": f"elsewhere/{r.task_id}"}) for r in new]
    named = [r.model_copy(update={"task_id": f"here/{r.task_id}"}) for r in old]
    assert by_name(compare_two(("A", first, named), ("B", second, moved)))["new (B)"].pairs == 120
    other = [r.model_copy(update={"task": f"another {r.task}"}) for r in moved]
    for none in ([], other):
        with pytest.raises(UsageError, match="nothing can be paired"):
            compare_two(("A", first, named), ("B", second, none))

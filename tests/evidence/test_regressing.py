"""The regression gives what a plain solver of the same equations gives, and errors as large as the draws make them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.evidence._regression import Draws, Setting, fit, half_width, precision, t_quantile
from lessonbank.evidence.episodes import Floats, Ints

pytestmark = pytest.mark.full

SEEDS = st.integers(0, 2**32 - 1)
STUDENT = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 1000: 1.962}


def made(seed: int, *, n: int = 40, lessons: int = 4, places: int = 2) -> tuple[Floats, Draws, Setting]:
    g = np.random.default_rng(seed)
    lesson = np.argsort(g.random((n, lessons)), axis=1)[:, :places].ravel().astype(np.int64)
    row = np.repeat(np.arange(n), places)
    chance = g.choice([0.05, 0.3, 0.5, 0.9], n * places)
    draws = Draws(row, lesson, g.random(n * places) < chance, chance, lessons)
    cluster = np.unique(g.integers(0, 7, n), return_inverse=True)[1].astype(np.int64)
    return g.random(n), draws, Setting(cluster, row, lesson, lessons)


def dense(outcome: Floats, draws: Draws, setting: Setting) -> Floats:
    """The same penalised squares, with every term a column and nothing clever."""
    n, clusters = setting.rows, int(setting.cluster.max()) + 1
    columns = np.zeros((n, draws.groups + clusters + setting.lessons + 2))
    np.add.at(columns, (draws.row, draws.group), draws.shown - draws.probability)
    columns[np.arange(n), draws.groups + setting.cluster] = 1.0
    np.add.at(columns, (setting.row, draws.groups + clusters + setting.lesson), 1.0)
    columns[:, -2], columns[:, -1] = 1.0, np.linspace(-1, 1, n)
    penalty = np.diag([*[1e-9] * draws.groups, *[6.0] * clusters, *[10.0] * setting.lessons, 0.0, 0.0])
    return np.linalg.solve(columns.T @ columns + penalty, columns.T @ outcome)[: draws.groups]


@given(SEEDS)
def test_the_effects_are_those_of_a_dense_solver(seed: int) -> None:
    outcome, draws, setting = made(seed)
    assert fit(outcome, draws, setting).estimate == pytest.approx(dense(outcome, draws, setting), abs=1e-3)


def test_two_lessons_that_are_always_found_together_are_told_apart_by_their_draws() -> None:
    g = np.random.default_rng(0)
    n = 4000
    row, lesson = np.repeat(np.arange(n), 2), np.tile([0, 1], n)
    shown = g.random(2 * n) < 0.5
    outcome = 0.4 + 0.3 * shown[::2] - 0.2 * shown[1::2] + g.normal(0, 0.1, n)
    told = fit(
        outcome, Draws(row, lesson, shown, np.full(2 * n, 0.5), 2), Setting(np.zeros(n, np.int64), row, lesson, 2)
    )
    assert told.estimate == pytest.approx([0.3, -0.2], abs=0.02)


@given(SEEDS)
def test_names_of_clusters_and_lessons_mean_nothing(seed: int) -> None:
    outcome, draws, setting = made(seed)
    g = np.random.default_rng(seed)
    lessons, clusters = g.permutation(setting.lessons), g.permutation(int(setting.cluster.max()) + 1)
    renamed = Draws(draws.row, lessons[draws.group], draws.shown, draws.probability, draws.groups)
    other = Setting(clusters[setting.cluster], setting.row, lessons[setting.lesson], setting.lessons)
    one, two = fit(outcome, draws, setting), fit(outcome, renamed, other)
    assert two.estimate[lessons] == pytest.approx(one.estimate, abs=1e-3)
    for cluster, told in ((setting.cluster, one), (other.cluster, two)):
        assert told.influence.shape == draws.row.shape
        assert (precision(told.influence, draws, cluster)[0] >= 0).all()


@given(SEEDS, st.floats(-50, 50), st.floats(0.01, 100))
def test_another_unit_and_another_zero_change_the_unit_of_the_effect_and_nothing_else(
    seed: int, zero: float, unit: float
) -> None:
    outcome, draws, setting = made(seed)
    one, two = fit(outcome, draws, setting), fit(zero + unit * outcome, draws, setting)
    assert two.estimate / unit == pytest.approx(one.estimate, abs=2e-3 + 1e-3 * abs(zero / unit))


def test_a_group_of_which_nothing_was_drawn_has_no_estimate_and_does_not_disturb_the_others() -> None:
    outcome, draws, setting = made(3)
    more = Draws(draws.row, draws.group, draws.shown, draws.probability, draws.groups + 1)
    one, two = fit(outcome, draws, setting), fit(outcome, more, setting)
    assert math.isnan(two.estimate[-1])
    assert two.estimate[:-1] == pytest.approx(one.estimate, abs=1e-6)
    assert precision(two.influence, more, setting.cluster)[1][-1] == 0


def _redrawn(g: np.random.Generator, cluster: Ints, hard: Floats, chance: Floats) -> tuple[float, float]:
    n = len(cluster)
    shown = g.random(n) < chance
    outcome = np.clip(hard + 0.1 * shown, 0, 1)
    draws = Draws(np.arange(n), np.zeros(n, np.int64), shown, chance, 1)
    nobody = np.empty(0, np.int64)
    told = fit(outcome, draws, Setting(cluster, nobody, nobody, 0))
    return float(told.estimate[0]), float(precision(told.influence, draws, cluster)[0][0])


@pytest.mark.parametrize("clusters", [4, 40])
def test_over_all_draws_that_might_have_been_the_estimate_is_right_and_its_error_is_as_said(clusters: int) -> None:
    g = np.random.default_rng(clusters)
    cluster = np.sort(g.integers(0, clusters, 240))
    cluster = np.unique(cluster, return_inverse=True)[1].astype(np.int64)
    hard, chance = 0.2 + 0.5 * g.random(clusters)[cluster] + 0.2 * g.random(240), g.choice([0.5, 0.8], 240)
    told = np.array([_redrawn(g, cluster, hard, chance) for _ in range(150)])
    assert told[:, 0].mean() == pytest.approx(0.1, abs=4 * told[:, 0].std() / math.sqrt(150))
    assert told[:, 1].mean() == pytest.approx(told[:, 0].std(), rel=0.2)


def test_on_average_over_every_draw_there_is_nine_recalls_give_the_planted_effect() -> None:
    n, chance = 9, np.full(9, 0.5)
    g = np.random.default_rng(1)
    without, change = g.random(n), 0.25
    cluster, row = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3]), np.arange(n)
    total = 0.0
    for drawn in range(1, 2**n - 1):
        shown = (drawn >> row) % 2 == 1
        draws = Draws(row, np.zeros(n, np.int64), shown, chance, 1)
        told = fit(without + change * shown, draws, Setting(cluster, row[:0], row[:0], 0))
        total += float(told.estimate[0])
    assert total / (2**n - 2) == pytest.approx(change, abs=1e-4)


@given(SEEDS)
def test_what_showing_gives_withholding_takes(seed: int) -> None:
    outcome, draws, setting = made(seed)
    turned = Draws(draws.row, draws.group, ~draws.shown, 1.0 - draws.probability, draws.groups)
    one, two = fit(outcome, draws, setting), fit(outcome, turned, setting)
    assert two.estimate == pytest.approx(-one.estimate, abs=1e-6)
    assert two.influence == pytest.approx(-one.influence, abs=1e-6)


@pytest.mark.parametrize(("freedom", "expected"), STUDENT.items())
def test_the_quantiles_are_students(freedom: int, expected: float) -> None:
    assert t_quantile(0.975, np.array([float(freedom)]))[0] == pytest.approx(expected, rel=0.01)
    assert t_quantile(0.025, np.array([float(freedom)]))[0] == pytest.approx(-expected, rel=0.01)


def test_an_interval_on_one_degree_of_freedom_is_as_wide_as_students_or_endless() -> None:
    assert half_width(np.array([1.0]), np.array([1.0]), level=0.95)[0] >= 12.7


def test_no_freedom_or_no_spread_is_no_interval() -> None:
    assert np.isinf(half_width(np.array([0.5, 5.0]), np.array([1.0, 0.0]), level=0.95)).all()


def test_one_recall_alone_is_no_trouble() -> None:
    one = np.zeros(1, np.int64)
    draws = Draws(one, one, np.ones(1, np.bool_), np.full(1, 0.5), 1)
    told = fit(np.ones(1), draws, Setting(one, one, one, 1))
    assert np.isfinite(told.influence).all()

"""What is claimed of an effect holds at every moment, whoever looks and however the probabilities were chosen."""

from __future__ import annotations

import os
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import SEEDS, episodes

from lessonbank.errors import UsageError
from lessonbank.evidence import _bets as _betting
from lessonbank.evidence.episodes import Episodes, Flags, Floats, Ints
from lessonbank.evidence.sequences import Scores, bounds, e_bh, lesson_scores, log_e, overall_scores, path

pytestmark = pytest.mark.full

RUNS = 300 if "LESSONBANK_SOAK" in os.environ else 100
"""Enough for a share of five in a hundred."""


def drawn(seed: int, *, n: int = 60, names: int = 5, places: int = 3, fractional: bool = False) -> Episodes:
    """Recalls of everything that is allowed: extreme probabilities, recalls without memory or without an outcome."""
    g = np.random.default_rng(seed)
    lessons = np.argsort(g.random((n, names)), axis=1)[:, :places]
    probability = g.choice([0.0, 0.001, 0.1, 0.3, 0.7, 0.999, 1.0], (n, places))
    outcome = g.random(n) if fractional else g.integers(0, 2, n).astype(np.float64)
    control_probability = g.choice([0.0, 0.1, 0.5], n)
    return episodes(
        np.where(np.arange(n) < n - 5, outcome, np.nan),
        control=g.random(n) < control_probability,
        control_probability=control_probability,
        lessons=lessons,
        withheld=g.random((n, places)) < probability,
        probability=probability,
        names=names,
        cluster=g.integers(0, 1 + n // 4, n),
    )


def one_group(score: Floats, shown: Floats) -> Scores:
    """Scores whose guesses were all one half."""
    most = np.maximum(shown, 1 - shown) / 2
    return Scores(score, shown * (1 - shown), -most, most, np.zeros(len(score), dtype=np.int64), 1)


def wandering(g: np.random.Generator, *, runs: int, n: int, effect: Floats, base: Floats) -> list[Episodes]:
    """Recalls withheld with a probability that reacts to what was seen: less and less of what seems to help."""
    shown, outcome, chance = (np.empty((runs, n)) for _ in range(3))
    lead = np.zeros(runs)
    for t in range(n):
        withhold = np.clip(0.3 - 0.02 * lead, 0.05, 0.9)
        shown[:, t] = g.random(runs) >= withhold
        outcome[:, t] = g.random(runs) < base[t] + effect[t] * shown[:, t]
        chance[:, t] = withhold
        lead += (2 * outcome[:, t] - 1) * (2 * shown[:, t] - 1)
    return [
        episodes(outcome[r], control=shown[r] == 0, control_probability=chance[r], cluster=np.arange(n) % 7)
        for r in range(runs)
    ]


@pytest.mark.full
def test_false_claims_stay_below_five_percent_when_one_looks_after_every_outcome() -> None:
    g = np.random.default_rng(1)
    n, runs, claimed = 250, RUNS, 0
    for _ in range(runs):
        lessons = np.zeros((n, 1), dtype=np.int64)
        outcome = (g.random(n) < g.uniform(0.2, 0.8)).astype(np.float64)
        run = episodes(outcome, lessons=lessons, withheld=g.random((n, 1)) < 0.3, probability=0.3, names=1)
        low, high = path(lesson_scores(run), at=np.arange(n + 1))
        claimed += bool((low > 0).any() or (high < 0).any())
    assert claimed <= 0.05 * runs


@pytest.mark.full
@pytest.mark.parametrize("drift", [False, True], ids=["a constant effect", "an effect that changes its sign"])
def test_bounds_hold_at_every_moment_at_once_under_probabilities_that_react(drift: bool) -> None:
    g = np.random.default_rng(2)
    n, runs, missed = 250, RUNS, 0
    effect = np.where(np.arange(n) < n // 3, 0.35, -0.25) if drift else np.full(n, 0.2)
    for run in wandering(g, runs=runs, n=n, effect=effect, base=np.linspace(0.3, 0.6, n)):
        scores = overall_scores(run)
        low, high = path(scores, at=np.arange(1, n + 1))
        average = np.cumsum(scores.scale * effect) / np.cumsum(scores.scale)
        missed += bool((low > average).any() or (high < average).any())
    assert missed <= 0.05 * runs


def test_a_helpful_and_a_harmful_lesson_are_found_among_useless_ones() -> None:
    g = np.random.default_rng(3)
    n, names = 4000, 6
    lessons = np.argsort(g.random((n, names)), axis=1)[:, :3]
    withheld = g.random((n, 3)) < 0.3
    effect = np.array([0.2, -0.2, 0, 0, 0, 0])
    outcome = (g.random(n) < 0.5 + (effect[lessons] * ~withheld).sum(axis=1)).astype(np.float64)
    scores = lesson_scores(episodes(outcome, lessons=lessons, withheld=withheld, probability=0.3, names=names))
    assert e_bh(log_e(scores, helps=True), alpha=0.05).tolist() == [True] + [False] * 5
    assert e_bh(log_e(scores, helps=False), alpha=0.05).tolist() == [False, True] + [False] * 4
    low, high = bounds(scores)
    assert np.all((low <= effect) & (effect <= high))
    assert np.all(high - low < 0.3)


def test_what_explains_the_outcomes_narrows_the_bounds() -> None:
    g = np.random.default_rng(4)
    n = 3000
    cluster, control = g.integers(0, 20, n), g.random(n) < 0.2
    outcome = (g.random(n) < np.where(cluster < 10, 0.9, 0.1)).astype(np.float64)
    known = episodes(outcome, control=control, control_probability=0.2, cluster=cluster)
    alone = episodes(outcome, control=control, control_probability=0.2)
    (low,), (high,) = bounds(overall_scores(known))
    (far_low,), (far_high,) = bounds(overall_scores(alone))
    assert high - low < 0.75 * (far_high - far_low)


def test_the_lessons_that_were_found_tell_how_hard_a_task_is() -> None:
    g = np.random.default_rng(8)
    n = 3000
    hard = g.random(n) < 0.5
    lessons, withheld = np.where(hard, 0, 1)[:, None], g.random((n, 1)) < 0.3
    outcome = (g.random(n) < np.where(hard, 0.1, 0.9)).astype(np.float64)
    scores = lesson_scores(episodes(outcome, lessons=lessons, withheld=withheld, probability=0.3, names=2))
    assert np.mean(scores.score**2) / np.mean(scores.scale) < 0.11


def test_another_quantity_than_success_may_be_compared() -> None:
    g = np.random.default_rng(5)
    n = 2000
    control = g.random(n) < 0.5
    saved = np.where(g.random(n) < 0.1, np.nan, g.normal(np.where(control, 0.6, 0.5), 0.1).clip(0, 1))
    run = episodes(np.full(n, np.nan), control=control, control_probability=0.5)
    (low,), (high,) = bounds(overall_scores(run, saved))
    assert -0.13 < low < -0.1 < high < -0.07
    assert bounds(overall_scores(run)) == (-1.0, 1.0)


@given(SEEDS, st.booleans())
def test_calling_success_failure_mirrors_every_answer(seed: int, fractional: bool) -> None:
    run = drawn(seed, fractional=fractional)
    turned = replace(run, outcome=1 - run.outcome)
    for scores, other in (
        (lesson_scores(run), lesson_scores(turned)),
        (overall_scores(run), overall_scores(turned)),
    ):
        low, high = bounds(scores)
        assert np.allclose((-high, -low), bounds(other), atol=1e-9)
        assert np.allclose(log_e(scores, helps=True), log_e(other, helps=False), atol=1e-9)


@given(SEEDS)
def test_only_the_names_of_lessons_change_when_they_are_renumbered(seed: int) -> None:
    run = drawn(seed)
    order = np.random.default_rng(seed).permutation(len(run.lessons))
    renamed = lesson_scores(replace(run, pairs=replace(run.pairs, lesson=order[run.pairs.lesson])))
    for helps in (True, False):
        assert np.allclose(log_e(lesson_scores(run), helps=helps), log_e(renamed, helps=helps)[order])


@given(SEEDS, st.integers(0, 4))
def test_a_group_tells_the_same_whatever_other_groups_there_are(seed: int, alone: int) -> None:
    scores = lesson_scores(drawn(seed))
    own = scores.group == alone
    columns = (scores.score, scores.scale, scores.lowest, scores.highest)
    single = Scores(*(column[own] for column in columns), group=np.zeros(int(own.sum()), dtype=np.int64), groups=1)
    assert np.allclose(log_e(scores, helps=False)[alone], log_e(single, helps=False)[0])
    assert np.allclose(np.array(bounds(scores))[:, alone], np.array(bounds(single))[:, 0])


def test_nothing_is_claimed_where_there_is_nothing() -> None:
    empty = lesson_scores(episodes(np.empty(0), names=3))
    assert log_e(empty, helps=True) == pytest.approx([0, 0, 0], abs=1e-12)
    low, high = bounds(empty)
    assert (low.tolist(), high.tolist()) == ([-1] * 3, [1] * 3)
    assert len(overall_scores(episodes(np.array([1.0, np.nan])))) == 0
    assert not e_bh(np.empty(0), alpha=0.05).size


@given(SEEDS, st.data())
def test_a_later_outcome_never_changes_what_was_guessed_before(seed: int, data: Any) -> None:
    run = drawn(seed)
    at = data.draw(st.integers(0, int(run.known.sum()) - 1))
    outcome = run.outcome.copy()
    outcome[at] = 1 - outcome[at]
    changed = replace(run, outcome=outcome)
    row = _rows_of_scores(run)
    before, after = lesson_scores(run), lesson_scores(changed)
    assert np.array_equal(before.score[row < at], after.score[row < at])
    assert np.array_equal(before.lowest[row <= at], after.lowest[row <= at])


@given(SEEDS, st.data())
def test_a_draw_has_no_part_in_the_guess_it_is_held_against(seed: int, data: Any) -> None:
    run = drawn(seed)
    row = _rows_of_scores(run)
    which = data.draw(st.integers(0, len(row) - 1))
    position = np.flatnonzero(_scored(run))[which]
    withheld = run.pairs.withheld.copy()
    withheld[position] = ~withheld[position]
    turned = lesson_scores(replace(run, pairs=replace(run.pairs, withheld=withheld)))
    before = lesson_scores(run)
    assert before.lowest[which] == turned.lowest[which]
    assert np.array_equal(before.lowest[row < row[which]], turned.lowest[row < row[which]])


def _scored(run: Episodes) -> Flags:
    used = (run.known & ~run.control)[run.pairs.row]
    return used & (run.pairs.probability > 0) & (run.pairs.probability < 1)


def _rows_of_scores(run: Episodes) -> Ints:
    return run.pairs.row[_scored(run)]


@given(SEEDS, st.booleans())
def test_the_histogram_never_tells_of_more_wealth_than_was_won(seed: int, fractional: bool) -> None:
    scores = overall_scores(drawn(seed, n=200, fractional=fractional))
    wealth = _betting.wealth(scores)
    for logs, score, worst in (
        (wealth.up[0], scores.score, scores.lowest),
        (wealth.down[0], -scores.score, -scores.highest),
    ):
        alive = np.isfinite(logs)
        assert np.all(1 + _betting.STAKES[alive] * worst.min() > 0)
        won = np.log1p(_betting.STAKES[alive, None] * score).sum(axis=1)
        told = logs[alive] - _betting.LOG_PRIOR[alive]
        assert np.all(told <= won + 1e-9)
        assert np.all(told >= won - 0.02 - 0.01 * np.abs(won))


def test_groups_are_tallied_in_blocks_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = lesson_scores(drawn(7))
    whole = log_e(scores, helps=True), *bounds(scores)
    monkeypatch.setattr(_betting, "_BLOCK", 2)
    assert np.allclose(whole, (log_e(scores, helps=True), *bounds(scores)))


@given(SEEDS, st.floats(0.5, 0.999))
def test_the_lower_end_leaves_zero_exactly_when_the_wealth_says_so(seed: int, level: float) -> None:
    g = np.random.default_rng(seed)
    shown = g.choice([0.05, 0.3, 0.7, 0.9], 400)
    drawn_shown = g.random(400) < shown
    outcome = g.random(400) < 0.4 + 0.2 * drawn_shown
    scores = one_group((drawn_shown - shown) * (outcome - 0.5), shown)
    wealth = log_e(scores, helps=True)[0]
    if abs(wealth - log(2 / (1 - level))) > 1e-3:
        assert (bounds(scores, level=level)[0][0] > 0) == (wealth > log(2 / (1 - level)))


@given(SEEDS)
def test_a_path_says_at_each_moment_what_the_bounds_said_then(seed: int) -> None:
    scores = overall_scores(drawn(seed))
    at = np.unique(np.random.default_rng(seed).integers(0, len(scores) + 1, 6))
    then = [bounds(_first(scores, int(n))) for n in at]
    assert np.allclose(path(scores, at=at), np.array(then)[:, :, 0].T)


def _first(scores: Scores, n: int) -> Scores:
    columns = (scores.score, scores.scale, scores.lowest, scores.highest)
    return Scores(*(column[:n] for column in columns), group=scores.group[:n], groups=1)


def test_a_narrowing_path_never_widens() -> None:
    g = np.random.default_rng(6)
    shown = np.full(500, 0.5)
    seen = g.random(500) < shown
    scores = one_group((seen - shown) * ((g.random(500) < 0.3 + 0.3 * seen) - 0.5), shown)
    at = np.arange(501)
    low, high = path(scores, at=at, narrowing=True)
    wide_low, wide_high = path(scores, at=at)
    assert np.all(np.diff(low) >= 0)
    assert np.all(np.diff(high) <= 0)
    assert np.all((low >= wide_low) & (high <= wide_high) & (low < 0.3) & (high > 0.3))


@pytest.mark.parametrize(
    ("values", "alpha", "rejected"),
    [
        ([100, 1, 60, 30, 0.5], 0.1, [True, False, True, True, False]),  # limits 50, 25, 16.7, 12.5, 10
        ([26, 26], 0.05, [True, True]),  # each alone would need 40, two need 20
        ([39, 19], 0.05, [False, False]),
    ],
)
def test_e_bh_takes_the_most_that_all_reach_their_common_limit(
    values: list[float], alpha: float, rejected: list[bool]
) -> None:
    assert e_bh(np.log(values), alpha=alpha).tolist() == rejected


def test_what_cannot_be_used_is_refused_in_one_sentence() -> None:
    scores = lesson_scores(drawn(0))
    single = overall_scores(drawn(0))
    with pytest.raises(UsageError, match=r"outcome 1\.5 is outside"):
        lesson_scores(replace(drawn(0), outcome=np.full(60, 1.5)))
    with pytest.raises(UsageError, match="outcome -2 is outside"):
        overall_scores(drawn(0), np.full(60, -2.0))
    with pytest.raises(UsageError, match="not ordered by recall"):
        lesson_scores(replace(drawn(0), pairs=replace(drawn(0).pairs, row=drawn(0).pairs.row[::-1])))
    with pytest.raises(UsageError, match="3 outcomes were given for 60 recalls"):
        overall_scores(drawn(0), np.zeros(3))
    with pytest.raises(UsageError, match="probability of withholding nan"):
        overall_scores(replace(drawn(0), control_probability=np.full(60, np.nan)))
    with pytest.raises(UsageError, match="level is 95"):
        bounds(scores, level=95)
    with pytest.raises(UsageError, match="alpha is 0"):
        e_bh(np.zeros(3), alpha=0)
    with pytest.raises(UsageError, match="these scores are of 5"):
        path(scores, at=np.array([1]))
    with pytest.raises(UsageError, match="at places that ascend from 0 to"):
        path(single, at=np.array([10_000]))

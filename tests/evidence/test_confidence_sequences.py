"""What is claimed of an effect holds at every moment, whoever looks and however the probabilities were chosen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import SEEDS, episodes, of, path

from lessonbank.evidence import _e_process
from lessonbank.evidence._e_process import CellGains, Scores, gains_by_cell, log_wealth_for, restarted
from lessonbank.evidence.confidence_sequences import bounds, log_e, outcomes, outcomes_each_way
from lessonbank.evidence.confidence_sequences import scores as all_scores
from lessonbank.evidence.episodes import Episodes, Floats

pytestmark = pytest.mark.full

RUNS = 300 if "LESSONBANK_SOAK" in os.environ else 100
"""Enough for a share of five in a hundred."""


def scores_of(run: Episodes) -> Scores:
    return all_scores(run, outcomes(run))


def whole(run: Episodes) -> Scores:
    return of(scores_of(run), 0)


def log_wealth(cells: CellGains, *, leave_out: int = 0) -> list[Floats]:
    """Of bets on effects above zero, and below."""
    return [log_wealth_for(cells, helps=helps, leave_out=leave_out) for helps in (True, False)]


def told(run: Episodes) -> CellGains:
    return gains_by_cell(scores_of(run))


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


def test_false_claims_stay_below_five_percent_when_one_looks_after_every_outcome() -> None:
    g = np.random.default_rng(1)
    n, runs, claimed = 250, RUNS, 0
    for _ in range(runs):
        lessons = np.zeros((n, 1), dtype=np.int64)
        outcome = (g.random(n) < g.uniform(0.2, 0.8)).astype(np.float64)
        run = episodes(outcome, lessons=lessons, withheld=g.random((n, 1)) < 0.3, probability=0.3, names=1)
        low, high = path(of(scores_of(run), 1), at=np.arange(n + 1))
        claimed += bool((low > 0).any() or (high < 0).any())
    assert claimed <= 0.05 * runs


@pytest.mark.parametrize("drift", [False, True], ids=["a constant effect", "an effect that changes its sign"])
def test_bounds_hold_at_every_moment_at_once_under_probabilities_that_react(drift: bool) -> None:
    g = np.random.default_rng(2)
    n, runs, missed = 250, RUNS, 0
    effect = np.where(np.arange(n) < n // 3, 0.35, -0.25) if drift else np.full(n, 0.2)
    for run in wandering(g, runs=runs, n=n, effect=effect, base=np.linspace(0.3, 0.6, n)):
        scores = whole(run)
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
    one = told(episodes(outcome, lessons=lessons, withheld=withheld, probability=0.3, names=names))
    assert (log_e(one, helps=True)[1:] > log(40)).tolist() == [True] + [False] * 5
    assert (log_e(one, helps=False)[1:] > log(40)).tolist() == [False, True] + [False] * 4
    low, high = (side[1:] for side in bounds(one))
    assert np.all((low <= effect) & (effect <= high))
    assert np.all(high - low < 0.3)


def test_what_explains_the_outcomes_narrows_the_bounds() -> None:
    g = np.random.default_rng(4)
    n = 3000
    cluster, control = g.integers(0, 20, n), g.random(n) < 0.2
    outcome = (g.random(n) < np.where(cluster < 10, 0.9, 0.1)).astype(np.float64)
    known = episodes(outcome, control=control, control_probability=0.2, cluster=cluster)
    alone = episodes(outcome, control=control, control_probability=0.2)
    (low, *_), (high, *_) = bounds(told(known))
    (far_low, *_), (far_high, *_) = bounds(told(alone))
    assert high - low < 0.75 * (far_high - far_low)


def test_the_lessons_that_were_found_tell_how_hard_a_task_is() -> None:
    g = np.random.default_rng(8)
    n = 3000
    hard = g.random(n) < 0.5
    lessons, withheld = np.where(hard, 0, 1)[:, None], g.random((n, 1)) < 0.3
    outcome = (g.random(n) < np.where(hard, 0.1, 0.9)).astype(np.float64)
    scores = scores_of(episodes(outcome, lessons=lessons, withheld=withheld, probability=0.3, names=2))
    assert np.mean(scores.score**2) / np.mean(scores.scale) < 0.11


@given(SEEDS, st.booleans())
def test_calling_success_failure_mirrors_every_answer(seed: int, fractional: bool) -> None:
    run = drawn(seed, fractional=fractional)
    turned = replace(run, outcome=1 - run.outcome)
    here, there = told(run), told(turned)
    low, high = bounds(here)
    assert np.allclose((-high, -low), bounds(there), atol=1e-9)
    assert np.allclose(log_e(here, helps=True), log_e(there, helps=False), atol=1e-9)


@given(SEEDS, st.integers(0, 5))
def test_a_group_tells_the_same_whatever_other_groups_there_are(seed: int, alone: int) -> None:
    scores = scores_of(drawn(seed))
    every, single = gains_by_cell(scores), gains_by_cell(of(scores, alone))
    assert np.allclose(log_e(every, helps=False)[alone], log_e(single, helps=False)[0])
    assert np.allclose(np.array(bounds(every))[:, alone], np.array(bounds(single))[:, 0])
    assert np.allclose(restarted(every)[0][alone], restarted(single)[0][0])


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_the_ways_to_fill_in_what_is_missing_differ_in_that_alone_and_rest_on_one_guess(seed: int) -> None:
    run, lost = drawn(seed, fractional=True), np.random.default_rng(seed).random(60) < 0.2
    run = replace(run, outcome=np.where(lost, np.nan, run.outcome))
    ways = outcomes_each_way(run)
    known, failed, went_well = (all_scores(run, way) for way in ways)
    for name in ("score", "scale", "row", "group"):
        assert getattr(known, name) == pytest.approx(getattr(scores_of(run), name), abs=1e-12), name
    is_missing = np.isnan(run.outcome)[known.row]
    assert not known.score[is_missing].any()
    for filled in (failed, went_well):
        assert filled.row.tolist() == known.row[is_missing].tolist()
        assert filled.group.tolist() == known.group[is_missing].tolist()
    assert (failed.score != went_well.score).all()
    assert ways[1].guess == pytest.approx(ways[2].guess, abs=1e-12)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_what_is_filled_in_counts_as_if_it_had_been_told(seed: int) -> None:
    """But for the guesses: nobody knew then how these would end."""
    run, lost = drawn(seed), np.random.default_rng(seed).random(60) < 0.2
    run = replace(run, outcome=np.where(lost, np.nan, run.outcome))
    known, *filled = (all_scores(run, way) for way in outcomes_each_way(run))
    made = gains_by_cell(known, *filled)
    is_missing = np.isnan(run.outcome)[known.row]
    for way, own in enumerate(filled):
        told = {
            name: np.where(is_missing, 0.0, getattr(known, name)) for name in ("score", "scale", "lowest", "highest")
        }
        for name, values in told.items():
            values[is_missing] = getattr(own, name)
        alone = gains_by_cell(replace(known, **told))
        assert np.allclose(made.up[1 + way], alone.up[0])
        assert np.allclose(made.scale[1 + way], alone.scale[0])


def test_nothing_is_claimed_where_there_is_nothing() -> None:
    empty = told(episodes(np.empty(0), lessons=np.empty((0, 1), np.int64), names=3))
    assert log_e(empty, helps=True) == pytest.approx([0] * 4, abs=1e-12)
    low, high = bounds(empty)
    assert (low.tolist(), high.tolist()) == ([-1] * 4, [1] * 4)
    assert len(scores_of(episodes(np.array([1.0, np.nan])))) == 0


@given(SEEDS, st.data())
def test_a_later_outcome_never_changes_what_was_guessed_before(seed: int, data: Any) -> None:
    run = drawn(seed)
    at = data.draw(st.integers(0, int(run.known.sum()) - 1))
    outcome = run.outcome.copy()
    outcome[at] = 1 - outcome[at]
    changed = replace(run, outcome=outcome)
    before, after = scores_of(run), scores_of(changed)
    row = before.row
    assert np.array_equal(before.score[row < at], after.score[row < at])
    assert np.array_equal(before.lowest[row <= at], after.lowest[row <= at])


@given(SEEDS, st.data())
def test_a_draw_has_no_part_in_the_guess_it_is_held_against(seed: int, data: Any) -> None:
    run = drawn(seed)
    before = scores_of(run)
    which = data.draw(st.integers(0, len(run.draws.row) - 1))
    shown = run.draws.shown.copy()
    shown[which] = ~shown[which]
    turned = scores_of(replace(run, draws=replace(run.draws, shown=shown)))
    assert np.array_equal(before.lowest, turned.lowest)
    assert (before.score != turned.score).sum() <= 1


@given(SEEDS, st.booleans())
def test_the_histogram_never_tells_of_more_wealth_than_was_won(seed: int, fractional: bool) -> None:
    scores = whole(drawn(seed, n=200, fractional=fractional))
    up, down = log_wealth(gains_by_cell(scores))
    for logs, score, worst in ((up[0], scores.score, scores.lowest), (down[0], -scores.score, -scores.highest)):
        alive = np.isfinite(logs)
        assert np.all(1 + _e_process.STAKES[alive] * worst.min() > 0)
        won = np.log1p(_e_process.STAKES[alive, None] * score).sum(axis=1)
        told = logs[alive] - _e_process.LOG_PRIOR[alive]
        assert np.all(told <= won + 1e-9)
        assert np.all(told >= won - 0.02 - 0.01 * np.abs(won))


def test_evidence_of_a_turn_from_any_start_on_is_hardly_ever_found_where_there_is_none() -> None:
    g, claimed, n = np.random.default_rng(9), 0, 600
    for _ in range(RUNS):
        shown = g.random(n) < 0.7
        score = (shown - 0.7) * ((g.random(n) < 0.5) - 0.5)
        claimed += any(
            restarted(gains_by_cell(_first(one_group(score, np.full(n, 0.7)), at)))[0][0] > log(20)
            for at in (150, 300, 600)
        )
    assert claimed <= 0.05 * RUNS


def test_the_sum_over_starts_is_what_each_start_won_with_its_share() -> None:
    scores = whole(drawn(3, n=400))
    logs = []
    for at, share in zip(_e_process.STARTS, _e_process.LOG_STARTS, strict=True):
        if at < len(scores):
            later = scores.where(np.arange(len(scores)) >= at)
            prior = gains_by_cell(scores).log_prior
            logs.append(log_e(replace(gains_by_cell(later), log_prior=prior), helps=False)[0] + share)
    assert restarted(gains_by_cell(scores))[0][0] == pytest.approx(np.logaddexp.reduce(logs))
    assert np.exp(_e_process.LOG_STARTS).sum() <= 1


@given(SEEDS, st.floats(0.5, 0.999))
def test_the_lower_end_leaves_zero_exactly_when_the_wealth_says_so(seed: int, level: float) -> None:
    g = np.random.default_rng(seed)
    shown = g.choice([0.05, 0.3, 0.7, 0.9], 400)
    drawn_shown = g.random(400) < shown
    outcome = g.random(400) < 0.4 + 0.2 * drawn_shown
    scores = one_group((drawn_shown - shown) * (outcome - 0.5), shown)
    one = gains_by_cell(scores)
    wealth = log_e(one, helps=True)[0]
    if abs(wealth - log(2 / (1 - level))) > 1e-3:
        assert (bounds(one, level=level)[0][0] > 0) == (wealth > log(2 / (1 - level)))


@given(SEEDS)
def test_a_path_says_at_each_moment_what_the_bounds_said_then(seed: int) -> None:
    scores = whole(drawn(seed))
    at = np.unique(np.random.default_rng(seed).integers(0, len(scores) + 1, 6))
    then = [bounds(gains_by_cell(_first(scores, int(n)))) for n in at]
    assert np.allclose(path(scores, at=at), np.array(then)[:, :, 0].T)


def _first(scores: Scores, n: int) -> Scores:
    return scores.where(np.arange(len(scores)) < n)


def test_a_group_is_bet_on_with_larger_stakes_which_find_a_large_effect_in_fewer_recalls() -> None:
    g = np.random.default_rng(21)
    n, runs = 90, 200
    shown = g.random((runs, n)) >= 0.4
    success = g.random((runs, n)) < 0.5 + 0.25 * shown
    bold = {False: 0, True: 0}
    for run in range(runs):
        score = np.where(shown[run], 0.4, -0.6) * (success[run] - 0.5)
        made = one_group(score, np.full(n, 0.6))
        for stakes in bold:
            bold[stakes] += bool(log_e(gains_by_cell(replace(made, bold=np.array([stakes]))), helps=True)[0] >= log(40))
    assert bold[True] >= 1.2 * bold[False] > 0


@pytest.mark.parametrize("odds", [0.1, 0.4])
def test_larger_stakes_on_groups_without_an_effect_err_as_seldom_as_promised(odds: float) -> None:
    g = np.random.default_rng(22)
    n, runs, said = 300, RUNS, 0
    for _ in range(runs):
        shown = g.random(n) >= odds
        outcome = (g.random(n) < g.uniform(0.2, 0.8)) * 1.0
        run = episodes(outcome, lessons=np.zeros((n, 1), np.int64), names=1, groups=(0,), group_withheld=~shown,
                       group_probability=odds)  # fmt: skip
        own = of(scores_of(run), 2)
        assert own.bold.tolist() == [True]
        low, high = path(own, at=np.arange(1, n + 1))
        said += bool((low > 0).any() or (high < 0).any())
    assert said <= 0.05 * runs


def test_no_more_is_bet_than_there_is_whatever_the_stakes() -> None:
    assert np.exp(_e_process.BOLD).sum() == pytest.approx(1.0)
    assert np.exp(_e_process.LOG_PRIOR).sum() == pytest.approx(1.0)


# --- without the best of some writers ---------------------------------------------------------------------------------


def told_by(told: Sequence[tuple[int, int, float]], groups: int) -> Scores:
    """Of (group, writer, score)."""
    group, writer = (np.array([one[at] for one in told], dtype=np.int64) for at in (0, 1))
    score = np.array([one[2] for one in told])
    wide = np.full(len(told), 0.5)
    return Scores(score, np.full(len(told), 0.25), -wide, wide, group, groups, writer=writer)


TOLD = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 4), st.floats(-0.5, 0.5, allow_nan=False)), min_size=1, max_size=40
)


@given(told=TOLD, k=st.integers(0, 5))
@settings(max_examples=15, deadline=None)
def test_no_choice_of_liars_leaves_the_others_with_less(told: list[tuple[int, int, float]], k: int) -> None:
    kept = log_wealth(gains_by_cell(told_by(told, 3), by_writer=True), leave_out=k)
    for liars in combinations(range(5), k):
        honest = [one for one in told if one[1] not in liars]
        won = log_wealth(gains_by_cell(told_by(honest, 3)))
        safe = np.isfinite(kept).all(axis=0)
        assert (np.where(safe, kept, -np.inf) <= np.array(won) + 1e-9).all()
    assert np.allclose(log_wealth(gains_by_cell(told_by([], 3)), leave_out=k)[0], _e_process.LOG_PRIOR)


def test_what_is_left_beside_a_great_liar_is_exactly_what_the_others_won() -> None:
    honest = [(0, writer, 0.1 - 0.3 * (writer % 2)) for writer in range(4) for _ in range(5)]
    lies = [(0, 5, 0.5)] * 200
    every = gains_by_cell(told_by([*honest, *lies], 1), by_writer=True)
    left, truly = (
        log_wealth(every, leave_out=1)[0],
        log_wealth(gains_by_cell(told_by(honest, 1)))[0],
    )
    safe = np.isfinite(truly)
    assert np.allclose(left[safe], truly[safe])
    assert _e_process.log_total(log_wealth(every)[0])[0] > 20 > _e_process.log_total(left)[0]

"""What a lesson is expected to change is learned from all draws of a recall, and from nothing but the draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from planted import SEEDS, episodes

from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.joint import jointly
from lessonbank.evidence.review import review

LESSONS, PLACES, HARM = 6, 4, 1
EFFECTS = np.array([0.15, -0.15, 0.15, 0.15, 0.15, 0.15])


def topic_alone(seed: int, *, n: int, luck: float = 0.0) -> Episodes:
    """One topic of six lessons, of which each task finds four. Nothing is drawn but the topic.

    `luck`: what success is likelier by where a task finds lesson 1, whatever is shown.
    """
    g = np.random.default_rng(seed)
    found = g.permuted(np.tile(np.arange(LESSONS), (n, 1)), axis=1)[:, :PLACES]
    gone = g.random(n) < 0.4
    likely = 0.4 + luck * (found == HARM).any(axis=1) + EFFECTS[found].sum(axis=1) * ~gone
    return episodes(
        (g.random(n) < likely).astype(float),
        lessons=found,
        groups=(0,) * LESSONS,
        group_withheld=gone,
        group_probability=0.4,
        names=LESSONS,
    )


def expected(told: Episodes) -> np.ndarray:
    return review(told).expected.mean[1 : 1 + LESSONS]


@pytest.mark.parametrize("seed", range(4))
def test_a_lesson_that_harms_stands_out_though_only_its_whole_topic_was_ever_withheld(seed: int) -> None:
    told = expected(topic_alone(seed, n=3000))
    assert int(told.argmin()) == HARM
    assert told[HARM] < 0.0 < np.delete(told, HARM).min()


@pytest.mark.parametrize("seed", range(4))
def test_tasks_that_succeed_anyway_make_no_lesson_look_better(seed: int) -> None:
    easy, usual = (expected(topic_alone(seed, n=3000, luck=luck)) for luck in (0.3, 0.0))
    assert easy[HARM] < 0.0
    assert easy[HARM] == pytest.approx(usual[HARM], abs=0.08)


def test_where_nothing_was_drawn_nothing_is_expected() -> None:
    one = topic_alone(5, n=500)
    sure = replace(one, placed=replace(one.placed, chance=one.placed.shown.astype(float)))
    assert expected(sure) == pytest.approx(np.zeros(LESSONS))
    assert (review(sure).expected.spread[1 : 1 + LESSONS] > 0.05).all()


def test_no_verdict_rests_on_it() -> None:
    one = topic_alone(6, n=3000)
    sure = replace(one, placed=replace(one.placed, chance=one.placed.shown.astype(float)))
    first, second = review(one), review(sure)
    assert first.standing == second.standing
    assert (first.low == second.low).all()
    assert np.array_equal(first.effects.estimate, second.effects.estimate, equal_nan=True)


def test_a_recall_before_anything_was_told_changes_nothing() -> None:
    one = topic_alone(7, n=50)
    found = review(replace(one, outcome=np.full(50, np.nan)))
    never = np.zeros(len(one.units), dtype=np.bool_)
    assert jointly(found.expected, one, found.found, turned=never).mean == pytest.approx(found.expected.mean)


@pytest.mark.full
@given(SEEDS)
def test_the_spread_is_as_large_as_the_errors_are(seed: int) -> None:
    g = np.random.default_rng((seed, 1))
    n, effects = 1500, g.normal(0.0, 0.1, LESSONS)
    found = g.permuted(np.tile(np.arange(LESSONS), (n, 1)), axis=1)[:, :PLACES]
    held, off = g.random((n, PLACES)) < 0.2, g.random(n) < 0.2
    likely = 0.5 + (effects[found] * ~held).sum(axis=1) * ~off
    made = episodes(
        (g.random(n) < likely).astype(float),
        control=off,
        control_probability=0.2,
        lessons=found,
        withheld=held,
        probability=0.2,
        names=LESSONS,
    )
    told = review(made).expected
    off_by = (told.mean[1 : 1 + LESSONS] - effects) / told.spread[1 : 1 + LESSONS]
    assert (np.abs(off_by) < 4.5).all()
    assert (told.spread[1 : 1 + LESSONS] < 0.1).all()

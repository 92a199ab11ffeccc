"""A tenth of the writers may lie as often as they like; more may not, and a lesson that harms still goes."""

from __future__ import annotations

import pytest

from lessonbank_bench.measure.liars import Crowd, in_bank, lines, played, power, table


def test_a_tenth_of_the_writers_lie_fifty_times_as_often_and_nothing_is_done() -> None:
    assert played(Crowd(20, 2, 50), tasks=40, seed=1).did is None


def test_without_each_single_key_alone_two_of_twenty_retire_a_good_lesson() -> None:
    assert played(Crowd(20, 2, 50), tasks=40, seed=1, leave_out=1).wrong("discredit")


def test_half_of_the_writers_are_too_many() -> None:
    assert played(Crowd(10, 5, 10), tasks=120, seed=1).wrong("discredit")


@pytest.mark.release
@pytest.mark.parametrize("world", ["discredit", "praise"])
@pytest.mark.parametrize("way", ["lies", "chosen truths"])
@pytest.mark.parametrize("reports", [1, 10, 50])
def test_no_wrong_action_in_500_tasks_where_a_tenth_of_the_writers_lie(world: str, way: str, reports: int) -> None:
    crowd = Crowd(50, 5, reports, way, world)  # type: ignore[arg-type]
    assert not any(played(crowd, tasks=500, seed=seed).wrong(crowd.world) for seed in (1, 2))


@pytest.mark.release
def test_through_a_bank_whose_writers_have_keys_a_good_lesson_stays() -> None:
    assert in_bank("open", Crowd(10, 1, 5), tasks=60, seed=1).did is None


@pytest.mark.release
def test_a_lesson_that_harms_goes_and_the_tables_say_so() -> None:
    assert all(one.retired for one in power(seeds=1) if not one.liars)
    rows = list(table(seeds=1, tasks=60, writers=10, shares=(0.1,)))
    (head, rule, row, _, told) = lines(rows, 60)
    assert head.count("|") == rule.count("|") == row.count("|") == 5
    assert ("0 of 4 runs" in row, "60 tasks" in told) == (True, True)

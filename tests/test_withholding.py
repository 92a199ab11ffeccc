"""The draw that makes lift measurable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.errors import UsageError
from lessonbank.evidence import Adaptive, Assignment, Blocked, Holdout, Never, Withholding
from lessonbank.evidence.lift import Standing
from lessonbank.evidence.review_snapshot import UnitReview
from lessonbank.types.ids import new_id

ASK = {"task": "Cancel it", "scope": "t"}


def assigned(policy: Withholding, *lessons: str, recall_id: str = "", task: str = "Cancel it") -> Assignment:
    return policy(lessons, recall_id=recall_id or new_id(), task=task, scope="t")


def test_the_same_recall_draws_the_same_lessons() -> None:
    ids = [new_id() for _ in range(50)]
    recall_id = new_id()
    first = Holdout(0.3, 0.3)(ids, recall_id=recall_id, **ASK)
    assert first == Holdout(0.3, 0.3)(ids, recall_id=recall_id, **ASK)
    assert 0 < len(first.withheld) < 50


def test_another_seed_draws_otherwise() -> None:
    ids, recall_id = [new_id() for _ in range(50)], new_id()
    draws = {Holdout(0.5, seed=seed)(ids, recall_id=recall_id, **ASK).withheld for seed in "abc"}
    assert len(draws) == 3


@pytest.mark.parametrize("policy", [Never(), Holdout(0.0, 0.0)])
def test_zero_withholds_nothing(policy: Withholding) -> None:
    drawn = [assigned(policy, "a", "b") for _ in range(200)]
    assert not any(one.withheld or one.control or one.control_probability for one in drawn)
    assert drawn[0].probability == {"a": 0.0, "b": 0.0}


def test_lessons_and_recalls_are_withheld_as_often_as_stated_and_independently_of_one_another() -> None:
    draws = [assigned(Holdout(0.2, 0.3), "a", "b", recall_id=f"{n:032x}") for n in range(4000)]
    a, b = (sum(i in d.withheld for d in draws) / 4000 for i in ("a", "b"))
    whole = sum(d.control for d in draws) / 4000
    assert abs(a - 0.2) < 0.025
    assert abs(b - 0.2) < 0.025
    assert abs(whole - 0.3) < 0.03
    assert abs(sum(len(d.withheld) == 2 for d in draws) / 4000 - 0.04) < 0.015
    assert abs(sum(d.control and "a" in d.withheld for d in draws) / 4000 - 0.06) < 0.015
    assert {(d.control_probability, d.probability["a"], d.usual) for d in draws} == {(0.3, 0.2, 0.2)}


def test_an_adaptive_policy_withholds_more_of_what_likely_harms_and_less_of_what_is_shown_to_help() -> None:
    policy = Adaptive(start=0.1, floor=0.05, ceiling=0.6)
    said: dict[str, Standing] = {"a": "likely harms", "b": "helps", "c": "likely helps", "*": "harms"}
    policy.tell("t", {id: UnitReview(grade=grade) for id, grade in said.items()})
    drawn = assigned(policy, "a", "b", "c", "d")
    assert drawn.probability == {"a": 0.6, "b": 0.05, "c": 0.1, "d": 0.1}
    assert drawn.control_probability == 0.6


def test_what_an_adaptive_policy_is_told_holds_in_one_scope() -> None:
    policy = Adaptive()
    policy.tell("other", {"a": UnitReview(grade="harms")})
    assert (assigned(policy, "a").probability, assigned(policy, "a").control_probability) == ({"a": 0.1}, 0.1)


@given(st.integers(2, 5), st.integers(1, 6), st.text(max_size=5))
def test_of_every_block_of_a_task_exactly_one_recall_goes_without(size: int, blocks: int, seed: str) -> None:
    policy = Blocked(size=size, seed=seed)
    for block in range(blocks):
        arms = [(assigned(policy, "a"), assigned(policy, "a", task="Another")) for _ in range(size)]
        assert sum(one.control for one, _ in arms) == 1, block
        assert sum(other.control for _, other in arms) == 1, block
    assert assigned(policy, "a").control_probability == 1 / size


def test_blocks_with_the_same_seed_and_order_give_the_same_arms() -> None:
    first, second = Blocked(seed="s"), Blocked(seed="s")
    assert [assigned(first).control for _ in range(20)] == [assigned(second).control for _ in range(20)]
    places = {tuple(assigned(Blocked(seed=str(n))).control for _ in range(1)) for n in range(20)}
    assert places == {(True,), (False,)}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Holdout(1.0), "lessons is a probability"),
        (lambda: Holdout(0.1, -0.1), "recalls is a probability"),
        (lambda: Holdout(True), "lessons is a probability"),
        (lambda: Adaptive(floor=0.0), "0 < floor"),
        (lambda: Adaptive(start=0.05, floor=0.1), "0 < floor"),
        (lambda: Adaptive(ceiling=1.0), "ceiling is a probability"),
        (lambda: Blocked(size=1), "at least 2"),
        (lambda: Blocked(lessons=2.0), "lessons is a probability"),
    ],
)
def test_what_is_no_probability_is_refused(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=said):
        make()

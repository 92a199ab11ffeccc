"""The draw that makes lift measurable."""

from __future__ import annotations

from collections import defaultdict
from math import prod, sqrt
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.records import Candidate, Recall
from lessonbank.contracts.records.ids import new_id
from lessonbank.errors import UsageError
from lessonbank.evidence import AdaptiveHoldout, Assignment, Holdout, Rates, Withholding
from lessonbank.evidence.effects import Standing
from lessonbank.evidence.review_snapshot import TreatmentReview
from lessonbank.evidence.treatments import entries

ASK = {"task": "Cancel it", "scope": "t"}


def assigned(policy: Withholding, *lessons: str, recall_id: str = "", task: str = "Cancel it") -> Assignment:
    return policy(dict.fromkeys(lessons, ()), recall_id=recall_id or new_id(), task=task, scope="t")


def test_the_same_recall_draws_the_same_lessons() -> None:
    ids = {new_id(): () for _ in range(50)}
    recall_id = new_id()
    first = Holdout(0.3, 0.3)(ids, recall_id=recall_id, **ASK)
    assert first == Holdout(0.3, 0.3)(ids, recall_id=recall_id, **ASK)
    assert 0 < len(first.withheld) < 50


def test_draws_with_a_seed_follow_from_the_order_of_recalls() -> None:
    def arms(seed: str) -> list[tuple[bool, frozenset[str]]]:
        policy = Holdout(0.5, 0.5, seed=seed)
        ids = [new_id(), new_id()]
        made = [policy(dict.fromkeys(ids, ()), recall_id=new_id(), **ASK) for _ in range(30)]
        return [(one.control, frozenset("ab"[ids.index(id)] for id in one.withheld)) for one in made]

    assert arms("s") == arms("s")
    assert arms("s") != arms("t")


def test_zero_withholds_nothing() -> None:
    drawn = [assigned(Holdout(0.0, 0.0), "a", "b") for _ in range(200)]
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
    assert {(d.control_probability, d.probability["a"], d.base_rate) for d in draws} == {(0.3, 0.2, 0.2)}


UNITS = st.builds(
    TreatmentReview,
    recalls=st.integers(0, 2000),
    grade=st.sampled_from(get_args(Standing)),
    by_judge=st.booleans(),
    expected=st.floats(-1, 1),
    spread=st.floats(0, 1),
)
FOUND = {"a": ("source/x", "topic/1"), "b": ("source/x", "topic/1"), "c": ("source/y", "topic/2")}
KNOWN = st.dictionaries(st.sampled_from(["*", "source/x", "source/y", "topic/1", "topic/2", "a", "b", "c"]), UNITS)


@pytest.mark.full
@given(KNOWN, st.integers(1, 3))
def test_a_task_goes_without_memory_as_often_as_the_policy_says(told: dict[str, TreatmentReview], count: int) -> None:
    policy = AdaptiveHoldout()
    policy.tell("t", told)
    made = policy(dict(list(FOUND.items())[:count]), recall_id="r", **ASK)
    each = [odd for odd in made.probability.values() if count > 1]
    bare = 1 - (1 - made.control_probability) * (1 - prod(each)) if each else made.control_probability
    assert policy.memory.helps - 1e-9 <= bare <= policy.memory.harms + 1e-9
    assert made.control_probability >= policy.memory.helps / 2 - 1e-9
    assert all(0.0 < odd <= policy.lesson.harms for odd in each)
    assert not made.groups


@pytest.mark.full
@given(KNOWN, st.sampled_from([AdaptiveHoldout(), Holdout(0.2, 0.3)]))
def test_each_entry_of_a_receipt_has_the_odds_that_were_drawn_with(
    told: dict[str, TreatmentReview], policy: Withholding
) -> None:
    if isinstance(policy, AdaptiveHoldout):
        policy.tell("t", told)
    shown, chance = defaultdict[str, int](int), defaultdict[str, list[float]](list)
    for n in range(50):
        made = policy(FOUND, recall_id=f"{n:032x}", **ASK)
        for entry in entries(receipt_of(made)):
            chance[entry.treatment].append(entry.chance)
            shown[entry.treatment] += entry.shown
    for treatment, odds in chance.items():
        assert len(set(odds)) == 1  # whatever was drawn for others
        assert abs(shown[treatment] - sum(odds)) <= 5 * sqrt(sum(p * (1 - p) for p in odds)) + 1


def receipt_of(made: Assignment) -> Recall:
    gone = {draw.group for draw in made.groups if draw.withheld}
    return Recall(
        scope="t",
        task="Cancel it",
        control=made.control,
        control_probability=made.control_probability,
        groups=made.groups,
        candidates=tuple(
            Candidate(
                lesson_id=id,
                experience_id="e",
                score=1.0,
                rank=rank,
                shown=not made.control and id not in made.withheld and gone.isdisjoint(groups),
                withheld=id in made.withheld,
                probability=made.probability[id],
                groups=groups,
            )
            for rank, (id, groups) in enumerate(FOUND.items(), 1)
        ),
    )


def rates(policy: AdaptiveHoldout, *lessons: str, topic: str = "topic/1") -> dict[str, float]:
    """How often each treatment is withheld."""
    made = policy(dict.fromkeys(lessons, (topic,)), recall_id="r", **ASK)
    return {treatment: round(odd, 3) for treatment, odd in {"*": made.control_probability, **made.probability}.items()}


def known(effect: float, spread: float = 0.001, /, *, by_judge: bool = False) -> TreatmentReview:
    """Something of which the effect is known."""
    return TreatmentReview(recalls=100, found=100, expected=effect, spread=spread, by_judge=by_judge)


def test_a_task_goes_without_memory_as_often_whether_one_lesson_was_found_or_three() -> None:
    policy = AdaptiveHoldout()
    bare = rates(policy, "a")
    assert 0.13 < bare["*"] < 0.15
    assert bare["a"] == 0.0  # a lesson that is all there is has no draw of its own
    two, three = rates(policy, "a", "b"), rates(policy, "a", "b", "c")
    for made, lessons in ((two, "ab"), (three, "abc")):
        each = prod(made[id] for id in lessons)
        assert 1 - (1 - made["*"]) * (1 - each) == pytest.approx(bare["*"], abs=0.002)
        assert made["*"] >= bare["*"] / 2 - 0.001  # memory as a whole is measured by half of these tasks at least
    assert 0.25 < three["a"] == three["b"] <= policy.lesson.unknown


def test_what_helps_is_left_out_least_and_what_harms_most() -> None:
    policy = AdaptiveHoldout()
    policy.tell("t", {"*": known(0.3), "good": known(0.3), "bad": known(-0.3), "doubted": known(-0.1, 0.1)})
    made = rates(policy, "good", "bad", "doubted", "new")
    assert (made["good"], made["bad"]) == (policy.lesson.helps, policy.lesson.harms)
    assert made["good"] < made["new"] < made["doubted"] < made["bad"]
    assert rates(policy, "good") == {"*": 0.05, "good": 0.0}


def test_what_helps_a_little_is_left_out_as_if_it_were_unknown() -> None:
    policy = AdaptiveHoldout()
    policy.tell("t", {"small": known(0.05), "large": known(0.2)})
    made = rates(policy, "small", "large", "new")
    assert made["small"] == policy.lesson.unknown
    assert made["large"] == policy.lesson.helps


def test_memory_is_left_out_more_where_it_harms_and_no_lesson_of_the_task_is_known_to_help() -> None:
    policy = AdaptiveHoldout()
    policy.tell("t", {"*": known(-0.3), "good": known(0.3)})
    assert rates(policy, "new")["*"] == 0.5
    assert rates(policy, "good")["*"] == 0.05
    policy.tell("t", {"*": known(0.3), "topic/1": known(-0.3)})
    assert rates(policy, "new")["*"] == 0.5  # the topic is known, too
    assert rates(policy, "new", topic="topic/2")["*"] == 0.05


def test_opinions_alone_change_no_odds() -> None:
    policy, new = AdaptiveHoldout(), AdaptiveHoldout()
    policy.tell("t", {treatment: known(-0.3, by_judge=True) for treatment in ("*", "a", "b")})
    assert rates(policy, "a", "b") == rates(new, "a", "b")


def test_what_a_policy_is_told_holds_in_one_scope() -> None:
    policy = AdaptiveHoldout()
    policy.tell("other", {"*": known(-0.3)})
    assert rates(policy, "a") == rates(AdaptiveHoldout(), "a")


def order(policy: AdaptiveHoldout, *near: float, places: int = 1, recall_id: str = "") -> list[int]:
    """Which of lessons l0, l1, … that are so near have a place."""
    found = [((f"l{n}",), distance) for n, distance in enumerate(near)]
    return policy.order(found, places=places, recall_id=recall_id, scope="t")


def test_without_evidence_the_nearest_have_a_place() -> None:
    assert order(AdaptiveHoldout(), 1.0, 0.95, 0.9, 0.85, places=2) == [0, 1]
    assert order(AdaptiveHoldout(), 0.4, 0.3, places=3) == [0, 1]
    assert order(AdaptiveHoldout(), places=3) == []
    assert order(AdaptiveHoldout(), 0.0, 0.0, -0.1) == [0]


def test_a_lesson_of_the_band_that_helps_takes_the_place_of_a_nearer_one_that_harms() -> None:
    policy = AdaptiveHoldout()
    policy.tell("t", {"l0": known(-0.1), "l2": known(0.2)})
    assert order(policy, 1.0, 0.95, 0.9) == [2]
    assert order(policy, 1.0, 0.95, 0.9, places=2) == [2, 1]
    assert order(policy, 1.0, 0.95, 0.7, places=2) == [1, 0]  # too far from the last that has a place


def test_a_few_places_go_to_lessons_that_would_have_none() -> None:
    policy = AdaptiveHoldout()
    got = [order(policy, 1.0, 0.95, recall_id=f"{n}") for n in range(1000)]
    assert [1] in got[:30]
    assert 40 <= got.count([1]) <= 53  # two at first, and five in a hundred
    policy.tell("t", {"l1": known(0.0)})
    tried = [order(policy, 1.0, 0.95, 0.9, recall_id=f"{n}")[0] for n in range(1000)]
    assert tried.count(2) > tried.count(1) == 0  # the one that was found least


def test_lessons_are_tried_by_turns_until_their_outcomes_are_known() -> None:
    policy = AdaptiveHoldout()
    got = [order(policy, 1.0, 0.95, 0.9, 0.85, recall_id=f"{n}")[0] for n in range(100)]
    assert {got.count(n) for n in (1, 2, 3)} <= {2, 3}


def test_beside_a_lesson_that_is_known_one_with_few_outcomes_counts_as_five_points_better() -> None:
    policy = AdaptiveHoldout()
    nothing, seen = TreatmentReview(recalls=30, found=30), TreatmentReview(recalls=5, found=5)
    policy.tell("t", {"l0": nothing, "l1": seen})
    assert order(policy, 1.0, 0.92) == [1]  # a tenth less near counts as five points worse
    assert order(policy, 1.0, 0.88) == [0]
    policy.tell("t", {"l0": nothing, "l1": nothing})
    assert order(policy, 1.0, 0.92) == [0]
    policy.tell("t", {"l0": seen})
    assert order(policy, 1.0, 0.92) == [0]  # nothing is known of either


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Holdout(1.0), "lessons is a probability"),
        (lambda: Holdout(0.1, -0.1), "recalls is a probability"),
        (lambda: Holdout(True), "lessons is a probability"),
        (lambda: Rates(0.0, 0.1, 0.2), "0 < helps"),
        (lambda: Rates(0.3, 0.1, 0.2), "helps <= unknown"),
        (lambda: Rates(0.1, 0.2, 1.0), "harms is a probability"),
    ],
)
def test_what_is_no_probability_is_refused(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=said):
        make()

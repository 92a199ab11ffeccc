"""The draw that makes lift measurable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import prod, sqrt
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.records import Candidate, Recall
from lessonbank.contracts.records.ids import new_id
from lessonbank.errors import UsageError
from lessonbank.evidence import Assignment, Bandit, Blocked, Holdout, Never, TrialPeriods, Withholding
from lessonbank.evidence.draws import FollowsEvidence
from lessonbank.evidence.lift import Standing
from lessonbank.evidence.review_snapshot import UnitReview
from lessonbank.evidence.units import entries

ASK = {"task": "Cancel it", "scope": "t"}


def assigned(policy: Withholding, *lessons: str, recall_id: str = "", task: str = "Cancel it") -> Assignment:
    return policy(dict.fromkeys(lessons, ()), recall_id=recall_id or new_id(), task=task, scope="t")


def test_the_same_recall_draws_the_same_lessons() -> None:
    ids = {new_id(): () for _ in range(50)}
    recall_id = new_id()
    first = Holdout(0.3, 0.3)(ids, recall_id=recall_id, **ASK)
    assert first == Holdout(0.3, 0.3)(ids, recall_id=recall_id, **ASK)
    assert 0 < len(first.withheld) < 50


def test_another_seed_draws_otherwise() -> None:
    ids, recall_id = {new_id(): () for _ in range(50)}, new_id()
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


UNITS = st.builds(
    UnitReview,
    recalls=st.integers(0, 2000),
    grade=st.sampled_from(get_args(Standing)),
    by_judge=st.booleans(),
    expected=st.floats(-1, 1),
    spread=st.floats(0, 1),
)
FOUND = {"a": ("source/x", "topic/1"), "b": ("source/x", "topic/1"), "c": ("source/y", "topic/2")}
KNOWN = st.dictionaries(st.sampled_from(["*", "source/x", "source/y", "topic/1", "topic/2", "a", "b", "c"]), UNITS)


@pytest.mark.full
@given(KNOWN, st.integers(0, 3000), st.sampled_from([TrialPeriods(), Bandit()]))
def test_a_policy_that_follows_the_evidence_keeps_within_its_bounds(
    told: dict[str, UnitReview], recalls: int, policy: TrialPeriods | Bandit
) -> None:
    policy.tell("t", told, recalls=recalls)
    made = policy(FOUND, recall_id="r", **ASK)
    ceiling = 0.5 if isinstance(policy, TrialPeriods) else 0.9
    odds = [made.control_probability, *made.probability.values(), *(draw.probability for draw in made.groups)]
    assert all(0.0 <= odd <= ceiling for odd in odds)
    shown = {unit for unit, known in told.items() if known.grade == "helps" and not known.by_judge}
    for entry in entries(receipt_of(made)) if isinstance(policy, TrialPeriods) else ():
        if "/" not in entry.unit:
            assert 1 - entry.chance >= (0.05 if entry.unit in shown else 0.1) - 1e-9


@pytest.mark.full
@given(KNOWN, st.integers(0, 3000))
def test_units_of_the_same_lessons_together_are_withheld_as_often_as_the_most_doubtful_of_them(
    told: dict[str, UnitReview], recalls: int
) -> None:
    policy = TrialPeriods()
    policy.tell("t", told, recalls=recalls)
    made = policy({"a": ("source/x", "topic/1")}, recall_id="r", **ASK)
    probabilities = [made.control_probability, made.probability["a"], *(draw.probability for draw in made.groups)]
    assert 1 - prod(1 - p for p in probabilities) <= 0.5 + 1e-9


@pytest.mark.full
@given(KNOWN, st.integers(0, 3000), st.sampled_from([TrialPeriods(), Bandit(), Holdout(0.2, 0.3)]))
def test_each_entry_of_a_receipt_has_the_odds_that_were_drawn_with(
    told: dict[str, UnitReview], recalls: int, policy: Withholding
) -> None:
    if isinstance(policy, FollowsEvidence):
        policy.tell("t", told, recalls=recalls)
    shown, chance = defaultdict[str, int](int), defaultdict[str, list[float]](list)
    for n in range(50):
        made = policy(FOUND, recall_id=f"{n:032x}", **ASK)
        for entry in entries(receipt_of(made)):
            chance[entry.unit].append(entry.chance)
            shown[entry.unit] += entry.shown
    for unit, odds in chance.items():
        assert len(set(odds)) == 1  # whatever was drawn for others
        assert abs(shown[unit] - sum(odds)) <= 5 * sqrt(sum(p * (1 - p) for p in odds)) + 1


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


def rates(policy: TrialPeriods, lessons: Mapping[str, tuple[str, ...]]) -> dict[str, float]:
    """How often each unit is withheld."""
    made = policy(lessons, recall_id="r", **ASK)
    told = {"*": made.control_probability, **made.probability}
    return {unit: round(odd, 3) for unit, odd in (told | {d.group: d.probability for d in made.groups}).items()}


def test_what_is_new_is_on_trial() -> None:
    two = {"a": ("topic/1",), "b": ("topic/2",)}
    assert rates(TrialPeriods(), {"a": ()}) == {
        "*": 0.3,
        "a": 0.0,
    }  # a lesson that is all there is has no draw of its own
    assert rates(TrialPeriods(), two) == {"*": 0.3, "topic/1": 0.3, "topic/2": 0.3, "a": 0.0, "b": 0.0}
    policy = TrialPeriods()
    policy.tell("t", {"*": UnitReview(recalls=100)}, recalls=150)
    assert rates(policy, two)["*"] == 0.1


def test_a_new_lesson_of_a_known_topic_is_tried_with_the_topic() -> None:
    two = {"a": ("topic/1",), "b": ("topic/1",)}
    policy = TrialPeriods()
    known = {"*": UnitReview(recalls=500), "topic/1": UnitReview(recalls=200), "a": UnitReview(found=20)}
    policy.tell("t", known, recalls=500)
    assert rates(policy, two) == {"*": 0.1, "a": 0.1, "b": 0.0}
    assert rates(policy, {"b": ("topic/1",)}) == {"*": 0.1, "topic/1": 0.222, "b": 0.0}


def test_a_topic_of_several_lessons_is_withheld_four_times_in_ten_for_its_first_recalls() -> None:
    two, three = {"a": ("topic/1",), "b": ("topic/1",)}, {"a": ("topic/1",), "b": ("topic/1",), "c": ("topic/2",)}
    policy = TrialPeriods()
    policy.tell("t", {"*": UnitReview(recalls=500), "topic/1": UnitReview(recalls=149)}, recalls=500)
    assert rates(policy, two) == {"*": 0.1, "topic/1": 0.333, "a": 0.0, "b": 0.0}  # with the whole, four in ten
    assert rates(policy, three) == {"*": 0.1, "topic/1": 0.4, "topic/2": 0.3, "a": 0.0, "b": 0.0, "c": 0.0}
    policy.tell("t", {"*": UnitReview(recalls=500), "topic/1": UnitReview(recalls=150)}, recalls=500)
    assert rates(policy, three)["topic/1"] == 0.1
    bounded = TrialPeriods(doubted=0.35)
    assert rates(bounded, three)["topic/1"] == 0.35


def test_what_is_shown_to_help_is_withheld_least_and_what_likely_harms_every_other_time() -> None:
    policy = TrialPeriods()
    units = {"*": UnitReview(500, "helps"), "a": UnitReview(500, "helps"), "b": UnitReview(500, "likely harms")}
    policy.tell("t", units, recalls=500)
    assert rates(policy, {"a": (), "b": (), "c": ()}) == {"*": 0.05, "a": 0.05, "b": 0.5, "c": 0.1}


def test_a_topic_is_withheld_by_what_a_task_found_of_it() -> None:
    good, bad = (UnitReview(200, expected=way * 0.1, spread=0.02, found=200) for way in (1, -1))
    units = {"*": UnitReview(500), "topic/1": UnitReview(500, expected=-0.1, spread=0.02), "topic/2": UnitReview(500)}
    policy = TrialPeriods()
    policy.tell("t", units | {"good": good, "better": good, "bad": bad, "worse": bad}, recalls=500)
    helpful, harmful = dict.fromkeys(("good", "better"), ("topic/1",)), dict.fromkeys(("bad", "worse"), ("topic/1",))
    other = {"c": ("topic/2",)}
    assert rates(policy, helpful | other)["topic/1"] == 0.1
    assert rates(policy, harmful | other)["topic/1"] == 0.5
    assert rates(policy, {"good": ("topic/1",), "bad": ("topic/1",)} | other)["topic/1"] == 0.1  # bad is half withheld
    assert rates(policy, helpful | {"new": ("topic/1",)} | other)["topic/1"] == 0.5  # as the topic does on average


def test_opinions_alone_change_no_odds() -> None:
    policy = TrialPeriods()
    by_judge = {unit: UnitReview(1500, "harms", by_judge=True, expected=-0.3, spread=0.01) for unit in ("*", "a", "b")}
    policy.tell("t", by_judge, recalls=1500)
    assert rates(policy, {"a": (), "b": ()}) == {"*": 0.1, "a": 0.1, "b": 0.1}


def test_a_source_is_drawn_only_where_there_are_two() -> None:
    lessons = {"a": ("source/x", "topic/1"), "b": ("source/x", "topic/2"), "c": ("source/y", "topic/1")}
    policy = TrialPeriods()
    units = {"*": UnitReview(500), "topic/1": UnitReview(500), "topic/2": UnitReview(500)}
    policy.tell("t", units | {"source/x": UnitReview(500)}, recalls=500)
    assert "source/x" not in rates(policy, lessons)
    policy.tell("t", units | {"source/x": UnitReview(500), "source/y": UnitReview(20)}, recalls=500)
    assert rates(policy, lessons)["source/x"] == 0.1


def test_nothing_is_on_trial_for_ever_where_nobody_tells_outcomes() -> None:
    policy = TrialPeriods()
    policy.tell("t", {}, recalls=200)
    assert rates(policy, {"a": ("topic/1",), "b": ("topic/2",)}) == {
        "*": 0.1, "topic/1": 0.1, "topic/2": 0.1, "a": 0.0, "b": 0.0
    }  # fmt: skip


def test_what_a_policy_is_told_holds_in_one_scope() -> None:
    policy = TrialPeriods()
    policy.tell("other", {"*": UnitReview(500, "harms")}, recalls=500)
    assert rates(policy, {"a": (), "b": ()})["*"] == 0.3


def test_a_bandit_follows_the_evidence_up_to_its_ceiling() -> None:
    policy = Bandit()
    policy.tell(
        "t", {"a": UnitReview(expected=-0.3, spread=0.01), "b": UnitReview(expected=0.3, spread=0.001)}, recalls=500
    )
    made = policy({"a": (), "b": (), "c": ()}, recall_id="r", **ASK).probability
    assert made == {"a": pytest.approx(0.9, abs=0.01), "b": pytest.approx(0.02, abs=0.01), "c": 0.1}


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
        (lambda: Bandit(floor=0.0), "0 < floor"),
        (lambda: Bandit(start=0.05, floor=0.1), "0 < floor"),
        (lambda: Bandit(ceiling=1.0), "ceiling is a probability"),
        (lambda: TrialPeriods(doubted=0.6), "doubted <= 0.5"),
        (lambda: TrialPeriods(trial=0.05), "0 < proven <= usual <= trial"),
        (lambda: TrialPeriods(proven=True), "proven is a probability"),
        (lambda: TrialPeriods(length=-1), "number of recalls"),
        (lambda: Blocked(size=1), "at least 2"),
        (lambda: Blocked(lessons=2.0), "lessons is a probability"),
    ],
)
def test_what_is_no_probability_is_refused(make: object, said: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=said):
        make()

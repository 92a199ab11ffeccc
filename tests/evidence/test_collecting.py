"""An evidence table holds what receipts and settlements say, in whatever pieces and however often they arrive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st
from linear import FAR, growth

from lessonbank.contracts.records import Candidate, Recall, Settlement, Usage
from lessonbank.evidence.episodes import Episodes
from lessonbank.evidence.evidence_table import WINDOW, EvidenceTable, template_of

AT = datetime(2026, 1, 1, tzinfo=UTC)


def candidate(lesson_id: str, rank: int = 1, **more: Any) -> Candidate:
    told = {"shown": True, "probability": 0.25} | more
    return Candidate(lesson_id=lesson_id, experience_id="e", score=0.5, rank=rank, **told)


def receipt(id: str, *lessons: str | Candidate, task: str = "Cancel it", **more: Any) -> Recall:
    found = tuple(c if isinstance(c, Candidate) else candidate(c, n) for n, c in enumerate(lessons, 1))
    return Recall(id=id, scope="t", task=task, candidates=found, **({"created_at": AT} | more))


def settled(id: str, outcome: Any = "success", **more: Any) -> Settlement:
    return Settlement(recall_id=id, scope="t", outcome=outcome, **({"source": "ground_truth"} | more))


def columns(*receipts: Recall) -> EvidenceTable:
    made = EvidenceTable()
    for one in receipts:
        made.receipt(one)
    return made


def named(one: Episodes, treatments: Any) -> list[str]:
    return [one.treatments[treatment] for treatment in treatments]


def plain(one: Episodes) -> list[Any]:
    """What episodes say of recalls with an outcome, whatever numbers stand for lessons and clusters."""
    p, d, rows = one.placed, one.draws, np.flatnonzero(one.known)
    pairs: list[Any] = list(zip(p.row.tolist(), named(one, p.treatment), p.shown.tolist(), strict=True))
    pairs += zip(d.row.tolist(), named(one, d.treatment), d.shown.tolist(), d.chance.tolist(), strict=True)
    numbers = np.column_stack([one.outcome, one.true, one.judged, one.without, one.steps, one.cost])
    return [
        (
            str(numbers[row].tolist()),
            int(np.flatnonzero(one.cluster[rows] == one.cluster[row])[0]),
            sorted(pair[1:] for pair in pairs if pair[0] == row),
        )
        for row in rows
    ]


EVENTS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["success", "failure", "unknown"]),
        st.sampled_from(["judge", "ground_truth", "framework_error"]),
        st.sampled_from([None, "one template", "another"]),
    ),
    max_size=14,
)


@pytest.mark.full
@given(EVENTS, st.permutations(range(6)), st.integers(0, 14))
def test_in_whatever_pieces_things_arrive_the_columns_are_the_same(
    events: list[Any], order: Sequence[int], pause: int
) -> None:
    receipts = [
        receipt(str(n), f"lesson {n % 3}", "shared", task=f"kind {'abc'[n % 3]}", created_at=later(n)) for n in range(6)
    ]
    told = [
        settled(str(n), outcome, source=source, template=template, judge="j", steps=n)
        for n, outcome, source, template in events
    ]
    at_once = columns(*receipts)
    for settlement in told:
        at_once.settle(settlement)
    slowly = EvidenceTable()
    for sequence, settlement in enumerate(told, 1):
        slowly.receipt(receipts[int(settlement.recall_id)])
        slowly.settle(settlement)
        if sequence == pause:
            slowly.episodes()
    for n in order:
        slowly.receipt(receipts[n])
    here, there = at_once.episodes(), slowly.episodes()
    assert plain(here) == plain(there)
    assert len(here) == len(there) == 6


def test_rows_are_in_the_order_in_which_recalls_were_made_whatever_was_read_or_told_first() -> None:
    made = columns(*(on(id, day, id) for day, id in ((2, "c"), (0, "a"), (1, "b"), (3, "d"))))
    made.settle(settled("c"))
    made.settle(settled("a", "failure"))
    made.settle(settled("c", "failure"))
    found = made.episodes()
    assert named(found, found.placed.treatment) == ["a", "b", "c", "d"]
    assert str(found.outcome.tolist()) == "[0.0, nan, 0.0, nan]"
    assert found.at.tolist() == [later(day).timestamp() for day in range(4)]


@pytest.mark.parametrize(("later_ones", "missing"), [(WINDOW - 1, False), (WINDOW, True)])
def test_an_outcome_is_waited_for_until_a_window_of_later_ones_is_known_and_then_counts_as_missing(
    later_ones: int, missing: bool
) -> None:
    made = columns(*(on(str(day), day, "x") for day in range(30)))
    for day in (0, *range(2, 2 + later_ones)):
        made.settle(settled(str(day)))
    found = made.episodes()
    assert found.missing.tolist()[:2] == [False, missing]
    assert found.known.tolist()[:3] == [True, False, missing]
    assert int(found.known.sum()) == (1 + later_ones if missing else 1)
    made.settle(settled("1"))
    assert int(made.episodes().known.sum()) == 2 + later_ones


def test_no_recall_waits_for_the_outcome_of_one_in_which_nothing_was_drawn() -> None:
    one = on("0", 0, "x")
    sure = one.model_copy(
        update={
            "candidates": tuple(c.model_copy(update={"probability": 0.0}) for c in one.candidates),
            "control_probability": 0.0,
        }
    )
    made = columns(sure, *(on(str(day), day, "x") for day in range(1, 5)))
    for day in (1, 2, 4):
        made.settle(settled(str(day)))
    found = made.episodes()
    assert 0 not in found.draws.row
    assert found.known.tolist() == [False, True, True, False, False]  # the fourth is drawn, and holds up the fifth
    assert not found.missing.any()  # the first is waited for itself: it is not missing yet
    made.settle(settled("0"))
    assert made.episodes().known.tolist() == [True, True, True, False, False]


def test_a_recall_that_had_nothing_to_show_is_no_row() -> None:
    made = columns(receipt("none"), receipt("no room", candidate("a", placed=False, shown=False)))
    assert (len(made), made.knows("none"), len(made.episodes())) == (0, True, 0)
    made.settle(settled("none"))
    made.settle(settled("nobody knows it"))
    assert len(made.episodes()) == 0


def test_lessons_without_a_place_are_not_there_and_draws_are_as_the_receipt_has_them() -> None:
    found = columns(
        receipt(
            "a",
            candidate("kept", 1, withheld=True, shown=False, probability=0.4),
            candidate("no room", 2, placed=False, shown=False),
            candidate("other", 3, probability=0.0),
            control_probability=0.3,
        )
    ).episodes()
    assert found.treatments == ("*", "kept", "other")
    assert named(found, found.placed.treatment) == ["kept", "other"]
    assert found.placed.shown.tolist() == [False, True]
    assert named(found, found.draws.treatment) == ["*", "kept"]
    assert (found.draws.shown.tolist(), found.draws.chance.tolist()) == ([True, False], [0.7, 0.6])
    assert found.level.tolist() == [0, 2, 2]


def test_groups_are_treatments_of_their_own_and_a_lesson_knows_the_ones_it_was_in_last() -> None:
    made = columns(
        receipt("a", candidate("x", groups=("source/told", "topic/old")), candidate("y", groups=("source/told",))),
        receipt("b", candidate("x", groups=("source/told", "topic/new"))),
    )
    found = made.episodes()
    assert dict(zip(found.treatments, found.level.tolist(), strict=True)) == {
        "*": 0, "x": 2, "source/told": 1, "topic/old": 1, "y": 2, "topic/new": 1,
    }  # fmt: skip
    assert [found.treatments[n] for n in found.parents[found.treatments.index("x")]] == ["source/told", "topic/new"]
    assert made.groups_of(["x", "nobody"]) == {"source/told", "topic/new"}


def test_what_was_copied_stays_as_it_was() -> None:
    made = columns(receipt("a", "x"))
    before = made.episodes()
    made.settle(settled("a"))
    made.receipt(receipt("b", "y"))
    assert (len(before), before.known.tolist(), before.treatments) == (1, [False], ("*", "x"))


class TestOutcomes:
    def test_an_opinion_stays_when_the_truth_is_told_later(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "failure", source="judge", judge="j 1"))
        before = made.episodes()
        made.settle(settled("a", "success"))
        after = made.episodes()
        assert (before.outcome[0], before.true[0], before.judged[0]) == (0.0, False, 0.0)
        assert (after.outcome[0], after.true[0], after.judged[0]) == (1.0, True, 0.0)

    def test_the_truth_stays_when_a_judge_is_asked_later(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "failure"))
        made.settle(settled("a", "success", source="judge"))
        found = made.episodes()
        assert (found.outcome[0], found.true[0], found.judged[0]) == (0.0, True, 1.0)

    def test_the_truth_and_an_opinion_stay_when_a_judge_cannot_tell_later(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "failure", source="judge"))
        made.settle(settled("a", "success"))
        made.settle(settled("a", "unknown", source="judge"))
        found = made.episodes()
        assert (found.outcome[0], found.true[0], found.judged[0]) == (1.0, True, 0.0)

    def test_an_outcome_that_became_unknown_is_unknown(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a"))
        made.settle(settled("a", "unknown"))
        assert math.isnan(made.episodes().outcome[0])

    def test_a_reward_counts_as_it_is_for_one_run_and_for_several(self) -> None:
        made = columns(receipt("a", "x"), receipt("b", "x"))
        made.settle(settled("a", "failure", reward=0.25, trajectory_ids=tuple("rstu"), steps=40))
        made.settle(settled("b", "failure", reward=0.6, trajectory_ids=("r",), steps=40))
        found = made.episodes()
        assert found.outcome.tolist() == [0.25, 0.6]
        assert found.steps.tolist() == [10.0, 40.0]

    @pytest.mark.parametrize("reward", [-1.0, 1.5, None])
    def test_what_is_no_share_is_not_taken_for_one(self, reward: float | None) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "success", reward=reward, trajectory_ids=("r", "s")))
        assert made.episodes().outcome[0] == 1.0

    def test_costs_that_nobody_told_are_unknown_and_not_nothing(self) -> None:
        made = columns(receipt("a", "x"), receipt("b", "x"))
        made.settle(settled("a"))
        usage = Usage(input_tokens=30, output_tokens=10, cost=0.5)
        made.settle(settled("b", usage=usage, seconds=8.0, trajectory_ids=("r", "s")))
        found = made.episodes()
        for name, expected in (("tokens", 20.0), ("cost", 0.25), ("seconds", 4.0)):
            values = getattr(found, name)
            assert math.isnan(values[0])
            assert values[1] == expected

    def test_a_recall_that_its_own_run_settles_later_counts_no_longer_as_settled_by_another(self) -> None:
        made = columns(receipt("a", "x"), receipt("b", "x"))
        for id in ("a", "b"):
            made.settle(settled(id, another_task=True))
        made.settle(settled("a"))
        assert made.episodes().another_task == 1


class TestClusters:
    def test_tasks_that_differ_in_numbers_alone_are_of_one_template(self) -> None:
        found = columns(
            receipt("a", "x", task="Cancel order #W123 of anna@example.org"),
            receipt("b", "x", task="cancel  Order #W77 of anna@example.org"),
            receipt("c", "x", task="Refund order #W77 of anna@example.org"),
        ).episodes()
        assert found.cluster[0] == found.cluster[1] != found.cluster[2]

    def test_a_template_that_is_told_goes_before_what_is_guessed(self) -> None:
        made = columns(receipt("a", "x", task="one"), receipt("b", "x", task="other"))
        for id in "ab":
            made.settle(settled(id, template="T"))
        found = made.episodes()
        assert found.cluster[0] == found.cluster[1]

    @given(any_text(max_size=40))
    def test_a_template_has_one_form(self, task: str) -> None:
        once = template_of(task)
        assert template_of(once) == once
        assert not any(c.isdecimal() for c in once)

    def test_a_long_word_takes_no_longer_than_a_long_text(self) -> None:
        assert growth(template_of, "a", size=50_000) <= FAR


def later(days: int) -> datetime:
    return AT + timedelta(days=days)


def on(id: str, day: int, *lessons: str) -> Recall:
    return receipt(id, *lessons).model_copy(update={"created_at": later(day)})


class TestTime:
    def test_what_was_shown_before_a_lesson_was_edited_is_not_its_evidence(self) -> None:
        made = columns(on("a", 0, "x", "y"), on("b", 2, "x", "y"))
        found = made.episodes(since={"x": later(1)})
        assert named(found, found.placed.treatment) == ["y", "x", "y"]
        assert named(found, found.draws.treatment) == ["y", "x", "y"]

    def test_a_treatment_keeps_its_turn_and_takes_another_one_when_its_evidence_starts_again(self) -> None:
        made = columns(on("a", 0, "x"), on("b", 0, "y"), on("c", 2, "x"), on("d", 2, "z"), on("e", 2, "never settled"))
        for id in "abcd":
            made.settle(settled(id))
        turns = dict(zip(made.treatments, made.episodes().turn.tolist(), strict=True))
        assert turns == {"*": 0, "x": 0, "y": 1, "z": 2, "never settled": 3}
        again = dict(zip(made.treatments, made.episodes(since={"x": later(1)}).turn.tolist(), strict=True))
        assert again == {"*": 0, "x": 2, "y": 1, "z": 3, "never settled": 4}

    def test_turns_are_those_of_recalls_in_whatever_order_receipts_were_read_and_outcomes_were_told(self) -> None:
        receipts = [on(id, day, id) for day, id in enumerate("bca")]
        one, other = columns(*receipts), columns(*receipts[::-1])
        for id in "abc":
            one.settle(settled(id))
        for made in (one, other):
            turns = dict(zip(made.treatments, made.episodes().turn.tolist(), strict=True))
            assert turns == {"*": 0, "b": 0, "c": 1, "a": 2}

    def test_evidence_that_starts_again_has_only_what_came_later(self) -> None:
        made = EvidenceTable()
        for day in range(5):
            made.receipt(on(str(day), day, "x"))
            made.settle(settled(str(day)))
        found = made.episodes(since={"x": on("", 2, "x").created_at})
        own = found.treatments.index("x")
        assert found.draws.row[found.draws.treatment == own].tolist() == found.placed.row.tolist() == [3, 4]

    def test_another_model_of_the_agent_restarts_nothing_and_is_known(self) -> None:
        made = EvidenceTable()
        for day in range(80):
            made.receipt(on(str(day), day, "x"))
            made.settle(settled(str(day), agent="old" if day < 30 else "new"))
        found = made.episodes()
        assert (len(found.placed.row), found.models) == (80, ("old", "new"))
        assert found.model.tolist() == [0] * 30 + [1] * 50

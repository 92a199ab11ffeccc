"""Columns hold what receipts and settlements say, in whatever pieces and however often they arrive."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.evidence.columns import Columns, template_of
from lessonbank.evidence.episodes import Episodes
from lessonbank.types import Candidate, Recall, Settlement, Usage

AT = datetime(2026, 1, 1, tzinfo=UTC)


def candidate(lesson_id: str, rank: int = 1, **more: Any) -> Candidate:
    told = {"shown": True, "probability": 0.25} | more
    return Candidate(lesson_id=lesson_id, experience_id="e", score=0.5, rank=rank, **told)


def receipt(id: str, *lessons: str | Candidate, task: str = "Cancel it", **more: Any) -> Recall:
    found = tuple(c if isinstance(c, Candidate) else candidate(c, n) for n, c in enumerate(lessons, 1))
    return Recall(id=id, scope="t", task=task, candidates=found, created_at=AT, **more)


def settled(id: str, outcome: Any = "success", **more: Any) -> Settlement:
    return Settlement(recall_id=id, scope="t", outcome=outcome, **({"source": "ground_truth"} | more))


def columns(*receipts: Recall) -> Columns:
    made = Columns()
    for one in receipts:
        made.receipt(one)
    return made


def plain(one: Episodes) -> list[Any]:
    """What episodes say of recalls with an outcome, whatever numbers stand for lessons, clusters and judges."""
    p, rows = one.pairs, np.flatnonzero(one.known)
    names = [one.lessons[lesson] for lesson in p.lesson]
    pairs = list(zip(p.row.tolist(), names, p.withheld.tolist(), p.probability.tolist(), p.cited.tolist(), strict=True))
    numbers = np.column_stack([one.outcome, one.true, one.judged, one.confidence, one.control, one.steps, one.cost])
    return [
        (
            str(numbers[row].tolist()),
            int(np.flatnonzero(one.cluster[rows] == one.cluster[row])[0]),
            one.judges[one.judge[row]] if one.judge[row] >= 0 else None,
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


@given(EVENTS, st.permutations(range(6)), st.integers(0, 14))
def test_in_whatever_pieces_things_arrive_the_columns_are_the_same(
    events: list[Any], order: Sequence[int], pause: int
) -> None:
    receipts = [receipt(str(n), f"lesson {n % 3}", "shared", task=f"kind {'abc'[n % 3]}") for n in range(6)]
    told = [
        settled(str(n), outcome, source=source, template=template, confidence=0.5, judge="j", steps=n)
        for n, outcome, source, template in events
    ]
    at_once = columns(*receipts)
    for sequence, settlement in enumerate(told, 1):
        at_once.settle(settlement, sequence)
    slowly = Columns()
    for sequence, settlement in enumerate(told, 1):
        slowly.receipt(receipts[int(settlement.recall_id)])
        slowly.settle(settlement, sequence)
        if sequence == pause:
            slowly.episodes()
    for n in order:
        slowly.receipt(receipts[n])
    here, there = at_once.episodes(), slowly.episodes()
    assert plain(here) == plain(there)
    assert len(here) == len(there) == 6


def test_rows_are_in_the_order_in_which_outcomes_became_known() -> None:
    made = columns(*(receipt(id, id) for id in "abcd"))
    made.settle(settled("c"), 5)
    made.settle(settled("a", "failure"), 9)
    made.settle(settled("c", "failure"), 12)
    found = made.episodes()
    assert [found.lessons[i] for i in found.pairs.lesson] == ["c", "a", "b", "d"]
    assert str(found.outcome.tolist()) == "[0.0, 0.0, nan, nan]"
    assert found.known.tolist() == [True, True, False, False]
    assert (found.at == AT.timestamp()).all()


def test_a_recall_that_had_nothing_to_show_is_no_row() -> None:
    made = columns(receipt("none"), receipt("no room", candidate("a", placed=False, shown=False)))
    assert (len(made), made.knows("none"), len(made.episodes())) == (0, True, 0)
    made.settle(settled("none"), 1)
    made.settle(settled("nobody knows it"), 2)
    assert len(made.episodes()) == 0


def test_a_receipt_is_taken_in_once() -> None:
    made = columns(receipt("a", "x"), receipt("a", "x"))
    assert (len(made), len(made.episodes().pairs)) == (1, 1)


def test_lessons_without_a_place_are_no_pairs_and_draws_are_as_the_receipt_has_them() -> None:
    found = columns(
        receipt(
            "a",
            candidate("kept", 1, withheld=True, shown=False, probability=0.4),
            candidate("no room", 2, placed=False, shown=False),
            candidate("other", 3, probability=0.0),
            control=True,
            control_probability=0.3,
        )
    ).episodes()
    assert found.lessons == ("kept", "other")
    assert found.pairs.withheld.tolist() == [True, False]
    assert found.pairs.probability.tolist() == [0.4, 0.0]
    assert (found.control.tolist(), found.control_probability.tolist()) == ([True], [0.3])


def test_what_was_copied_stays_as_it_was() -> None:
    made = columns(receipt("a", "x"))
    before = made.episodes()
    made.settle(settled("a"), 1)
    made.receipt(receipt("b", "y"))
    assert (len(before), before.known.tolist(), before.lessons) == (1, [False], ("x",))


class TestOutcomes:
    def test_an_opinion_stays_when_the_truth_is_told_later(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "failure", source="judge", judge="j 1", confidence=0.7), 1)
        before = made.episodes()
        made.settle(settled("a", "success"), 2)
        after = made.episodes()
        assert (before.outcome[0], before.true[0], before.judged[0]) == (0.0, False, 0.0)
        assert (after.outcome[0], after.true[0], after.judged[0], after.confidence[0]) == (1.0, True, 0.0, 0.7)
        assert after.judges[after.judge[0]] == "j 1"

    def test_the_truth_stays_when_a_judge_is_asked_later(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "failure"), 1)
        made.settle(settled("a", "success", source="judge", confidence=0.7), 2)
        found = made.episodes()
        assert (found.outcome[0], found.true[0], found.judged[0]) == (0.0, True, 1.0)

    def test_an_opinion_stays_when_a_judge_cannot_tell_later(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "failure", source="judge", confidence=0.7), 1)
        made.settle(settled("a", "success"), 2)
        made.settle(settled("a", "unknown", source="judge", confidence=0.0), 3)
        assert made.episodes().judged[0] == 0.0

    def test_an_outcome_that_became_unknown_is_unknown(self) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a"), 1)
        made.settle(settled("a", "unknown"), 2)
        assert math.isnan(made.episodes().outcome[0])

    def test_rows_without_an_outcome_come_last_even_if_they_had_one(self) -> None:
        made = columns(receipt("a", "x"), receipt("b", "y"))
        made.settle(settled("a"), 1)
        made.settle(settled("b"), 2)
        made.settle(settled("a", "unknown"), 3)
        assert made.episodes().known.tolist() == [True, False]

    def test_several_runs_count_as_the_share_that_succeeded(self) -> None:
        made = columns(receipt("a", "x"), receipt("b", "x"))
        made.settle(settled("a", "failure", reward=0.25, trajectory_ids=tuple("rstu"), steps=40), 1)
        made.settle(settled("b", "failure", reward=0.25, trajectory_ids=("r",), steps=40), 2)
        found = made.episodes()
        assert found.outcome.tolist() == [0.25, 0.0]
        assert found.steps.tolist() == [10.0, 40.0]

    @pytest.mark.parametrize("reward", [-1.0, 1.5, None])
    def test_what_is_no_share_is_not_taken_for_one(self, reward: float | None) -> None:
        made = columns(receipt("a", "x"))
        made.settle(settled("a", "success", reward=reward, trajectory_ids=("r", "s")), 1)
        assert made.episodes().outcome[0] == 1.0

    def test_costs_that_nobody_told_are_unknown_and_not_nothing(self) -> None:
        made = columns(receipt("a", "x"), receipt("b", "x"))
        made.settle(settled("a"), 1)
        usage = Usage(input_tokens=30, output_tokens=10, cost=0.5)
        made.settle(settled("b", usage=usage, seconds=8.0, trajectory_ids=("r", "s")), 2)
        found = made.episodes()
        for name, expected in (("tokens", 20.0), ("cost", 0.25), ("seconds", 4.0)):
            values = getattr(found, name)
            assert math.isnan(values[0])
            assert values[1] == expected

    def test_what_the_agent_named_is_kept_by_lesson_and_may_be_corrected(self) -> None:
        made = columns(receipt("a", "x", "y"), receipt("b", "x"))
        made.settle(settled("a", cited=("y", "nobody")), 1)
        assert made.episodes().pairs.cited.tolist() == [False, True, False]
        made.settle(settled("a", cited=("x",)), 2)
        assert made.episodes().pairs.cited.tolist() == [True, False, False]


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
        for sequence, id in enumerate("ab", 1):
            made.settle(settled(id, template="T"), sequence)
        found = made.episodes()
        assert found.cluster[0] == found.cluster[1]

    @given(st.text(max_size=40))
    def test_a_template_has_one_form(self, task: str) -> None:
        once = template_of(task)
        assert template_of(once) == once
        assert not any(c.isdecimal() for c in once)

    def test_a_long_word_takes_no_longer_than_a_long_text(self) -> None:
        began = time.process_time()
        template_of("a" * 8_000)
        assert time.process_time() - began < 0.05


class TestMerges:
    def test_what_was_shown_of_the_sources_counts_for_what_was_made_of_them(self) -> None:
        made = columns(receipt("a", "x"), receipt("b", "y"), receipt("c", "z"))
        found = made.episodes({"x": ("m",), "y": ("m",), "m": ("n",)})
        assert [found.lessons[i] for i in found.pairs.lesson] == ["n", "n", "z"]

    def test_two_sources_in_one_recall_are_one_pair_with_the_draw_of_the_better_one(self) -> None:
        both = receipt("a", candidate("x", 1, withheld=True, shown=False, probability=0.5), candidate("y", 2))
        found = columns(both).episodes({"x": ("m",), "y": ("m",)})
        assert [found.lessons[i] for i in found.pairs.lesson] == ["m"]
        assert (found.pairs.withheld.tolist(), found.pairs.probability.tolist()) == ([True], [0.5])

    def test_what_was_unmerged_stands_for_itself_again(self) -> None:
        made = columns(receipt("a", "x"))
        merged, again = made.episodes({"x": ("m",)}), made.episodes({})
        assert [merged.lessons[merged.pairs.lesson[0]], again.lessons[again.pairs.lesson[0]]] == ["m", "x"]

    @pytest.mark.parametrize("made_of_it", [(), ("x",)])
    def test_a_merge_that_left_nothing_leaves_the_source_as_it_is(self, made_of_it: tuple[str, ...]) -> None:
        found = columns(receipt("a", "x")).episodes({"x": made_of_it})
        assert [found.lessons[i] for i in found.pairs.lesson] == ["x"]

    @given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from("efgh"), max_size=4))
    def test_pairs_stay_in_the_order_of_rows_and_at_most_one_of_a_lesson_in_a_row(self, made: dict[str, str]) -> None:
        receipts = [receipt(str(n), *"abcdefgh"[n : n + 4]) for n in range(6)]
        found = columns(*receipts).episodes({source: (heir,) for source, heir in made.items()})
        p = found.pairs
        keys = list(zip(p.row.tolist(), p.lesson.tolist(), strict=True))
        assert keys == sorted(set(keys))
        assert p.lesson.max() < len(found.lessons)

"""A receipt tells of each treatment exactly what its draws can tell."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from math import isclose, prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.records import Candidate, GroupDraw, Recall
from lessonbank.evidence.treatments import Entry, entries

ODDS = st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 1.0])
GROUPS: tuple[str, ...] = ("source/a", "source/b", "topic/x", "topic/y", "topic/z")


@st.composite
def designs(draw: st.DrawFn) -> tuple[dict[str, tuple[str, ...]], dict[str, float]]:
    """Up to four lessons, the groups of each (they may cross), and the probability of withholding each treatment."""
    count = draw(st.integers(1, 4))
    groups = {f"{n}": tuple(draw(st.lists(st.sampled_from(GROUPS), max_size=2, unique=True))) for n in range(count)}
    drawn = (
        draw(st.sets(st.sampled_from(sorted({g for of in groups.values() for g in of}))))
        if any(groups.values())
        else set[str]()
    )
    return groups, {treatment: draw(ODDS) for treatment in ("*", *sorted(drawn), *groups)}


def receipt(groups: dict[str, tuple[str, ...]], odds: dict[str, float], gone: frozenset[str]) -> Recall:
    """The receipt of a recall in which the draws of `gone` withheld."""
    hidden = {i for i, of in groups.items() if gone & {"*", i, *of}}
    return Recall(
        scope="s",
        task="t",
        control="*" in gone,
        control_probability=odds["*"],
        groups=tuple(GroupDraw(group=u, withheld=u in gone, probability=p) for u, p in odds.items() if "/" in u),
        candidates=tuple(
            Candidate(
                lesson_id=i,
                experience_id="e",
                score=1.0,
                rank=rank,
                shown=i not in hidden,
                withheld=i in gone,
                probability=odds[i],
                groups=of,
            )
            for rank, (i, of) in enumerate(groups.items(), 1)
        ),
    )


def every_draw(
    groups: dict[str, tuple[str, ...]], odds: dict[str, float]
) -> list[tuple[float, frozenset[str], Recall]]:
    """Every outcome of the draws that can be, its probability and its receipt."""
    made = list[tuple[float, frozenset[str], Recall]]()
    for fell in product((False, True), repeat=len(odds)):
        chance = prod(p if withheld else 1 - p for withheld, p in zip(fell, odds.values(), strict=True))
        gone = frozenset(treatment for treatment, withheld in zip(odds, fell, strict=True) if withheld)
        if chance:
            made.append((chance, gone, receipt(groups, odds, gone)))
    return made


def below(treatment: str, groups: dict[str, tuple[str, ...]]) -> set[str]:
    return {i for i, of in groups.items() if treatment in ("*", i, *of)}


@pytest.mark.full
@given(designs())
def test_the_chance_of_an_entry_is_the_share_of_draws_that_show_the_treatment(
    design: tuple[dict[str, tuple[str, ...]], dict[str, float]],
) -> None:
    groups, odds = design
    told, shown = defaultdict[tuple[str, float], float](float), defaultdict[tuple[str, float], float](float)
    for chance, _, recall in every_draw(groups, odds):
        for entry in entries(recall):
            told[entry.treatment, entry.chance] += chance
            shown[entry.treatment, entry.chance] += chance * entry.shown
    for (treatment, chance), share in told.items():
        assert isclose(shown[treatment, chance] / share, chance, abs_tol=1e-9)
        assert 0 < chance < 1
    assert len(told) == len({id for id, _ in told})  # one probability for each treatment, whatever was drawn


@pytest.mark.full
@given(designs())
def test_an_entry_compares_the_lessons_of_its_treatment_with_their_absence(
    design: tuple[dict[str, tuple[str, ...]], dict[str, float]],
) -> None:
    groups, odds = design
    for _, gone, recall in every_draw(groups, odds):
        for entry in entries(recall):
            mine = below(entry.treatment, groups)
            seen = {c.lesson_id for c in recall.candidates if c.shown and c.lesson_id in mine}
            inside = {u for u in odds if below(u, groups) < mine}
            if not entry.shown:
                assert not seen
            else:  # only a draw for a part of it may have left a lesson out
                assert seen == mine - {i for u in gone & inside for i in below(u, groups)}


@pytest.mark.full
@given(designs())
def test_every_treatment_that_can_be_drawn_is_told_of_when_nothing_is_withheld(
    design: tuple[dict[str, tuple[str, ...]], dict[str, float]],
) -> None:
    groups, odds = design
    if any(odd == 1 for odd in odds.values()):
        return
    told = {entry.treatment for entry in entries(receipt(groups, odds, frozenset()))}
    treatments = {"*", *groups, *(group for of in groups.values() for group in of)}
    drawn = [treatment for treatment, odd in odds.items() if odd]
    assert told == {u for u in treatments if any(below(d, groups) == below(u, groups) for d in drawn)}


def test_a_lesson_that_was_found_alone_learns_from_recalls_without_memory() -> None:
    alone = {"1": ("source/a", "topic/x")}
    odds = {"*": 0.1, "topic/x": 0.3, "1": 0.2}
    chance = 0.9 * 0.7 * 0.8
    for gone, shown in ((frozenset[str](), True), (frozenset({"*"}), False), (frozenset({"topic/x", "1"}), False)):
        told = entries(receipt(alone, odds, gone))
        assert [(e.treatment, e.shown) for e in told] == [(u, shown) for u in ("*", "source/a", "topic/x", "1")]
        assert all(isclose(entry.chance, chance) for entry in told)


def test_memory_as_a_whole_learns_from_recalls_whose_lessons_were_all_left_out_one_by_one() -> None:
    two, odds = {"1": ("topic/x",), "2": ("topic/x",)}, {"*": 0.1, "1": 0.2, "2": 0.3}
    for gone, shown in ((frozenset({"1"}), True), (frozenset({"1", "2"}), False), (frozenset({"*"}), False)):
        told = {entry.treatment: entry for entry in entries(receipt(two, odds, gone))}
        assert (told["*"].shown, told["topic/x"].shown) == (shown, shown)
        assert isclose(told["*"].chance, 0.9 * (1 - 0.2 * 0.3))


def test_a_withheld_topic_tells_nothing_of_its_lessons_and_all_of_itself() -> None:
    groups = {"1": ("source/a", "topic/x"), "2": ("source/a", "topic/x"), "3": ("source/a", "topic/y")}
    odds = {"*": 0.1, "topic/x": 0.3, "1": 0.1, "2": 0.1, "3": 0.1}
    told = {entry.treatment: entry for entry in entries(receipt(groups, odds, frozenset({"topic/x", "1"})))}
    assert told["topic/x"] == Entry("topic/x", False, 0.7)
    assert told["*"].shown and told["source/a"].shown and told["3"].shown and told["topic/y"].shown
    assert "1" not in told and "2" not in told


def test_a_lesson_without_a_place_is_no_part_of_any_treatment() -> None:
    recall = receipt({"1": ("topic/x",), "2": ("topic/x",)}, {"*": 0.1, "1": 0.1, "2": 0.1}, frozenset())
    first, second = recall.candidates
    recall = recall.model_copy(update={"candidates": (first, second.model_copy(update={"placed": False}))})
    assert [(e.treatment, round(e.chance, 2)) for e in entries(recall)] == [("*", 0.81), ("topic/x", 0.81), ("1", 0.81)]


def test_odds_that_cannot_be_tell_nothing() -> None:
    for odds, gone in (({"*": 1.5, "1": 0.1}, frozenset[str]()), ({"*": 0.1, "1": 0.0}, frozenset({"1"}))):
        assert entries(receipt({"1": ()}, odds, gone)) == []

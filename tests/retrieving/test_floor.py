"""A floor: nothing rather than something unrelated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from listed import SCOPE, delegates, experience, filled, listed, tasks

from lessonbank.contracts.records import Found
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.search import DenseRetriever, Floor, HybridRetriever, LexicalRetriever, RelativeFloor

pytestmark = pytest.mark.anyio


async def test_what_scores_below_the_floor_is_left_out_and_what_reaches_it_stays() -> None:
    found = await Floor(listed(("a", 0.9), ("b", 0.5), ("c", 0.49)), 0.5)("q", scope=SCOPE, limit=3)
    assert tasks(found) == ["a", "b"]
    assert found.notes == ()


async def test_an_answer_of_nothing_says_how_near_the_closest_was() -> None:
    found = await Floor(listed(("a", 0.31), ("b", 0.2), notes=("late",)), 0.5)("q", scope=SCOPE, limit=3)
    assert found.matches == ()
    assert found.notes == ("late",)
    assert found.empty == "nothing reached the floor of 0.5: the closest past task has 0.310"


async def test_nothing_found_is_not_blamed_on_the_floor() -> None:
    assert await Floor(listed(), 0.5)("q", scope=SCOPE, limit=3) == Found()


@given(st.lists(st.floats(-1, 1)), st.floats(0, 1), st.integers(1, 10))
async def test_a_floor_is_a_filter_of_the_inner_answer(scores: list[float], least: float, limit: int) -> None:
    inner = listed(*((str(n), score) for n, score in enumerate(scores)))
    found = await Floor(inner, least)("q", scope=SCOPE, limit=limit)
    assert list(found.matches) == [match for match in inner.matches[:limit] if match.score >= least]


@given(st.lists(st.floats(-1, 1), min_size=1), st.floats(0, 1))
async def test_a_share_of_the_best_never_leaves_the_best_out(scores: list[float], share: float) -> None:
    inner = listed(*((str(n), score) for n, score in enumerate(sorted(scores, reverse=True))))
    found = await RelativeFloor(inner, share)("q", scope=SCOPE, limit=3)
    assert list(found.matches[:1]) == inner.matches[:1]


async def test_one_scale_serves_words_and_vectors_for_the_same_text() -> None:
    embedder = HashingEmbedder()
    store = await filled(experience("cancel the order"), experience("bake bread"), embedder=embedder)
    for inner in (LexicalRetriever(store), DenseRetriever(store, embedder)):
        found = await Floor(inner, 0.99)("cancel the order", scope=SCOPE, limit=2)
        assert tasks(found) == ["cancel the order"]


async def test_in_a_hybrid_a_match_stays_when_either_side_scores_it_high_enough() -> None:
    dense, lexical = Floor(listed(("a", 0.9), ("b", 0.1)), 0.5), Floor(listed(("c", 0.6), ("b", 0.2)), 0.5)
    hybrid = HybridRetriever(dense, lexical)
    assert tasks(await hybrid("q", scope=SCOPE, limit=5)) == ["a", "c"]
    assert hybrid.name == "experience/hybrid(listed+floor(0.5), listed+floor(0.5))"


async def test_a_floor_indexes_as_the_inner_retriever() -> None:
    await delegates(Floor(listed(), 0.5))

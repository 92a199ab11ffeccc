"""Reciprocal rank fusion: places count, scores do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from listed import SCOPE, Listed, delegates, experience, filled, listed, tasks

from lessonbank.contracts.ports import Vectors
from lessonbank.contracts.records import Match
from lessonbank.errors import ModelError
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.search import RRF, DenseRetriever, HybridRetriever, LexicalRetriever, fuse

pytestmark = pytest.mark.anyio
rankings = st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), min_size=1, max_size=3)


class Broken:
    """An embedder whose service is down."""

    space = "broken-2"

    async def embed(self, texts: object, /, *, role: str) -> Vectors:
        raise ModelError("embedding service down")


def test_a_place_is_worth_one_over_the_constant_and_the_place() -> None:
    fused = dict(fuse([["a", "b"], ["b", "c"]]))
    best = 2 / (RRF + 1)
    assert fused["b"] == pytest.approx((1 / 61 + 1 / 62) / best)
    assert fused["a"] == pytest.approx((1 / 61) / best)
    assert fused["c"] == pytest.approx((1 / 62) / best)


def test_equal_scores_keep_the_order_of_the_rankings() -> None:
    assert [id for id, _ in fuse([["a", "b"], ["b", "a"]])] == ["a", "b"]


def test_nothing_fused_is_nothing() -> None:
    assert fuse([]) == []
    assert fuse([[], []]) == []


@given(rankings)
def test_every_id_comes_back_once_with_a_score_up_to_one_best_first(given_rankings: list[list[str]]) -> None:
    fused = fuse(given_rankings)
    scores = [score for _, score in fused]
    assert sorted(id for id, _ in fused) == sorted({id for ranking in given_rankings for id in ranking})
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@given(st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_one_ranking_stays_as_it_is(ranking: list[str]) -> None:
    assert [id for id, _ in fuse([ranking])] == ranking
    assert [id for id, _ in fuse([ranking, ranking])] == ranking


@pytest.mark.full
@given(rankings, st.integers(0, 500))
def test_what_is_ranked_higher_everywhere_is_fused_higher(given_rankings: list[list[str]], constant: int) -> None:
    topped = [["top", *ranking] for ranking in given_rankings]
    assert fuse(topped, constant=constant)[0] == ("top", 1.0)


@pytest.mark.full
@given(st.permutations("abcdef"), st.permutations("abcdef"), st.floats(0.001, 1000), st.floats(-50, 50))
async def test_the_order_does_not_change_when_one_sides_scores_are_scaled(
    first: list[str], second: list[str], factor: float, shift: float
) -> None:
    experiences = {task: experience(task) for task in "abcdef"}

    def side(order: list[str], scale: float, move: float) -> Listed:
        scores = [scale * (len(order) - place) + move for place in range(len(order))]
        return Listed([Match(experience=experiences[t], score=s) for t, s in zip(order, scores, strict=True)])

    plain = HybridRetriever(side(first, 1, 0), side(second, 1, 0))
    scaled = HybridRetriever(side(first, factor, shift), side(second, 1, 0))
    assert await plain("q", scope=SCOPE, limit=4) == await scaled("q", scope=SCOPE, limit=4)


async def test_each_side_is_asked_deep_enough_for_the_other() -> None:
    dense, lexical = listed(("a", 1.0)), listed(("b", 1.0))
    hybrid = HybridRetriever(dense, lexical, depth=10)
    await hybrid("q", scope=SCOPE, limit=2)
    await hybrid("q", scope=SCOPE, limit=30)
    assert dense.asked == lexical.asked == [10, 30]


async def test_a_hybrid_finds_a_task_by_either_side(anyio_backend: str) -> None:
    embedder = HashingEmbedder(dimensions=64)
    store = await filled(experience("cancel an order"), experience("cancelling orders"), experience("book a flight"))
    hybrid = HybridRetriever(DenseRetriever(store, embedder), LexicalRetriever(store))
    found = await hybrid("cancel my order", scope=SCOPE, limit=3)
    assert tasks(found)[:2] == ["cancel an order", "cancelling orders"]
    assert found.matches[0].score == 1.0
    assert await LexicalRetriever(store)("cancel my order", scope=SCOPE, limit=3) != found
    assert hybrid.name == "experience/hybrid(dense, lexical)"
    assert hybrid.space == embedder.space
    assert list(await hybrid.index(found_experiences := [experience("x")])) == [found_experiences[0].id]


async def test_a_hybrid_whose_embedder_fails_answers_by_words_and_says_so_once() -> None:
    store = await filled(experience("cancel an order"), experience("book a flight"))
    hybrid = HybridRetriever(DenseRetriever(store, Broken()), LexicalRetriever(store))
    found = await hybrid("order", scope=SCOPE, limit=3)
    assert tasks(found) == ["cancel an order"]
    assert len(found.notes) == 1
    assert "embedding service down" in found.notes[0]


async def test_a_hybrid_indexes_as_its_dense_side() -> None:
    await delegates(HybridRetriever(listed(), LexicalRetriever(await filled())))

"""Long texts are pooled, big requests are divided, known texts are not embedded again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.ports import Embedder, Vectors
from lessonbank.errors import ModelError, UsageError
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.providers.embedders.wrappers import Batched, Cached, Chunked, split, standard
from lessonbank.testing.embedder_contract import EmbedderContract

ASYNC = pytest.mark.anyio


class Windowed(HashingEmbedder):
    """Reads the first `window` characters of a text and forgets the rest, as local models do."""

    window = 64

    def __init__(self) -> None:
        super().__init__(dimensions=256)
        self.batches: list[list[str]] = []

    def count(self, text: str, /) -> int:
        return len(text)

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
        self.batches.append(list(texts))
        return await super().embed([text[: self.window] for text in texts], role=role)


@ASYNC
class TestStandard(EmbedderContract):
    def make(self) -> Embedder:
        return standard(Windowed())


@ASYNC
class TestStandardAroundAnEmbedderWithoutAWindow(EmbedderContract):
    def make(self) -> Embedder:
        return standard(HashingEmbedder())


LONG = "the first part speaks of orders and refunds " * 20


@ASYNC
async def test_two_long_texts_that_differ_at_the_end_get_different_vectors() -> None:
    pair = [LONG + "and then the parcel was lost at sea", LONG + "and then everybody was happy again"]
    cut = await Windowed().embed(pair, role="document")
    whole = await Chunked(Windowed(), window=64).embed(pair, role="document")
    assert float(cut[0] @ cut[1]) == pytest.approx(1.0)
    assert float(whole[0] @ whole[1]) < 0.999


@ASYNC
async def test_a_text_that_fits_keeps_the_vector_it_had_beside_a_long_one() -> None:
    alone = await Windowed().embed(["short"], role="query")
    beside = await Chunked(Windowed(), window=64).embed(["short", LONG], role="query")
    np.testing.assert_allclose(beside[0], alone[0], atol=1e-6)


@ASYNC
async def test_parts_weigh_as_much_as_they_are_long() -> None:
    text = "a" * 60 + " " + "b" * 20
    parts = split(text, window=64)
    rows = await Windowed().embed(parts, role="document")
    mean = sum(len(part) * row for part, row in zip(parts, rows, strict=True))
    pooled = await Chunked(Windowed(), window=64).embed([text], role="document")
    np.testing.assert_allclose(pooled[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_the_space_of_pooled_vectors_is_a_space_of_its_own() -> None:
    assert Chunked(Windowed(), window=64).space == "hashing-v1-256+mean64"
    assert Cached(Batched(Windowed())).space == "hashing-v1-256"


@given(st.text(alphabet=st.sampled_from("ab \n\tÄ🙂"), max_size=400), st.integers(8, 50))
def test_the_parts_of_a_text_fit_and_lose_no_visible_character(text: str, window: int) -> None:
    parts = split(text, window=window, count=lambda part: len(part.encode()))
    assert all(len(part.encode()) <= window for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_parts_are_cut_at_white_space_where_there_is_some() -> None:
    words = [f"word{number:03}" for number in range(200)]
    parts = split(" ".join(words), window=100)
    assert [word for part in parts for word in part.split()] == words


def test_a_huge_text_is_counted_in_blocks_only() -> None:
    counted = 0

    def count(part: str) -> int:
        nonlocal counted
        counted += len(part)
        return len(part)

    text = "lorem ipsum " * 200_000
    split(text, window=500, count=count)
    assert counted < 8 * len(text)


@ASYNC
async def test_requests_are_divided_by_number_and_by_size() -> None:
    inner = Windowed()
    rows = await Batched(inner, texts=3, characters=10).embed(["a", "b", "c", "d", "e" * 9, "f" * 50], role="document")
    assert [len(batch) for batch in inner.batches] == [3, 2, 1]
    np.testing.assert_allclose(rows, await Windowed().embed(["a", "b", "c", "d", "e" * 9, "f" * 50], role="document"))


@ASYNC
async def test_a_known_text_is_not_embedded_again_and_roles_are_kept_apart() -> None:
    inner = Windowed()
    cached = Cached(inner)
    first = await cached.embed(["a", "b", "a"], role="query")
    again = await cached.embed(["b", "c"], role="query")
    await cached.embed(["a"], role="document")
    assert inner.batches == [["a", "b"], ["c"], ["a"]]
    np.testing.assert_array_equal(again[0], first[1])
    np.testing.assert_array_equal(first[0], first[2])


@ASYNC
async def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    inner = Windowed()
    cached = Cached(inner, size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        await cached.embed([text], role="query")
    assert inner.batches == [["a"], ["b"], ["c"], ["b"]]


@ASYNC
async def test_a_caller_who_changes_a_row_does_not_change_the_cache() -> None:
    cached = Cached(Windowed())
    (await cached.embed(["a"], role="query"))[:] = 0.0
    assert float(np.linalg.norm(await cached.embed(["a"], role="query"))) == pytest.approx(1.0)


@ASYNC
async def test_more_texts_than_the_cache_holds_are_all_embedded() -> None:
    texts = [str(number) for number in range(10)]
    rows = await Cached(Windowed(), size=3).embed(texts, role="document")
    np.testing.assert_allclose(rows, await Windowed().embed(texts, role="document"))


def test_a_window_that_holds_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        Chunked(Windowed(), window=1)


@ASYNC
async def test_a_failure_inside_is_passed_on_and_not_remembered() -> None:
    class Failing(Windowed):
        async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Vectors:
            if not self.batches:
                self.batches.append(list(texts))
                raise ModelError("down")
            return await super().embed(texts, role=role)

    cached = standard(Failing())
    with pytest.raises(ModelError, match="down"):
        await cached.embed(["a"], role="query")
    assert len(await cached.embed(["a"], role="query")) == 1

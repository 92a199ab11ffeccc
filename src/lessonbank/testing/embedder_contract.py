"""What every embedder must do: subclass it, say how to make one, and run it with pytest."""

from __future__ import annotations

import numpy as np

from lessonbank._base.aio import gather
from lessonbank.contracts.ports import Embedder

TEXTS = ("Cancel the pending order", "Exchange the blue boots for size 9", "Find the cheapest flight to Oslo")
HOSTILE = ("", "   \n\t", "\x00\x1b[2J\u202e", "\ud800 lone surrogate", "a" * 50_000, "🙂" * 300, "…")


class EmbedderContract:
    """Subclass it under `@pytest.mark.anyio` and override `make`."""

    def make(self) -> Embedder:
        """A fresh embedder."""
        raise NotImplementedError

    async def test_its_space_has_a_name_that_does_not_change(self) -> None:
        embedder = self.make()
        before = embedder.space
        await embedder.embed(TEXTS, role="document")
        assert before
        assert embedder.space == before

    async def test_every_text_gets_a_float32_unit_row(self) -> None:
        rows = await self.make().embed(TEXTS, role="document")
        assert rows.dtype == np.float32
        assert rows.shape[0] == len(TEXTS)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)

    async def test_rows_are_in_the_order_of_the_texts_whatever_the_batch(self) -> None:
        embedder = self.make()
        together = await embedder.embed(TEXTS, role="document")
        alone = np.concatenate([await embedder.embed([text], role="document") for text in TEXTS])
        np.testing.assert_allclose(together, alone, atol=1e-3)

    async def test_the_same_text_is_always_the_same_vector(self) -> None:
        first = await self.make().embed(TEXTS[:1], role="query")
        again = await self.make().embed(TEXTS[:1], role="query")
        np.testing.assert_allclose(first, again, atol=1e-6)

    async def test_queries_and_documents_have_the_same_length(self) -> None:
        embedder = self.make()
        query = await embedder.embed(TEXTS[:1], role="query")
        document = await embedder.embed(TEXTS[:1], role="document")
        assert query.shape == document.shape

    async def test_no_texts_give_no_rows(self) -> None:
        assert len(await self.make().embed([], role="document")) == 0

    async def test_empty_and_hostile_texts_get_unit_rows_too(self) -> None:
        rows = await self.make().embed(HOSTILE, role="document")
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, atol=1e-5)

    async def test_several_requests_run_at_once(self) -> None:
        embedder = self.make()
        results = await gather([lambda: embedder.embed(TEXTS, role="query") for _ in range(4)])
        for rows in results[1:]:
            np.testing.assert_allclose(rows, results[0], atol=1e-5)

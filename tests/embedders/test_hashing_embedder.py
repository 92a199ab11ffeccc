"""The embedder that needs no model is deterministic, forgiving, and lexical in a useful way."""

from __future__ import annotations

import base64
import random
import threading
from collections.abc import Sequence
from typing import Any

import anyio
import numpy as np
import pytest
from any_text import any_text
from hypothesis import given
from linear import FAR, growth_of

from lessonbank.contracts.ports import Embedder, Vectors
from lessonbank.errors import UsageError
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.testing.embedder_contract import EmbedderContract

ASYNC = pytest.mark.anyio


@ASYNC
class TestHashing(EmbedderContract):
    def make(self) -> Embedder:
        return HashingEmbedder()


def _cosine(first: str, second: str, *, dimensions: int = 512) -> float:
    rows = HashingEmbedder(dimensions=dimensions).rows([first, second])
    return float(rows[0] @ rows[1])


@given(any_text(max_size=300))
def test_any_text_gets_a_unit_row_and_is_most_similar_to_itself(text: str) -> None:
    rows = HashingEmbedder(dimensions=64).rows([text, text])
    assert abs(float(rows[0] @ rows[1]) - 1.0) < 1e-5


def test_the_first_vector_ever_made_is_made_still() -> None:
    row = HashingEmbedder(dimensions=16).rows(["cancel order"])[0]
    np.testing.assert_allclose(row[[7, 9, 0]], [-0.578446, 0.568181, -0.423818], atol=1e-5)


@pytest.mark.parametrize("wrong", [15, 64.0, True, "64"])
def test_dimensions_that_cannot_be_are_refused_at_once(wrong: Any) -> None:
    with pytest.raises(UsageError, match="whole number of at least 16"):
        HashingEmbedder(dimensions=wrong)


@pytest.mark.full
def test_a_long_line_of_base64_is_no_burden() -> None:
    blob = base64.b64encode(random.Random(7).randbytes(300_000)).decode()
    assert growth_of(lambda size: lambda: HashingEmbedder().rows([blob[:size]]), size=12_500) <= FAR


@pytest.mark.parametrize(
    ("task", "near", "far"),
    [
        ("Cancel the pending order #W123", "Please cancel my order #W999, it is pending", "Book a flight to Oslo"),
        ("fix the failing unit test in parser.py", "parser.py: unit tests fail", "Return the red shoes"),
        ("exchanging boots", "exchange the boot", "list all invoices"),
        ("返品したい", "商品を返品したいです", "飛行機を予約する"),
    ],
)
def test_related_tasks_are_closer_than_unrelated_ones(task: str, near: str, far: str) -> None:
    assert _cosine(task, near) > _cosine(task, far) + 0.1


def test_common_words_alone_do_not_make_two_tasks_similar() -> None:
    assert (
        _cosine("Can you please do this for me with the boots", "Can you please do this for me with the invoice") < 0.6
    )


def test_case_and_typographic_variants_do_not_matter() -> None:
    assert _cosine("CANCEL Order", "cancel order") > 0.999
    assert _cosine("ﬁle", "file") > 0.999


def test_the_space_names_method_version_and_dimensions() -> None:
    assert HashingEmbedder().space == "hashing-v1-512"
    assert HashingEmbedder(dimensions=64).space == "hashing-v1-64"


class Held(HashingEmbedder):
    """Waits in its thread until the loop lets it go."""

    released = threading.Event()

    def rows(self, texts: Sequence[str], /) -> Vectors:
        assert self.released.wait(60)
        return super().rows(texts)


@ASYNC
async def test_the_event_loop_turns_while_texts_are_embedded() -> None:
    done: list[int] = []

    async def embed() -> None:
        done.append(len(await Held().embed(["a", "b"], role="document")))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(embed)
        await anyio.lowlevel.checkpoint()
        Held.released.set()  # reached only if the loop is free
    assert done == [2]

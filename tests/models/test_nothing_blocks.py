"""Nothing a model or an embedder does blocks the event loop: a detector watches."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator

import pytest
from blockbuster import BlockBuster, BlockingError

from lessonbank.errors import ModelError
from lessonbank.guard.quote import quoted
from lessonbank.providers.embedders.hashing import HashingEmbedder
from lessonbank.providers.embedders.wrappers import standard as standard_embedder
from lessonbank.providers.models.function import FunctionModel
from lessonbank.providers.models.wrappers import standard
from lessonbank.testing.model_contract import ASKED, Shape
from lessonbank.testing.model_server import ModelServer

ASYNC = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """Whoever runs these tests imports the library, and not each worker that collects them."""
    global PydanticAIEmbedder, PydanticAIModel

    from lessonbank.providers.embedders.pydantic_ai import PydanticAIEmbedder
    from lessonbank.providers.models.pydantic_ai import PydanticAIModel


@pytest.fixture
def detector() -> Iterator[BlockBuster]:
    # The first text that may hold a secret reads the rules for them from a small file, in two milliseconds.
    quoted("Blocking call to time.sleep")
    blockbuster = BlockBuster()
    blockbuster.activate()
    yield blockbuster
    blockbuster.deactivate()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@ASYNC
async def test_the_detector_sees_a_function_that_blocks(detector: BlockBuster) -> None:
    async def blocks(prompt: str) -> str:
        time.sleep(0.001)
        return "ok"

    with pytest.raises(ModelError) as caught:
        await FunctionModel(blocks).generate(ASKED)
    assert isinstance(caught.value.__cause__, BlockingError)


@ASYNC
async def test_a_sync_function_may_block_as_it_likes(detector: BlockBuster) -> None:
    await standard(FunctionModel(lambda prompt: time.sleep(0.001) or "ok")).generate(ASKED)


@pytest.mark.full
@ASYNC
async def test_a_providers_model_does_not_block(detector: BlockBuster, server: ModelServer) -> None:
    detector.deactivate()
    model = standard(PydanticAIModel("gpt-4o", base_url=server.base_url))
    detector.activate()
    await model.generate(ASKED, schema=Shape)


@pytest.mark.full
@ASYNC
async def test_embedders_do_not_block(detector: BlockBuster, server: ModelServer) -> None:
    detector.deactivate()
    provider = PydanticAIEmbedder("mine", base_url=server.base_url)
    detector.activate()
    embed: list[Callable[..., Awaitable[object]]] = [standard_embedder(e).embed for e in (HashingEmbedder(), provider)]
    for call in embed:
        await call(["a", "b" * 50_000], role="document")

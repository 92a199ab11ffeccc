"""A provider's embeddings over the wire: a loopback server stands in for the provider."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from lessonbank.contracts.ports import Embedder
from lessonbank.errors import MissingExtra, ModelError, ModelTimeout, TransientModelError, UsageError
from lessonbank.providers.embedders.wrappers import standard
from lessonbank.testing.embedder_contract import EmbedderContract
from lessonbank.testing.model_server import Fault, ModelServer, hang, malformed, refusal, server_error

pytestmark = pytest.mark.full

ASYNC = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """Whoever runs these tests imports the library, and not each worker that collects them."""
    global PydanticAIEmbedder

    from lessonbank.providers.embedders.pydantic_ai import PydanticAIEmbedder


@ASYNC
class TestOverTheWire(EmbedderContract):
    @pytest.fixture(autouse=True)
    def _server(self) -> Iterator[None]:
        with ModelServer() as self.server:
            yield

    def make(self) -> Embedder:
        return standard(PydanticAIEmbedder("some-embedder", base_url=self.server.base_url))


@ASYNC
async def test_the_request_names_the_model_and_the_dimensions_asked_for() -> None:
    with ModelServer() as server:
        embedder = PydanticAIEmbedder("text-embedding-3-small", base_url=server.base_url, api_key="k", dimensions=256)
        rows = await embedder.embed(["a", ""], role="query")
    request = server.requests[0]
    assert request.path == "/v1/embeddings"
    assert (request.body["model"], request.body["dimensions"]) == ("text-embedding-3-small", 256)
    assert "" not in request.body["input"]
    assert rows.shape == (2, 256)
    assert embedder.space == "text-embedding-3-small-256"


def test_the_space_is_known_before_the_first_vector() -> None:
    known = PydanticAIEmbedder("openai:text-embedding-3-small", api_key="k")
    other = PydanticAIEmbedder("mine", base_url="http://127.0.0.1:9/v1")
    assert known.space == "openai:text-embedding-3-small-1536"
    assert other.space == "mine-native"


@ASYNC
async def test_vectors_of_another_length_than_the_space_says_are_refused() -> None:
    with ModelServer(dimensions=8) as server:
        embedder = PydanticAIEmbedder("text-embedding-3-small", base_url=server.base_url)
        with pytest.raises(ModelError, match="8 dimensions where 1536 were expected"):
            await embedder.embed(["a"], role="query")


@ASYNC
async def test_a_model_that_changes_its_length_is_refused() -> None:
    with ModelServer(dimensions=8) as server:
        embedder = PydanticAIEmbedder("mine", base_url=server.base_url)
        await embedder.embed(["a"], role="query")
        server.dimensions = 16
        with pytest.raises(ModelError, match="16 dimensions where 8 were expected"):
            await embedder.embed(["a"], role="query")


def _answer(*rows: list[float]) -> Fault:
    data = [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)]
    return Fault(body=json.dumps({"object": "list", "model": "mine", "data": data}).encode())


@ASYNC
@pytest.mark.parametrize(
    "fault",
    [
        refusal("no such model", status=404),
        malformed(),
        _answer([1.0, 0.0]),
        _answer([1.0, 0.0], [0.0, 0.0]),
        _answer([1.0, 0.0], [1.0]),
        Fault(body=b"<html>"),
    ],
)
async def test_every_fault_is_one_clear_error(fault: Fault) -> None:
    with ModelServer(default=fault) as server, pytest.raises(ModelError, match="mine") as caught:
        await PydanticAIEmbedder("mine", base_url=server.base_url).embed(["a", "b"], role="query")
    assert not isinstance(caught.value, TransientModelError)


@pytest.mark.full
@ASYNC
async def test_a_server_that_recovers_is_asked_again_by_the_sdk() -> None:
    with ModelServer(server_error(503)) as server:
        assert len(await PydanticAIEmbedder("mine", base_url=server.base_url).embed(["a"], role="query")) == 1
    assert len(server.requests) == 2


@ASYNC
async def test_a_server_that_hangs_runs_out_of_time() -> None:
    with ModelServer(hang()) as server:
        embedder = PydanticAIEmbedder("mine", base_url=server.base_url, seconds=0.2)
        with pytest.raises(ModelTimeout, match="no vectors within"):
            await embedder.embed(["a"], role="query")


@pytest.mark.full
@ASYNC
async def test_a_server_that_is_not_there_is_transient() -> None:
    with ModelServer() as server:
        url = server.base_url
    with pytest.raises(TransientModelError, match="could not be reached"):
        await PydanticAIEmbedder("mine", base_url=url).embed(["a"], role="query")


@ASYNC
async def test_a_long_text_is_sent_in_parts_that_fit() -> None:
    with ModelServer() as server:
        embedder = standard(PydanticAIEmbedder("mine", base_url=server.base_url, window=100))
        assert len(await embedder.embed(["Ä word " * 200, "short"], role="document")) == 2
    sent = [text for request in server.requests for text in request.body["input"]]
    assert max(len(text.encode()) for text in sent) <= 100


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("text-embedding-3-small", UsageError, "write `provider:model`"),
        ("nosuch:thing", UsageError, "cannot be used"),
        ("google:gemini-embedding-001", MissingExtra, r"lessonbank\[google\]"),
        ("anthropic:claude", UsageError, "cannot be used"),
    ],
)
def test_an_embedder_that_cannot_be_used_is_refused_at_once_in_one_sentence(name: str, kind: type, said: str) -> None:
    with pytest.raises(kind, match=said):
        PydanticAIEmbedder(name)

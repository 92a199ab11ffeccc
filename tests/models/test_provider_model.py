"""A provider's model over the wire: a loopback server stands in for the provider."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank._base.aio import gather
from lessonbank._base.checks import MOST_SECONDS
from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.errors import MissingExtra, ModelError, ModelTimeout, ModelUnavailable, TransientModelError, UsageError
from lessonbank.providers.models.wrappers import TimeLimited
from lessonbank.testing.model_contract import ASKED, LanguageModelContract, Shape
from lessonbank.testing.model_server import (
    Fault,
    ModelServer,
    hang,
    malformed,
    rate_limited,
    refusal,
    server_error,
)

pytestmark = pytest.mark.full

ASYNC = pytest.mark.anyio


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """Whoever runs these tests imports the library, and not each worker that collects them."""
    global Connection, _check_environment, PydanticAIModel

    from lessonbank.providers.connection import Connection, _check_environment
    from lessonbank.providers.models.pydantic_ai import PydanticAIModel


@ASYNC
class TestOverTheWire(LanguageModelContract):
    @pytest.fixture(autouse=True)
    def _servers(self) -> Iterator[None]:
        self.servers: list[ModelServer] = []
        yield
        for server in self.servers:
            server.__exit__(None, None, None)

    def _server(self, default: str | Fault) -> ModelServer:
        self.servers.append(ModelServer(default=default).__enter__())
        return self.servers[-1]

    def make(self, reply: str, /) -> LanguageModel:
        return PydanticAIModel("desk", base_url=self._server(reply).base_url)

    def make_failing(self) -> LanguageModel:
        return PydanticAIModel("desk", base_url=self._server(server_error()).base_url)


def test_nothing_but_our_own_limit_ends_a_long_answer_of_a_server() -> None:
    client = PydanticAIModel("desk", base_url="http://127.0.0.1:1/v1")._connection.first.client
    assert client.timeout.read >= MOST_SECONDS
    assert client.timeout.connect == 10


@ASYNC
async def test_the_request_is_a_plain_chat_completion() -> None:
    with ModelServer("hi") as server:
        await PydanticAIModel("desk", base_url=server.base_url, api_key="k").generate(ASKED, temperature=0.3)
    request = server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer k"
    assert request.body["messages"] == [{"role": m.role, "content": m.content} for m in ASKED]
    assert (request.body["model"], request.body["temperature"]) == ("desk", 0.3)
    assert not request.body.get("stream")
    assert "response_format" not in request.body


@ASYNC
async def test_usage_and_price_are_known_for_a_priced_model_and_unknown_for_another() -> None:
    with ModelServer(default="hello there") as server:
        priced = await PydanticAIModel("gpt-4o", base_url=server.base_url).generate(ASKED)
        unpriced = await PydanticAIModel("desk", base_url=server.base_url).generate(ASKED)
    assert priced.usage.requests == 1
    assert (priced.usage.input_tokens, priced.usage.output_tokens) == (9, 3)
    assert priced.usage.cost is not None
    assert 0 < priced.usage.cost < 0.001
    assert unpriced.usage.cost is None
    assert unpriced.model == "desk"


@ASYNC
async def test_a_schema_is_asked_for_as_json_schema() -> None:
    with ModelServer('{"answer": 42}') as server:
        await PydanticAIModel("desk", base_url=server.base_url).generate(ASKED, schema=Shape)
    asked = server.requests[0].body["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"]["name"] == "Shape"
    assert "answer" in asked["json_schema"]["schema"]["properties"]


@ASYNC
async def test_a_server_that_refuses_schemas_is_asked_without_and_that_is_remembered() -> None:
    no = refusal("response_format of type json_schema is not supported")
    with ModelServer(no, default='{"answer": 42}') as server:
        model = PydanticAIModel("desk", base_url=server.base_url)
        assert (await model.generate(ASKED, schema=Shape)).text == '{"answer": 42}'
        await model.generate(ASKED, schema=Shape)
    assert ["response_format" in request.body for request in server.requests] == [True, False, False]


@ASYNC
async def test_a_model_that_refuses_a_temperature_is_asked_without_and_that_is_remembered() -> None:
    no = refusal("Unsupported value: 'temperature' does not support 0 with this model.", param="temperature")
    with ModelServer(no, default="ok") as server:
        model = PydanticAIModel("desk", base_url=server.base_url)
        assert (await model.generate(ASKED)).text == "ok"
        await model.generate(ASKED)
    assert ["temperature" in request.body for request in server.requests] == [True, False, False]


@ASYNC
async def test_requests_that_are_refused_together_are_all_asked_again() -> None:
    from pydantic_ai.exceptions import ModelHTTPError
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel as TheirFunctionModel

    here, all_here = list[None](), anyio.Event()

    async def answer(messages: Any, info: Any) -> ModelResponse:
        if "temperature" not in info.model_settings:
            return ModelResponse(parts=[TextPart("ok")])
        here.append(None)
        if len(here) == 3:
            all_here.set()
        await all_here.wait()
        raise ModelHTTPError(400, "theirs", {"error": {"message": "temperature is not supported"}})

    model = PydanticAIModel(TheirFunctionModel(answer))
    replies = await gather([lambda: model.generate(ASKED) for _ in range(3)])
    assert [reply.text for reply in replies] == ["ok"] * 3


@pytest.mark.full
@ASYNC
@pytest.mark.parametrize("name", ["gpt-5-mini", "o3", "gpt-5.5"])
async def test_a_reasoning_model_is_not_sent_a_temperature_and_nothing_is_warned_of(name: str) -> None:
    with ModelServer("ok") as server:
        await PydanticAIModel(name, base_url=server.base_url).generate(ASKED, temperature=1.0)
    assert "temperature" not in server.requests[0].body


@ASYNC
async def test_a_rate_limit_is_transient_and_says_how_long() -> None:
    with ModelServer(rate_limited(7)) as server:
        with pytest.raises(TransientModelError, match="HTTP 429: rate limit reached") as caught:
            await PydanticAIModel("desk", base_url=server.base_url).generate(ASKED)
        assert len(server.requests) == 1, "the SDK retried by itself"
    assert caught.value.retry_after == 7.0


@ASYNC
@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (server_error(500), TransientModelError, "HTTP 500"),
        (server_error(529), TransientModelError, "HTTP 529"),
        (refusal("no such key", status=401), ModelUnavailable, r"HTTP 401 \(check the API key"),
        (refusal("pay first", status=402), ModelUnavailable, "HTTP 402: pay first"),
        (refusal("no such model", status=404), ModelUnavailable, r"HTTP 404 \(check the model's name"),
        (refusal("too long", status=400), ModelError, "HTTP 400: too long"),
        (refusal("pay first", status=429, code="insufficient_quota"), ModelUnavailable, "pay first"),
        (malformed(), ModelError, "desk"),
        (Fault(body=b"<html>welcome</html>"), ModelError, "desk"),
        (Fault(body=b'{"choices": []}'), ModelError, "desk"),
        (Fault(body=b"null"), ModelError, "desk"),
        (refusal("x" * 100_000 + "\x1b[2J", status=400), ModelError, "HTTP 400: x"),
    ],
)
async def test_every_fault_is_one_clear_error_of_the_right_kind(fault: Fault, kind: type, said: str) -> None:
    with ModelServer(default=fault) as server, pytest.raises(ModelError, match=said) as caught:
        await PydanticAIModel("desk", base_url=server.base_url).generate(ASKED)
    assert isinstance(caught.value, TransientModelError) == (kind is TransientModelError)
    assert isinstance(caught.value, ModelUnavailable) == (kind is ModelUnavailable)
    assert len(str(caught.value)) < 600
    assert "\x1b" not in str(caught.value)


@ASYNC
async def test_a_server_that_is_not_there_is_transient() -> None:
    with ModelServer() as server:
        url = server.base_url
    with pytest.raises(TransientModelError, match="could not be reached") as caught:
        await PydanticAIModel("desk", base_url=url).generate(ASKED)
    assert isinstance(caught.value, ModelUnavailable)
    assert caught.value.code == "model_unavailable"


@pytest.mark.parametrize("name", ["openai:gpt-5", "openai-chat:gpt-5", "anthropic:claude-sonnet-4-5", "openai/gpt-5"])
@pytest.mark.parametrize("key", ["", "  ", "\n"])
def test_a_blank_key_is_refused_at_once_in_one_sentence(name: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="api_key is blank: pass the key"):
        PydanticAIModel(name, api_key=key)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    with pytest.raises(UsageError, match="_API_KEY is set but blank"):
        PydanticAIModel(name)


@ASYNC
async def test_a_server_of_ones_own_needs_no_key_even_where_the_environment_has_a_blank_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with ModelServer("hello") as server:
        assert (await PydanticAIModel("desk", base_url=server.base_url).generate(ASKED)).text == "hello"


@ASYNC
async def test_a_server_that_hangs_runs_out_of_time() -> None:
    with ModelServer(hang()) as server, pytest.raises(ModelTimeout):
        await TimeLimited(PydanticAIModel("desk", base_url=server.base_url), seconds=0.2).generate(ASKED)


@ASYNC
async def test_an_answer_without_text_is_an_empty_reply() -> None:
    message = {"role": "assistant", "content": None}
    choices = [{"index": 0, "finish_reason": "stop", "message": message}]
    answer = {"id": "1", "object": "chat.completion", "created": 0, "model": "desk", "choices": choices}
    body = json.dumps(answer).encode()
    with ModelServer(Fault(body=body)) as server:
        assert (await PydanticAIModel("desk", base_url=server.base_url).generate(ASKED)).text == ""


def test_requests_that_begin_together_share_one_client_in_every_event_loop() -> None:
    made = list[object]()

    def make(_: object, __: object) -> object:
        made.append(object())
        return made[-1]

    connection = Connection[object]("model", "x", make, base_url=None, api_key=None)

    async def together() -> set[object]:
        return set(await gather([connection.here for _ in range(5)]))

    assert [anyio.run(together) for _ in range(3)] == [{client} for client in made]
    assert len(made) == 3


def test_one_model_serves_one_event_loop_after_another() -> None:
    with ModelServer() as server:
        model = PydanticAIModel("desk", base_url=server.base_url)
        for _ in range(2):
            anyio.run(model.generate, ASKED)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("given", "name"),
    [("desk", "desk"), ("openai:desk", "openai:desk"), ("llama3.1:8b", "llama3.1:8b"), ("meta/llama", "meta/llama")],
)
@ASYNC
async def test_with_a_base_url_a_model_is_named_as_the_server_names_it(given: str, name: str) -> None:
    with ModelServer() as server:
        model = PydanticAIModel(given, base_url=server.base_url)
        await model.generate(ASKED)
    assert model.name == name
    assert server.requests[0].body["model"] == name.removeprefix("openai:")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("openai:gpt-5-mini", "openai:gpt-5-mini"),
        ("OpenAI:gpt-5", "openai:gpt-5"),
        ("gpt:gpt-5", "openai:gpt-5"),
    ],
)
def test_a_provider_is_known_by_the_names_that_others_give_it(given: str, name: str) -> None:
    assert PydanticAIModel(given, api_key="none").name == name


@pytest.mark.parametrize("name", ["openai:qwen3", "openai/qwen3", "gpt:qwen3", "OpenAI:qwen3"])
def test_a_server_named_by_the_environment_is_asked_for_chat_completions_however_the_model_is_written(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert PydanticAIModel(name, api_key="k").name == "openai-chat:qwen3"


def test_a_blank_variable_that_a_provider_can_do_without_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OLLAMA_API_KEY", "")
    assert PydanticAIModel("ollama:qwen3").name == "ollama:qwen3"
    monkeypatch.setenv("GOOGLE_API_KEY", "")
    with pytest.raises(UsageError, match="GOOGLE_API_KEY is set but blank"):
        _check_environment("google")
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    _check_environment("google")


@ASYNC
async def test_a_ready_model_object_of_pydantic_ai_is_a_model_too() -> None:
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel as TheirFunctionModel

    async def answer(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse(parts=[TextPart(f"{len(messages)} {info.model_settings['temperature']}")])

    model = PydanticAIModel(TheirFunctionModel(answer, model_name="theirs"))
    talk = (*ASKED, Message(role="assistant", content="41"), Message(role="user", content="no"))
    assert model.name.endswith(":theirs")
    assert (await model.generate(talk, temperature=0.5)).text == "3 0.5"


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("gpt-5", UsageError, "write `provider:model`, such as 'openai:gpt-5'"),
        ("claude-sonnet-4-5", UsageError, "such as 'anthropic:claude-sonnet-4-5'"),
        ("claude", UsageError, "such as 'anthropic:claude-sonnet-4-5'"),
        ("gemini-2.5-pro", UsageError, "such as 'google:gemini-2.5-pro'"),
        ("openai:", UsageError, "has no name: write `provider:model`, such as 'openai:gpt-5-mini'"),
        (" ", UsageError, "such as 'openai:gpt-5-mini'"),
        ("nosuch:thing", UsageError, "no provider is known"),
        ("nosuch/thing", UsageError, "no provider is known"),
        ("google:gemini-3-pro", MissingExtra, r"lessonbank\[google\]"),
        ("groq:llama", UsageError, r"pip install 'pydantic-ai-slim\[groq\]'"),
        (
            "http://localhost:11434/v1",
            UsageError,
            r"is an address: .* Model\('NAME', base_url='http://localhost:11434/v1'\)",
        ),
    ],
)
def test_a_model_that_cannot_be_used_is_refused_at_once_with_the_form_that_works(
    name: str, kind: type, said: str
) -> None:
    with pytest.raises(kind, match=said) as caught:
        PydanticAIModel(name)
    assert "Pydantic AI without" not in str(caught.value)


def test_a_bank_without_the_key_of_its_model_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=r"OPENAI_API_KEY` environment variable or give it as `Model\(…, api_key=…\)`"):
        lessonbank.connect(":memory:", scope="a", model="openai:gpt-5", embedder="lexical")


def test_a_base_url_without_a_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        PydanticAIModel("desk", base_url="localhost:8000/v1")

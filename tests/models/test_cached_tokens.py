"""What a provider read from its cache is counted apart, since most charge less for it."""

from __future__ import annotations

import json

import pytest

from lessonbank.contracts.ports import Message
from lessonbank.contracts.records import Usage
from lessonbank.testing.model_server import Fault, ModelServer
from lessonbank.text.prompts import load

pytestmark = pytest.mark.full


@pytest.mark.anyio
async def test_cached_tokens_of_a_provider_are_told_in_the_usage() -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import RequestUsage

    from lessonbank.providers.models.pydantic_ai import PydanticAIModel

    spent = RequestUsage(input_tokens=900, cache_read_tokens=640, output_tokens=7)
    provider = FunctionModel(lambda _messages, _info: ModelResponse(parts=[TextPart("ok")], usage=spent))
    reply = await PydanticAIModel(provider).generate([Message(role="user", content="Hello")])
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens) == (900, 640, 7)


def test_cached_tokens_add_up() -> None:
    assert (Usage(input_tokens=9, cached_tokens=4) + Usage(cached_tokens=2)).cached_tokens == 6


RULES = "Rule: be kind. " * 40
ANSWER = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude-desk",
    "content": [{"type": "text", "text": "ok"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 20, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 0, "output_tokens": 1},
}


def asked() -> tuple[Message, ...]:
    """What a judge is asked, with the instructions of the agent before the run."""
    return load("general/judge").render(agent=RULES, run="<<<run>>>", check="c0de")


@pytest.mark.anyio
async def test_anthropic_is_told_where_the_text_ends_that_comes_again() -> None:
    pytest.importorskip("anthropic")
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from lessonbank.providers.models.pydantic_ai import PydanticAIModel

    answer = Fault(200, json.dumps(ANSWER).encode(), {"content-type": "application/json"})
    with ModelServer(default=answer) as server:
        client = AsyncAnthropic(base_url=server.base_url.removesuffix("/v1"), api_key="k", max_retries=0)
        provider = AnthropicModel("claude-desk", provider=AnthropicProvider(anthropic_client=client))
        reply = await PydanticAIModel(provider).generate(asked())
        await client.close()
    (message,) = server.requests[0].body["messages"]
    first, second = message["content"]
    assert first == {"type": "text", "text": RULES, "cache_control": {"type": "ephemeral", "ttl": "5m"}}
    assert second["text"].startswith("<<<run>>>")
    assert "cache_control" not in second
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (920, 900)


@pytest.mark.anyio
async def test_other_providers_get_one_text_without_marks() -> None:
    pytest.importorskip("pydantic_ai")
    from lessonbank.providers.models.pydantic_ai import PydanticAIModel

    with ModelServer(default="ok") as server:
        await PydanticAIModel("desk", base_url=server.base_url).generate(asked())
    assert server.requests[0].body["messages"] == [{"role": m.role, "content": m.content} for m in asked()]


def test_what_comes_again_ends_with_the_agents_slot() -> None:
    system, user = asked()
    assert user.content[: user.stable] == RULES
    assert system.stable == 0
    assert load("paper/judge_web").render(**dict.fromkeys(load("paper/judge_web").slots, "x"))[-1].stable == 0

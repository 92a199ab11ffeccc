"""What a provider read from its cache is counted apart, since most charge less for it."""

from __future__ import annotations

import pytest

from lessonbank.protocols import Message
from lessonbank.types import Usage

pytestmark = [pytest.mark.anyio, pytest.mark.full]


async def test_cached_tokens_of_a_provider_are_told_in_the_usage() -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, TextPart
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.usage import RequestUsage

    from lessonbank.models.pydantic_ai import PydanticAIModel

    spent = RequestUsage(input_tokens=900, cache_read_tokens=640, output_tokens=7)
    provider = FunctionModel(lambda _messages, _info: ModelResponse(parts=[TextPart("ok")], usage=spent))
    reply = await PydanticAIModel(provider).generate([Message(role="user", content="Hello")])
    assert (reply.usage.input_tokens, reply.usage.cached_tokens, reply.usage.output_tokens) == (900, 640, 7)


def test_cached_tokens_add_up() -> None:
    assert (Usage(input_tokens=9, cached_tokens=4) + Usage(cached_tokens=2)).cached_tokens == 6

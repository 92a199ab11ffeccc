"""A worker that learns through a batch API: `python _batch_worker.py BANK PROVIDER`, until it is killed."""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Any

import anyio

import lessonbank
from lessonbank.contracts.settings import Evidence, Learning, Model
from lessonbank.http.workers import Worker

SCOPE = "acme/support"
SOON = timedelta(seconds=0.05)


def patient(url: str, /, *, provider: str = "openai") -> Model:
    """A model whose requests are gathered, and asked for, every twentieth of a second."""
    from pydantic_ai.capabilities import BatchModelRequests

    soon = BatchModelRequests(max_wait=SOON, poll_interval=SOON, max_poll_interval=SOON)
    model = _of_openai(url) if provider == "openai" else _of_anthropic(url)
    return Model(soon.get_wrapper_model(model), batch=True)


def _of_openai(url: str, /) -> Any:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel("gpt-4o", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="k"))


def _of_anthropic(url: str, /) -> Any:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel("claude-sonnet-4-5", provider=AnthropicProvider(base_url=url, api_key="k"))


async def opened(path: str, model: Any, /) -> lessonbank.AsyncReasoningBank:
    """A bank that leaves what is submitted to workers, and asks its model for nothing but verdicts and lessons."""
    learning = Learning(submit="worker", consolidation="append", topics=None)
    evidence = Evidence(holdout=None)
    return await lessonbank.connect_async(
        path, scope=SCOPE, model=model, embedder="lexical", learning=learning, evidence=evidence
    )


async def main(path: str, url: str) -> None:
    async with await opened(path, patient(url)) as bank:
        await Worker(bank, concurrency=20, lease=1.0).run()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])

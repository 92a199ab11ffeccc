"""The lines of the protocol over stdio, where the SDK's client writes none such."""

from __future__ import annotations

import io
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from lessonbank import AsyncReasoningBank
from lessonbank.mcp.memory import Memory
from lessonbank.mcp.offer import Offer
from lessonbank.mcp.stdio import Conversation

pytestmark = pytest.mark.anyio
RECALL = {"name": "recall", "arguments": {"task": "Ship a parcel abroad"}}


class Out(io.BytesIO):
    """What a server wrote, a message a line."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@asynccontextmanager
async def conversation(out: Out) -> AsyncGenerator[tuple[Callable[[object], None], anyio.Event]]:
    """Says a line to a server whose bank never opens, with the event that says that it was asked for."""
    asked = anyio.Event()

    async def never() -> AsyncReasoningBank:
        asked.set()
        await anyio.sleep_forever()
        raise AssertionError

    reading, writing = os.pipe()
    lines, ours = os.fdopen(reading, "rb"), os.fdopen(writing, "wb", buffering=0)

    def say(message: object) -> None:
        ours.write(json.dumps(message).encode() + b"\n")

    with lines:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Conversation(Offer(Memory(never)), out).hold, lines)
            with ours:
                yield say, asked


async def test_a_request_that_its_client_takes_back_gets_no_answer_and_the_next_one_does() -> None:
    out = Out()
    async with conversation(out) as (say, asked):
        say({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": RECALL})
        await asked.wait()
        say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
        say({"jsonrpc": "2.0", "id": "a", "method": "ping"})
    assert out.messages == [{"jsonrpc": "2.0", "id": "a", "result": {}}]


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"id": 1, "method": "no/such"}, -32601),
        ({"id": 1, "method": 5}, -32600),
        ({"id": 1, "method": "prompts/get", "params": {"name": "x"}}, -32602),
        ({"id": 1, "method": "resources/read", "params": [1]}, -32002),
    ],
    ids=["an unknown method", "a method that is no text", "an unknown prompt", "parameters without names"],
)
async def test_what_cannot_be_meant_is_an_error_of_the_protocol(message: dict[str, Any], code: int) -> None:
    out = Out()
    async with conversation(out) as (say, _):
        say({"jsonrpc": "2.0", **message})
    assert [each["error"]["code"] for each in out.messages] == [code]


@pytest.mark.parametrize("message", [[], [{"id": 1, "method": "ping"}], "ping", None, {"method": "ping"}, {"id": 1}])
async def test_what_asks_for_nothing_gets_no_answer(message: object) -> None:
    out = Out()
    async with conversation(out) as (say, _):
        say(message)
    assert out.messages == []

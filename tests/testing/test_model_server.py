"""The loopback model server speaks as an OpenAI-compatible one does, whole and streamed, and breaks as one does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import lessonbank
from lessonbank.testing.model_server import (
    Answer,
    Fault,
    ModelServer,
    Reply,
    ToolCall,
    cut_off,
    malformed,
    no_choice,
    not_json,
    rate_limited,
    server_error,
    slow,
)

pytestmark = pytest.mark.full

ASKED: Any = [{"role": "user", "content": "What is the state of order W123?"}]
USAGE: Any = {"include_usage": True}


@pytest.fixture(scope="module", autouse=True)
def sdk() -> None:
    """To import it takes a second: not each worker that collects these tests does so."""
    global openai
    openai = pytest.importorskip("openai", reason="the openai SDK is not installed")


class Served:
    """A server and a client of it that tries nothing again."""

    def __init__(self, *replies: Reply) -> None:
        self.server = ModelServer(*replies)

    def __enter__(self) -> Served:
        self.server.__enter__()
        self.client = openai.OpenAI(base_url=self.server.base_url, api_key="test", max_retries=0)
        return self

    def __exit__(self, *error: Any) -> None:
        self.client.close()
        self.server.__exit__(None, None, None)

    def ask(self, **more: Any) -> Any:
        return self.client.chat.completions.create(model="any", messages=ASKED, **more)

    def stream(self, **more: Any) -> Iterator[Any]:
        with self.ask(stream=True, **more) as chunks:
            yield from chunks


def text_of(chunks: Sequence[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_a_streamed_answer_comes_in_pieces_and_says_why_it_ended() -> None:
    with Served("It was shipped on Monday.") as served:
        chunks = list(served.stream())
    assert text_of(chunks) == "It was shipped on Monday."
    assert sum(bool(chunk.choices[0].delta.content) for chunk in chunks) == 4
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert all(chunk.usage is None for chunk in chunks)
    assert served.server.requests[0].streams


def test_what_a_streamed_answer_took_comes_in_a_chunk_of_its_own_where_it_is_asked_for() -> None:
    with Served("shipped", "shipped") as served:
        chunks, once = list(served.stream(stream_options=USAGE)), served.ask()
    assert chunks[-1].choices == []
    assert chunks[-1].usage == once.usage
    assert text_of(chunks) == once.choices[0].message.content == "shipped"


def test_an_empty_answer_streams_too() -> None:
    with Served(Answer("", finish="length")) as served:
        chunks = list(served.stream())
    assert text_of(chunks) == ""
    assert chunks[-1].choices[0].finish_reason == "length"


def test_the_stream_ends_with_done_and_is_chunked() -> None:
    http = pytest.importorskip("httpx2", reason="it comes with pydantic-ai")
    with ModelServer("yes") as server:
        answered = http.post(f"{server.base_url}/chat/completions", json={"messages": ASKED, "stream": True})
    assert answered.headers["content-type"] == "text/event-stream"
    assert answered.headers["transfer-encoding"] == "chunked"
    assert answered.text.endswith("\n\ndata: [DONE]\n\n")


CALLS = (ToolCall("state_of", '{"order": "W123"}'), ToolCall("state_of", '{"order": "W456"}', id="mine"))


def test_tool_calls_are_the_same_whole_and_streamed() -> None:
    with Served(Answer("Let me look.", CALLS), Answer("Let me look.", CALLS)) as served:
        message = served.ask().choices[0].message
        streamed = joined(served.stream())
    assert [(call.id, call.function.name) for call in message.tool_calls] == [
        ("call_1", "state_of"),
        ("mine", "state_of"),
    ]
    assert streamed == message.model_dump(exclude_none=True)


def test_an_answer_of_tool_calls_alone_has_no_text() -> None:
    with Served(Answer(calls=CALLS)) as served:
        choice = served.ask().choices[0]
    assert (choice.message.content, choice.finish_reason) == (None, "tool_calls")


def joined(chunks: Iterator[Any]) -> dict[str, Any]:
    """A streamed message put together, as a client does it."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": []}
    for chunk in chunks:
        for choice in chunk.choices:
            message["content"] += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                if part.index == len(message["tool_calls"]):
                    named = {"name": part.function.name, "arguments": ""}
                    message["tool_calls"].append({"id": part.id, "type": "function", "function": named})
                message["tool_calls"][part.index]["function"]["arguments"] += part.function.arguments or ""
    return {key: value for key, value in message.items() if value}


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (rate_limited(7), "RateLimitError"),
        (server_error(500), "InternalServerError"),
        (server_error(529), "InternalServerError"),
    ],
)
def test_a_status_is_an_error_of_that_kind_whether_streamed_or_not(fault: Fault, kind: str, streams: bool) -> None:
    with Served(fault) as served, pytest.raises(getattr(openai, kind)) as caught:
        served.ask(stream=streams)
    assert caught.value.status_code == fault.status
    assert caught.value.response.headers.get("retry-after") == fault.headers.get("retry-after")


@pytest.mark.parametrize("after", [0, 2, 4])
def test_a_connection_that_closes_in_the_middle_of_a_stream_is_no_end_of_it(after: int) -> None:
    seen: list[Any] = []
    with Served(cut_off(after=after)) as served, pytest.raises(openai.APIConnectionError):
        seen.extend(served.stream())
    assert len(seen) == after


def test_a_stream_may_end_with_word_of_an_error() -> None:
    with Served(cut_off(has_error=True)) as served, pytest.raises(openai.APIError, match="the model broke off"):
        list(served.stream())


def test_half_of_a_whole_answer_is_a_broken_connection() -> None:
    with Served(cut_off()) as served, pytest.raises(openai.APIConnectionError):
        served.ask()


@pytest.mark.parametrize("fault", [malformed(), not_json()])
def test_what_is_not_json_is_none_of_the_clients_answers(fault: Fault) -> None:
    with Served(fault) as served:
        try:
            answer = served.ask()
        except (openai.APIError, ValueError):
            return
        assert isinstance(answer, str)


def test_an_answer_without_a_choice_has_none() -> None:
    with Served(no_choice()) as served:
        assert served.ask().choices == []


def test_a_slow_answer_waits_until_it_is_let_go() -> None:
    go, first = threading.Event(), threading.Event()
    seen: list[str] = []
    with Served(slow("It is on its way.", go)) as served:
        chunks = served.stream()
        seen += [next(chunks).choices[0].delta.content, next(chunks).choices[0].delta.content]
        thread = threading.Thread(target=lambda: (seen.extend(text_of([c]) for c in chunks), first.set()))
        thread.start()
        assert not first.is_set()
        assert len(seen) == 2
        go.set()
        thread.join(60)
    assert "".join(seen) == "It is on its way."


def test_a_server_that_closes_lets_go_of_what_it_held() -> None:
    with Served(slow("never", threading.Event())) as served:
        chunks = served.stream()
        next(chunks)
    assert served.server.requests


def test_a_function_answers_from_what_was_asked_and_may_break_too() -> None:
    def reply(body: dict[str, Any]) -> Answer | Fault:
        return Answer(body["model"].upper(), tokens=(1000, 10)) if body.get("stream") else server_error()

    with Served(reply, reply) as served:
        chunks = list(served.stream(stream_options=USAGE))
        with pytest.raises(openai.InternalServerError):
            served.ask()
    assert text_of(chunks) == "ANY"
    assert (chunks[-1].usage.prompt_tokens, chunks[-1].usage.total_tokens) == (1000, 1010)


def test_an_agent_that_streams_has_its_run_learned_from() -> None:
    """The loop that people write on the SDK, with streaming: ask, put the message together, call the tools, again."""
    extracted = {"title": "Look the order up", "content": "Call `state_of` first.", "evidence": ["step 1"]}
    with (
        Served(Answer(calls=CALLS[:1]), "It was shipped.") as served,
        lessonbank.connect(
            ":memory:", scope="shop", model=lambda prompt: json.dumps({"items": [extracted]}), embedder="lexical"
        ) as bank,
    ):
        recall = bank.retrieve(ASKED[0]["content"])
        messages: list[Any] = [{"role": "system", "content": f"You serve.\n\n{recall.text}"}, *ASKED]
        while True:
            asked = served.client.chat.completions.create(model="any", messages=messages, stream=True)
            messages.append(joined(asked))
            for call in messages[-1].get("tool_calls", ()):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "shipped"})
            if "tool_calls" not in messages[-2] and messages[-1]["role"] == "assistant":
                break
        learned = bank.learn(messages, recall=recall, outcome="success")
        assert learned.experience
        kept = bank.runs.get(learned.experience.attempts[0].trajectory_id).trajectory
    assert [item.title for item in learned.lessons] == ["Look the order up"]
    assert served.server.requests[1].body["messages"][-1]["content"] == "shipped"
    assert any(call.name == "state_of" for step in kept.steps for call in step.action.calls)


@pytest.mark.full
@pytest.mark.anyio
async def test_a_streaming_pydantic_ai_model_reads_the_same_text() -> None:
    direct = pytest.importorskip("pydantic_ai.direct", reason="pydantic-ai is not installed")
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    with ModelServer("It was shipped.") as server:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="test", max_retries=0) as client:
            model = OpenAIChatModel("any", provider=OpenAIProvider(openai_client=client))
            async with direct.model_request_stream(model, [ModelRequest.user_text_prompt("hi")]) as stream:
                events = [event async for event in stream]
            response = stream.get()
    assert response.text == "It was shipped."
    assert len(events) > 3
    assert response.usage.output_tokens == 4

"""What the agent said is rebuilt from a response, the same from a stream as from a whole body."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from scripted_upstream import Call, chat, messages, responses

from lessonbank.proxy.answers import read_answer
from lessonbank.proxy.dialects import Dialect, mark_of

CALLS = (Call("look", '{"path": "a b"}', "c1"), Call("run", "{}", "c2"))
MAKERS = {"chat": chat, "messages": messages, "responses": responses}
DIALECTS: list[Dialect] = ["chat", "messages", "responses"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("calls", [(), CALLS])
def test_a_stream_says_what_the_whole_body_says(dialect: Dialect, calls: tuple[Call, ...]) -> None:
    whole, stream = (MAKERS[dialect]("I look into it.", *calls, stream=stream) for stream in (False, True))
    first = read_answer(dialect, 200, whole.headers, whole.sent)
    second = read_answer(dialect, 200, stream.headers, stream.sent)
    assert first.error is second.error is None
    assert first.waits == second.waits == bool(calls)
    assert first.id == second.id
    assert first.tokens == second.tokens == (10, 3)
    assert [mark_of(m) for m in first.messages] == [mark_of(m) for m in second.messages]
    assert "a b" in str(second.messages) or not calls


def _events(*told: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in told)


def _chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-7", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_a_first_event_without_an_id_as_azure_sends_it_does_not_hide_that_of_the_others() -> None:
    first: dict[str, Any] = {"id": "", "choices": [], "prompt_filter_results": [{}]}
    stream = _events(first, _chunk(content="done"), _chunk("stop"))
    assert read_answer("chat", 200, {"content-type": "text/event-stream"}, stream).id == "chatcmpl-7"


@pytest.mark.parametrize(
    ("number", "ids"),
    [({"index": 0}, "ab"), ({"index": None}, "ab"), ({}, "ab"), ({"index": None}, ("", "")), ({}, ("", ""))],
)
def test_calls_that_a_server_numbers_alike_or_not_at_all_are_told_apart(number: Any, ids: Any) -> None:
    calls = [
        {"function": {"name": "look", "arguments": '{"path": '}, "id": ids[0]},
        {"function": {"arguments": '"a b"}'}},
        {"function": {"name": "run", "arguments": "{}"}, "id": ids[1]},
    ]
    stream = _events(*(_chunk(tool_calls=[{**number, **call}]) for call in calls), _chunk("tool_calls"))
    (message,) = read_answer("chat", 200, {"content-type": "text/event-stream"}, stream).messages
    told = [tuple(call["function"].values()) for call in message["tool_calls"]]
    assert told == [("look", '{"path": "a b"}'), ("run", "{}")]


def test_a_stream_with_the_one_call_of_earlier_clients_waits_for_its_result() -> None:
    pieces = ({"name": "ship", "arguments": ""}, {"arguments": '{"to": '}, {"arguments": '"Rome"}'})
    stream = _events(*(_chunk(content=None, function_call=piece) for piece in pieces), _chunk("function_call"))
    answer = read_answer("chat", 200, {"content-type": "text/event-stream"}, stream)
    assert answer.waits
    assert answer.messages[0]["function_call"] == {"name": "ship", "arguments": '{"to": "Rome"}'}


def test_a_call_that_the_most_tokens_cut_off_is_kept_as_far_as_it_came() -> None:
    use: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
    stream = _events(
        {"type": "message_start", "message": {"id": "msg_1"}},
        {"type": "content_block_start", "index": 0, "content_block": use},
        {"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"path": "a'}},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
        {"type": "message_stop"},
    )
    answer = read_answer("messages", 200, {"content-type": "text/event-stream"}, stream)
    assert (answer.error, answer.id) == (None, "msg_1")
    assert answer.messages[0]["content"][0]["input"] == '{"path": "a'


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_breaks_off_is_no_answer(dialect: Dialect) -> None:
    reply = MAKERS[dialect]("I look into it.", stream=True)
    parts = list(reply.parts or ())
    for length in range(len(parts) - 2):
        assert read_answer(dialect, 200, reply.headers, b"".join(parts[:length])).error


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[]", b"{}", b"\xff", b"data: {", b'{"choices": []}', b'{"content": 3, "output": 3}']
)
def test_whatever_comes_back_is_an_answer_or_an_error(dialect: Dialect, raw: bytes) -> None:
    for kind in ("application/json", "text/event-stream"):
        answer = read_answer(dialect, 200, {"content-type": kind}, raw)
        assert answer.error or not answer.waits


def test_an_error_of_the_server_says_its_status_alone() -> None:
    answer = read_answer("chat", 503, {}, b'{"error": "a secret"}')
    assert answer.error == "the model's server answered 503"


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_compressed_answer_is_read(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    reply = chat("done")
    answer = read_answer("chat", 200, {**reply.headers, "content-encoding": encoding}, pack(reply.sent))
    assert answer.messages[0]["content"] == "done"


@pytest.mark.full
def test_an_answer_that_grows_without_end_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * (64 * 1024 * 1024))
    answer = read_answer("chat", 200, {"content-type": "application/json", "content-encoding": "gzip"}, packed)
    assert answer.error

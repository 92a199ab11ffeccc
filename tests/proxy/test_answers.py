"""What the agent said is rebuilt from a response, the same from a stream as from a whole body."""

from __future__ import annotations

import gzip
import zlib

import pytest
from scripted_upstream import Call, Reply, chat, messages, responses

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
def test_a_compressed_answer_is_read(encoding: str, pack: object) -> None:
    reply: Reply = chat("done")
    packed = gzip.compress(reply.sent) if pack is gzip.compress else zlib.compress(reply.sent)
    answer = read_answer("chat", 200, {**reply.headers, "content-encoding": encoding}, packed)
    assert answer.messages[0]["content"] == "done"


@pytest.mark.full
def test_an_answer_that_grows_without_end_is_not_unpacked() -> None:
    packed = gzip.compress(b" " * (64 * 1024 * 1024))
    answer = read_answer("chat", 200, {"content-type": "application/json", "content-encoding": "gzip"}, packed)
    assert answer.error

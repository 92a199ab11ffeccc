"""Requests of the three APIs are read in the same words, and what is none of memory's business is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lessonbank.proxy.dialects import Dialect, Request, asks, dialect_of, mark_of, read_request, with_texts

FORMS: list[dict[str, Any]] = [{}, {"cache_control": {"type": "ephemeral"}}, {"source": {"data": "another"}}]


def read(dialect: Dialect, **body: Any) -> Request:
    found = read_request(dialect, json.dumps(body).encode())
    assert found
    return found


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1/chat/completions", "chat"),
        ("/chat/completions", "chat"),
        ("/openai/deployments/d/chat/completions", "chat"),
        ("/v1/responses", "responses"),
        ("/v1/messages", "messages"),
        ("/messages", "messages"),
        ("/v1/messages/count_tokens", None),
        ("/v1/messages/batches", None),
        ("/v1/threads/t_1/messages", None),
        ("/v1/responses/r_1", None),
        ("/v1/embeddings", None),
        ("/v1/models", None),
        ("/v1/completions", None),
        ("/", None),
    ],
)
def test_three_paths_are_followed_and_all_others_pass(path: str, dialect: str | None) -> None:
    assert dialect_of(path) == dialect


@pytest.mark.parametrize(
    ("dialect", "body"),
    [
        ("chat", {"model": "m"}),
        ("chat", {"messages": []}),
        ("chat", {"messages": ["text", 1, None]}),
        ("chat", {"messages": [{"role": "user", "content": "x"}], "n": 2}),
        ("responses", {"input": [{"type": "item_reference", "id": "x"}]}),
        ("responses", {"input": "x", "background": True}),
        ("responses", {"prompt": {"id": "p"}}),
    ],
)
def test_what_cannot_be_followed_is_left_alone(dialect: Dialect, body: dict[str, Any]) -> None:
    assert read_request(dialect, json.dumps(body).encode()) is None


@pytest.mark.parametrize("raw", [b"", b"null", b"[]", b"{", b"\xff\xfe", b'{"messages": 3}', b'{"messages": [}'])
def test_broken_json_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_request("chat", raw)


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises((RecursionError, ValueError)):
        read_request("chat", b'{"messages": ' + b"[" * 200_000 + b"]" * 200_000 + b"}")


def test_the_turn_is_the_last_message_that_is_no_instruction() -> None:
    rules = {"role": "developer", "content": "context of a hook"}
    assert read("chat", messages=[{"role": "user", "content": "do it"}, rules]).turn == 0
    assert read("chat", messages=[{"role": "user", "content": "do it"}, {"role": "tool", "content": "x"}]).turn is None
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}, {"type": "text", "text": "r"}]}
    assert read("messages", messages=[{"role": "user", "content": "do it"}, result]).turn is None
    assert read("responses", input="do it").turn == 0


def test_the_task_is_the_last_text_of_a_turn() -> None:
    parts = [{"type": "text", "text": "<reminder>long</reminder>"}, {"type": "text", "text": "Fix the bug"}]
    said = read("messages", messages=[{"role": "user", "content": parts}]).spoken[0]
    assert said
    assert said.task == "Fix the bug"


def test_a_greeting_asks_for_nothing() -> None:
    def said(text: str) -> Any:
        return read("chat", messages=[{"role": "user", "content": text}]).spoken[0]

    assert not asks(said("Hi there!"))
    assert not asks(said("  "))
    assert not asks(None)
    assert asks(said("Cancel my order"))


def test_a_message_is_the_same_as_text_and_as_parts_and_whatever_is_cached() -> None:
    part = {"type": "text", "text": "do it", "cache_control": {"type": "ephemeral"}}
    forms: list[Any] = ["do it", [{"type": "text", "text": "do it"}], [part]]
    marks = {read("messages", messages=[{"role": "user", "content": form}]).spoken[0] for form in forms}
    assert len({said.mark for said in marks if said}) == 1
    image = {"type": "image", "source": {"type": "base64", "data": "aGk="}}
    pictures = [
        read("messages", messages=[{"role": "user", "content": [{**image, **more}]}]).spoken[0] for more in FORMS
    ]
    assert len({said.mark for said in pictures if said}) == 2


def test_an_answer_is_the_same_when_the_client_sends_it_back() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    sent = {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None, "annotations": []}
    assert mark_of(sent) == mark_of({"role": "assistant", "content": "", "tool_calls": [call]})
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    assert mark_of({"role": "assistant", "content": [thinking, use]}) == mark_of(
        {"role": "assistant", "content": [use]}
    )
    assert mark_of({"type": "reasoning", "summary": []}) is None
    assert mark_of(sent) != mark_of({**sent, "tool_calls": [{**call, "id": "c2"}]})


def test_the_text_of_a_responses_input_is_added_to_the_text() -> None:
    request = read("responses", input='say "hi"', model="m")
    assert json.loads(with_texts(request, {0: "BLOCK"})) == {"input": 'say "hi"\n\nBLOCK', "model": "m"}
    assert json.loads(request.listed) == [{"role": "user", "content": 'say "hi"'}]

"""A text is added to a JSON body and every other byte stays; what readers could read differently is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.proxy.dialects import Dialect, read_request, with_texts
from lessonbank.proxy.json_text import fields, parse_object, with_inserted

values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | any_text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.full
@given(st.dictionaries(any_text(), values), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_field_is_found_where_it_stands(data: dict[str, Any], indent: Any, ascii: bool) -> None:
    text = f" {json.dumps(data, indent=indent, ensure_ascii=ascii)}\n"
    found = parse_object(text)
    assert {name: span.value for name, span in found.items()} == data
    assert all(json.loads(text[span.start : span.end]) == span.value for span in found.values())


@pytest.mark.full
@given(st.lists(values), st.sampled_from([None, 1]))
def test_a_list_is_found_in_parts(data: list[Any], indent: Any) -> None:
    text = json.dumps({"list": data, "after": 1}, indent=indent)
    spans = fields(text, parts=["list"])["list"]
    assert [json.loads(text[span.start : span.end]) for span in spans.value] == data
    assert json.loads(text[spans.start : spans.end]) == data


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}x", '{"a": 1,}', '{"a" 1}', '{"a": }', '{"a": 1 "b": 2}', '{"a": 1, "a": 2}'),
        *('{"messages": [1 2]}', '{"messages": [1,]}', '{"messages": [', "{1: 2}"),
    ],
)
def test_what_readers_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_object(text, parts=["messages"])


def test_pieces_go_in_at_their_places() -> None:
    assert with_inserted("abc", (0, "1"), (2, "2"), (3, "3")) == "1ab2c3"


@pytest.mark.full
@given(any_text(min_size=1), any_text(min_size=1), st.sampled_from(["chat", "responses", "messages"]), st.booleans())
def test_only_the_text_is_added_whatever_the_message_says(
    said: str, block: str, dialect: Dialect, as_list: bool
) -> None:
    kind = "input_text" if dialect == "responses" else "text"
    content = [{"type": kind, "text": said}] if as_list else said
    body = {"model": "m", "seed": 1e400, "input" if dialect == "responses" else "messages": [{"role": "user"}]}
    body["input" if dialect == "responses" else "messages"][0]["content"] = content  # type: ignore[index]
    raw = json.dumps(body, indent=2).encode()
    request = read_request(dialect, raw)
    assert request
    changed = json.loads(with_texts(request, {0: block}))
    message = changed["input" if dialect == "responses" else "messages"][0]
    part = {"type": kind, "text": block}
    if as_list or dialect == "messages":
        assert message["content"] == [{"type": kind, "text": said}, part]
    else:
        assert message["content"] == f"{said}\n\n{block}"
    message["content"] = content
    assert json.dumps(changed, indent=2).encode() == raw

"""Rebuilds what the agent said from the bytes of a response, whole or streamed."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast

from .dialects import Dialect

MOST: Final = 8 * 1024 * 1024
"""Bytes of a response that are read for memory. A longer one reaches the client all the same."""
READABLE: Final = ("gzip", "deflate", "identity")
"""Content encodings that can be read back."""
Data: TypeAlias = dict[str, Any]
_BREAK = re.compile(rb"\r?\n\r?\n")
_LIKELY: Final = 10**9
_RUN_BY_SERVER = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")


@dataclass(slots=True)
class Answer:
    """What the agent said: messages as its client would send them back, and whether it now waits for tools."""

    messages: list[Data] = field(default_factory=list[Data])
    id: str | None = None
    waits: bool = False
    error: str | None = None
    tokens: tuple[int, int] = (0, 0)
    """Read and written, where the server says so."""


def read_answer(dialect: Dialect, status: int, headers: Mapping[str, str], raw: bytes, /) -> Answer:
    """The answer in a response; one with an `error` where the model's server failed or nothing can be read."""
    if status >= 400:
        return Answer(error=f"the model's server answered {status}")
    try:
        plain = _decode(raw, headers.get("content-encoding", "identity").strip().lower())
        if "event-stream" in headers.get("content-type", ""):
            return _STREAMED[dialect](list(_events(plain)))
        return _WHOLE[dialect](_data(json.loads(plain)))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, zlib.error):
        return Answer(error="the answer of the model's server could not be read")


def _decode(raw: bytes, encoding: str) -> bytes:
    if encoding == "identity":
        return raw
    if encoding not in READABLE:
        raise ValueError(f"an encoding that cannot be read: {encoding!r}")
    inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, whichever it is
    plain = inflate.decompress(raw, MOST)
    if inflate.unconsumed_tail:
        raise ValueError("the answer is too long")
    return plain


def _events(raw: bytes) -> Iterator[Data]:
    for block in _BREAK.split(raw):
        lines = [line[5:].strip() for line in block.splitlines() if line.startswith(b"data:")]
        payload = b"\n".join(lines)
        if payload and payload != b"[DONE]":
            yield _data(json.loads(payload))


def _tokens(*usages: object) -> tuple[int, int]:
    """Tokens read and written, in any spelling; parts of a stream may tell them one after the other."""
    usage = {name: count for each in usages for name, count in _data(each).items() if isinstance(count, int)}
    read = usage.get("prompt_tokens", usage.get("input_tokens", 0))
    read += usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
    written = usage.get("completion_tokens", usage.get("output_tokens", 0))
    return max(0, min(read, _LIKELY)), max(0, min(written, _LIKELY))


def _data(value: object) -> Data:
    return cast("Data", value) if isinstance(value, dict) else {}


def _dicts(value: object) -> list[Data]:
    return [_data(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


# -- chat completions -------------------------------------------------------------------------------------------------


def _chat(body: Data) -> Answer:
    message = _data(body["choices"][0]["message"])
    waits = bool(message.get("tool_calls") or message.get("function_call"))
    return Answer([message], body.get("id"), waits=waits, tokens=_tokens(body.get("usage")))


def _chat_streamed(events: list[Data]) -> Answer:
    message: Data = {"role": "assistant", "content": ""}
    calls: list[tuple[object, Data]] = []
    ended, error = False, None
    for event in events:
        error = error or event.get("error")
        for choice in _dicts(event.get("choices")):
            ended = ended or bool(choice.get("finish_reason"))
            _add_delta(message, calls, _data(choice.get("delta")))
    message.update({"tool_calls": [call for _, call in calls]} if calls else {})
    broken = None if ended and not error else "the answer of the model's server broke off"
    tokens = _tokens(*[event.get("usage") for event in events])
    id = next(
        (event_id for event in events if (event_id := event.get("id"))), None
    )  # Azure's first event has an empty one
    return Answer([message], id, waits=bool(calls or "function_call" in message), error=broken, tokens=tokens)


def _add_delta(message: Data, calls: list[tuple[object, Data]], delta: Data) -> None:
    for key in ("content", "refusal", "reasoning_content"):
        if isinstance(piece := delta.get(key), str):
            message[key] = f"{message.get(key) or ''}{piece}"
    for piece in _dicts(delta.get("tool_calls")):
        call = _call_of(piece, calls)
        call["id"] = piece.get("id") or call["id"]
        _add_function(call["function"], piece.get("function"))
    if before := _data(delta.get("function_call")):  # the name of calls before there were several
        _add_function(message.setdefault("function_call", {"name": "", "arguments": ""}), before)


def _add_function(function: Data, piece: object) -> None:
    for key in function:
        function[key] += _data(piece).get(key) or ""


def _call_of(piece: Data, calls: list[tuple[object, Data]]) -> Data:
    """The call that a piece goes on with. Where a server gives all one number, or none, a new id begins another."""
    number, id = piece.get("index"), piece.get("id")
    call = next((call for at, call in reversed(calls) if at == number), None)
    names = number is None and not id and _data(piece.get("function")).get("name")
    if call is None or names or (id and call["id"] not in ("", id)):
        call = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        calls.append((number, call))
    return call


# -- messages ---------------------------------------------------------------------------------------------------------


def _messages(body: Data) -> Answer:
    content = _dicts(body["content"])
    waits = body.get("stop_reason") == "pause_turn" or any(part.get("type") == "tool_use" for part in content)
    message = {"role": "assistant", "content": content}
    return Answer([message], body.get("id"), waits=waits, tokens=_tokens(body.get("usage")))


def _messages_streamed(events: list[Data]) -> Answer:
    body: Data = {}
    parts: dict[int, Data] = {}
    ended = False
    for event in events:
        match event.get("type"):
            case "message_start":
                body.update(_data(event.get("message")))
            case "content_block_start":
                parts[event["index"]] = _data(event.get("content_block"))
            case "content_block_delta":
                _add_block_delta(parts[event["index"]], _data(event.get("delta")))
            case "message_delta":
                body.update(_data(event.get("delta")))
                body["usage"] = _data(body.get("usage")) | _data(event.get("usage"))
            case kind:
                ended = ended or kind == "message_stop"
    for part in parts.values():
        if (written := part.pop("partial_json", None)) is not None:
            try:
                part["input"] = json.loads(written or "{}")
            except ValueError:  # the model had no token left
                part["input"] = written
    answer = _messages({**body, "content": [parts[number] for number in sorted(parts)]})
    answer.error = None if ended else "the answer of the model's server broke off"
    return answer


def _add_block_delta(part: Data, delta: Data) -> None:
    for key in ("text", "thinking", "partial_json"):
        if isinstance(piece := delta.get(key), str):
            part[key] = f"{part.get(key) or ''}{piece}"


# -- responses --------------------------------------------------------------------------------------------------------


def _response(body: Data) -> Answer:
    output = _dicts(body["output"])
    kinds = [str(item.get("type")) for item in output]
    waits = any(kind.endswith("_call") and kind not in _RUN_BY_SERVER for kind in kinds)
    failed = body.get("status") in ("failed", "cancelled")
    error = "the model's server failed" if failed else None
    return Answer(output, body.get("id"), waits=waits, error=error, tokens=_tokens(body.get("usage")))


def _response_streamed(events: list[Data]) -> Answer:
    ends = [e for e in events if e.get("type") in ("response.completed", "response.incomplete", "response.failed")]
    if not ends:
        return Answer(error="the answer of the model's server broke off")
    done = [_data(e.get("item")) for e in events if e.get("type") == "response.output_item.done"]
    body = _data(ends[-1].get("response"))
    return _response({**body, "output": body.get("output") or done})  # some servers name the items only as they come


_WHOLE: Final[dict[Dialect, Callable[[Data], Answer]]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _response,
}
_STREAMED: Final[dict[Dialect, Callable[[list[Data]], Answer]]] = {
    "chat": _chat_streamed,
    "messages": _messages_streamed,
    "responses": _response_streamed,
}

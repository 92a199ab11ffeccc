"""What an OpenAI-compatible server puts on the wire: answers whole and in pieces, and vectors."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

_ID = "chatcmpl-test"
_PIECES = 4
"""Into how many pieces a streamed text is cut, where it is long enough."""
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that an answer asks for. `arguments` go out as they are: JSON, or what a model took for it."""

    name: str
    arguments: str = "{}"
    id: str = ""
    """`call_1`, `call_2` and so on where none is given."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model says: text, tools it asks for, or both; why it ended, where it is not for that."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    tokens: tuple[int, int] | None = None
    """Read and written; by default a quarter of the characters of each."""

    @property
    def reason(self) -> str:
        """Why it ended."""
        return self.finish or ("tool_calls" if self.calls else "stop")


def json_body(body: dict[str, Any], answer: Answer, /) -> bytes:
    """One JSON object."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or (None if answer.calls else "")}
    if answer.calls:
        message["tool_calls"] = [_call(call, number) for number, call in enumerate(answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": answer.reason}
    completion = {"object": "chat.completion", "choices": [choice], "usage": usage(body, answer)}
    return json.dumps(_head(body) | completion).encode()


def pieces(body: dict[str, Any], answer: Answer, /) -> Iterator[bytes]:
    """Server-sent events: who speaks, the text in pieces, each call by name and then its arguments, why it ended, what
    it took (where the request asks for that), and the end."""
    yield event(_chunk(body, {"role": "assistant", "content": ""}))
    for part in _cut(answer.text):
        yield event(_chunk(body, {"content": part}))
    for number, call in enumerate(answer.calls):
        fields = _call(call, number)
        head = {"index": number, **fields, "function": {"name": call.name, "arguments": ""}}
        yield event(_chunk(body, {"tool_calls": [head]}))
        for part in _cut(call.arguments):
            yield event(_chunk(body, {"tool_calls": [{"index": number, "function": {"arguments": part}}]}))
    yield event(_chunk(body, {}, finish=answer.reason))
    options: Any = body.get("stream_options")
    if isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage"):
        fields: dict[str, Any] = {"object": "chat.completion.chunk", "choices": [], "usage": usage(body, answer)}
        yield event(_head(body) | fields)
    yield DONE


def event(payload: dict[str, Any], /) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def usage(body: dict[str, Any], answer: Answer, /) -> dict[str, int]:
    """Tokens read and written."""
    asked = sum(len(str(m.get("content") or "")) for m in body.get("messages", [])) // 4 + 1
    length = len(answer.text) + sum(len(call.name) + len(call.arguments) for call in answer.calls)
    read, written = answer.tokens or (asked, length // 4 + 1)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _head(body: dict[str, Any]) -> dict[str, Any]:
    return {"id": _ID, "created": 0, "model": body.get("model", "test")}


def _chunk(body: dict[str, Any], delta: dict[str, Any], *, finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _head(body) | {"object": "chat.completion.chunk", "choices": [choice]}


def _call(call: ToolCall, number: int) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id or f"call_{number + 1}", "type": "function", "function": function}


def _cut(text: str) -> list[str]:
    size = max(1, -(-len(text) // _PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def vectors(body: dict[str, Any], dimensions: int, /) -> bytes:
    """The embeddings of a request's texts: counts of hashed words, the same for the same words."""
    asked = body.get("input", [])
    texts = cast("Sequence[str]", [asked] if isinstance(asked, str) else asked)
    rows = [_vector(text, int(body.get("dimensions") or dimensions)) for text in texts]
    encoded: list[Any] = list(rows)
    if body.get("encoding_format") == "base64":
        encoded = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in rows]
    tokens = sum(len(text) for text in texts) // 4 + 1
    reply: dict[str, Any] = {
        "object": "list",
        "model": body.get("model", "test"),
        "data": [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(encoded)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return json.dumps(reply).encode()


def _vector(text: str, dimensions: int) -> list[float]:
    row = [0.0] * dimensions
    for word in text.lower().split() or [""]:
        row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big") % dimensions] += 1.0
    return row

"""A model on loopback that says what a test wrote, in the four languages that coding agents speak."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Lock
from typing import Any

Turn = dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]
"""`{"text": …}`, or `{"tool": name, "arguments": {…}}`; or what makes one of them from the request."""
_numbers = count(1)


class ScriptedModel(ThreadingHTTPServer):
    """Answers each request that offers tools with the next turn; the last turn stays.

    `requests` is what came, and `asked_at` when.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Talk)
        self.turns: list[Turn] = []
        self.requests: list[dict[str, Any]] = []
        self.asked_at: list[float] = []
        self.lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def turn(self, body: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.requests.append(body)
            self.asked_at.append(time.monotonic())
            if not body.get("tools"):  # a title, a summary, a check of the quota
                return {"text": "ok"}
            turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
            return turn(body) if callable(turn) else turn


class _Talk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self._send(b'{"object": "list", "data": [{"id": "scripted", "object": "model"}]}', "application/json")

    def do_POST(self) -> None:
        body = json.loads(self._body() or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith(("countTokens", "count_tokens")):
            self._send(b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
            return
        make = next((make for ending, make in _WIRES.items() if ending in path), None)
        if make is None:
            self._send(b"{}", "application/json")
            return
        events = make(self.server.turn(body))
        lines = [f"event: {name}\n" * bool(name) + f"data: {json.dumps(data)}\n\n" for name, data in events]
        self._send("".join(lines).encode() + b"data: [DONE]\n\n" * (make is _chat), "text/event-stream")

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


Event = tuple[str, dict[str, Any]]


def _id(prefix: str) -> str:
    return f"{prefix}_{next(_numbers):06d}"


def _messages(turn: dict[str, Any]) -> Iterator[Event]:
    """Anthropic's messages."""
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {"id": _id("msg"), "type": "message", "role": "assistant", "model": "scripted", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    yield "message_start", {"type": "message_start", "message": message}
    if "tool" in turn:
        block = {"type": "tool_use", "id": _id("toolu"), "name": turn["tool"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn["arguments"])}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn["text"]}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": block}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if "tool" in turn else "end_turn"
    ending = {"stop_reason": reason, "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": ending, "usage": usage}
    yield "message_stop", {"type": "message_stop"}


def _responses(turn: dict[str, Any]) -> Iterator[Event]:
    """OpenAI's responses."""
    response: dict[str, Any] = {"id": _id("resp"), "object": "response", "created_at": int(time.time())}
    response |= {"model": "scripted", "status": "in_progress", "output": []}
    yield "response.created", {"type": "response.created", "response": response}
    if "tool" in turn:
        item = {"type": "function_call", "id": _id("fc"), "call_id": _id("call"), "status": "completed"}
        item |= {"name": turn["tool"], "arguments": json.dumps(turn["arguments"])}
        item |= {"namespace": turn["namespace"]} if "namespace" in turn else {}
    else:
        content = [{"type": "output_text", "text": turn["text"], "annotations": []}]
        item = {"type": "message", "id": _id("msg"), "role": "assistant", "status": "completed", "content": content}
    for name in ("response.output_item.added", "response.output_item.done"):
        yield name, {"type": name, "output_index": 0, "item": item}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, **details}
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield "response.completed", {"type": "response.completed", "response": done}


def _chat(turn: dict[str, Any]) -> Iterator[Event]:
    """OpenAI's chat completions."""
    chunk = {"id": _id("chat"), "object": "chat.completion.chunk", "created": int(time.time()), "model": "scripted"}
    delta: dict[str, Any] = {"role": "assistant", "content": turn.get("text", "")}
    if "tool" in turn:
        function = {"name": turn["tool"], "arguments": json.dumps(turn["arguments"])}
        delta["tool_calls"] = [{"index": 0, "id": _id("call"), "type": "function", "function": function}]
    yield "", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    reason = "tool_calls" if "tool" in turn else "stop"
    yield "", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield "", {**chunk, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}


def _gemini(turn: dict[str, Any]) -> Iterator[Event]:
    """Gemini's content; a whole answer is one event."""
    part = {"text": turn.get("text")}
    if "tool" in turn:
        part = {"functionCall": {"name": turn["tool"], "args": turn["arguments"]}}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    yield "", {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


_WIRES = {
    "/messages": _messages,
    "/responses": _responses,
    "/chat/completions": _chat,
    "enerateContent": _gemini,
}

"""A server on loopback, such as a model's, that answers with scripted bytes, and notes the bytes it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One response. `parts` go out one by one, chunked; else `body` with its length."""

    body: bytes = b""
    parts: Iterable[bytes] | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    cut: bool = False
    """Whether the connection breaks after the parts."""

    @property
    def sent(self) -> bytes:
        return self.body if self.parts is None else b"".join(self.parts)


@dataclass
class Got:
    method: str
    path: str
    headers: list[tuple[str, str]]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


Script = Callable[[Got], Reply]


class Upstream:
    def __init__(self, *replies: Reply | Script, port: int = 0) -> None:
        self.got: list[Got] = []
        self._port = port
        self.replies = list(replies)
        self.gone = threading.Event()
        """A client went away while it was answered."""
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Upstream:
        self._server = _Server(("127.0.0.1", self._port), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, got: Got) -> Reply:
        with self._lock:
            self.got.append(got)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply(got) if callable(reply) else reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is the client's business."""


def _handler(owner: Upstream) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _do(self) -> None:
            reply = owner.answer(Got(self.command, self.path, list(self.headers.items()), _read(self)))
            self.send_response_only(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            try:
                _send(self, reply)
            except OSError:
                owner.gone.set()
                raise

        do_GET = do_POST = do_HEAD = do_DELETE = do_OPTIONS = _do  # noqa: N815 - the names that the library calls

        def log_message(self, format: str, *args: Any) -> None:
            """A test's output is its own."""

    return Handler


def _send(to: BaseHTTPRequestHandler, reply: Reply) -> None:
    if reply.parts is None:
        to.send_header("content-length", str(len(reply.body)))
        to.end_headers()
        to.wfile.write(reply.body if to.command != "HEAD" else b"")
        return
    to.send_header("transfer-encoding", "chunked")
    to.end_headers()
    for part in reply.parts:
        to.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        to.wfile.flush()
    to.close_connection = reply.cut
    to.wfile.write(b"" if reply.cut else b"0\r\n\r\n")


def _read(source: BaseHTTPRequestHandler) -> bytes:
    if "chunked" not in source.headers.get("transfer-encoding", ""):
        return source.rfile.read(int(source.headers.get("content-length", "0")))
    found = b""
    while size := int(source.rfile.readline(), 16):
        found += source.rfile.read(size)
        source.rfile.readline()
    source.rfile.readline()
    return found


# -- what the three APIs answer ---------------------------------------------------------------------------------------


USED = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}


@dataclass(frozen=True)
class Call:
    name: str
    arguments: str
    id: str


def chat(text: str = "", *calls: Call, stream: bool = False, id: str = "chatcmpl-1") -> Reply:
    head = {"id": id, "created": 0, "model": "m"}
    listed = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    finish = "tool_calls" if calls else "stop"
    if not stream:
        message = {"role": "assistant", "content": text or None, **({"tool_calls": listed} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        told = {"object": "chat.completion", "choices": [choice], "usage": USED}
        return Reply(json.dumps(head | told, indent=1).encode())
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}, *({"content": p} for p in _cut(text))]
    for number, call in enumerate(listed):
        deltas.append({"tool_calls": [{"index": number, **call, "function": {**call["function"], "arguments": ""}}]})
        for piece in _cut(call["function"]["arguments"]):
            deltas.append({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    chunks = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": finish})
    events = [
        b"data: " + json.dumps(head | {"object": "chat.completion.chunk", "choices": [c]}).encode() for c in chunks
    ]
    last = head | {"object": "chat.completion.chunk", "choices": [], "usage": USED}
    return _stream([*events, b"data: " + json.dumps(last).encode(), b"data: [DONE]"])


def messages(text: str = "", *calls: Call, stream: bool = False, id: str = "msg_1") -> Reply:
    parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    parts += [{"type": "tool_use", "id": c.id, "name": c.name, "input": json.loads(c.arguments)} for c in calls]
    stop = "tool_use" if calls else "end_turn"
    usage = {"input_tokens": 6, "output_tokens": 3, "cache_read_input_tokens": 4}
    head = {"id": id, "type": "message", "role": "assistant", "model": "m", "stop_sequence": None, "usage": usage}
    if not stream:
        return Reply(json.dumps({**head, "content": parts, "stop_reason": stop}).encode())
    told: list[dict[str, Any]] = [{"type": "message_start", "message": {**head, "content": [], "stop_reason": None}}]
    for index, part in enumerate(parts):
        empty = {**part, "text": ""} if part["type"] == "text" else {**part, "input": {}}
        told.append({"type": "content_block_start", "index": index, "content_block": empty})
        key, kind = ("text", "text_delta") if part["type"] == "text" else ("partial_json", "input_json_delta")
        for piece in _cut(part["text"] if part["type"] == "text" else json.dumps(part["input"])):
            told.append({"type": "content_block_delta", "index": index, "delta": {"type": kind, key: piece}})
        told.append({"type": "content_block_stop", "index": index})
    told.append({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage})
    told.append({"type": "message_stop"})
    return _stream([b"event: %s\ndata: %s" % (e["type"].encode(), json.dumps(e).encode()) for e in told])


def responses(text: str = "", *calls: Call, stream: bool = False, id: str = "resp_1") -> Reply:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    said = {"type": "message", "id": "i_1", "role": "assistant", "status": "completed", "content": content}
    output: list[dict[str, Any]] = [{"type": "reasoning", "id": "rs_1", "summary": []}, *([said] if text else [])]
    for c in calls:
        output.append({"type": "function_call", "id": f"fc_{c.id}", "call_id": c.id, "name": c.name})
        output[-1] |= {"arguments": c.arguments, "status": "completed"}
    usage = {"input_tokens": 10, "output_tokens": 3, "total_tokens": 13}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": id, "object": "response", "created_at": 0, "model": "m", "parallel_tool_calls": True, "tools": []}
    whole = {**head, "status": "completed", "output": output, "tool_choice": "auto", "usage": usage}
    if not stream:
        return Reply(json.dumps(whole).encode())
    told: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": []}}]
    for index, item in enumerate(output):
        told.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item is said:
            where = {"item_id": "i_1", "output_index": index, "content_index": 0}
            part = {"type": "output_text", "text": "", "annotations": []}
            told.append({"type": "response.content_part.added", **where, "part": part})
            for piece in _cut(text):
                told.append({"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []})
        told.append({"type": "response.output_item.done", "output_index": index, "item": item})
    told.append({"type": "response.completed", "response": whole})
    numbered = [e | {"sequence_number": n} for n, e in enumerate(told)]
    return _stream([b"event: %s\ndata: %s" % (e["type"].encode(), json.dumps(e).encode()) for e in numbered])


def _stream(events: list[bytes]) -> Reply:
    return Reply(parts=[e + b"\n\n" for e in events], headers={"content-type": "text/event-stream; charset=utf-8"})


def _cut(text: str) -> list[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]

"""An OpenAI-compatible server on loopback whose replies, good or broken, a test writes."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias, cast


@dataclass(frozen=True, slots=True)
class Fault:
    """A reply that is not an answer: a status, headers and raw bytes, or silence."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


Reply: TypeAlias = str | Fault | Callable[[dict[str, Any]], "str | Fault"]


def rate_limited(retry_after: float | None = 1.0, /) -> Fault:
    """HTTP 429, with the wait it asks for."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return refusal("rate limit reached", status=429, headers=headers)


def server_error(status: int = 500, /) -> Fault:
    """A failure on the server's side."""
    return refusal("something broke", status=status)


def refusal(message: str, /, *, status: int = 400, headers: dict[str, str] | None = None, **extra: str) -> Fault:
    """An error in the wire format; `extra` are further fields, such as `param` and `code`."""
    body = json.dumps({"error": {"message": message, "type": "error", **extra}}).encode()
    return Fault(status=status, body=body, headers=headers or {})


def hang() -> Fault:
    """No reply until the server closes."""
    return Fault(hangs=True)


def malformed() -> Fault:
    """HTTP 200 with half an answer."""
    return Fault(body=b'{"id": "chatcmpl-1", "choices": [{"message": {"role": "assist')


def rubbish(size: int = 5_000_000, /) -> str:
    """An answer of `size` characters that mean nothing."""
    return ("\x00{[<think>```" * (size // 12 + 1))[:size]


class ModelServer:
    """Chat completions and embeddings on `http://127.0.0.1:PORT/v1`, from scripted replies.

    Replies are given in order, to chat requests and embedding requests alike; when they are used up, chat requests get
    `default`. An embedding request that meets no `Fault` gets deterministic vectors of the words of its texts.

    ```python
    with ModelServer(rate_limited(2), "second time lucky") as server:
        model = PydanticAIModel("any", base_url=server.base_url)
    ```

    Attributes:
        requests: every request, in the order they came.
    """

    def __init__(self, *replies: Reply, default: Reply = "ok", dimensions: int = 64) -> None:
        self.requests: list[Request] = []
        self.dimensions = dimensions
        self._replies = list(replies)
        self._default = default
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._server: _Server | None = None

    @property
    def base_url(self) -> str:
        """Where it listens."""
        if self._server is None:
            raise RuntimeError("the server is not running: use it as a context manager")
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.02,), name="model-server", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def answer(self, request: Request, /) -> Fault:
        """Note the request and decide what goes back."""
        with self._lock:
            self.requests.append(request)
            reply = self._replies.pop(0) if self._replies else self._default
        if not isinstance(reply, str | Fault):
            reply = reply(request.body)
        if isinstance(reply, Fault):
            if reply.hangs:
                self._closing.wait()
            return reply
        if request.path.endswith("/embeddings"):
            return _json(_embeddings(request.body, self.dimensions))
        if request.path.endswith("/chat/completions"):
            return _json(_chat(request.body, reply))
        return refusal(f"no such path {request.path}", status=404)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that gave up is the client's business
            super().handle_error(request, client_address)


def _handler(owner: ModelServer, /) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", "0")))
            body: dict[str, Any] = {}
            with suppress(ValueError):
                body = json.loads(raw)
            headers = {key.lower(): value for key, value in self.headers.items()}
            reply = owner.answer(Request(self.path, headers, body))
            if reply.hangs:
                return
            self.send_response(reply.status)
            for key, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(key, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a test's output is its own."""

    return Handler


def _json(payload: dict[str, Any], /) -> Fault:
    return Fault(body=json.dumps(payload).encode())


def _chat(body: dict[str, Any], text: str, /) -> dict[str, Any]:
    asked = sum(len(str(m.get("content") or "")) for m in body.get("messages", [])) // 4 + 1
    told = len(text) // 4 + 1
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "test"),
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": asked, "completion_tokens": told, "total_tokens": asked + told},
    }


def _embeddings(body: dict[str, Any], dimensions: int, /) -> dict[str, Any]:
    asked = body.get("input", [])
    texts = cast("Sequence[str]", [asked] if isinstance(asked, str) else asked)
    rows = [_vector(text, int(body.get("dimensions") or dimensions)) for text in texts]
    encoded: list[Any] = list(rows)
    if body.get("encoding_format") == "base64":
        encoded = [base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode() for row in rows]
    tokens = sum(len(text) for text in texts) // 4 + 1
    return {
        "object": "list",
        "model": body.get("model", "test"),
        "data": [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(encoded)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _vector(text: str, dimensions: int, /) -> list[float]:
    row = [0.0] * dimensions
    for word in text.lower().split() or [""]:
        row[int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big") % dimensions] += 1.0
    return row

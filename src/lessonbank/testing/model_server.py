"""An OpenAI-compatible server on loopback whose replies, good or broken, a test writes."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from types import TracebackType
from typing import Any, TypeAlias

from ._faults import Cut as Cut
from ._faults import Fault as Fault
from ._faults import Held as Held
from ._faults import cut_off as cut_off
from ._faults import hang as hang
from ._faults import malformed as malformed
from ._faults import no_choice as no_choice
from ._faults import not_json as not_json
from ._faults import rate_limited as rate_limited
from ._faults import refusal as refusal
from ._faults import rubbish as rubbish
from ._faults import server_error as server_error
from ._faults import slow as slow
from ._wire import Answer as Answer
from ._wire import ToolCall as ToolCall
from ._wire import event, json_body, pieces, vectors

Said: TypeAlias = "str | Answer | Fault | Cut | Held"
Reply: TypeAlias = "Said | Callable[[dict[str, Any]], Said]"
_JSON = {"content-type": "application/json"}
_EVENTS = {"content-type": "text/event-stream", "cache-control": "no-cache"}
_BEFORE = 2
"""Events of a held answer that go out at once."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def streams(self) -> bool:
        """Whether the answer is wanted in pieces."""
        return bool(self.body.get("stream"))


@dataclass(frozen=True, slots=True)
class _Sent:
    """What goes back: a status, headers, and the body in one part or, chunked, in many."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    parts: Iterable[bytes] | None = None
    length: int | None = None
    """What the headers say of the body, where it is cut off before."""


class ModelServer:
    """Chat completions and embeddings on `http://127.0.0.1:PORT/v1`, from scripted replies.

    Replies are given in order, to chat requests and embedding requests alike; when they are used up, chat requests get
    `default`. A reply is text, an `Answer` (text and tool calls), a fault, or a function of the request's body that
    returns one of these. A request with `stream` gets its answer as server-sent events. An embedding request that meets
    no `Fault` gets deterministic vectors of the words of its texts.

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

    def answer(self, request: Request, /) -> _Sent | None:
        """Note the request and decide what goes back; `None` for nothing at all."""
        with self._lock:
            self.requests.append(request)
            reply = self._replies.pop(0) if self._replies else self._default
        response = reply(request.body) if callable(reply) else reply
        if isinstance(response, Fault):
            if response.hangs:
                self._closing.wait()
                return None
            return _Sent(response.status, {**_JSON, **response.headers}, response.body)
        if request.path.endswith("/embeddings"):
            return _Sent(200, _JSON, vectors(request.body, self.dimensions))
        if request.path.endswith("/chat/completions"):
            return (
                self._streamed(request.body, response)
                if request.streams
                else self._reply_at_once(request.body, response)
            )
        return _Sent(404, _JSON, refusal(f"no such path {request.path}").body)

    def _reply_at_once(self, body: dict[str, Any], response: str | Answer | Cut | Held) -> _Sent:
        if isinstance(response, Cut):
            full = json_body(body, response.answer)
            return _Sent(200, _JSON, full[: len(full) // 2], length=len(full))
        if isinstance(response, Held):
            self._wait(response.until)
            response = response.answer
        return _Sent(200, _JSON, json_body(body, _answer(response)))

    def _streamed(self, body: dict[str, Any], response: str | Answer | Cut | Held) -> _Sent:
        if isinstance(response, Cut):
            return _Sent(200, _EVENTS, parts=_cut_short(body, response))
        if isinstance(response, Held):
            return _Sent(200, _EVENTS, parts=self._held(body, response))
        return _Sent(200, _EVENTS, parts=pieces(body, _answer(response)))

    def _held(self, body: dict[str, Any], response: Held) -> Iterable[bytes]:
        for number, piece in enumerate(pieces(body, response.answer)):
            if number == _BEFORE:
                self._wait(response.until)
            yield piece

    def _wait(self, until: threading.Event) -> None:
        while not until.wait(0.02):
            if self._closing.is_set():
                return


def _answer(response: str | Answer) -> Answer:
    return Answer(response) if isinstance(response, str) else response


def _cut_short(body: dict[str, Any], response: Cut) -> Iterable[bytes]:
    yield from islice(pieces(body, response.answer), response.after)
    if response.has_error:
        yield event({"error": {"message": "the model broke off", "type": "server_error", "code": None}})
    raise ConnectionAbortedError("the script closes the connection here")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a client that gave up is the client's business
            super().handle_error(request, client_address)


def _handler(owner: ModelServer, /) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", "0")))
            body: dict[str, Any] = {}
            with suppress(ValueError):
                body = json.loads(raw)
            headers = {key.lower(): value for key, value in self.headers.items()}
            self.close_connection = True
            if (sent := owner.answer(Request(self.path, headers, body))) is not None:
                self._send(sent)

        def _send(self, sent: _Sent) -> None:
            self.send_response(sent.status)
            for key, value in {**sent.headers, "connection": "close"}.items():
                self.send_header(key, value)
            if sent.parts is None:
                self.send_header("content-length", str(sent.length or len(sent.body)))
            else:
                self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            for part in sent.parts or ():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(sent.body if sent.parts is None else b"0\r\n\r\n")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a test's output is its own."""

    return Handler

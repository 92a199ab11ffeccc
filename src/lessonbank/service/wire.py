"""What every request passes: bounds on its size and slowness, and a line in the log and the metrics, no contents."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import partial
from time import monotonic, perf_counter
from typing import Any, Final, TypeAlias

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from lessonbank._version import VERSION
from lessonbank.client.operations import API
from lessonbank.types.ids import new_id

from .metrics import Metrics
from .tracing import Spans

Message: TypeAlias = MutableMapping[str, Any]
log = logging.getLogger("lessonbank.server")
_GZIP: Final = 31
_HEADERS: Final = (
    (b"lessonbank-version", VERSION.encode()),
    (b"lessonbank-api", str(API).encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server takes."""

    body: int = 8_000_000
    """Bytes of a request, packed and unpacked."""
    file: int = 1_000_000_000
    """Bytes of a file that is imported."""
    pause: float = 20.0
    """Seconds between two pieces of a request."""
    body_seconds: float = 60.0
    """Seconds for all pieces of a request."""
    file_seconds: float = 3600.0
    """Seconds for all pieces of a file that is imported."""
    values: int = 50_000
    """Values in the JSON of a request."""
    depth: int = 200
    """Levels of that JSON."""


class Bounded:
    """An application behind bounds."""

    def __init__(self, app: ASGIApp, /, *, limits: Limits, metrics: Metrics, spans: Spans) -> None:
        self._app, self._limits, self._metrics, self._spans = app, limits, metrics, spans

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, status, id = perf_counter(), 0, new_id()

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                known = {name for name, _ in message["headers"]}
                more = [*_HEADERS, (b"lessonbank-request", id.encode())]
                message["headers"] = [*message["headers"], *(one for one in more if one[0] not in known)]
            await send(message)

        with self._metrics.busy(), self._spans.around(scope) as span:
            try:
                await self._app(scope, self._bounded(scope, receive), told)
            finally:
                self._note(scope, status, perf_counter() - begun, id, span)

    def _note(self, scope: Scope, status: int, seconds: float, id: str, span: dict[str, Any]) -> None:
        """One line: the route and not the address, the id of the key and not the scope."""
        route, state = getattr(scope.get("route"), "path", "none"), scope.get("state", {})
        self._metrics.answered(route=route, method=scope["method"], status=status, seconds=seconds)
        span |= {"route": route, "status": status, "role": state.get("role")}
        key = state.get("key")
        told = {"request": id, "method": scope["method"], "route": route, "status": status, "key": key}
        log.info("%s", json.dumps({**told, "ms": round(seconds * 1000, 1)}))

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """The body, at most as large and as slow as the limits say; unpacked, where it is packed."""
        is_file = scope["path"].endswith("/admin/import")
        body = _Body(scope, self._limits, is_file=is_file)
        return partial(body.receive, receive)


class _Body:
    """What has come of a request's body. Nothing is read of it before the application asks for it."""

    def __init__(self, scope: Scope, limits: Limits, *, is_file: bool) -> None:
        self._pause, self._most = limits.pause, limits.file if is_file else limits.body
        self._seconds = limits.file_seconds if is_file else limits.body_seconds
        self._ends, self._size, self._is_whole = 0.0, 0, False
        self._encodings = _listed(scope, b"content-encoding")
        self._declared = b"".join(_listed(scope, b"content-length"))
        self._unpack = _Unpack(self._most) if self._encodings else None
        if self._unpack:
            hidden = (b"content-encoding", b"content-length")
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in hidden]

    async def receive(self, receive: Receive) -> Message:
        """The next message. Raises HTTPException."""
        if self._is_whole:
            return await receive()
        self._check_head()
        message = await self._in_time(receive)
        if message["type"] != "http.request":
            return message
        piece, self._is_whole = message.get("body", b""), not message.get("more_body", False)
        self._size += len(piece)
        if self._size > self._most:
            raise _too_large(self._most)
        if self._unpack:
            piece = await to_thread.run_sync(self._unpack, piece, self._is_whole)
        return {**message, "body": piece}

    def _check_head(self) -> None:
        if self._encodings not in ([], [b"gzip"]):
            named = b", ".join(self._encodings).decode("latin-1")
            raise HTTPException(
                415, f"the Content-Encoding {named[:40]!r} is unknown here: send gzip once, or leave it out"
            )
        if self._declared.isdigit() and int(self._declared[:20]) > self._most:
            raise _too_large(self._most)

    async def _in_time(self, receive: Receive) -> Message:
        self._ends = self._ends or monotonic() + self._seconds
        left = self._ends - monotonic()
        try:
            with anyio.fail_after(min(self._pause, left)):
                return await receive()
        except TimeoutError:
            late = (
                f"nothing came for {self._pause:g}"
                if self._pause < left
                else f"the body took more than {self._seconds:g}"
            )
            raise HTTPException(408, f"{late} seconds: send it faster, or less of it") from None


def _listed(scope: Scope, name: bytes) -> list[bytes]:
    """The parts of a header that may stand several times; those that say nothing are left out."""
    parts = [part.strip().lower() for key, value in scope["headers"] if key == name for part in value.split(b",")]
    return [part for part in parts if part not in (b"", b"identity")]


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"this server takes requests of at most {most:,} bytes: send less, or send it in parts")


class _Unpack:
    """Unpacks gzip as it comes, up to so many bytes."""

    def __init__(self, most: int, /) -> None:
        self._gzip, self._most, self._size = zlib.decompressobj(_GZIP), most, 0

    def __call__(self, packed: bytes, is_last: bool, /) -> bytes:
        """The next bytes; at most one more than there is room for, because a small bomb unpacks to gigabytes.

        Raises HTTPException.
        """
        try:
            plain = self._gzip.decompress(packed, self._most - self._size + 1)
        except zlib.error:
            raise HTTPException(400, "the body says that it is gzip, and is not") from None
        self._size += len(plain)
        if self._size > self._most:
            raise _too_large(self._most)
        if self._gzip.unused_data:
            raise HTTPException(400, "something follows the end of the gzip body: pack it as one")
        if is_last and not self._gzip.eof:
            raise HTTPException(400, "the gzip body is cut off: send all of it")
        return plain

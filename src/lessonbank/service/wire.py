"""What every request passes: bounds on its size and slowness, and a line in the log and the metrics, no contents."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, TypeAlias

import anyio
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
    """Bytes of a request, unpacked."""
    file: int = 1_000_000_000
    """Bytes of a file that is imported."""
    pause: float = 20.0
    """Seconds between two pieces of a request."""


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
        most = self._limits.file if scope["path"].endswith("/admin/import") else self._limits.body
        headers = dict(scope["headers"])
        unpack = zlib.decompressobj(_GZIP) if headers.get(b"content-encoding", b"").lower() == b"gzip" else None
        if unpack:
            scope["headers"] = [
                pair for pair in scope["headers"] if pair[0] not in (b"content-encoding", b"content-length")
            ]
        declared = headers.get(b"content-length", b"")
        size, is_whole = 0, False
        too_large = HTTPException(413, f"this server takes requests of at most {most:,} bytes")

        async def bounded() -> Message:
            nonlocal size, is_whole
            if is_whole:
                return await receive()
            if declared.isdigit() and int(declared[:20]) > most:
                raise too_large
            try:
                with anyio.fail_after(self._limits.pause):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, f"nothing came for {self._limits.pause:g} seconds") from None
            if message["type"] != "http.request":
                return message
            is_whole = not message.get("more_body", False)
            if unpack:
                message["body"] = _unpacked(unpack, message.get("body", b""), most - size)
            size += len(message.get("body", b""))
            if size > most:
                raise too_large
            return message

        return bounded


def _unpacked(unpack: Any, packed: bytes, most: int) -> bytes:
    """At most one byte more than there is room for: a small bomb unpacks to gigabytes."""
    try:
        return unpack.decompress(packed, most + 1)
    except zlib.error:
        raise HTTPException(400, "the body says that it is gzip, and is not") from None

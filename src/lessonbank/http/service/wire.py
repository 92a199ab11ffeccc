"""What every request passes: bounds on its size and slowness, and a line in the log and the metrics, no contents."""

from __future__ import annotations

import json
import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, TypeAlias

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from lessonbank._base.bodies import Body
from lessonbank._version import VERSION
from lessonbank.contracts.records.ids import new_id
from lessonbank.http.client.operations import API

from .metrics import Metrics
from .problems import unexpected
from .tracing import Spans

Message: TypeAlias = MutableMapping[str, Any]
log = logging.getLogger("lessonbank.server")
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
    values: int = 200_000
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

        async def send_logged(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                known = {name for name, _ in message["headers"]}
                more = [*_HEADERS, (b"lessonbank-request", id.encode())]
                message["headers"] = [*message["headers"], *(header for header in more if header[0] not in known)]
            await send(message)

        with self._metrics.busy(), self._spans.around(scope) as span:
            try:
                await self._app(scope, self._body(scope, receive), send_logged)
            except ClientDisconnect:
                pass  # nobody is there who could be answered
            except Exception as error:  # noqa: BLE001 - uvicorn would write into the log what the error says
                answer, span["failure"] = unexpected(error), type(error).__name__
                if not status:  # else uvicorn cuts the connection
                    await answer(scope, receive, send_logged)
            finally:
                self._note(scope, status, perf_counter() - begun, id, span)

    def _note(self, scope: Scope, status: int, seconds: float, id: str, span: dict[str, Any]) -> None:
        """One line: the route and not the address, the id of the key and not the scope."""
        route, state = getattr(scope.get("route"), "path", "none"), scope.get("state", {})
        self._metrics.answered(route=route, method=scope["method"], status=status, seconds=seconds)
        span |= {"route": route, "status": status, "role": state.get("role")}
        key = state.get("key")
        fields = {"request": id, "method": scope["method"], "route": route, "status": status, "key": key}
        log.info("%s", json.dumps({**fields, "ms": round(seconds * 1000, 1)}))

    def _body(self, scope: Scope, receive: Receive) -> Body:
        limits = self._limits
        if scope["path"].endswith("/admin/import"):
            return Body(scope, receive, most=limits.file, pause=limits.pause, seconds=limits.file_seconds)
        return Body(scope, receive, most=limits.body, pause=limits.pause, seconds=limits.body_seconds)

"""Bounds each request over HTTP, and ends it when its key does: a stream of events stays open for hours."""

from __future__ import annotations

from functools import partial
from typing import Final

import anyio
from anyio import CancelScope, to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lessonbank._base.bodies import Body
from lessonbank.errors import TooLarge
from lessonbank.text.bounded_json import check_shape

from .keys import Keys

_MOST: Final = 4 * 1024 * 1024
"""Bytes of a request, as many as the SDK takes."""
_VALUES: Final = 20_000
_DEPTH: Final = 200
_LOOKS: Final = 0.5
"""Seconds between two looks at the key of a request that goes on."""


class Bounded:
    """An application whose requests have bounds and last no longer than their keys, which it asks for itself."""

    def __init__(self, app: ASGIApp, keys: Keys, /) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind, _, written = Request(scope).headers.get("authorization", "").partition(" ")
        key = written.strip() if kind.lower() == "bearer" else ""
        receive = partial(_read_body, Body(scope, receive, most=_MOST))
        if not key or await self._keys.verify_token(key) is None:
            await self._app(scope, receive, send)
            return
        answer, is_done = _Answer(send), False
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_it_ends, key, group.cancel_scope)
            await self._app(scope, receive, answer.send)
            is_done = True
            group.cancel_scope.cancel()
        if not is_done:
            await answer.end()

    async def _until_it_ends(self, key: str, request: CancelScope) -> None:
        while await self._keys.verify_token(key) is not None:
            await anyio.sleep(_LOOKS)
        request.cancel()


class _Answer:
    """What was sent of an answer, so that one that is broken off ends as it should."""

    def __init__(self, send: Send, /) -> None:
        self._send, self._is_begun, self._is_over = send, False, False

    async def send(self, message: Message) -> None:
        """See ASGI."""
        self._is_begun = True
        self._is_over = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self) -> None:
        """End it, where the application cannot any more."""
        if not self._is_begun:
            await self._send({"type": "http.response.start", "status": 401, "headers": [(b"content-length", b"0")]})
        if not self._is_over:
            await self._send({"type": "http.response.body", "body": b""})


async def _read_body(body: Body) -> Message:
    """The whole body, if it is one. Raises HTTPException."""
    pieces = list[bytes]()
    while (message := await body())["type"] == "http.request":
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    else:
        return message
    whole = b"".join(pieces)
    if b"\0" in whole:  # UTF-16 would hide what is counted
        raise HTTPException(400, "the body is no JSON in UTF-8")
    try:
        await to_thread.run_sync(partial(check_shape, whole, values=_VALUES, depth=_DEPTH))
    except TooLarge as error:
        raise HTTPException(413, str(error)) from None
    return {"type": "http.request", "body": whole, "more_body": False}

"""Forwards requests to the one upstream and responses back, byte for byte and as they arrive."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes

import anyio

from lessonbank._base.loopback import DIRECT
from lessonbank.errors import MissingExtra, UsageError
from lessonbank.guard.quote import quoted

from .answers import READABLE
from .conversations import GONE
from .dialects import Dialect, dialect_of
from .entrance import Entrance, Refused, Whose
from .remembering import Exchange, Remembering

try:
    import httpx2
    from starlette.types import Receive, Scope, Send
except ImportError as missing:
    raise MissingExtra("the proxy (starlette, httpx2)", extra="proxy") from missing

log = logging.getLogger("lessonbank")
Headers: TypeAlias = list[tuple[bytes, bytes]]
_OWN: Final = b"x-lessonbank-"
_HOP: Final = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
"""Headers of one connection alone."""
_REPLACED: Final = frozenset((b"host", b"expect"))
_SLOWEST: Final = 120.0
"""Seconds for as much of a request as memory looks at."""
_CONNECT: Final = 10.0
"""Seconds to reach the upstream. For the answer the client decides how long it waits."""


class _ClientGone(Exception):  # noqa: N818 - reads as what it is
    pass


class Forwarder:
    """An ASGI application that is the upstream to its clients.

    Args:
        upstream: where requests go, such as `https://api.openai.com`. A path in it comes before that of a request, if
            the request does not have it already.
        entrance: who may use it.
        remembering: what adds lessons and follows runs.
        most: bytes of a request that memory looks at. A larger one passes through untouched.

    Raises:
        UsageError: the upstream is no http or https address.
    """

    def __init__(
        self, upstream: str, /, *, entrance: Entrance, remembering: Remembering, most: int = 8 * 1024 * 1024
    ) -> None:
        self._upstream = _address(upstream)
        self._entrance, self._remembering, self._most = entrance, remembering, most
        self._client = httpx2.AsyncClient(
            timeout=httpx2.Timeout(None, connect=_CONNECT),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
            follow_redirects=False,
            mounts=DIRECT,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # the cookies of one client are not another's
        )

    async def close(self) -> None:
        """Close the connections to the upstream."""
        await self._client.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            target, path = self._target(scope)
            whose = self._entrance.whose(headers)
        except Refused as refusal:
            await send_error(send, refusal.status, str(refusal))
            return
        try:
            dialect = _follow(scope["method"], path, headers)
            with anyio.fail_after(_SLOWEST):
                begun, rest = await _body(receive, headers, most=self._most if dialect else 0)
        except TimeoutError:
            await send_error(send, 408, f"the body took more than {_SLOWEST:g} seconds")
            return
        except _ClientGone:
            return
        try:
            exchange = await self._follow(dialect, begun, headers, whose) if dialect and rest is None else None
            await self._forward(scope, target, begun, rest, exchange, receive, send)
        except _ClientGone:
            return

    async def _follow(self, dialect: Dialect, body: bytes, headers: Mapping[str, str], whose: Whose) -> Exchange | None:
        try:
            return await self._remembering.open(dialect, body, headers, whose=whose)
        except Exception as problem:  # noqa: BLE001 - whatever memory meets in a request, the request goes on
            log.warning("a request goes on without memory: %s: %s", type(problem).__name__, quoted(problem))
            return None

    async def _forward(
        self,
        scope: Scope,
        target: httpx2.URL,
        begun: bytes,
        rest: _Rest | None,
        exchange: Exchange | None,
        receive: Receive,
        send: Send,
    ) -> None:
        """Send the request on and its response back; a client that goes away ends both."""
        content = rest.after(begun) if rest else exchange.body if exchange else begun
        headers = _outgoing(scope["headers"], exchange)
        request = httpx2.Request(scope["method"], target, headers=headers, content=content or None)
        async with anyio.create_task_group() as group:

            async def until_gone() -> None:
                if rest:
                    await rest.is_over.wait()
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(until_gone)
            await self._relay(request, exchange, send)
            group.cancel_scope.cancel()

    async def _relay(self, request: httpx2.Request, exchange: Exchange | None, send: Send) -> None:
        problem, has_begun = GONE, False
        try:
            response = await self._client.send(request, stream=True)
            try:
                await send(_start(response, exchange))
                has_begun = True
                async for chunk in response.aiter_raw():
                    if exchange:
                        exchange.take(chunk)
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                problem = ""
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
            if exchange:  # before the client can know that the response is over
                exchange.end()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except httpx2.TransportError as error:
            problem = f"the model's server could not be reached or broke off ({type(error).__name__})"
            log.warning("%s", problem)
            if not has_begun:
                await send_error(send, 502, problem)
            # What has begun is left open: the server then cuts the connection, as the upstream did.
        finally:
            if exchange:
                exchange.end(problem)

    def _target(self, scope: Scope) -> tuple[httpx2.URL, str]:
        """Where a request goes: a place of the upstream, whatever it asks for.

        Raises:
            Refused: a target that is no path, or one that leaves its folder.
        """
        raw: bytes = scope.get("raw_path") or b""
        if not raw.startswith(b"/") or not {b".", b".."}.isdisjoint(unquote_to_bytes(raw).split(b"/")):
            raise Refused(400, "this proxy forwards paths to its upstream, and this is none")
        base = self._upstream.raw_path.rstrip(b"/")
        path = raw if raw.startswith(base + b"/") else base + raw
        query: bytes = scope["query_string"]
        return self._upstream.copy_with(raw_path=path + (b"?" + query if query else b"")), path.decode("latin-1")


class _Rest:
    """What follows of a request that is not held whole."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_over = anyio.Event()

    async def after(self, begun: bytes) -> AsyncIterator[bytes]:
        if begun:
            yield begun
        more = True
        while more:
            chunk, more = await _chunk(self._receive)
            yield chunk
        self.is_over.set()


async def send_error(send: Send, status: int, sentence: str) -> None:
    """An error of the proxy itself, in the form in which clients of these APIs read errors."""
    error = {"type": "error", "error": {"type": "lessonbank_proxy", "message": f"lessonbank proxy: {sentence}"}}
    body = json.dumps(error).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _body(receive: Receive, headers: Mapping[str, str], *, most: int) -> tuple[bytes, _Rest | None]:
    """The body of a request, or its beginning and the rest where it is longer than `most`."""
    if "content-length" not in headers and "transfer-encoding" not in headers:
        return b"", None
    chunks: list[bytes] = []
    size, more = 0, True
    while more and size < most:
        chunk, more = await _chunk(receive)
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks), _Rest(receive) if more else None


async def _chunk(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _ClientGone
    return message.get("body", b""), message.get("more_body", False)


def _follow(method: str, path: str, headers: Mapping[str, str]) -> Dialect | None:
    """The API of a request that memory takes part in. One with an origin comes from a web page: anybody's words."""
    plain = headers.get("content-encoding", "identity") == "identity" and "origin" not in headers
    is_json = "json" in headers.get("content-type", "json")
    return dialect_of(path) if method == "POST" and plain and is_json else None


def _address(upstream: str) -> httpx2.URL:
    try:
        url = httpx2.URL(upstream)
    except (httpx2.InvalidURL, TypeError):
        url = httpx2.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.query or url.userinfo:
        raise UsageError("the upstream is an address such as https://api.openai.com, without a key or a query in it")
    return url


def _outgoing(headers: Headers, exchange: Exchange | None) -> Headers:
    """The client's headers for the upstream: not those of its connection, and none of ours."""
    own = [(name, value) for name, value in _end_to_end(headers) if not name.startswith(_OWN)]
    client_headers = [(name, value) for name, value in own if name not in _REPLACED]
    if exchange is None:
        return client_headers
    changed = {b"content-length": str(len(exchange.body)).encode()}
    if encodings := dict(client_headers).get(b"accept-encoding"):
        changed[b"accept-encoding"] = _readable(encodings)
    return [(name, value) for name, value in client_headers if name not in changed] + list(changed.items())


def _readable(encodings: bytes) -> bytes:
    """Return the encodings that can be read here."""
    offered = [each.strip() for each in encodings.decode("latin-1").split(",")]
    return ", ".join(e for e in offered if e.partition(";")[0].lower() in READABLE).encode() or b"identity"


def _start(response: httpx2.Response, exchange: Exchange | None) -> dict[str, Any]:
    if exchange:
        exchange.answered(response.status_code, response.headers)
    headers = [(name.lower(), value) for name, value in response.headers.raw]
    return {"type": "http.response.start", "status": response.status_code, "headers": _end_to_end(headers)}


def _end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers without those of one connection."""
    listed = list(headers)
    named = {each.strip().lower() for name, value in listed if name == b"connection" for each in value.split(b",")}
    return [(name, value) for name, value in listed if name not in _HOP and name not in named]

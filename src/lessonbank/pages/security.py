"""What every request passes before a page is made: its host, its origin and its session; and what every answer says."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qs

from anyio import fail_after, to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lessonbank.errors import LessonbankError

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
"""No inline script or style, nothing from elsewhere, in no frame. Pico draws its arrows from data: URLs."""
_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    # With no-referrer a browser would send `Origin: null` with the forms of these pages.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_LONGEST: Final = 1_000_000
"""Bytes of a form."""
_FIELDS: Final = 2_000
_SECONDS: Final = 30.0
"""For all of a form."""


class Refused(LessonbankError):  # noqa: N818 - reads as what it is
    """A request that no page of ours sends."""

    code = "refused"

    def __init__(self, message: str, /, *, status: int = 403) -> None:
        super().__init__(message)
        self.status = status


class Guarded:
    """The application behind it answers only hosts of the list, and every answer has the headers above."""

    def __init__(self, app: ASGIApp, /, *, hosts: Collection[str]) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request. A name that an attacker's DNS points at this machine is no host of ours."""
        if scope["type"] != "http":
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if Headers(scope=scope).get("host", "").lower() not in self._hosts:
            await answer({"type": "http.response.start", "status": 421, "headers": [(b"content-type", b"text/plain")]})
            await answer({"type": "http.response.body", "body": b"These pages are not served under this name.\n"})
            return
        await self._app(scope, receive, answer)


async def form_of(
    request: Request, /, *, csrf: str, origins: Collection[str], most: int = _LONGEST
) -> dict[str, list[str]]:
    """The fields of a form that a page of ours sent, each with its values. `most`: bytes. Raises Refused."""
    if request.headers.get("origin", "").lower() not in origins:
        raise Refused("this form was not sent by a page of this address: open the page here and try again")
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise Refused("this is not a form of these pages", status=415)
    body = await _body(request, most=most)
    try:
        fields = await to_thread.run_sync(_fields, body)
    except ValueError:
        raise Refused("this is not a form of these pages", status=400) from None
    if not hmac.compare_digest(fields.get("csrf", [""])[0].encode("utf-8", "replace"), csrf.encode()):
        raise Refused("this form is from another session: reload the page and try again")
    return fields


async def _body(request: Request, *, most: int) -> bytes:
    body = bytearray()
    try:
        with fail_after(_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise Refused("the form is too long: shorten the text", status=413)
    except TimeoutError:
        raise Refused(f"the form took more than {_SECONDS:g} seconds: send it again", status=408) from None
    return bytes(body)


def _fields(body: bytes) -> dict[str, list[str]]:
    return parse_qs(body.decode("ascii"), keep_blank_values=True, max_num_fields=_FIELDS, errors="replace")

"""Carries one call to the server and its answer back: within a deadline, again where that is safe, errors as ours."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import count
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

import anyio
import httpx2
from pydantic import ValidationError

from lessonbank._base.aio import seconds_left
from lessonbank._base.checks import argument_error
from lessonbank._base.loopback import DIRECT, LOOPBACK
from lessonbank._version import VERSION
from lessonbank.contracts.records import Json
from lessonbank.contracts.records.ids import new_id
from lessonbank.errors import (
    LessonbankError,
    StoreError,
    StoreUnavailable,
    TransientModelError,
    UsageError,
    VersionMismatch,
    printable,
)
from lessonbank.guard.quote import quoted

from .operations import API

log: Final = logging.getLogger("lessonbank")
_PAUSE: Final = 0.2
"""Seconds before the second try; each further pause is twice as long."""
_LONGEST_PAUSE: Final = 5.0
_QUIET_TRIES: Final = 3
"""Tries that fail until a warning says so."""
_CONNECTING: Final = 3.0
"""Seconds in which a connection is made, or is not."""
_PREPARING: Final = 1800.0
"""Seconds in which a server begins to answer with a file, or has read the one that it was sent."""
_QUIET: Final = 60.0
"""Seconds without a piece after which a stream that began has ended. A server that is alive sends one every 15."""
_AGAIN: Final = frozenset({429, 502, 503, 504})
_MEANS: Final = {401: "unauthenticated", 403: "not_allowed", 413: "too_large", 429: "rate_limited"}
"""What an answer means that a proxy before the server wrote."""


class Connection:
    """Connections to one server, with a pool for each event loop that calls: after a fork there is another one."""

    def __init__(self, url: str, /, *, key: str | None, timeout: float) -> None:
        self.key = key.strip() if key else key  # files and environments put a newline behind it
        self.url, self._timeout = _checked(url, self.key), timeout
        self._is_used, self._most = False, math.inf
        self._pools = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient]()
        self._waits = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, set[anyio.CancelScope]]()

    async def send(
        self,
        method: str,
        path: str,
        /,
        *,
        headers: Mapping[str, str],
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        seconds: float | None = None,
    ) -> httpx2.Response:
        """The server's answer, where it is a good one: it is asked for until `seconds` are over, else the time limit.

        Every request names itself, so that the server does once what is sent twice. Raises what the server says, or
        StoreUnavailable.
        """
        seconds, waits = (
            min(seconds or self._timeout, self._most),
            self._waits.setdefault(asyncio.get_running_loop(), set()),
        )
        all_headers = {**headers, "Content-Type": "application/json", "Idempotency-Key": new_id()}
        try:
            with anyio.fail_after(seconds) as wait:
                waits.add(wait)
                try:
                    return await self._tried(method, path, headers=all_headers, params=query or {}, content=body)
                finally:
                    waits.discard(wait)
        except TimeoutError:
            raise StoreUnavailable(f"the server at {self.url} gave no answer within {seconds:g} seconds") from None

    async def _tried(self, method: str, path: str, /, **request: Any) -> httpx2.Response:
        """The answer of the first try that has one. Where no time is left for another, what the last one met."""
        for attempt in count():
            asked_to_wait = 0.0
            try:
                answer = await self._pool().request(method, self.url + path, **request)
            except httpx2.InvalidURL as error:
                raise UsageError(f"the arguments make no address ({printable(error, most=80)}): shorten them") from None
            except (httpx2.HTTPError, OSError) as error:
                problem = self._unreachable(error)
            else:
                if answer.status_code not in _AGAIN or not _says_again(answer):
                    return self._checked(answer)
                problem = _error(answer, self.url)
                asked_to_wait = _seconds(answer.headers.get("retry-after"))
            left = seconds_left()
            if left < max(_PAUSE, asked_to_wait):
                raise problem
            if attempt == _QUIET_TRIES:
                log.warning("%s: it is tried again for %.0f seconds", problem, left)
            pause = min(_PAUSE * 2 ** min(attempt, 9), _LONGEST_PAUSE, left / 2)
            await anyio.sleep(max(pause, asked_to_wait))
        raise AssertionError("it returns or raises")  # pragma: no cover

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        /,
        *,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        body: AsyncIterator[bytes] | None = None,
    ) -> AsyncGenerator[httpx2.Response]:
        """A file or events that come, or a file that goes; once, because nobody keeps it for a second try.

        Raises StoreUnavailable, also where the server falls silent in the middle.
        """
        all_headers = {**headers, "Content-Type": "application/octet-stream"}
        limits = httpx2.Timeout(_QUIET, connect=_CONNECTING, read=_PREPARING)
        try:
            request = self._pool().stream(
                method, self.url + path, headers=all_headers, params=query, content=body, timeout=limits
            )
            async with request as answer:
                answer.stream = _Pieces(cast("httpx2.AsyncByteStream", answer.stream))
                if answer.is_error:
                    await answer.aread()
                yield self._checked(answer)
        except _Silent:
            raise StoreUnavailable(f"the server at {self.url} sent nothing for {_QUIET:g} seconds") from None
        except (httpx2.HTTPError, OSError) as error:
            raise self._unreachable(error) from None

    def hurry(self, seconds: float, /) -> None:
        """Wait for no answer longer than so many seconds from now on, also where this event loop waits already."""
        self._most, until = seconds, anyio.current_time() + seconds
        for wait in self._waits.get(asyncio.get_running_loop(), ()):
            wait.deadline = min(wait.deadline, until)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.aclose()

    def _pool(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            headers = {"Lessonbank-Api": str(API), "User-Agent": f"lessonbank/{VERSION}"}
            if self.key:
                headers["Authorization"] = f"Bearer {self.key}"
            timeout = httpx2.Timeout(None, connect=_CONNECTING)
            # Only the first loop keeps connections open: one that comes later may end without closing the bank.
            limits = httpx2.Limits(max_keepalive_connections=0 if self._is_used else 20)
            self._pools[loop] = httpx2.AsyncClient(headers=headers, timeout=timeout, limits=limits, mounts=DIRECT)
            self._is_used = True
        return self._pools[loop]

    def _unreachable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(f"the server at {self.url} cannot be reached: {type(error).__name__}: {quoted(error)}")

    def _checked(self, answer: httpx2.Response) -> httpx2.Response:
        if answer.is_success:
            return answer
        raise _error(answer, self.url)


class _Silent(Exception):  # noqa: N818
    """Nothing came for too long."""


class _Pieces(httpx2.AsyncByteStream):
    """The pieces of an answer, each in its time."""

    def __init__(self, pieces: httpx2.AsyncByteStream, /) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        coming = aiter(self._pieces)
        while True:
            try:
                with anyio.fail_after(_QUIET):
                    piece = await anext(coming, None)
            except TimeoutError:
                raise _Silent from None
            if piece is None:
                return
            yield piece

    async def aclose(self) -> None:
        await self._pieces.aclose()


def unreadable(error: ValidationError, answer: httpx2.Response, /) -> VersionMismatch:
    """What an answer means that this release cannot read."""
    theirs = quoted(answer.headers.get("lessonbank-version", "an unknown release"), limit=40)
    place = ".".join(map(str, error.errors(include_url=False, include_input=False)[0]["loc"]))[:80]
    return VersionMismatch(
        f"the answer of the server ({theirs}) cannot be read by {VERSION} at {place!r}: use one release"
    )


def query_of(arguments: Mapping[str, Any], /) -> dict[str, str]:
    """Arguments as the query of an address. Raises UsageError."""
    query = dict[str, str]()
    for name, value in arguments.items():
        try:
            query |= {} if value is None else {name: _word(value).encode().decode()}
        except ValueError:  # half of a surrogate pair, or a number that Python refuses to write out
            raise argument_error(
                f"{name}=", "takes whole characters, and numbers of at most 4,000 digits", value
            ) from None
    return query


def in_path(id: str, /) -> str:
    """An id as one part of a path, whatever it holds: a slash, dots, or a word that is a path of its own.

    Servers resolve one encoding before they look for slashes, so there are two.
    """
    if not id.strip("0123456789abcdef"):
        return id
    return quote("".join(f"%{byte:02X}" for byte in id.encode("utf-8", "replace")), safe="")


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, datetime) else json.dumps(value)


def _checked(url: str, key: str | None) -> str:
    """The address with which every path begins. Raises UsageError: it is none, or the key would be read on its way."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket without its other one
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise UsageError(
            "the address of a server is https://HOST, without a key or a query: give Server(url, api_key=…)"
        )
    if key and not (key.isascii() and key.isprintable()):
        raise UsageError("the key of the server has characters that no key has: copy it again")
    if parts.scheme == "http" and key and parts.hostname not in LOOPBACK:
        raise UsageError(
            f"the key would travel to {parts.hostname} unencrypted: use https://, or a tunnel to 127.0.0.1"
        )
    return f"{url.rstrip('/')}/v1"


def _says_again(answer: httpx2.Response) -> bool:
    """Whether the same request may be answered later. What a model failed at was not tried again here, either."""
    return not str(_problem(answer).get("code", "")).startswith("model")


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isascii() and text.isdigit() else 0.0


def _problem(answer: httpx2.Response) -> Mapping[str, Json]:
    try:
        body = answer.json()
    except ValueError:
        return {}
    return cast("Mapping[str, Json]", body) if isinstance(body, dict) else {}


def _error(answer: httpx2.Response, url: str) -> LessonbankError:
    """The error that the server names by its code."""
    problem = _problem(answer)
    code, detail = problem.get("code") or _MEANS.get(answer.status_code), problem.get("detail")
    kind = next((error_type for error_type in _kinds(LessonbankError) if error_type.code == code), None)
    if kind is None:
        kind = StoreUnavailable if answer.status_code >= 500 else StoreError
    sentence = str(detail) if detail else f"the server at {url} answered {answer.status_code} {answer.reason_phrase}"
    error = kind.__new__(kind)
    LessonbankError.__init__(error, sentence)
    if isinstance(error, TransientModelError):
        error.retry_after = _seconds(answer.headers.get("retry-after")) or None
    return error


def _kinds(kind: type[LessonbankError]) -> Iterator[type[LessonbankError]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from _kinds(subclass)

"""Lets the body of a request in: at most so large and so slow, and unpacked where it is packed."""

from __future__ import annotations

import zlib
from time import monotonic
from typing import Final

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope

_GZIP: Final = 31


class Body:
    """The `receive` of an application, behind bounds. Nothing is read before the application asks for it.

    `most`: bytes, packed and unpacked. `pause`: seconds between two pieces. `seconds`: for all of them.
    """

    def __init__(
        self, scope: Scope, receive: Receive, /, *, most: int, pause: float = 20.0, seconds: float = 60.0
    ) -> None:
        self._receive, self._most, self._pause, self._seconds = receive, most, pause, seconds
        self._ends, self._size, self._is_whole = 0.0, 0, False
        self._encodings = _listed(scope, b"content-encoding")
        self._declared = b"".join(_listed(scope, b"content-length"))
        self._unpack = _Unpack(most) if self._encodings else None
        if self._unpack:
            hidden = (b"content-encoding", b"content-length")
            scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in hidden]

    async def __call__(self) -> Message:
        """The next message. Raises HTTPException."""
        if self._is_whole:
            return await self._receive()
        self._check_head()
        message = await self._in_time()
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
            named = b", ".join(self._encodings).decode("latin-1")[:40]
            raise HTTPException(415, f"the Content-Encoding {named!r} is unknown here: send gzip once, or leave it out")
        if self._declared.isdigit() and int(self._declared[:20]) > self._most:
            raise _too_large(self._most)

    async def _in_time(self) -> Message:
        self._ends = self._ends or monotonic() + self._seconds
        left = self._ends - monotonic()
        if left <= 0:  # pieces that are there already would never let a timer ring
            raise self._too_slow(left)
        try:
            with anyio.fail_after(min(self._pause, left)):
                return await self._receive()
        except TimeoutError:
            raise self._too_slow(left) from None

    def _too_slow(self, left: float) -> HTTPException:
        is_pause = self._pause < left
        late = f"nothing came for {self._pause:g}" if is_pause else f"the body took more than {self._seconds:g}"
        return HTTPException(408, f"{late} seconds: send it faster, or less of it")


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

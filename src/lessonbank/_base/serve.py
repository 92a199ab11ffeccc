"""Listens on an address and runs an application there with uvicorn: the same for every server of this package."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

import uvicorn

from lessonbank.errors import StoreUnavailable

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol
else:
    from uvicorn.protocols.http.auto import AutoHTTPProtocol as HttpProtocol

_HEAD: Final = 10.0
"""Seconds for the head of a request, from its first byte or from the connection's begin."""
_STALL: Final = 60.0
"""Seconds in which a client has to take something of an answer that waits for it."""
_TURN: Final = 0.001
"""Seconds that a thread computes while another one waits for its turn, which an answer does several times."""
_WAITING: Final = 2048
"""Connections that wait to be accepted."""
_PACE: Final = 0.002
"""Seconds between two pieces of bodies that are thrown away, of all connections together: others are answered first."""


def listening(host: str, port: int, /) -> socket.socket:
    """A socket that takes connections; a port of 0 is any free one. Raises StoreUnavailable: none is there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small pieces at once only on a socket that says it is TCP: else each response waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two programs listen on one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_WAITING)
    except OSError as error:
        listener.close()
        raise StoreUnavailable(
            f"nothing can listen on {host}:{port} ({error.strerror}): choose another --port"
        ) from None
    return listener


def address(listener: socket.socket, /, *, host: str | None = None) -> str:
    """Where the socket listens as a URL, such as http://[::1]:8788. `host`: the name to call it by."""
    name, port = listener.getsockname()[:2]
    return f"http://{bracketed(host or name)}:{port}"


def bracketed(host: str, /) -> str:
    """A host as it stands in a URL: IPv6 has brackets."""
    return f"[{host}]" if ":" in host else host


class Connection(HttpProtocol):
    """uvicorn's HTTP connection, which is closed where the client lets it wait too long.

    The application limits how long the body of a request takes while it reads it. Here are the limits on the rest: a
    head, what is left of a body after its answer, and an answer that nobody takes.
    """

    _unread: ClassVar[set[Connection]] = set()
    """Connections that were answered before their body was there. A client reads no answer before it has sent all."""
    _waiting: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()
        if self in self._unread:
            self.flow.pause_reading()
            self.loop.call_later(_PACE * (len(self._unread) - 1), self.flow.resume_reading)

    def on_response_complete(self) -> None:
        is_unread = self.cycle.more_body
        super().on_response_complete()
        if is_unread:
            self._unread.add(self)
            self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(_STALL, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stalled = _cancelled(self._stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        self._waiting, self._stalled = _cancelled(self._waiting), _cancelled(self._stalled)
        self._unread.discard(self)
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Run one timer from the first byte on: a later byte does not start it again."""
        if self.cycle and not self.cycle.response_complete:
            self._waiting = _cancelled(self._waiting)
            self._unread.discard(self)
        elif self._waiting is None:
            self._waiting = self.loop.call_later(_HEAD, self.transport.abort)


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def server_of(app: Any, /, **more: Any) -> uvicorn.Server:
    """A server that is not started yet. It logs no address and no text of a request. `more`: what uvicorn takes."""
    # uvicorn's own `log_config` would close every log handler of the process.
    config = uvicorn.Config(
        app, http=Connection, ws="none", log_config=None, access_log=False, server_header=False, **more
    )
    return uvicorn.Server(config)


@contextmanager
def prompt_process() -> Generator[None]:
    """Inside, requests wait less for a thread that computes and for Python's garbage collector.

    The collector does not look at what lived before: each look at all of it takes a tenth of a second.
    """
    interval = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(interval)

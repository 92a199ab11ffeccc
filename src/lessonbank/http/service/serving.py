"""Runs the application with uvicorn: bounds on connections, an end that lets requests finish, no address in any log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import uvicorn
from anyio.from_thread import BlockingPortal, start_blocking_portal
from fastapi import FastAPI

from lessonbank._base import serve as _serving
from lessonbank._base.serve import listening
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.guard.identity import ServerRole

from .application import Limits, application
from .keys import Keys

_PATIENCE: Final = 10
"""Seconds that requests under way have when the server is told to end."""
_IDLE: Final = 30
"""Seconds after which a connection without a request is closed."""


def server_of(app: FastAPI, /) -> uvicorn.Server:
    """A server that is not started yet. It believes no header about where a request comes from."""
    return _serving.server_of(app, proxy_headers=False, timeout_keep_alive=_IDLE, timeout_graceful_shutdown=_PATIENCE)


async def serve(
    make: Callable[[str], FastAPI], /, *, host: str, port: int, ready: Callable[[str], None] | None = None
) -> None:
    """Serve what `make` makes for the address until interrupted. `ready` is called with the address, too.

    Raises StoreUnavailable: it is not free.
    """
    with closing(listening(host, port)) as listener:
        url = _serving.address(listener, host=host)
        app = make(url)
        if ready:
            ready(url)
        with _serving.prompt_process():
            await server_of(app).serve(sockets=[listener])


@dataclass(frozen=True, slots=True)
class Running:
    """A server in a thread of this process."""

    url: str
    bank: AsyncReasoningBank
    portal: BlockingPortal
    """Calls functions on the server's event loop."""

    def key(self, name: str, /, *, scope: str, role: ServerRole = "agent", **more: Any) -> str:
        """A new key."""
        return self.portal.call(partial(Keys(self.bank).add, name, scope=scope, role=role, **more))


@contextmanager
def running(
    open_bank: Callable[[], Awaitable[AsyncReasoningBank]], /, *, limits: Limits | None = None
) -> Generator[Running]:
    """Inside, a server over the bank listens on a free port of this machine: for tests and notebooks."""
    with start_blocking_portal() as portal, closing(listening("127.0.0.1", 0)) as listener:
        bank = portal.call(open_bank)
        server = server_of(application(bank, limits=limits, close=True))
        serving = portal.start_task_soon(partial(server.serve, sockets=[listener]))
        try:
            yield Running(_serving.address(listener), bank, portal)
        finally:
            server.should_exit = True
            serving.result()

"""Serves the pages of one bank to the browser of this machine: `lessonbank review`."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from anyio import CancelScope, get_cancelled_exc_class

import lessonbank
from lessonbank.errors import UsageError

from .application import application
from .sessions import Sessions

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

HOST: Final = "127.0.0.1"


async def serve(
    where: str,
    /,
    *,
    scope: str | None,
    name: str,
    port: int = 0,
    ready: Callable[[str], object],
    settings: Mapping[str, Any],
) -> None:
    """Serve the pages of the bank at `where` until the process is interrupted.

    `scope`: the one that is shown first; without, the one that holds most. `name`: who decides, for the journal.
    `ready` gets the address with its one-time token. Raises UsageError (the port is taken), StoreError.
    """
    async with await _opened(where, scope, settings) as bank:
        with closing(_bound(port)) as listening:
            at = listening.getsockname()[1]
            sessions = Sessions(name=name)
            app = application(bank, hosts=[f"{HOST}:{at}", f"localhost:{at}"], sessions=sessions)
            # No access log: it would keep the token. No server header, no reloading, no websockets.
            config = uvicorn.Config(
                app,
                log_config=None,  # its own would close every log handler of the process
                log_level="warning",
                access_log=False,
                server_header=False,
                ws="none",
                lifespan="off",
                timeout_graceful_shutdown=2,
            )
            ready(f"http://{HOST}:{at}/open?token={sessions.new_token()}")
            await _running(uvicorn.Server(config), listening)


async def _running(server: uvicorn.Server, listening: socket.socket) -> None:
    """Until it is interrupted, or the task is cancelled: then connections are closed, too."""
    try:
        await server.serve(sockets=[listening])
    except get_cancelled_exc_class():
        with CancelScope(shield=True):
            await server.shutdown(sockets=[listening])
        raise


async def _opened(where: str, scope: str | None, settings: Mapping[str, Any]) -> AsyncReasoningBank:
    bank = await lessonbank.connect_async(where, scope=scope or "default", **settings)
    if scope is not None:
        return bank
    held = {one: (await bank.scoped(one).admin.counts()).lessons for one in await bank.admin.scopes()}
    fullest = max(held, key=lambda one: held[one], default="default")
    if fullest == "default":
        return bank
    await bank.close()
    return await lessonbank.connect_async(where, scope=fullest, **settings)


def _bound(port: int) -> socket.socket:
    """A socket of this machine alone. Raises UsageError."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen()  # a browser that is quicker than the server waits
    except OSError as error:
        listening.close()
        raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another with --port") from None
    return listening

"""Serves the pages of one bank to the browser of this machine: `lessonbank review`."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from anyio import CancelScope, get_cancelled_exc_class

import lessonbank
from lessonbank._base.serve import address, listening, server_of
from lessonbank.errors import NotAllowed, UsageError

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
    `ready` gets the address with its one-time token. Raises UsageError, StoreError.
    """
    async with await _opened(where, scope, settings) as bank:
        with closing(listening(HOST, port)) as listener:
            at = listener.getsockname()[1]
            sessions = Sessions(name=name)
            hosts, file = [f"{HOST}:{at}", f"localhost:{at}"], "" if "://" in where else where
            app = application(bank, hosts=hosts, sessions=sessions, file=file)
            server = server_of(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=2)
            ready(f"{address(listener)}/open?token={sessions.new_token()}")
            await _running(server, listener)


async def _running(server: uvicorn.Server, listener: socket.socket) -> None:
    """Until it is interrupted, or the task is cancelled: then connections are closed, too."""
    try:
        await server.serve(sockets=[listener])
    except get_cancelled_exc_class():
        with CancelScope(shield=True):
            await server.shutdown(sockets=[listener])
        raise


async def _opened(where: str, scope: str | None, settings: Mapping[str, Any]) -> AsyncReasoningBank:
    bank = await lessonbank.connect_async(where, scope=scope or "default", **settings)
    if scope is not None:
        return bank
    try:
        held = {name: (await bank.scoped(name).admin.counts()).lessons for name in await bank.admin.scopes()}
    except NotAllowed as error:
        await bank.close()
        raise UsageError(f"this key is not for the whole bank ({error}): say with --scope what is shown") from None
    fullest = max(held, key=lambda name: held[name], default="default")
    if fullest == "default":
        return bank
    await bank.close()
    return await lessonbank.connect_async(where, scope=fullest, **settings)

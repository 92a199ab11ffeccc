"""The server over HTTP: who may call it, and from where. Whoever has a key reads and writes the scope of that key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

from mcp.server.transport_security import TransportSecuritySettings

from lessonbank._base.loopback import LOOPBACK
from lessonbank._base.serve import address, bracketed, listening, prompt_process, server_of
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.errors import UsageError

from .app import Server
from .keys import Keys as Keys
from .memory import Memory
from .offer import memory_of
from .requests import Bounded

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lessonbank.wiring import Place

_PATIENCE: Final = 5
"""Seconds that open connections have when the server is told to end."""


async def serve_http(
    where: Place,
    /,
    *,
    scope: str,
    keys: Keys,
    host: str = "127.0.0.1",
    port: int = 8765,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    ready: Callable[[str], None] | None = None,
    retrieve: RetrieveOptions | None = None,
    without: Collection[str] | None = None,
    tells: bool = False,
    **settings: Any,
) -> None:
    """Serve over streamable HTTP at `http://host:port/mcp` until interrupted. `ready` is called with that address.

    A request is refused unless its `Host` is this machine's loopback name or one of `allowed_hosts`, so that no web
    page can reach the server through a name of its own; a browser's `Origin` has to be one of `allowed_origins`.

    Raises:
        UsageError: the server would listen on every address, and `allowed_hosts` names none.
        StoreUnavailable: the address is not free.
    """
    if host not in LOOPBACK and not allowed_hosts:
        raise UsageError(f"a server on {host} needs the names it is called by: give --allow-host NAME:PORT")
    memory = memory_of(
        where, scope=scope, scopes=keys.scopes, retrieve=retrieve, without=without, tells=tells, **settings
    )
    app = application(memory, keys=keys, host=host, allowed_hosts=allowed_hosts, allowed_origins=allowed_origins)
    with closing(listening(host, port)) as listener:
        async with memory.serving():
            if ready:
                ready(f"{address(listener, host=host)}/mcp")
            with prompt_process():
                await server_of(app, timeout_graceful_shutdown=_PATIENCE).serve(sockets=[listener])


def application(
    memory: Memory,
    /,
    *,
    keys: Keys,
    host: str,
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
) -> ASGIApp:
    """The tools over HTTP, for a server that speaks ASGI. `host`: where it listens."""
    security = TransportSecuritySettings(
        allowed_hosts=[*(f"{bracketed(name)}:*" for name in LOOPBACK), *allowed_hosts],
        allowed_origins=list(allowed_origins),
    )
    return Bounded(Server(memory).app(keys, host=host, security=security), keys)

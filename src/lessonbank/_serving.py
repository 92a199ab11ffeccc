"""Listens on an address and runs an application there with uvicorn: the same for every server of this package."""

from __future__ import annotations

import os
import socket
from typing import Any

import uvicorn


def listening(host: str, port: int, /, *, backlog: int = 512) -> socket.socket:
    """A socket that takes connections; a port of 0 is any free one. `backlog`: how many wait to be accepted.

    Raises:
        OSError: nothing can listen there.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small pieces at once only on a socket that says it is TCP: else each response waits 40 ms.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let two programs listen on one port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(backlog)
    except OSError:
        found.close()
        raise
    return found


def address(listener: socket.socket, /, *, host: str | None = None) -> str:
    """Where the socket listens as a URL, such as http://[::1]:8788. `host`: the name to call it by."""
    name, port = listener.getsockname()[:2]
    return f"http://{bracketed(host or name)}:{port}"


def bracketed(host: str, /) -> str:
    """A host as it stands in a URL: IPv6 has brackets."""
    return f"[{host}]" if ":" in host else host


def server_of(app: Any, /, **more: Any) -> uvicorn.Server:
    """A server that is not started yet. It logs no address and no text of a request. `more`: what uvicorn takes."""
    # uvicorn's own `log_config` would close every log handler of the process.
    config = uvicorn.Config(app, log_config=None, access_log=False, server_header=False, **more)
    return uvicorn.Server(config)

"""A bank behind a URL: which settings are its server's, and which key opens it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lessonbank.contracts.settings import File, Server
from lessonbank.errors import UsageError, importing

if TYPE_CHECKING:
    from lessonbank.bank.loop import AsyncReasoningBank

_SCHEMES = ("https://", "http://")
KEY = "LESSONBANK_API_KEY"


def is_remote(where: File | Server, /) -> bool:
    """Whether a place is the address of a server over HTTP."""
    return str(where.url if isinstance(where, Server) else where.path).lower().startswith(_SCHEMES)


def open_remote(where: File | Server, /, *, scope: str, **settings: object) -> AsyncReasoningBank:
    """The bank that a server keeps. Nothing is asked of it yet: an agent may start before its server does.

    Raises:
        UsageError: a setting that the server decides, or an address that is none.
        MissingExtra: the HTTP client is not installed.
    """
    names = [name for name, value in settings.items() if value is not None]
    if names:
        raise UsageError(f"{names[0]}= is decided where the server runs (`lessonbank serve`): leave it out here")
    if isinstance(where, File) and where.read_only:
        raise UsageError("File(read_only=) is for a file or a database: what a key may do, its server decides")
    server = where if isinstance(where, Server) else Server(str(where.path))
    with importing("a bank over HTTP", extra="client"):
        from lessonbank.http.client.bank import RemoteBank
    return RemoteBank(server, scope=scope, key=server.api_key or os.environ.get(KEY) or None)

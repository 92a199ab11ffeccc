"""The server over HTTP: who may call it, and from where. Whoever has a key reads and writes the scope of that key."""

from __future__ import annotations

import hashlib
import hmac
import socket
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.provider import AccessToken
from mcp.server.transport_security import TransportSecuritySettings

from lessonbank import connect_async
from lessonbank._serving import address, bracketed, listening, server_of
from lessonbank.arguments import named
from lessonbank.errors import StoreUnavailable, UsageError
from lessonbank.guard import check_scope
from lessonbank.guard.identity import of_scope_key

from .app import Server
from .memory import Memory
from .tools import SCOPE, WRITER

if TYPE_CHECKING:
    from lessonbank.wiring import Place

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
_PATIENCE: Final = 5
"""Seconds that open connections have when the server is told to end."""
_SHORTEST: Final = 16
"""Characters of a key: a shorter one can be guessed."""


class Keys:
    """Which key opens which scope. Only digests are kept, and every one is compared, in a time that tells nothing."""

    def __init__(self, scopes: Mapping[str, str], /) -> None:
        if not scopes:
            raise UsageError("a server over HTTP needs a key: set LESSONBANK_MCP_KEY, or give a file of keys")
        if any(len(key) < _SHORTEST for key in scopes):
            raise UsageError(f"a key has at least {_SHORTEST} characters: make one with `openssl rand -hex 32`")
        self._scopes = {_digest(key): check_scope(scope) for key, scope in scopes.items()}
        self._holders = Counter(self._scopes.values())

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that keys open, each once."""
        return tuple(dict.fromkeys(self._scopes.values()))

    @classmethod
    def read(cls, path: Path, /, *, scope: str) -> Keys:
        """Keys of a file: one on each line, with its scope behind it or else for `scope`. Raises UsageError."""
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the keys in {named(path)} cannot be read: {type(error).__name__}") from None
        found = dict[str, str]()
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) > 2 or words[0] in found:
                raise UsageError(f"line {number} of {named(path)} is not `KEY SCOPE` with a key of its own")
            found[words[0]] = words[1] if len(words) == 2 else scope
        return cls(found)

    async def verify_token(self, token: str) -> AccessToken | None:
        """What the SDK keeps of a caller: the scope, a name for its sessions, and the writer it counts as."""
        digest, found = _digest(token), None
        for known, scope in self._scopes.items():
            if hmac.compare_digest(known, digest):
                found = scope
        if found is None:
            return None
        writer = of_scope_key("mcp", digest, holders=self._holders[found])
        return AccessToken(token="", client_id=digest[:16], scopes=[], claims={SCOPE: found, WRITER: writer})


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


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
    memory = Memory(partial(connect_async, where, scope=scope, **settings), scopes=keys.scopes)
    security = TransportSecuritySettings(
        allowed_hosts=[*(f"{bracketed(name)}:*" for name in LOOPBACK), *allowed_hosts],
        allowed_origins=list(allowed_origins),
    )
    app = Server(memory, keys=keys).streamable_http_app(host=host, transport_security=security)
    with closing(_listening(host, port)) as listener:
        await memory.ready()
        if ready:
            ready(f"{address(listener, host=host)}/mcp")
        await server_of(app, timeout_graceful_shutdown=_PATIENCE).serve(sockets=[listener])


def _listening(host: str, port: int) -> socket.socket:
    try:
        return listening(host, port)
    except OSError as error:
        raise StoreUnavailable(f"nothing can listen on {host}:{port}: {error.strerror}") from None

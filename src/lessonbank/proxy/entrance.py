"""Decides who may use a proxy, and whose memory a request gets: by the proxy's own keys, never by what is said."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from lessonbank._base.checks import short_path
from lessonbank.errors import UsageError
from lessonbank.guard.identity import of_scope_key
from lessonbank.guard.scope import check_scope

KEY: Final = "x-lessonbank-key"
_SHORTEST: Final = 16
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Refused(Exception):  # noqa: N818 - reads as what it is
    """A request that goes no further. `status` is the HTTP status."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Whose(NamedTuple):
    """Whose memory a request gets, and as whom it counts there."""

    scope: str
    writer: str = ""
    """The identity of one of several who have keys of the scope; empty: the process."""


class Entrance:
    """One scope for everybody on this machine, or a scope for each key.

    Args:
        scope: whose memory it is, where there are no keys.
        keys: from key to scope. Only hashes are held.
        is_local: nobody but this machine reaches the proxy. Then it answers only to names of this machine, so that no
            web page can reach it under a name of its own.

    Raises:
        UsageError: a scope that cannot be, a short key, no keys although others reach the proxy, or keys and a scope.
    """

    def __init__(self, scope: str | None, /, *, keys: Mapping[str, str] | None = None, is_local: bool = True) -> None:
        if (scope is None) == (keys is None):
            raise UsageError("a proxy needs one scope, or a scope for each key: give --scope or --keys")
        if keys is None and not is_local:
            raise UsageError("other machines would reach this proxy without a key: give --keys, or listen on 127.0.0.1")
        if any(len(key) < _SHORTEST for key in keys or ()):
            raise UsageError(f"a key of the proxy has fewer than {_SHORTEST} characters: use a longer, random one")
        self._scope, self._is_local = scope and check_scope(scope), is_local
        self._keys = {_hash(key): check_scope(name) for key, name in (keys or {}).items()}
        self._holders = Counter(self._keys.values())

    @property
    def scopes(self) -> tuple[str, ...]:
        """Every scope there is."""
        return (self._scope,) if self._scope else tuple(dict.fromkeys(self._keys.values()))

    def whose(self, headers: Mapping[str, str], /) -> Whose:
        """Whose memory a request gets.

        Raises:
            Refused: no key, an unknown key, or a host name that is not this machine's.
        """
        host = headers.get("host", "").lower()
        if self._is_local and _name_of(host) not in _LOCAL:
            raise Refused(421, "this proxy answers to localhost and 127.0.0.1 only")
        if self._scope:
            return Whose(self._scope)
        digest = _hash(headers.get(KEY, ""))
        scope = self._keys.get(digest)
        if scope is None:
            raise Refused(401, f"this proxy needs its own key in the header {KEY}")
        return Whose(scope, of_scope_key("proxy", digest.hex(), holders=self._holders[scope]))


def read_keys(path: Path, /) -> dict[str, str]:
    """A file of keys: a JSON object from key to scope.

    Raises:
        UsageError: it cannot be read, or holds something else.
    """
    try:
        content: Any = json.loads(path.expanduser().read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"the keys in {short_path(path)} cannot be read: write a JSON object from key to scope"
        ) from error
    keys = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    if not keys or not all(isinstance(scope, str) for scope in keys.values()):
        raise UsageError(f"{short_path(path)} holds no keys: write a JSON object from key to scope")
    return keys


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


def _name_of(host: str) -> str:
    return host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]

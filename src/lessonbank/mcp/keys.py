"""Which key opens which scope, and who may still call: a key that is taken out of the file opens nothing any more."""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from anyio import to_thread
from mcp.server.auth.provider import AccessToken

from lessonbank._base.checks import short_path
from lessonbank.errors import UsageError
from lessonbank.guard import check_scope
from lessonbank.guard.identity import of_scope_key

from .tools import SCOPE, WRITER

log = logging.getLogger("lessonbank")
_SHORTEST: Final = 16
"""Characters of a key: a shorter one can be guessed."""


class Keys:
    """Which key opens which scope. Only digests are kept, and every one is compared, in a time that tells nothing."""

    def __init__(self, scopes: Mapping[str, str], /) -> None:
        self._file: _File | None = None
        self._set(scopes)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes that keys open, each once."""
        return tuple(dict.fromkeys(self._scopes.values()))

    @classmethod
    def read(cls, path: Path, /, *, scope: str) -> Keys:
        """Keys of a file: one on each line, with its scope behind it or else for `scope`.

        The file is read again when it changes. Raises UsageError.
        """
        file = _File(path, scope)
        keys = cls(file.read())
        keys._file = file
        return keys

    async def verify_token(self, token: str) -> AccessToken | None:
        """What the SDK keeps of a caller: the scope, a name for its sessions, and the writer it counts as."""
        if self._file is not None:
            await to_thread.run_sync(self._read_again, self._file)
        digest, own_scope = _digest(token), None
        for known, scope in self._scopes.items():
            if hmac.compare_digest(known, digest):
                own_scope = scope
        if own_scope is None:
            return None
        writer = of_scope_key("mcp", digest, holders=self._holders[own_scope])
        return AccessToken(token="", client_id=digest[:16], scopes=[], claims={SCOPE: own_scope, WRITER: writer})

    def _read_again(self, file: _File) -> None:
        """The keys of before stay where the file cannot be read, or while somebody is writing it."""
        if not file.has_changed():
            return
        try:
            self._set(file.read())
        except UsageError as error:
            log.warning("the keys of before stay: %s", error)

    def _set(self, scopes: Mapping[str, str]) -> None:
        if not scopes:
            raise UsageError("a server over HTTP needs a key: set LESSONBANK_MCP_KEY, or give a file of keys")
        if any(len(key) < _SHORTEST for key in scopes):
            raise UsageError(f"a key has at least {_SHORTEST} characters: make one with `openssl rand -hex 32`")
        self._scopes = {_digest(key): check_scope(scope) for key, scope in scopes.items()}
        self._holders = Counter(self._scopes.values())


class _File:
    """A file of keys, and what it looked like when it was read last."""

    def __init__(self, path: Path, scope: str, /) -> None:
        self._path, self._scope = path, scope
        self._seen = self._look()

    def has_changed(self) -> bool:
        """Whether the key file is another one than before; asked once of each."""
        before, self._seen = self._seen, self._look()
        return self._seen != before

    def read(self) -> dict[str, str]:
        """From key to scope. Raises UsageError."""
        try:
            lines = self._path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the keys in {short_path(self._path)} cannot be read: {type(error).__name__}") from None
        scopes = dict[str, str]()
        for number, line in enumerate(lines, 1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if len(words) > 2 or words[0] in scopes:
                raise UsageError(f"line {number} of {short_path(self._path)} is not `KEY SCOPE` with a key of its own")
            scopes[words[0]] = words[1] if len(words) == 2 else self._scope
        return scopes

    def _look(self) -> tuple[int, int, int]:
        try:
            status = self._path.stat()
        except OSError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_size, status.st_ino)


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

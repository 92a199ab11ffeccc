"""Remembers where a person switched memory off: in a session, or in a repository. Nothing is shown or learned there."""

from __future__ import annotations

import fcntl
import json
import time
from pathlib import Path
from typing import Any, Final

from . import client

_KEPT_FOR: Final = 30 * 24 * 3600.0
"""Seconds that a session is remembered for."""


class Switches:
    """The switches of a person for all programs and banks, in one file: to install in another way leaves them."""

    def __init__(self, folder: Path, /) -> None:
        self._file = folder / "off"

    def is_off(self, *, session: str = "", scope: str = "") -> bool:
        """Whether memory is off in this session or in this scope."""
        switches = self._read()
        return session in switches["sessions"] or (bool(scope) and scope in switches["scopes"])

    def set(self, *, session: str = "", scope: str = "", off: bool) -> str:
        """Switch a session or a scope; a sentence about it. Raises OSError."""
        key, name = ("sessions", session) if session else ("scopes", scope)
        with self._file.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            switches = self._read()
            switches[key].pop(name, None)
            switches[key] |= {name: time.time()} if off else {}
            recent = time.time() - _KEPT_FOR
            switches["sessions"] = {session_id: at for session_id, at in switches["sessions"].items() if at > recent}
            client.write_private(str(self._file), dict(switches))
        where = "in this session" if session else "in this repository"
        return f"memory is {'off' if off else 'on'} {where}{': nothing is shown or learned' if off else ''}"

    def _read(self) -> dict[str, dict[str, float]]:
        """A file that is broken says nothing."""
        try:
            switches: Any = json.loads(self._file.read_bytes())
            return {key: {str(name): float(at) for name, at in switches[key].items()} for key in ("sessions", "scopes")}
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return {"sessions": {}, "scopes": {}}

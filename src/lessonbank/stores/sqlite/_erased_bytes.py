"""Erases what deleted rows left in a file, without writing the whole file again."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from . import _unused_bytes

_SMALL: Final = 4096
"""Pages of a file that is written again sooner than a process starts."""
_SHARE: Final = 4
"""One page in so many that is free is worth writing the file again: this gives the room back."""


def overwrite_unused(connection: sqlite3.Connection, path: Path, /, *, patience: float) -> bool:
    """Overwrite all that is in no row; `False` where the file must be written again instead.

    Either it is small, or mostly free, or others used its log for `patience` seconds, or no process can be started.
    """
    (pages,), (free,) = (connection.execute(f"PRAGMA {of}_count").fetchone() for of in ("page", "freelist"))
    if not _SMALL <= pages < _unused_bytes.MOST_PAGES or free * _SHARE > pages:
        return False
    with suppress(OSError, subprocess.SubprocessError):
        return _runs_files() and _overwrite(path, patience)
    return False


def _runs_files() -> bool:
    """Whether `sys.executable` is a Python, and not a program that embeds one. On Windows locks are of another kind."""
    name = Path(sys.executable or "").name
    return os.name == "posix" and name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def _overwrite(path: Path, patience: float) -> bool:
    command = [sys.executable, "-I", "-S", _unused_bytes.__file__, str(path), str(patience)]
    quiet = subprocess.DEVNULL
    done = subprocess.run(command, check=False, timeout=2 * patience + 60, stdin=quiet, stdout=quiet, stderr=quiet)
    return done.returncode == 0

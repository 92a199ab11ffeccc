"""Says whether somebody has a bank file open, where that can be known: such a file is neither replaced nor read raw."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from lessonbank.errors import StoreUnavailable

from ._database import is_open_here

try:
    import fcntl
except ImportError:  # on Windows, where nobody can replace a file that is open
    fcntl = None

_SHARED: Final = 128
"""The byte of a log's index that every connection locks as long as it lives (https://sqlite.org/walformat.html)."""


def refuse_if_open(path: Path, /) -> None:
    """Raise StoreUnavailable if this process or, on POSIX systems, another one has the bank open."""
    if is_open_here(path) or _is_open_elsewhere(path.with_name(f"{path.name}-shm")):
        raise StoreUnavailable(f"somebody has {path} open: close it everywhere first; nothing was changed")


def _is_open_elsewhere(index: Path) -> bool:
    if fcntl is None:
        return False
    try:
        with index.open("r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _SHARED)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False

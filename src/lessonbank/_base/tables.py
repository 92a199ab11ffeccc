"""Files that the package ships, such as word lists: read when a bank is opened, in a thread, so that no loop waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final, TypeVar

T = TypeVar("T")

_READERS: Final[list[Callable[[], object]]] = []


def read_once(read: Callable[[], T], /) -> Callable[[], T]:
    """Return `read` so that it reads once, and `read_tables` does so ahead of its first call."""
    reader = cache(read)
    _READERS.append(reader)
    return reader


def read_tables() -> None:
    """Read every table whose module is imported."""
    for reader in _READERS:
        reader()

"""Which store a place names."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from lessonbank.config import File, Server
from lessonbank.errors import UsageError
from lessonbank.protocols import Store


def switched_off() -> Store:
    """The store of a bank whose memory is switched off. No file is touched."""
    from lessonbank.stores.sqlite.off import SwitchedOffStore

    return SwitchedOffStore.in_memory()


async def open_store(where: str | Path | File | Server, /) -> Store:
    """The store at `where`: a file path (also `sqlite:PATH`), or `:memory:`.

    Raises:
        UsageError: no place, or one that this release has no store for.
    """
    file = where if isinstance(where, File | Server) else File(where)
    name = cast("object", file.url if isinstance(file, Server) else file.path)
    if not isinstance(name, str | Path):
        raise UsageError(f"connect needs a file path for the bank, or ':memory:'; got {type(name).__name__}")
    name = str(name)
    if isinstance(file, Server) or "://" in name:
        raise UsageError(f"{name.split('://')[0]}:// is not a store of this release: give a file path, or ':memory:'")
    if not name.strip():
        raise UsageError("connect needs a file path for the bank, or ':memory:'; got an empty text")
    from lessonbank.stores.sqlite import SqliteStore

    return await SqliteStore.open(Path(name.removeprefix("sqlite:")).expanduser(), read_only=file.read_only)

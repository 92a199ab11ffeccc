"""Which store a place names."""

from __future__ import annotations

from lessonbank.arguments import a_path, a_text, shown
from lessonbank.config import File, Server
from lessonbank.errors import UsageError
from lessonbank.protocols import Store


def switched_off() -> Store:
    """The store of a bank whose memory is switched off. No file is touched."""
    from lessonbank.stores.sqlite.off import SwitchedOffStore

    return SwitchedOffStore.in_memory()


async def open_store(file: File | Server, /) -> Store:
    """The store of a file path (also `sqlite:PATH`), or `:memory:`.

    Raises:
        UsageError: no place, or one that this release has no store for.
    """
    name = a_text(file.url, "Server(url=)") if isinstance(file, Server) else str(file.path)
    if isinstance(file, Server) or "://" in name:
        kind = shown(name.split("://")[0], most=20)
        raise UsageError(f"{kind} is not a store of this release: give a file path, or ':memory:'")
    from lessonbank.stores.sqlite import SqliteStore

    return await SqliteStore.open(a_path(name.removeprefix("sqlite:"), "connect"), read_only=file.read_only)

"""Which store a place names."""

from __future__ import annotations

from pathlib import Path

from lessonbank.errors import UsageError
from lessonbank.protocols import Store


async def open_store(where: str | Path, /) -> Store:
    """The store at `where`: a file path (also `sqlite:PATH`), or `:memory:`."""
    name = _place(where)
    if name == ":memory:":
        from lessonbank.stores.memory import MemoryStore

        return MemoryStore()
    if "://" in name:
        raise UsageError(f"{name.split('://')[0]}:// is not a store of this release: give a file path, or ':memory:'")
    if not name.strip():
        raise UsageError("connect needs a file path for the bank, or ':memory:'")
    from lessonbank.stores.sqlite import SqliteStore

    return await SqliteStore.open(Path(name.removeprefix("sqlite:")))


def _place(where: object, /) -> str:
    if not isinstance(where, str | Path):
        raise UsageError(f"connect needs a file path for the bank, or ':memory:', not {type(where).__name__}")
    return str(where)

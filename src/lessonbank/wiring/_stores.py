"""Which store a place names."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from lessonbank._base.checks import a_path, a_text, shown
from lessonbank.contracts.ports import Store
from lessonbank.contracts.settings import File, Server
from lessonbank.errors import UsageError, importing


def switched_off() -> Store:
    """The store of a bank whose memory is switched off. No file is touched."""
    from lessonbank.stores.sqlite.off import SwitchedOffStore

    return SwitchedOffStore.in_memory()


async def open_store(file: File | Server, /) -> Store:
    """The store of a file path (also `sqlite:PATH`), of `:memory:`, or of a database (`postgresql://…`).

    Raises:
        UsageError: no place, or one that this release has no store for.
        MissingExtra: a database, and its driver is not installed.
    """
    name = a_text(file.url, "Server(url=)") if isinstance(file, Server) else str(file.path)
    read_only = isinstance(file, File) and file.read_only
    if name.startswith(_DATABASES):
        return await _open_database(name, read_only=read_only)
    if isinstance(file, Server) or "://" in name:
        kind = shown(name.split("://")[0], most=20)
        raise UsageError(
            f"{kind} is not a store of this release: give a file path, ':memory:' or postgresql://HOST/DATABASE"
        )
    from lessonbank.stores.sqlite import SqliteStore

    return await SqliteStore.open(a_path(name.removeprefix("sqlite:"), "connect"), read_only=read_only)


_DATABASES: Final = ("postgresql://", "postgres://")


async def _open_database(url: str, *, read_only: bool) -> Store:
    with importing("a bank in PostgreSQL", extra="postgres"):
        from lessonbank.stores.postgres import PostgresStore
    return await PostgresStore.open(url, read_only=read_only)


def named_place(where: File | Server, /) -> str:
    """Where the bank is, without the secrets that an address can hold."""
    name = where.url if isinstance(where, Server) else str(where.path)
    if "://" in name:
        parts = urlsplit(name)
        try:
            port = f":{parts.port}" if parts.port else ""
        except ValueError:  # not a number
            port = ""
        name = f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
    return f"{name} (read only)" if isinstance(where, File) and where.read_only else name

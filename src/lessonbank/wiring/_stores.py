"""Which store a place names, and how a whole bank moves from one to another."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Final, TypeGuard, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

from lessonbank._base.checks import a_path, is_instance, safe_getattr, short_repr
from lessonbank._base.extensions import extension
from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.ports import RECEIPT_SECRET, Store
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.settings import OFF, File, Server
from lessonbank.contracts.store_calls import get_setting
from lessonbank.errors import UsageError, importing


def switched_off() -> Store:
    """The store of a bank whose memory is switched off, which the log says. No file is touched."""
    from lessonbank.stores.sqlite.null_store import NullStore

    logging.getLogger("lessonbank").warning("%s", OFF)
    return NullStore.in_memory()


def is_store(where: object, /) -> TypeGuard[Store]:
    """Whether a place is a store itself."""
    return not is_instance(where, (str, PurePath)) and all(
        safe_getattr(where, name) is not None for name in _OF_A_STORE
    )


async def open_store(file: File | Server | Store, /) -> Store:
    """The store of a file path (also `sqlite:PATH`), of `:memory:`, or of a database (`postgresql://…`).

    One of another kind (`redis://…`) is asked of the distribution that has an entry point of that name in the group
    `lessonbank.stores`: an async function of the address and `read_only=`.

    Raises:
        UsageError: no place, or one that nobody here has a store for.
        MissingExtra: a database, and its driver is not installed.
    """
    if not isinstance(file, File | Server):
        return file
    name = file.url if isinstance(file, Server) else str(file.path)
    read_only = isinstance(file, File) and file.read_only
    if name.startswith(_DATABASES):
        with importing("a bank in PostgreSQL", extra="postgres"):
            from lessonbank.stores.postgres import PostgresStore
        return await PostgresStore.open(name, read_only=read_only)
    if isinstance(file, Server) or "://" in name:
        return await _open_foreign(name, read_only=read_only)
    from lessonbank.stores.sqlite import SqliteStore

    return await SqliteStore.open(a_path(name, "connect"), read_only=read_only)


_DATABASES: Final = ("postgresql://", "postgres://")
_OF_A_STORE: Final = ("apply", "journal", "search")


async def _open_foreign(url: str, *, read_only: bool) -> Store:
    kind = url.split("://")[0]
    opens = extension("lessonbank.stores", kind)
    if opens is None:
        raise UsageError(
            f"{short_repr(kind, most=20)} is not a store of this release, and nothing that is installed brings it: "
            "give a file path, ':memory:' or postgresql://HOST/DATABASE"
        )
    store = await opens(url, read_only=read_only)
    if not is_store(store):
        raise UsageError(
            f"what is installed for {short_repr(kind, most=20)} gave {short_repr(store)}, which is no store"
        )
    return store


def spool_place(where: File | Server | Store, /) -> str:
    """The address under which runs wait for a bank on this machine; empty where they cannot."""
    if not isinstance(where, File | Server) or named_place(where) == ":memory:":
        return ""
    name = named_place(where)
    if isinstance(where, Server):
        return name
    if "://" in name:
        return f"{name}{_who_and_where(str(where.path))}"
    return "" if where.read_only else str(Path(name).expanduser().resolve())


def _who_and_where(address: str) -> str:
    """What else of an address says which bank it is, and for whom: two servers may have databases of one name."""
    parts = urlsplit(address)
    options = [(name, value) for name, value in parse_qsl(parts.query) if "password" not in name]
    user = f" {parts.username}" if parts.username else ""
    return f"{user} {urlencode(sorted(options))}" if options else user


def named_place(where: File | Server | Store, /) -> str:
    """Where the bank is, without the secrets that an address can hold."""
    if not isinstance(where, File | Server):
        return type(where).__name__
    name = where.url if isinstance(where, Server) else str(where.path)
    if "://" in name:
        parts = urlsplit(name)
        try:
            port = f":{parts.port}" if parts.port else ""
        except ValueError:  # not a number
            port = ""
        name = f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
    return f"{name} (read only)" if isinstance(where, File) and where.read_only else name


def migrate(source: str | Path, target: str | Path, /, *, progress: Callable[[str, int], object] | None = None) -> int:
    """Copy the bank `source` to `target`, a new file or an empty database, record by record; how many rows that were.

    Nothing is marked or left out: the journal, its times and writers, receipts, settings and vectors come along, and
    signatures stay valid. Nobody may write to `source` meanwhile. After a failure, call it again: it goes on where it
    was. `progress` is called with a scope and how many of its rows are copied.

    Raises:
        UsageError: `target` holds something else, or ends with this process.
        Conflict: `source` was written to meanwhile.
        StoreUnavailable: one of them cannot be used.
    """
    if named_place(File(target)) == ":memory:":
        raise UsageError("':memory:' ends with this process: copy the bank to a file or an empty database")
    return run_sync(_migrate(source, target, progress))


async def _migrate(source: str | Path, target: str | Path, progress: Callable[[str, int], object] | None) -> int:
    from lessonbank.stores._copying import Copyable, copy_bank

    here = await open_store(File(source, read_only=True))
    try:
        there = await open_store(File(target))
        try:
            name = digest(await get_setting(here, RECEIPT_SECRET) or "")
            return await copy_bank(cast("Copyable", here), cast("Copyable", there), name=name, progress=progress)
        finally:
            await there.close()
    finally:
        await here.close()

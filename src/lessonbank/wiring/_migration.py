"""Moves a whole bank from a file into a database, or back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import cast

from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.ports import RECEIPT_SECRET
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.settings import File
from lessonbank.contracts.store_calls import get_setting

from ._stores import open_store


def migrate(source: str | Path, target: str | Path, /, *, progress: Callable[[str, int], object] | None = None) -> int:
    """Copy the bank `source` to `target`, a new file or an empty database, record by record; how many rows that were.

    Nothing is marked or left out: the journal, its times and writers, receipts, settings and vectors come along, and
    signatures stay valid. Nobody may write to `source` meanwhile. After a failure, call it again: it goes on where it
    was. `progress` is called with a scope and how many of its rows are copied.

    Raises:
        UsageError: `target` holds something else.
        Conflict: `source` was written to meanwhile.
        StoreUnavailable: one of them cannot be used.
    """
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

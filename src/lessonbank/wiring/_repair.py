"""Functions for a bank that may not open: bring back a backup, or what can be read of a damaged file."""

from __future__ import annotations

from pathlib import Path

from lessonbank._base.checks import a_path, is_instance, maybe_text
from lessonbank._base.sync_bridge import run_sync
from lessonbank.contracts.records import Restored, Salvaged
from lessonbank.contracts.settings import File
from lessonbank.errors import StoreError, UsageError
from lessonbank.guard.identity import check_reviewer

from ._stores import open_store


def restore(backup: str | Path, bank: str | Path, /, *, by: str | None = None, key: str | None = None) -> Restored:
    """Put a copy of `backup` in the place of `bank`, whole or not at all; what was replaced.

    Copying by hand is not safe: a log that a crash left beside the bank would be applied to the copy. The backup is
    checked first, as `bank.admin.verify` does. The earlier file stays beside the bank, with its log, under the name
    that `kept` says. Where `bank` has reviewers and can be read, `by` is the name of one and `key` the key.

    Raises:
        NotAllowed: `bank` has reviewers, and this is not the key of one.
        UsageError: `backup` is no bank, or `bank` is a folder or another program's database.
        StoreDamaged: the backup is not sound.
        StoreUnavailable: somebody has the bank open, or its folder cannot be written.
    """
    from lessonbank.stores.sqlite import _restore

    there = _file(bank, "bank")
    run_sync(_check(there, by=by, key=key))
    return _restore.restore(_file(backup, "backup"), there)


def salvage(bank: str | Path, new: str | Path, /) -> Salvaged:
    """Bring what can be read of a damaged bank into a new bank file; what is lost, by id.

    The damaged file and its log are only read. Vectors are not brought over: `bank.admin.reindex()` makes them again.

    Raises:
        UsageError: there is no file `bank`, or `new` is there already.
        StoreUnavailable: somebody has the bank open, or `new` cannot be written.
        StoreDamaged: nothing of a bank was found in the file.
    """
    from lessonbank.repair import salvage as _salvage

    return _salvage.salvage(_file(bank, "bank"), _file(new, "new"))


async def _check(bank: Path, /, *, by: str | None, key: str | None) -> None:
    """Refuse to replace a bank that has reviewers without the key of one. What cannot be read asks for none."""
    try:
        store = await open_store(File(bank, read_only=True))
    except (StoreError, UsageError):
        return
    try:
        await check_reviewer(store, "restore", name=maybe_text(by, "by=") or "", key=maybe_text(key, "key="))
    finally:
        await store.close()


def _file(path: str | Path, name: str) -> Path:
    """The file that an argument means. Raises UsageError: it means none."""
    if is_instance(path, str) and (path.endswith(":memory:") or "://" in path):
        raise UsageError(f"{name} takes the path of a bank's file, and neither an address nor ':memory:'")
    return a_path(path.removeprefix("sqlite:") if is_instance(path, str) else path, name)

"""A consistent copy of a bank file while others write to it, put in place whole or not at all."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from lessonbank._base.atomic_write import abandon, begin, finish, is_database, refuse_odd_bank
from lessonbank.errors import StoreUnavailable, UsageError

from ._wal_identity import APPLICATION_ID, move_away

_BATCH: Final = 1024
"""Pages copied at a time; between two batches other threads of this process get their turn."""
_LOGS: Final = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a file that is open, and may apply to whatever takes its place."""
_OWN: Final = ("", *_LOGS)
"""The files of one bank, by what follows its name."""


def backup(connection: sqlite3.Connection, target: Path, /) -> None:
    """Copy the bank as it is now to `target`. An earlier backup there stays until the new one is whole and synced.

    The copy is of one snapshot, held from the first page to the last: neither readers nor writers wait, and no write
    makes the copy begin again. It is checked before it takes the place of an earlier one.

    Raises:
        UsageError: `target` is the bank itself, a folder, or a file that is not a bank.
        StoreUnavailable: it cannot be written, somebody has the earlier one open, or the bank itself is damaged.
    """
    if not connection.in_transaction:
        connection.execute("BEGIN")
    # Only reading takes the snapshot; without it, each batch would be of another moment.
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    target = Path(os.path.realpath(target))
    file = connection.execute("PRAGMA database_list").fetchone()[2]
    source = Path(file) if file else None
    try:
        _spare(target, source)
        _put(connection, source, target)
    except (OSError, sqlite3.Error) as error:
        what = (error.strerror if isinstance(error, OSError) else None) or error
        raise StoreUnavailable(f"cannot back up to {str(target)!r}: {what}; an earlier backup is untouched") from error


def _put(connection: sqlite3.Connection, source: Path | None, target: Path) -> None:
    part = begin(target, like=source)
    if source is None and not target.exists():
        part.chmod(0o600)
    try:
        copy(connection, part)
        move_away(part)
        check_whole(part)
        _clear_logs(target)
        finish(part, target)
    finally:
        abandon(part)


def _spare(target: Path, source: Path | None) -> None:
    refuse_odd_bank(target)
    own = [source.with_name(source.name + ending) for ending in _OWN] if source else []
    if target in own or (source and target.exists() and target.samefile(source)):
        raise UsageError(f"{str(target)!r} is the bank itself: name another file for its backup")
    if target.is_dir():
        raise UsageError(f"{str(target)!r} is a folder: name a file for the backup")
    if target.exists() and not is_database(target, application_id=APPLICATION_ID):
        raise UsageError(
            f"{str(target)!r} is not a bank: a backup replaces only an earlier backup, so name another file"
        )


def copy(connection: sqlite3.Connection, part: Path, /) -> None:
    """The file as this connection sees it, in `part`."""
    with closing(sqlite3.connect(part, isolation_level=None)) as copy:
        # A crash throws the part away, so there is nothing to roll back, and `finish` syncs it once.
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        connection.backup(copy, pages=_BATCH, sleep=0.01)


def check_whole(part: Path, /) -> None:
    """Refuse a damaged copy: it must not take the place of one that was sound."""
    with closing(sqlite3.connect(f"{part.as_uri()}?mode=ro&immutable=1", uri=True)) as copy:
        (answer,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise sqlite3.DatabaseError(f"the bank is damaged ({answer})")


def _clear_logs(target: Path) -> None:
    """See that no log of the earlier backup is left: SQLite would apply it to the new one."""
    logs = [target.with_name(target.name + ending) for ending in _LOGS]
    if any(log.exists() for log in logs) and target.exists():
        with closing(sqlite3.connect(target, isolation_level=None)) as earlier:
            earlier.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()  # the last to close it removes the log
    if any(log.exists() for log in logs):
        raise StoreUnavailable(f"somebody has the earlier backup {str(target)!r} open: close it, or name another file")

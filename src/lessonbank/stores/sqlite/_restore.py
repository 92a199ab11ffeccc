"""Puts a backup in the place of a bank, and keeps what was there: a copy by hand would meet the log of the bank."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from lessonbank._base.atomic_write import abandon, begin, finish, is_database, refuse_odd_bank
from lessonbank.contracts.records import Counts, FileState, Restored
from lessonbank.errors import LessonbankError, StoreDamaged, StoreUnavailable, UsageError
from lessonbank.stores._records import moment

from ._backup import check_whole, copy
from ._database import Database
from ._in_use import refuse_if_open
from ._read import counts, scopes
from ._verify import problems
from ._wal_identity import APPLICATION_ID, move_away

T = TypeVar("T")


def restore(backup: Path, bank: Path, /) -> Restored:
    """Put a copy of `backup` in the place of `bank`, whole or not at all.

    The backup is checked like a bank is verified. The earlier file and its log stay, under another name.

    Raises:
        UsageError: `backup` is no bank, or the same file; `bank` is a folder, or another program's database.
        StoreDamaged: the backup is not sound.
        StoreUnavailable: somebody has the bank open, or it cannot be written.
    """
    backup, bank = backup.absolute(), Path(os.path.realpath(bank))
    _check_places(backup, bank)
    refuse_if_open(bank)
    try:
        return _restored(backup, bank)
    except (OSError, sqlite3.Error) as error:
        what = (error.strerror if isinstance(error, OSError) else None) or error
        raise StoreUnavailable(f"cannot restore {str(bank)!r}: {what}; it is as it was") from error


def _check_places(backup: Path, bank: Path) -> None:
    if not backup.is_file():
        raise UsageError(f"there is no backup {str(backup)!r}: name a file that `lessonbank backup` wrote")
    refuse_odd_bank(backup)
    refuse_odd_bank(bank)
    if bank.is_dir() or not bank.parent.is_dir():
        raise UsageError(f"{str(bank)!r} is a folder, or in a folder that does not exist: name a file for the bank")
    if bank.exists() and backup.samefile(bank):
        raise UsageError(f"{str(bank)!r} is the backup itself: name another file for the bank")
    if not is_database(backup, application_id=APPLICATION_ID):
        raise UsageError(f"{str(backup)!r} is not a bank: name a file that `lessonbank backup` wrote")
    if is_database(bank) and not is_database(bank, application_id=APPLICATION_ID):
        raise UsageError(f"{str(bank)!r} is a database of another program: name another file for the bank")


def _restored(backup: Path, bank: Path) -> Restored:
    part = begin(bank, like=backup)
    try:
        now = _reading(backup, lambda connection: _copied(connection, backup, part))
        refuse_if_open(bank)
        old_bank = _move_aside(bank) if bank.exists() else None
        finish(part, bank)
    finally:
        abandon(part)
    for ending in ("-wal", "-shm", "-journal"):
        bank.with_name(f"{bank.name}{ending}").unlink(missing_ok=True)
    before = _state_of(old_bank) if old_bank else None
    return Restored(
        bank=str(bank), backup=str(backup), now=now, before=before, kept=str(old_bank) if old_bank else None
    )


def _copied(connection: sqlite3.Connection, backup: Path, part: Path) -> FileState:
    try:
        wrong = problems(connection)
    except sqlite3.DatabaseError as error:  # a table of words whose own pages are damaged
        wrong = [str(error)]
    if wrong:
        raise StoreDamaged(f"the backup {backup} is not sound ({wrong[0]}), so nothing was restored")
    copy(connection, part)
    move_away(part)
    check_whole(part)
    return _state(connection, part.stat().st_size)


def _move_aside(bank: Path) -> Path:
    """The file and its log under another name, too. What is at the first name stays there until it is replaced."""
    name = f"{bank.stem}.replaced-{datetime.now(UTC):%Y%m%dT%H%M%S%f}{bank.suffix}"
    for ending in ("-wal", ""):
        file, other = bank.with_name(f"{bank.name}{ending}"), bank.with_name(f"{name}{ending}")
        if file.exists():
            try:
                os.link(file, other)
            except OSError:  # some file systems have no second names
                shutil.copyfile(file, other)
                shutil.copymode(file, other)
    return bank.with_name(name)


def _state_of(path: Path) -> FileState:
    log = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    try:
        return _reading(path, lambda connection: _state(connection, size))
    except LessonbankError as error:
        return FileState(bytes=size, problem=str(error))
    finally:
        with suppress(OSError):
            path.with_name(f"{path.name}-shm").unlink(missing_ok=True)


def _state(connection: sqlite3.Connection, size: int) -> FileState:
    (last,) = connection.execute("SELECT max(at) FROM journal").fetchone()
    return FileState(bytes=size, counts=summed(connection), last_change=None if last is None else moment(last))


def summed(connection: sqlite3.Connection, /) -> Counts:
    """How much all scopes hold together."""
    every = [counts(connection, scope) for scope in scopes(connection)]
    return Counts(**{name: sum(getattr(scope_counts, name) for scope_counts in every) for name in Counts.model_fields})


def _reading(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """What `work` finds in a file that nothing is written to."""
    with closing(Database(path, busy_timeout=5.0, read_only=True)) as database:
        database.open()
        return database.read(work).result()

"""What the failures of SQLite mean, in one sentence each."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from lessonbank.errors import StoreDamaged, StoreUnavailable

from ._file_locks import gives_locks

_CAUSES: Final = {
    sqlite3.SQLITE_BUSY: "another process kept {path} locked for too long: find out what it does, or try again",
    sqlite3.SQLITE_LOCKED: "another connection kept {path} locked for too long: try again",
    sqlite3.SQLITE_READONLY: "{path} cannot be written: make the file and its folder writable",
    sqlite3.SQLITE_FULL: "the disk of {path} is full: free some space and try again",
    sqlite3.SQLITE_IOERR: "{path} cannot be read or written ({error}): check the disk and its free space",
    sqlite3.SQLITE_CANTOPEN: "{path} cannot be opened: check that its folder exists and may be written",
    sqlite3.SQLITE_PERM: "{path} may not be opened: check its permissions",
    sqlite3.SQLITE_NOTADB: "{path} is not a bank, nor any SQLite database: name another file; if it was a bank, run "
    "`lessonbank salvage BANK NEW`",
}
_NO_LOCKS: Final = {
    *("SQLITE_PROTOCOL", "SQLITE_IOERR_LOCK", "SQLITE_IOERR_UNLOCK", "SQLITE_IOERR_RDLOCK"),
    *("SQLITE_IOERR_CHECKRESERVEDLOCK", "SQLITE_IOERR_SHMLOCK", "SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_SHMMAP"),
}


def unavailable(error: sqlite3.Error, path: Path, /) -> StoreUnavailable:
    """One sentence for what SQLite said."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if "no such module: fts5" in str(error):
        return StoreUnavailable("this Python's SQLite was built without FTS5: use another Python build")
    if code == sqlite3.SQLITE_CORRUPT or "Could not decode" in str(error):
        return StoreDamaged(f"{path} is damaged ({error})")
    if code == sqlite3.SQLITE_ERROR and "no such" in str(error):
        return StoreDamaged(f"{path} is damaged: it lacks what every bank has ({error})")
    name = getattr(error, "sqlite_errorname", "")
    # SQLite says that a file is busy, too, where its file system has no lock to give (ENOLCK).
    if name in _NO_LOCKS or (code == sqlite3.SQLITE_BUSY and not gives_locks(path.parent)):
        return StoreUnavailable(
            f"the file system of {path} gives no locks or no shared memory ({name}), as some network mounts do not: "
            "put the bank on a local disk"
        )
    cause = _CAUSES.get(code, "{path} cannot be used: {error}")
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and _can_be_read(path):
        cause = (
            "{path} cannot be written: make the file and its folder writable, or only read it: "
            "connect(lessonbank.File({quoted}, read_only=True), scope=…)"
        )
        if beside := _unwritable_beside(path):
            cause = (
                f"{{path}} cannot be written, because {beside} may not: it has the mode that the bank had once, "
                f"so give it the bank's, as with chmod 600 {beside}"
            )
    message = f"{error}, {name}" if code == sqlite3.SQLITE_IOERR and name else error
    return StoreUnavailable(cause.format(path=path, error=message, quoted=repr(str(path))))


def _can_be_read(path: Path) -> bool:
    return path.is_file() and os.access(path, os.R_OK)


def _unwritable_beside(path: Path) -> str:
    """The log, or its index, that alone keeps a bank from being written: SQLite makes them with the bank's mode."""
    files = [path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))]
    obstacles = [file for file in files if file.exists() and not os.access(file, os.W_OK)]
    return obstacles[0].name if obstacles and obstacles[0] != path and os.access(path.parent, os.W_OK) else ""


def impossible(error: Exception, /) -> StoreDamaged:
    """One sentence for what Python said of a value that no bank writes, such as a time after the year 9999."""
    what = StoreDamaged(f"the bank holds what no bank can hold ({type(error).__name__}: {error!s:.100})")
    what.__cause__ = error
    return what


IMPOSSIBLE: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""What Python raises for such values. Arguments are checked before they come here."""


def shows_damage(error: BaseException | None, /) -> bool:
    """Whether what is stored is not what was written. What Python raised may also come of an argument."""
    return isinstance(error, StoreDamaged) and not isinstance(error.__cause__, IMPOSSIBLE)


def is_busy(error: BaseException | None, /) -> bool:
    """Whether somebody else held a lock all the time."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


_BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

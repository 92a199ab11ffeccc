"""A new file takes the place of an earlier one when it is whole and on disk, or not at all. Most calls block."""

from __future__ import annotations

import errno
import glob
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from pathlib import Path
from typing import Final

from anyio import CancelScope, to_thread

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

from lessonbank.errors import StoreUnavailable, UsageError

from .checks import short_path

_BESIDE: Final = ("-wal", "-shm", "-journal")
_SMALLEST: Final = 512
"""Bytes of a database with one page. SQLite takes a file of one byte for a new database."""
_ABANDONED: Final = 3600.0
"""Seconds without a write after which a part is taken for that of a killed writer, where files cannot be locked."""
_FRESH: Final = 10.0
"""Seconds for which nobody touches a file that is just being made or put in its place: neither is locked."""
_NEW, _PART, _WHOLE = ".new", ".part", ".whole"
"""The endings of a file that is not locked yet; is locked and written to; and is written and not locked any more."""
WORK: Final = "-work"
"""What may follow the name of a part: what is made there takes its place when it is whole, and goes with it."""
_WITH_IT: Final = ("", *_BESIDE, WORK, *(f"{WORK}{ending}" for ending in _BESIDE))
_held: Final[dict[Path, int]] = {}
"""The parts this process writes to, each with an open file that holds its lock."""
_NAME: Final = 100
"""Bytes of the file's own name in that of its part: a long one must not become too long."""


def spare(path: Path, /, *, what: str) -> None:
    """Refuse to put `what` (an export, a page) in the place of a folder, a pipe, a bank, or what is kept beside one.

    Raises:
        UsageError: it would be.
        OSError: a file that is there cannot be read.
    """
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder: name a file for the {what}")
    refuse_odd(path)
    if belongs_to_database(path):
        raise UsageError(f"{str(path)!r} is a bank, or a part of one: name another file for the {what}")


def refuse_odd(path: Path, /) -> None:
    """Refuse what is there and is no file: a read of a pipe or a device may never end. A folder is left to others.

    Raises:
        UsageError: it is a pipe, a device, a socket, or a link that leads to itself.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UsageError(f"{str(path)!r} is a link that leads to itself: name a file") from error
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UsageError(f"{str(path)!r} is a pipe, a device or a socket, and no file: name a file, or move it away")


def refuse_odd_bank(path: Path, /) -> None:
    """`refuse_odd` for a bank and all that SQLite keeps beside it, which it looks for where a link leads to."""
    refuse_odd(path)
    for place in {path, Path(os.path.realpath(path))}:
        for ending in ("", *_BESIDE):
            refuse_odd(place.with_name(f"{place.name}{ending}"))


def belongs_to_database(path: Path, /) -> bool:
    """Whether a file is a database of SQLite, or is kept beside one. Only SQLite may open it then, see `is_database`.

    Raises:
        OSError: a file that is there cannot be read.
    """
    real = Path(os.path.realpath(path))
    beside = [real.with_name(real.name.removesuffix(end)) for end in _BESIDE if real.name.endswith(end)]
    return any(is_database(file) for file in (beside or [real]) if file.name)


def is_database(path: Path, /, *, application_id: int | None = None) -> bool:
    """Whether a file is a database of SQLite, and says that it is of that application.

    SQLite looks by itself: whoever else opens and closes a file drops the locks that this process holds on it.

    Raises:
        OSError: the file cannot be read.
    """
    if not path.is_file() or path.stat().st_size < _SMALLEST:
        return False
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    try:
        # Past its log, which may be that of another file: SQLite would apply it when the file is closed.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            (number,) = connection.execute("PRAGMA application_id").fetchone()
    except sqlite3.DatabaseError as error:
        return application_id is None and getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_NOTADB
    return application_id in (None, number)


def begin(path: Path, /, *, like: Path | None = None, private: bool = False) -> Path:
    """An empty file beside `path` to write to, as private as `path` was, or else as `like` is; or its owner's alone.

    What is made like a file that nobody may write to can be written by its owner.

    Raises:
        OSError: the folder is missing or cannot be written.
    """
    prefix = f".{os.fsencode(path.name)[:_NAME].decode(errors='ignore')}."
    for left in path.parent.glob(f"{glob.escape(prefix)}*"):
        with suppress(OSError):
            if left.suffix in (_NEW, _PART, _WHOLE) and _is_left(left):
                _remove(left)
    part = path.with_name(f"{prefix}{secrets.token_hex(8)}{_PART}")
    _make(part, mode=0o600 if like or private else 0o666)
    model = path if path.exists() else like
    if model is not None and not private:
        part.chmod(model.stat().st_mode & 0o777 | (0o200 if model is like else 0))
    return part


def _make(part: Path, *, mode: int) -> None:
    """Make the part, locked from the moment on at which it has its name. The system unlocks what a killed one held."""
    new = part.with_suffix(_NEW)
    file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), mode)
    if fcntl is None:
        os.close(file)
    else:
        with suppress(OSError):  # a file system without locks: there, age alone decides
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _held[part] = file
    new.rename(part)


def _remove(part: Path) -> None:
    for ending in _WITH_IT:
        part.with_name(f"{part.name}{ending}").unlink(missing_ok=True)


def _is_left(part: Path) -> bool:
    """Whether nobody writes to this part any more."""
    age = time.time() - part.stat().st_mtime
    if part.suffix != _PART:
        return age > _FRESH
    if part in _held:
        return False
    if fcntl is None:
        return age > _ABANDONED
    file = os.open(part, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return age > _ABANDONED
    finally:
        os.close(file)
    return True


def _release(part: Path) -> None:
    if (file := _held.pop(part, None)) is not None:
        os.close(file)


def synced(part: Path, /) -> Path:
    """Bring the bytes of a part to the disk, and let go of it: closed later, it could drop locks of what it becomes.

    Its new name, which says that it is whole.
    """
    with part.open("r+b") as file:
        os.fsync(file.fileno())
    os.utime(part)  # fresh, so that nobody takes it for one that was left
    whole = part.with_suffix(_WHOLE)
    part.rename(whole)
    _release(part)
    return whole


def finish(part: Path, path: Path, /) -> None:
    """Put `part` in the place of `path`: the bytes are on disk before, the name is afterwards."""
    synced(part).replace(path)
    _sync_folder(path.parent)


def put(path: Path, text: str, /, *, what: str, like: Path | None = None) -> None:
    """Write `what` (a page) whole, or not at all, as private as `path` was, or else as `like` is.

    Raises:
        StoreUnavailable: it cannot be written.
    """
    part: Path | None = None
    try:
        part = begin(path, like=like)
        part.write_text(text, encoding="utf-8", newline="\n")
        finish(part, path)
    except OSError as error:
        raise _unwritten(path, what, error) from error
    finally:
        if part is not None:
            abandon(part)


@asynccontextmanager
async def replacing(path: Path, /, *, what: str) -> AsyncGenerator[Path]:
    """A part to write `what` (an export) to. It takes the place of `path` at the end of a block that raises nothing.

    Only its owner may read it, whoever could read an earlier one: it holds what the bank holds.

    Raises:
        UsageError: see `spare`.
        StoreUnavailable: it cannot be written.
    """
    await to_thread.run_sync(partial(spare, path, what=what))
    part: Path | None = None
    try:
        part = await to_thread.run_sync(partial(begin, path, private=True))
        yield part
        await to_thread.run_sync(finish, part, path)
    except OSError as error:
        raise _unwritten(path, what, error) from error
    finally:
        if part is not None:
            with CancelScope(shield=True):
                await to_thread.run_sync(abandon, part)


def _unwritten(path: Path, what: str, error: OSError) -> StoreUnavailable:
    why = error.strerror or error
    return StoreUnavailable(f"cannot write the {what} {short_path(path)}: {why}; an earlier one is untouched")


def abandon(part: Path, /) -> None:
    """Remove what `finish` did not move."""
    _release(part)
    _remove(part)
    part.with_suffix(_WHOLE).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # elsewhere a folder cannot be opened, and a rename is journaled by the file system
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems have no such call
            raise
    finally:
        os.close(handle)

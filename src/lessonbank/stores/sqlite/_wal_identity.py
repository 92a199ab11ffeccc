"""Notices a log that is not this file's, and a file that was put in the place of an open one, before either is used.

SQLite applies the log it finds beside a file to that file, whatever it is: after a crash, also to a backup that
somebody copied over the bank. So every transaction of a bank counts, in the file's first page and, with it, in the log
(the upper bits of `PRAGMA user_version`; the lowest eight are the format). A log begins where the file ended when all
before was moved into it. Hence the count of a file lies between the one before the log's first transaction and its
last; where it does not, the log belongs to another file or to another state of this one. A backup and a restored bank
count on from elsewhere, so that no log of their origin fits them. A file that is copied over an open bank is known in
the same way: its count is not one that follows the last one seen.

The file's own count is read by SQLite, past the log, because whoever else opens and closes a bank drops the locks of
this process. The log is read as it is: SQLite holds no locks on it.
"""

from __future__ import annotations

import os
import random
import secrets
import sqlite3
import threading
import time
from bisect import bisect_left
from collections.abc import Iterable
from contextlib import closing
from io import FileIO
from pathlib import Path
from typing import Final

from lessonbank.errors import StoreReplaced, StoreUnavailable

APPLICATION_ID: Final = 0x4C424E4B
"""`LBNK`, where SQLite and `file` look for what a database is."""
FORMATS: Final = 1 << 8
"""`user_version` is the count times this, plus the format."""
_ROUND: Final = 1 << 23
"""Counts start again after so many: `user_version` is a signed number of 32 bits."""
_APART: Final = 1 << 20
"""By how much a copy's count differs from its origin's at least; twice as much at most."""
_TRIES: Final = 200
"""How often a log that others restart meanwhile is read again."""
_DOUBTS: Final = 10
"""How often a log must look like that of another file: the head of a page is written before the page itself."""
_HEADER: Final = 32
_FRAME: Final = 24
"""Bytes of the log's header, and of that of each page in it (https://sqlite.org/fileformat2.html, "The WAL")."""
_LEAST_PAGE: Final = 512
"""Bytes that a transaction takes in the log at least."""
_COUNT: Final = 60
"""Where the first page has `user_version`."""


def first_count(format: int, /) -> int:
    """The `user_version` of a new bank."""
    return secrets.randbelow(_ROUND) * FORMATS + format


def count_on(connection: sqlite3.Connection, /) -> None:
    """Count one transaction, inside it."""
    count, format = divmod(connection.execute("PRAGMA user_version").fetchone()[0], FORMATS)
    connection.execute(f"PRAGMA user_version = {(count + 1) % _ROUND * FORMATS + format}")


def move_away(part: Path, /) -> None:
    """Give a closed copy, which nobody else knows of, a count that no log of its origin fits."""
    with part.open("r+b") as file:
        file.seek(_COUNT)
        count, format = divmod(int.from_bytes(file.read(4)), FORMATS)
        count = (count - _APART - secrets.randbelow(_APART)) % _ROUND
        file.seek(_COUNT)
        file.write((count * FORMATS + format).to_bytes(4))


def stat_of(path: Path, /) -> os.stat_result | None:
    """What the system says of a file; `None` where it is not there."""
    try:
        return path.stat()
    except OSError:
        return None


def identity_of(status: os.stat_result | None, /) -> tuple[int, int] | None:
    """What tells a file from another one that was put in its place."""
    return (status.st_dev, status.st_ino) if status else None


class WalIdentity:
    """What is known of one file: when it was last written to, and how far it had counted then."""

    def __init__(self, path: Path, /) -> None:
        self._path = path
        self._log = path.with_name(f"{path.name}-wal")
        self._turn = threading.Lock()
        self._written: tuple[int, int] | None = None
        self._count: int | None = None
        self._most = 1
        """As many transactions as the log can hold, and the one that makes up for a file that was looked at before."""

    def check(self, identity: tuple[int, int] | None = None, /) -> tuple[int, int] | None:
        """The identity of the log that lies there now. If somebody has written to the file, look at both.

        Raises:
            StoreUnavailable: the log is not this file's, or, as StoreReplaced, the file is not the one that was there.
        """
        try:
            file, log = self._path.stat(), self._log.stat()
        except OSError:
            file, log = stat_of(self._path), stat_of(self._log)
        if identity is not None and (file is None or identity != (file.st_dev, file.st_ino)):
            raise _replaced(self._path)
        if file is not None and (written := (file.st_mtime_ns, file.st_size)) != self._written:
            with self._turn:
                count = self._checked()
                if count is not None and self._count is not None and (count - self._count) % _ROUND >= _ROUND // 2:
                    raise _replaced(self._path)
                self._written, self._count = written, count
            log = stat_of(self._log)  # the look took a while, in which it may have come or gone
        self._most = (log.st_size if log else 0) // _LEAST_PAGE + 1
        return (log.st_dev, log.st_ino) if log else None

    def check_view(self, user_version: int, /) -> None:
        """Compare the count that SQLite sees, inside a transaction that alone may write, with the file's own.

        Raises:
            StoreReplaced: the file was replaced by one that has nothing to do with what SQLite remembers of it.
        """
        seen = user_version // FORMATS
        if self._count is None or (seen - self._count) % _ROUND <= self._most:
            return
        with self._turn:
            self._count = _count_of_file(self._path)
        log = stat_of(self._log)
        most = (log.st_size if log else 0) // _LEAST_PAGE + 1
        if self._count is not None and (seen - self._count) % _ROUND > most:
            raise _replaced(self._path)

    def _checked(self) -> int | None:
        doubts = 0
        for _ in range(_TRIES):
            before = _salts(self._log)
            count = _count_of_file(self._path)
            salts, fits = _fits(self._log, count)
            # Whoever begins the log again writes over it from its start, also while it is read here.
            if before == salts == _salts(self._log):
                if fits:
                    return count
                doubts += 1
            if doubts == _DOUBTS:
                raise StoreUnavailable(
                    f"{self._log} is not the log of {self._path}, which was replaced while the log lay there: run "
                    "`lessonbank restore BACKUP BANK`, or move the log away; nothing was written"
                )
            time.sleep(random.uniform(0.001, 0.003))
        raise StoreUnavailable(f"{self._path} is written to all the time: try again")


def _fits(path: Path, count: int | None) -> tuple[bytes, bool]:
    """The salts of a log, and whether it may be that of a file that has counted so far.

    Without a whole transaction a log tells nothing.
    """
    try:
        with path.open("rb", buffering=0) as file:
            return _read_log(file, count)
    except OSError:
        return b"", True


def _read_log(file: FileIO, count: int | None) -> tuple[bytes, bool]:
    """Read the ends of the log alone: eight writers ask three hundred times a second, and a log has a thousand pages.

    Frames of the log as it began last are its first ones, and every transaction of them has the file's first page.
    """
    header = file.read(_HEADER)
    size, salts = int.from_bytes(header[8:12]), header[16:24]
    if not size:
        return salts, True

    def frame(number: int) -> bytes:
        file.seek(_HEADER + number * (_FRAME + size))
        return file.read(_FRAME + _COUNT + 4)

    end = bisect_left(range(file.seek(0, os.SEEK_END) // (_FRAME + size)), 1, key=lambda n: frame(n)[8:16] != salts)
    while end and frame(end - 1)[4:8] == b"\0\0\0\0":  # of a transaction that has not ended
        end -= 1
    first, last = _next_count(map(frame, range(end))), _next_count(map(frame, reversed(range(end))))
    if count is None or first is None or last is None:
        return salts, True
    return salts, (count - first + 1) % _ROUND <= (last - first) % _ROUND + 2


def _next_count(frames: Iterable[bytes]) -> int | None:
    return next((int.from_bytes(frame[-4:]) // FORMATS for frame in frames if frame[:4] == b"\0\0\0\1"), None)


def _salts(path: Path) -> bytes:
    """What changes whenever the log begins again."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(_HEADER)[16:24]
    except OSError:
        return b""


def _count_of_file(path: Path) -> int | None:
    """How far a file has counted, its log left aside; `None` where it is no bank, or a new one."""
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            (value,) = connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.Error:
        return None
    return value // FORMATS or None


def _replaced(path: Path) -> StoreReplaced:
    return StoreReplaced(f"{path} was moved, deleted or replaced while it was open: open it again")

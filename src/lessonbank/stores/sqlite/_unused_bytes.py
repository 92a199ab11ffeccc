"""Overwrites what a bank file holds in no row: SQLite leaves copies behind when it moves rows between pages.

It runs as a process of its own, `python _unused_bytes.py FILE SECONDS`: whoever closes a file gives up all the locks
that the process holds on it. It loads little of Python and nothing of this package, so it starts in 30 ms. Every byte
is written while this process alone may write and the log is empty; then a transaction follows, after which no other
process writes back a page that it read before. The format: https://sqlite.org/fileformat2.html.
"""

import os
import sqlite3
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

BUSY: Final = 3
"""The exit code where others used the log all the time; 0 where nothing is left, anything else for a failure."""
MOST_PAGES: Final = 1 << 24
"""With as many, the first byte of a page may be that of a page number, and no longer tells what the page is."""
_HEADERS: Final = {2: 12, 5: 12, 10: 8, 13: 8}
"""Bytes of the header of each kind of page that holds rows."""
_ZEROS: Final = memoryview(bytes(1 << 16))
_HELD: Final = 0.1
"""Seconds for which others cannot write, at a time."""
_PAUSE: Final = 0.005
_TOGETHER: Final = 256
"""Pages that are read at once."""
_FORMATS: Final = 1 << 8
"""See `_wal_identity.count_on`."""

Span = tuple[int, int]


class DamagedPageError(Exception):
    """A page is not as SQLite writes it."""


class RawFile:
    """The pages of a file, past SQLite."""

    def __init__(self, file: int, is_sound: Callable[[], bool], /) -> None:
        self._file, self._is_sound, self._is_checked = file, is_sound, False
        head = self._at(0, 100)
        self.size = int.from_bytes(head[16:18], "big")
        self.size = 1 << 16 if self.size == 1 else self.size
        self._usable = self.size - head[20]
        if any(head[52:56]):  # of auto-vacuum: pages that map others begin as pages with rows do
            raise DamagedPageError(head[52:56])
        self._buffer = bytearray(self.size * _TOGETHER)

    def pages(self) -> int:
        return os.fstat(self._file).st_size // self.size

    def free(self) -> dict[int, int]:
        """The free pages, each with the number of its bytes that are in use. Raises DamagedPageError: it is no list."""
        trunk, wanted = struct.unpack(">II", self._at(32, 8))
        free, listed = dict[int, int](), 0
        while trunk:
            page = self._at((trunk - 1) * self.size, self.size)
            following, count = struct.unpack_from(">II", page)
            if trunk in free or count > self.size // 4 - 2:
                raise DamagedPageError(trunk)
            free[trunk] = 8 + 4 * count
            free.update(dict.fromkeys(struct.unpack_from(f">{count}I", page, 8), 0))
            trunk, listed = following, listed + 1 + count
        if free and not (len(free) == listed == wanted and min(free) > 1 and max(free) <= self.pages()):
            raise DamagedPageError(wanted)
        return free

    def overwrite(self, first: int, free: dict[int, int], /) -> bool:
        """Overwrite what is in no row of the pages from `first` on, as many as are read at once; whether any was."""
        buffer, place = self._buffer, (first - 1) * self.size
        length = os.preadv(self._file, [buffer], place)
        if length != min(len(buffer), os.fstat(self._file).st_size - place):
            raise OSError("a part of the file could not be read")
        dirty = [
            (number, start + at, start + end)
            for number, start in enumerate(range(0, length, self.size), first)
            if number in free or buffer[start + 100 * (number == 1)] in _HEADERS
            for at, end in self._unused(memoryview(buffer)[start : start + self.size], number, free)
            if not buffer.startswith(_ZEROS[: end - at], start + at)
        ]
        if any(free.get(number) == 0 for number, *_ in dirty):
            self._check_whole()
        for _, at, end in dirty:
            if os.pwrite(self._file, _ZEROS[: end - at], place + at) != end - at:
                raise OSError("a part of the file could not be written")
        return bool(dirty)

    def _check_whole(self) -> None:
        """Who frees a page of a bank empties it. One that is full may be in use, and the list of free pages wrong."""
        self._is_checked = self._is_checked or self._is_sound()
        if not self._is_checked:
            raise DamagedPageError

    def _unused(self, page: memoryview, number: int, free: dict[int, int]) -> Iterator[Span]:
        if number in free:
            return iter([(free[number], self.size)])
        return unused(page, 100 if number == 1 else 0, self._usable)

    def _at(self, place: int, length: int) -> bytes:
        return os.pread(self._file, length, place)


def unused(page: memoryview, header: int, usable: int, /) -> Iterator[Span]:
    """The spans of a page with rows that no row has: the gap before the first one, and what was freed between them."""
    block, cells, top = struct.unpack_from(">HHH", page, header + 1)
    at, top = header + _HEADERS[page[header]] + 2 * cells, top or 1 << 16
    if not at <= top <= usable:
        raise DamagedPageError(page[:header])
    yield at, top
    before = top
    while block:
        following, size = struct.unpack_from(">HH", page, block)
        if block < before or size < 4 or block + size > usable:
            raise DamagedPageError(block)
        yield block + 4, block + size
        block, before = following, block + size


def _lock_with_an_empty_log(connection: sqlite3.Connection, log: Path, until: float) -> bool:
    while time.monotonic() < until:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()  # the most of it while others write
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        try:
            if not busy:
                connection.execute("BEGIN IMMEDIATE")
                if not log.exists() or not log.stat().st_size:
                    return True
                connection.execute("ROLLBACK")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
        time.sleep(_PAUSE)
    return False


def _is_sound(connection: sqlite3.Connection) -> bool:
    return connection.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]


def overwrite_unused(path: Path, connection: sqlite3.Connection, file: int, /, *, seconds: float) -> bool:
    """Overwrite all of it; whether that came to its end in `seconds`, for others can hold it up."""
    until, first, log = time.monotonic() + seconds, 1, path.with_name(f"{path.name}-wal")
    while True:
        if not _lock_with_an_empty_log(connection, log, until):
            return False
        if not os.path.samestat(path.stat(), os.fstat(file)):
            raise DamagedPageError  # another file was put in its place
        ends, is_changed, held = time.monotonic() + _HELD, False, RawFile(file, lambda: _is_sound(connection))
        free, last = held.free(), held.pages()
        while first <= last and time.monotonic() < ends:
            is_changed = held.overwrite(first, free) or is_changed
            first += _TOGETHER
        if is_changed:  # whoever has read these pages must read them again before a change
            count = connection.execute("PRAGMA user_version").fetchone()[0]
            connection.execute(f"PRAGMA user_version = {(count + _FORMATS) % (1 << 31)}")
        connection.execute("COMMIT")
        os.fsync(file)  # not later: others could not write while SQLite did it
        if first > last:
            return True
        time.sleep(_PAUSE)


def _main(path: Path, seconds: float) -> int:
    file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    connection = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=0.05, isolation_level=None)
    return 0 if overwrite_unused(path, connection, file, seconds=seconds) else BUSY


if __name__ == "__main__":
    try:
        code = _main(Path(sys.argv[1]), float(sys.argv[2]))
    except (DamagedPageError, OSError, sqlite3.Error, struct.error):
        code = 1
    os._exit(code)  # nothing is closed: SQLite would take the log away where it thinks that nobody else is there

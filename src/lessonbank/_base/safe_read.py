"""Opens what somebody else may have put there: a regular file as it is now; a database, of which nothing is run."""

from __future__ import annotations

import io
import os
import sqlite3
import stat
from collections.abc import Generator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from lessonbank.errors import FormatError

NOT_REGULAR: Final = "is not a regular file: runs are read more than once, so save them to a file"
LEADS_OUT: Final = "is a link that leads out of the folder: name what it leads to, or follow links"
_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOCTTY")
)

_STEPS: Final = 10_000_000
_STEPS_A_BYTE: Final = 20
"""Of SQLite's machine, for one file: to read every row and sort it takes less than one for each byte."""
_OFTEN: Final = 10_000
"""Steps of one statement after which SQLite asks whether to go on."""
_COMPUTED: Final = (1, 2)
"""What SQLite calls a column of a virtual table, and one that is computed when it is read."""


def open_regular(path: Path, /, *, inside: Path | None = None) -> io.BufferedReader:
    """The bytes that the file at `path` has now. What is appended later is not read, so that reading ends.

    Links are followed first, and must not lead out of the folder `inside`. The file is checked after it is opened: a
    pipe, a device or a folder is refused, and opening it does not wait.

    Raises:
        OSError: it is no regular file, lies outside, or cannot be read.
    """
    real = Path(os.path.realpath(path, strict=True))  # `resolve` raises RuntimeError for a circle of links
    if inside is not None and not real.is_relative_to(inside.resolve()):
        raise OSError(LEADS_OUT)
    handle = os.open(real, _FLAGS)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(NOT_REGULAR)
        return io.BufferedReader(_Bounded(io.FileIO(handle), status.st_size))
    except BaseException:
        os.close(handle)
        raise


@contextmanager
def open_database(path: Path, /, *, longest: int, log: bool = False) -> Generator[sqlite3.Connection]:
    """A database that another program wrote, to read rows of those tables that `has_table` knows for plain ones.

    No value has more than `longest` bytes, and reading ends in proportion to the file, wherever a damaged page leads.
    With `log`, SQLite also reads what the program wrote last, beside the file. Raises sqlite3.Error, OSError.
    """
    real = Path(os.path.realpath(path))
    how = "mode=ro" if log else "mode=ro&immutable=1"
    with closing(sqlite3.connect(f"{real.as_uri()}?{how}", uri=True)) as database:
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, longest)
        database.execute("PRAGMA trusted_schema = OFF")
        database.execute("PRAGMA cell_size_check = ON")
        asked, most = count(1), (_STEPS + _STEPS_A_BYTE * real.stat().st_size) // _OFTEN
        database.set_progress_handler(lambda: next(asked) > most, _OFTEN)
        yield database


def has_table(database: sqlite3.Connection, table: str, /) -> bool:
    """Whether a database of another program has a table.

    Nothing of such a file is run: a view, a virtual table or a computed column may go on for ever.

    Raises:
        FormatError: what has this name is no plain table.
    """
    row = database.execute("SELECT type, sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if row is None:
        return False
    computed = any(hidden in _COMPUTED for *_, hidden in database.execute(f"PRAGMA table_xinfo({table})"))
    if computed or row[0] != "table" or "VIRTUAL" in str(row[1]).upper():
        raise FormatError(f"its {table} is no plain table: reading it would run something")
    return True


class _Bounded(io.RawIOBase):
    """The first bytes of a file, for one that grows while it is read."""

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file, self._size = file, size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        if whence == io.SEEK_END:
            return self._file.seek(max(0, self._size + offset))
        return self._file.seek(offset, whence)

    def readinto(self, buffer: memoryview, /) -> int | None:  # type: ignore[override]
        return self._file.readinto(memoryview(buffer)[: max(0, self._size - self._file.tell())])

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        super().close()

"""A new bank comes to its place whole, with its tables: a file without a byte was never a bank."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from lessonbank._base.atomic_write import abandon, begin, synced
from lessonbank.errors import StoreUnavailable

from ._errors import unavailable
from ._schema import make_tables


def create(path: Path, /) -> None:
    """Make the bank where nothing is, for its owner alone. Of several that do so at once, the first one's stays.

    Raises:
        StoreUnavailable: an empty file is there, or the tables cannot be written.
    """
    if path.exists():
        _refuse_empty(path)
        return
    part: Path | None = None
    try:
        with suppress(OSError):  # SQLite says later what is wrong with the place
            part = begin(path)
            part.chmod(0o600)
            _fill(part)
            _name(synced(part), path)
    except sqlite3.Error as error:
        raise unavailable(error, path) from error
    finally:
        if part is not None:
            abandon(part)


def _refuse_empty(path: Path) -> None:
    if path.is_file() and path.stat().st_size == 0:
        raise StoreUnavailable(
            f"{path} is an empty file and no bank: it was cut to nothing, or another program made it; "
            "restore a backup over it, or delete it to begin a new bank"
        )


def _fill(part: Path) -> None:
    with closing(sqlite3.connect(part, isolation_level=None)) as connection:
        # A crash throws the part away, and `synced` brings it to the disk.
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        make_tables(connection, part)


def _name(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links
        if not path.exists():
            part.rename(path)

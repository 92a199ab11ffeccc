"""A checksum for what nothing else in the file could contradict: times, names, settings, vectors."""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Iterator
from time import monotonic
from typing import Final

from lessonbank.errors import StoreDamaged
from lessonbank.stores._texts import checked


def stored(column: str, /) -> str:
    """SQL that selects a record's checksum and text as one value for `checked`. Null where there is no text."""
    return f"CAST(coalesce({column}_sum, '') || ' ' || {column} AS BLOB)"


def keep_setting(connection: sqlite3.Connection, key: str, value: str, /) -> None:
    """Keep a value with the file, and its checksum beside it."""
    row = key, value, checksum(key, value)
    connection.execute("INSERT OR REPLACE INTO settings (key, value, sum) VALUES (?, ?, ?)", row)


VECTORS: Final = "SELECT sum, space, key, vector FROM vectors"
_RECORDS: Final = (
    f"SELECT {stored('entry')} FROM journal",
    f"SELECT {stored('record')} FROM experiences WHERE record IS NOT NULL",
    f"SELECT {stored('record')} FROM trajectories",
    f"SELECT {stored('record')} FROM recalls",
)


def checksum(*values: bytes | str | int | None) -> int:
    """CRC-32 of a row's values. Records have one of their own, see `stored`."""
    total = 0
    for value in values:
        total = zlib.crc32(value if isinstance(value, bytes) else f"{value!r};".encode(), total)
    return total


def check_rows(
    connection: sqlite3.Connection, /, *, seconds: float = math.inf, records: bool = True
) -> tuple[str, str]:
    """What is wrong with the first record, and with the first vector, that is not what was written.

    Empty where none is found in `seconds`. A rebuild drops such a vector; a record is lost.
    """
    end = monotonic() + seconds
    vector, record = (
        next((problem for problem in rows(connection) if problem or monotonic() > end), "")
        for rows in (_vectors, _records if records else _nothing)
    )
    return record, vector


def _nothing(connection: sqlite3.Connection) -> Iterator[str]:
    return iter(())


def _vectors(connection: sqlite3.Connection) -> Iterator[str]:
    for total, *values in connection.execute(VECTORS):
        yield "" if total == checksum(*values) else "a vector is not what was written"


def _records(connection: sqlite3.Connection) -> Iterator[str]:
    for sql in _RECORDS:
        for (record,) in connection.execute(sql):
            try:
                checked(record)
                yield ""
            except StoreDamaged as error:
                yield str(error)

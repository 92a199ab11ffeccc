"""A checksum for what nothing else in the file could contradict: times, names, settings, vectors."""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Iterator
from time import monotonic
from typing import Final

from lessonbank.errors import StoreDamaged
from lessonbank.stores._packing import unpacked

VECTORS: Final = ("SELECT sum, space, key, vector FROM fresh", "SELECT sum, space, keys, vectors FROM blocks")
_RECORDS: Final = (
    "SELECT entry FROM journal",
    "SELECT record FROM experiences WHERE record IS NOT NULL",
    "SELECT record FROM trajectories",
    "SELECT record FROM recalls",
)


def checksum(*values: bytes | str | int | None) -> int:
    """CRC-32 of a row's values. Records have one of their own, see `_packing`."""
    found = 0
    for value in values:
        found = zlib.crc32(value if isinstance(value, bytes) else f"{value!r};".encode(), found)
    return found


def check_rows(
    connection: sqlite3.Connection, /, *, seconds: float = math.inf, records: bool = True
) -> tuple[str, str]:
    """What is wrong with the first record, and with the first vector, that is not what was written.

    Empty where none is found in `seconds`. A rebuild drops such a vector; a record is lost.
    """
    end = monotonic() + seconds
    vector, record = (
        next((said for said in rows(connection) if said or monotonic() > end), "")
        for rows in (_vectors, _records if records else _nothing)
    )
    return record, vector


def _nothing(connection: sqlite3.Connection) -> Iterator[str]:
    return iter(())


def _vectors(connection: sqlite3.Connection) -> Iterator[str]:
    for sql in VECTORS:
        for kept, *values in connection.execute(sql):
            yield "" if kept == checksum(*values) else "a vector is not what was written"


def _records(connection: sqlite3.Connection) -> Iterator[str]:
    for sql in _RECORDS:
        for (record,) in connection.execute(sql):
            try:
                unpacked(record)
                yield ""
            except StoreDamaged as error:
                yield str(error)

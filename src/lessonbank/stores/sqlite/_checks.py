"""A checksum for what nothing else in the file could contradict: times, names, settings, vectors."""

from __future__ import annotations

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


def changed_rows(connection: sqlite3.Connection, /, *, seconds: float) -> str:
    """What is wrong with the first vector or record that is not what was written; empty where `seconds` found none."""
    end = monotonic() + seconds
    return next((said for said in _each_row(connection) if said or monotonic() > end), "")


def _each_row(connection: sqlite3.Connection) -> Iterator[str]:
    for sql in VECTORS:
        for kept, *values in connection.execute(sql):
            yield "" if kept == checksum(*values) else "a vector is not what was written"
    for sql in _RECORDS:
        for (record,) in connection.execute(sql):
            try:
                unpacked(record)
                yield ""
            except StoreDamaged as error:
                yield str(error)

"""A checksum for what nothing else in the file could contradict: times, names, settings, vectors."""

from __future__ import annotations

import zlib


def checksum(*values: bytes | str | int | None) -> int:
    """CRC-32 of a row's values. Records have one of their own, see `_packing`."""
    found = 0
    for value in values:
        found = zlib.crc32(value if isinstance(value, bytes) else f"{value!r};".encode(), found)
    return found

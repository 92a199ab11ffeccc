"""What every record needs before it is one: an id, a digest, the time."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime


def new_id() -> str:
    """A 128-bit, time-ordered id as 32 hex digits (RFC 9562 UUID version 7, sub-millisecond in `rand_a`)."""
    ms, ns = divmod(time.time_ns(), 1_000_000)
    tail = int.from_bytes(os.urandom(8), "big") >> 2
    value = ms << 80 | 0x7 << 76 | (ns * 4096 // 1_000_000) << 64 | 0b10 << 62 | tail
    return f"{value:032x}"


def digest(text: str) -> str:
    """SHA-256 of `text` as hex: proves later which exact words were shown or sent."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def now() -> datetime:
    """The present moment, in UTC."""
    return datetime.now(UTC)


# pydantic asks no factory that takes the other fields whether a value is the default one. It would ask `now` for the
# time while a record is written, and leave out a moment of the same tick of the clock.


def record_id(_: Mapping[str, object], /) -> str:
    """The id of a record that is made without one."""
    return new_id()


def record_time(_: Mapping[str, object], /) -> datetime:
    """The moment of a record that is made without one."""
    return datetime.now(UTC)

"""The clock of a file, by which runs are due and leases end: it does not jump when somebody sets the machine's clock.

All processes of a machine share a clock that counts from its start. The file keeps what to add to it: what the
machine's clock said when the first process of that start asked. Where a system does not name its starts, the file has
the machine's clock.
"""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path
from time import monotonic_ns
from typing import Final

from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.settings import FILE_CLOCK
from lessonbank.stores._records import microseconds

from ._checks import checksum, keep_setting

_START: Final = Path("/proc/sys/kernel/random/boot_id")


@cache
def _start_of_machine() -> str:
    try:
        return _START.read_text(encoding="ascii").strip()
    except (OSError, ValueError):  # another system than Linux
        return ""


def present(connection: sqlite3.Connection, machine: int | None = None, /) -> int:
    """The present moment in microseconds since 1970. In a transaction that reads, nothing is kept.

    `machine`: what the machine's clock says, where the caller has just read it.
    """
    machine, start = microseconds(now()) if machine is None else machine, _start_of_machine()
    if not start:
        return machine
    counted = monotonic_ns() // 1000
    row = connection.execute("SELECT value, sum FROM settings WHERE key = ?", (FILE_CLOCK,)).fetchone()
    if row and row[1] == checksum(FILE_CLOCK, row[0]) and row[0].startswith(f"{start} "):
        return counted + int(row[0].removeprefix(f"{start} "))
    if not connection.execute("PRAGMA query_only").fetchone()[0]:
        keep_setting(connection, FILE_CLOCK, f"{start} {machine - counted}")
    return machine

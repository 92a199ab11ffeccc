"""Which process looks a file over, and on which day it was found sound: a file is read whole once, and not by all."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Final

from lessonbank.contracts.records.settings import LOOKED_AT, LOOKED_OVER

from ._checks import checksum, keep_setting
from ._clock import present

_CLAIM: Final = 3_000_000
"""Microseconds for which others leave the look to a process that began it, and may have ended since."""


def is_looked_over(connection: sqlite3.Connection, identity: tuple[int, int] | None, /) -> bool:
    """Whether this very file was found sound today: then nobody else need read it whole before it is changed."""
    row = connection.execute("SELECT value, sum FROM settings WHERE key = ?", (LOOKED_OVER,)).fetchone()
    value = _today(identity)
    return row == (value, checksum(LOOKED_OVER, value))


def claim_look(connection: sqlite3.Connection, identity: tuple[int, int] | None, /) -> bool:
    """Have this process be the one that reads this very file; whether no other does.

    Where the others read it, too, each would take as many times longer.
    """
    at = present(connection)
    row = connection.execute("SELECT value FROM settings WHERE key = ?", (LOOKED_AT,)).fetchone()
    file, _, since = str(row[0]).rpartition(" ") if row else ("", "", "0")
    if file == str(identity) and since.isdigit() and 0 <= at - int(since) < _CLAIM:
        return False
    keep_setting(connection, LOOKED_AT, f"{identity} {at}")
    return True


def note_looked_over(connection: sqlite3.Connection, identity: tuple[int, int] | None, /) -> None:
    """Keep that the file was found sound."""
    keep_setting(connection, LOOKED_OVER, _today(identity))


def _today(identity: tuple[int, int] | None) -> str:
    return f"{identity} {datetime.now(UTC):%Y-%m-%d}"

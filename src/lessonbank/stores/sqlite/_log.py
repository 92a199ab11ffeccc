"""Empties the write-ahead log, in which erased bytes stand until then, while other processes read and write."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from anyio import sleep

from lessonbank.errors import StoreUnavailable

_HOLD: Final = 50
"""Milliseconds for which one try keeps others from writing while readers of this moment end."""
_PAUSES: Final = (0.005, 0.1)
"""Seconds after the first try, and after a late one: others get more time than a try takes from them."""


class Checkpoint(NamedTuple):
    """What one try to empty the log came to."""

    is_busy: bool = False
    """Whether the log is not empty, because others used it."""
    frames: int = 0
    """Pages in the log; below 0 where another process was copying them to the file."""
    copied: int = 0
    """How many of them are in the file. A reader of an older state keeps back those that came after it."""


def checkpoint(connection: sqlite3.Connection, /) -> Checkpoint:
    """Try once. What can be copied while others write is copied first."""
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    connection.execute(f"PRAGMA busy_timeout = {_HOLD}")
    busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute("PRAGMA busy_timeout = 0")
    return Checkpoint(bool(busy), frames, copied)


async def empty_log(attempt: Callable[[], Awaitable[Checkpoint]], path: Path, /, *, patience: float) -> None:
    """Try until the log is empty, for `patience` seconds.

    SQLite itself waits for readers and writers, but not for another process that copies pages to the file.

    Raises:
        StoreUnavailable: others used the log all the time.
    """
    deadline, pause, is_whole = monotonic() + patience, _PAUSES[0], set[bool]()
    while (checkpoint := await attempt()).is_busy:
        if checkpoint.frames >= 0:
            is_whole.add(checkpoint.copied >= checkpoint.frames)
        if monotonic() > deadline:
            raise StoreUnavailable(_left_in_log(path, held_back=is_whole == {False}, seconds=patience))
        await sleep(random.uniform(pause / 2, pause))
        pause = min(2 * pause, _PAUSES[1])


def _left_in_log(path: Path, *, held_back: bool, seconds: float) -> str:
    left = f"what was erased may still be read in the log of {path}"
    if held_back:
        return f"{left}, because another reader holds an older state: end it, then rebuild"
    return f"{left}, because other processes used it without a pause for {seconds:g} s: rebuild when they do less"

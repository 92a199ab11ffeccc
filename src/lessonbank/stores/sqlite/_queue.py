"""Who writes next, among processes: each waits for the one that came before it, so that none is passed over.

SQLite's own waiting is a lottery: of four processes that wrote all the time, the luckiest took 38 % of the turns and
the unluckiest waited for seconds. Here every writer draws a number and holds a lock on the byte of that number; it
waits for the byte before its own. The kernel frees the bytes of a process that dies. The queue only says who is next:
exclusion is SQLite's, so that a queue that is missing or overtaken costs fairness and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

try:
    import fcntl as _fcntl
except ImportError:
    _fcntl = None

_locks: Final[Any] = _fcntl if hasattr(_fcntl, "F_OFD_SETLK") else None
"""Linux has locks of its own for each open file. Elsewhere there is no queue, but SQLite's own waiting."""

SUFFIX: Final = "-queue"
"""What the queue's file is called after the bank's own name. It may be deleted whenever nobody writes."""
PATIENCE: Final = 0.8
"""Seconds a writer waits for the one before it: a process that was stopped in the queue must not stop the others."""

_DESK: Final = 0
"""The byte whose holder draws a number."""
_FIRST: Final = 1 << 20
"""The byte of number 0."""
_NUMBERS: Final = struct.Struct("<QQ")
"""The next number to be drawn, and the last one whose turn came."""
_REQUEST: Final = struct.Struct("hhqqi4x")
"""`struct flock`: what, from where, first byte, how many, whose."""
_TO_THE_END: Final = 0
"""How many bytes, where all that follow are meant."""
_LAST: Final = 1 << 62
"""No number is larger, unless the file is damaged: then counting begins anew."""
_STEP: Final = 0.0001
_LONGEST_STEP: Final = 0.002


class Queue:
    """The queue of one bank file, as one process stands in it. Not for several threads at once."""

    def __init__(self, path: Path, /) -> None:
        self._path = path.with_name(path.name + SUFFIX)
        self._file: int | None = None

    @contextmanager
    def turn(self, patience: float = PATIENCE, /) -> Generator[None]:
        """Wait until the writers that came before are done or gone, `patience` seconds at most."""
        number = self._draw() if self._opened() else None
        try:
            if number is not None:
                self._await(number, patience)
            yield
        finally:
            if number is not None:
                self._free(_FIRST + number)

    def close(self) -> None:
        """Leave for good."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _opened(self) -> bool:
        if _locks is None:
            return False
        if self._file is None:
            with contextlib.suppress(OSError):
                self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        return self._file is not None

    def _draw(self) -> int | None:
        """A number, its byte held. None where the file system has no locks, or a stopped process holds the desk."""
        try:
            if not self._wait_for(_DESK, lambda: _STEP, PATIENCE):
                return None
            number, served = self._numbers()
            drawn = self._ask(_FIRST + number, _locks.F_WRLCK)
            os.pwrite(self._fd, _NUMBERS.pack(number + 1, served), 0)
        except OSError:
            return None
        finally:
            self._free(_DESK)
        return number if drawn else None

    def _await(self, number: int, patience: float) -> None:
        def step() -> float:
            ahead = number - self._numbers()[1]
            return min(max(ahead - 1, 1) * _STEP, _LONGEST_STEP)

        with contextlib.suppress(OSError):
            if self._wait_for(_FIRST + number - 1, step, patience):
                self._free(_FIRST + number - 1)
            os.pwrite(self._fd, struct.pack("<Q", number), _NUMBERS.size // 2)

    def _wait_for(self, byte: int, step: Callable[[], float], patience: float) -> bool:
        deadline = time.monotonic() + patience
        while not self._ask(byte, _locks.F_WRLCK):
            if time.monotonic() > deadline:
                return False
            time.sleep(step())
        return True

    def _numbers(self) -> tuple[int, int]:
        data = os.pread(self._fd, _NUMBERS.size, 0)
        number, served = _NUMBERS.unpack(data) if len(data) == _NUMBERS.size else (1, 0)
        return (number, served) if 0 < number < _LAST and served < _LAST else (1, 0)

    def _free(self, byte: int) -> None:
        with contextlib.suppress(OSError):
            self._ask(byte, _locks.F_UNLCK)

    def _free_all(self) -> None:
        with contextlib.suppress(OSError):
            if self._file is not None:
                self._ask(_DESK, _locks.F_UNLCK, many=_TO_THE_END)

    def _ask(self, byte: int, what: int, *, many: int = 1) -> bool:
        request = _REQUEST.pack(what, os.SEEK_SET, byte, many, 0)
        try:
            _locks.fcntl(self._fd, _locks.F_OFD_SETLK, request)
        except (BlockingIOError, PermissionError):
            return False
        return True

    @property
    def _fd(self) -> int:
        return -1 if self._file is None else self._file

"""What was committed without waiting for the disk is brought there a moment later, many commits at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_SOON: Final = 0.05
"""Seconds after which it is done: all that was committed in the meantime goes with it."""
_IDLE: Final = 5.0
"""Seconds without such a commit after which the thread ends; the next one starts another."""


class Syncing:
    """Calls `sync` soon after something was said to be `due`, in a thread of its own."""

    def __init__(self, sync: Callable[[], None], /, *, soon: float = _SOON) -> None:
        self._sync, self._soon = sync, soon
        self._state = threading.Condition()
        self._thread: threading.Thread | None = None
        self._due = self._stopped = False

    def due(self) -> None:
        """Something was committed and not synced. Where no thread can be started, it is synced at once."""
        if self._due:
            return
        with self._state:
            self._due = waits = not self._stopped and self._running()
            self._state.notify_all()
        if not waits:
            self._sync()

    def stop(self) -> None:
        """Wait until what is due is synced, and let the thread end."""
        with self._state:
            self._stopped = True
            self._state.notify_all()
            self._state.wait_for(lambda: self._thread is None)

    def _running(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="lessonbank-sync", daemon=True)
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread
        return self._thread is not None

    def _run(self) -> None:
        while self._wait():
            self._sync()

    def _wait(self) -> bool:
        """Whether something is to be synced now, rather than nothing any more."""
        with self._state:
            if self._state.wait_for(lambda: self._due or self._stopped, timeout=_IDLE):
                self._state.wait_for(lambda: self._stopped, timeout=self._soon)
            if not self._due:
                self._thread = None
                self._state.notify_all()
                return False
            self._due = False
            return True


def synced(path: Path, /) -> None:
    """Wait until what was written to a file is on disk; where that fails, the next full commit says so."""
    with suppress(OSError):
        file = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0))
        try:
            getattr(os, "fdatasync", os.fsync)(file)
        finally:
            os.close(file)

"""Run async code from sync code on one private loop, whatever the caller's thread is doing.

One loop for the process keeps pooled connections and locks alive between calls. It starts on first use, never at
import, and is forgotten in a forked child, where its thread does not exist.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from lessonbank.errors import UsageError

log: Final = logging.getLogger("lessonbank")

_LAST_WORDS: Final = 0.5
"""Seconds that a call whose wait was interrupted has to end."""

A = TypeVar("A")
T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None


def run_sync(coroutine: Coroutine[Any, Any, T], /) -> T:
    """Wait for `coroutine` on the private loop; cancel it if the wait is interrupted.

    Raises:
        UsageError: called from the private loop itself (a sync hook or judge calling the sync bank).
    """
    loop = _private_loop()
    if threading.current_thread() is _thread:
        coroutine.close()
        raise UsageError(
            "a plain bank was called from its own event loop and would wait for itself: use the async bank there"
        )
    call = _Call(coroutine)
    try:
        loop.call_soon_threadsafe(call.begin)
        return call.done.result()
    except BaseException:
        if not call.done.done():
            loop.call_soon_threadsafe(call.end)
            with suppress(Exception):  # whatever it ends with: what it logs comes before a process that ends now
                call.done.result(_LAST_WORDS)
        raise


class _Call(Generic[T]):
    """A call that can be cancelled from the moment it is made: an interrupt may come before the loop has begun it."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], /) -> None:
        self.done = Future[T]()
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._coroutine)
        self._task.add_done_callback(self._hand_over)

    def end(self) -> None:
        if self._task is None:
            self._coroutine.close()
        else:
            self._task.cancel()

    def _hand_over(self, task: asyncio.Task[T], /) -> None:
        if task.cancelled():
            self.done.cancel()
        elif (error := task.exception()) is not None:
            self.done.set_exception(error)
        else:
            self.done.set_result(task.result())


def start(coroutine: Coroutine[Any, Any, T], /) -> Future[T]:
    """Begin `coroutine` on the private loop, and return at once."""
    return asyncio.run_coroutine_threadsafe(coroutine, _private_loop())


def begin(function: Callable[[A], object], argument: A, /) -> None:
    """Call `function(argument)` on the private loop soon, in the order of these calls, without waiting for it."""
    _private_loop().call_soon_threadsafe(function, argument)


def _private_loop() -> asyncio.AbstractEventLoop:
    global _loop, _thread
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_serve, args=(_loop,), name="lessonbank", daemon=True)
            _thread.start()
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Keep the loop going for the life of the process: an exit asked for inside a task ends that task's wait only.

    Without the loop every later call of every bank would wait for ever.
    """
    while True:
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):  # asyncio hands them to the waiting caller, then stops the loop
            pass
        except Exception as error:  # noqa: BLE001 - asyncio could not even tell of an error, as in a value's own `repr`
            log.warning("a call in the background failed: %s", type(error).__name__)


def _forget_loop() -> None:
    global _loop, _lock, _thread
    _loop, _lock, _thread = None, threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_loop)

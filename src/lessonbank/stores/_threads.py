"""The threads that do the work of a store. A call that nobody answers holds up no program that ends."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final, TypeAlias, TypeVar

from lessonbank.contracts.retrieve_options import PATIENCE
from lessonbank.errors import StoreUnavailable

T = TypeVar("T")
_Call: TypeAlias = tuple[Future[Any], Callable[..., Any], Sequence[Any]]
log: Final = logging.getLogger("lessonbank")
CLOSED: Final = "this store is closed: open it again"


class Threads:
    """At most so many threads, started as they are needed, for calls in their order.

    The interpreter joins the threads of `concurrent.futures` before it ends, however long that takes. These are given
    as long as an agent waits for its memory.
    """

    def __init__(self, most: int, /, *, name: str) -> None:
        self._most, self._name, self._process = most, name, os.getpid()
        self._todo, self._idle = SimpleQueue[_Call | None](), threading.Semaphore(0)
        self._lock, self._started, self._is_over = threading.Lock(), list[threading.Thread](), False
        self._calls = set[Future[Any]]()
        weakref.finalize(self, self._todo.put, None).atexit = False
        _used.add(self)

    def submit(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """What a thread makes of it. Raises StoreUnavailable: there is no thread any more, or none can be started."""
        call = Future[T]()
        with self._lock:
            if self._is_over:
                raise StoreUnavailable(CLOSED)
            if not self._idle.acquire(blocking=False) and len(self._started) < self._most:
                self._start()
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
            self._todo.put((call, work, arguments))
        return call

    def _start(self) -> None:
        name = f"{self._name}_{len(self._started)}"
        thread = threading.Thread(target=_work, args=(self._todo, self._idle), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise StoreUnavailable(f"no thread can be started ({error}): end some, try again") from None
        self._started.append(thread)

    def shutdown(self, *, wait: bool = True) -> None:
        """Take nothing more; with `wait`, return when all is done. Twice is fine."""
        with self._lock:
            self._is_over = True
            self._todo.put(None)
        for thread in self._started if wait else ():
            thread.join()

    def left(self, until: float, /) -> int:
        """How many calls are not done at that moment of the monotonic clock."""
        if self._process != os.getpid():
            return 0
        return len(wait(tuple(self._calls), timeout=max(until - monotonic(), 0.0)).not_done)


_used: Final = weakref.WeakSet[Threads]()


def _work(todo: SimpleQueue[_Call | None], idle: threading.Semaphore) -> None:
    while (job := todo.get()) is not None:
        call, work, arguments = job
        try:
            if call.set_running_or_notify_cancel():
                call.set_result(work(*arguments))
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the caller, not to this thread
            call.set_exception(error)
        del job, call, work, arguments  # what they hold must not live until the next one comes
        idle.release()
    todo.put(None)  # for the other threads


@atexit.register
def _leave() -> None:
    until = monotonic() + PATIENCE
    left = sum([threads.left(until) for threads in tuple(_used)])
    if left:
        log.warning(
            "the program ends, and %d calls to a bank had no answer within %g seconds: what was kept stays kept, and "
            "`runs.retry()` learns from what is pending",
            left,
            PATIENCE,
        )

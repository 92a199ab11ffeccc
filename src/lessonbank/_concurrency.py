"""Wait for several things at once, and for blocking things without holding the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from itertools import islice
from math import inf
from time import perf_counter, sleep, thread_time
from typing import Any, Final, TypeVar

import anyio
from anyio.lowlevel import RunVar

from .errors import NotFound, UsageError

T = TypeVar("T")

_STRETCH: Final = 0.000_5
_PAUSE: Final = 0.000_01
"""Seconds a thread works without a pause, and how long that is at least: Linux adds 50 microseconds.

Who waits for the interpreter may wake up too late for one pause: it should have two more within two milliseconds.
"""
_PORTION: Final = 512
"""What C goes through in a tenth of a millisecond, more or less."""


class Turn:
    """`async with turn`: one task after another. A lock for each event loop, because a lock belongs to one."""

    def __init__(self) -> None:
        self._locks: RunVar[anyio.Lock] = RunVar("turn")

    async def __aenter__(self) -> None:
        try:
            await self._lock().acquire()
        except RuntimeError as error:  # the lock is held by this very task
            raise UsageError(
                "a consolidator called `learn` or `consolidate` of its own bank: it decides only"
            ) from error

    async def __aexit__(self, *_: object) -> None:
        self._lock().release()

    def _lock(self) -> anyio.Lock:
        try:
            return self._locks.get()
        except LookupError:
            lock = anyio.Lock()
            self._locks.set(lock)
            return lock


def breathing(things: Iterable[T], /) -> Iterator[T]:
    """`things`, for a thread that does much with each: it pauses for a moment within every millisecond.

    Python lets another thread in after five milliseconds only, and an event loop must not wait for so long. Where
    `things` are rows of a statement, the pause is inside of its transaction.
    """
    due = _pauses.due()
    for thing in things:
        yield thing
        if perf_counter() > due:
            due = _pauses.take()


def portions(things: Iterable[T], /, *, size: int = _PORTION) -> Iterator[list[T]]:
    """`things` in lists short enough for one call into C, which lets nobody in: `breathing` between two of them."""
    rest = iter(things)
    return breathing(iter(lambda: list(islice(rest, size)), []))


def let_go(*many: dict[Any, Any]) -> None:
    """Empty dicts bit by bit: Python forgets all that nobody needs any more at once, and lets nobody in meanwhile."""
    for one in many:
        for _ in breathing(range(len(one))):
            one.popitem()


def rested() -> None:
    """This thread has just waited for something, and others had their turn: as good as a pause."""
    _pauses.rested()


class _Pauses(threading.local):
    """When this thread paused last: of many short loops, none of which is long, one after the other is."""

    _ended = 0.0
    _worked = 0.0
    """The time, and how long the thread had worked, at the end of the last pause."""

    def due(self) -> float:
        """When the next is due; never in an event loop, which lets itself wait."""
        if _in_loop():
            return inf
        return perf_counter() + max(0.0, self._worked + _STRETCH - thread_time())

    def take(self) -> float:
        """Pause, unless another loop around this one or inside of it just did; when the next is due."""
        if perf_counter() > self._ended + _STRETCH:
            sleep(_PAUSE)
            self.rested()
        return self._ended + _STRETCH

    def rested(self) -> None:
        """Count anew."""
        self._ended, self._worked = perf_counter(), thread_time()


_pauses: Final = _Pauses()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def if_there(found: Awaitable[T], /) -> T | None:
    """What is found, or nothing where that was erased, or never was."""
    try:
        return await found
    except NotFound:
        return None


async def gather(calls: Iterable[Callable[[], Awaitable[T]]], *, limit: int = 8) -> list[T]:
    """Results in the order of `calls`. The first failure cancels the rest and is raised as itself, not as a group."""
    todo = list(calls)
    results: dict[int, T] = {}
    slots = anyio.Semaphore(limit)

    async def run(position: int, call: Callable[[], Awaitable[T]]) -> None:
        async with slots:
            results[position] = await call()

    try:
        async with anyio.create_task_group() as tasks:
            for position, call in enumerate(todo):
                tasks.start_soon(run, position, call)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    if len(results) < len(todo):  # a task group takes a call that cancelled itself for one that it cancelled
        raise anyio.get_cancelled_exc_class()("a call cancelled itself")
    return [results[position] for position in range(len(todo))]

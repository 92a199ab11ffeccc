"""Wait for several things at once, or one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio
from anyio.lowlevel import RunVar

from .errors import NotFound, UsageError

T = TypeVar("T")


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

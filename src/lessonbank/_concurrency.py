"""Wait for several things at once, or one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

from .errors import NotFound

T = TypeVar("T")


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

"""Wait for several things at once, and for blocking things without holding the loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, cast

import anyio

T = TypeVar("T")


async def gather(calls: Iterable[Callable[[], Awaitable[T]]], *, limit: int = 8) -> list[T]:
    """Results in the order of `calls`. The first failure cancels the rest and is raised as itself, not as a group."""
    todo = list(calls)
    results: list[T | None] = [None] * len(todo)
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
    return cast("list[T]", results)

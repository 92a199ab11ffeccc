"""Records in portions: what is done with many of them can leave the event loop, and memory holds few of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import TypeVar, cast

T = TypeVar("T")


async def portions(records: AsyncIterator[T], /, *, size: int) -> AsyncGenerator[list[T]]:
    """Lists of up to `size` records, in order. The source is closed when the consumer leaves early."""
    held: list[T] = []
    async with aclosing(cast("AsyncGenerator[T]", records)) as source:
        async for record in source:
            held.append(record)
            if len(held) == size:
                yield held
                held = []
    if held:
        yield held

"""Records in batches: what is done with many of them can leave the event loop, and memory holds few of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from itertools import islice
from typing import TypeVar, cast

T = TypeVar("T")


def batches(things: Iterable[T], /, *, size: int = 512) -> Iterator[list[T]]:
    """Lists of up to `size` things, in order."""
    rest = iter(things)
    return iter(lambda: list(islice(rest, size)), [])


async def async_batches(records: AsyncIterator[T], /, *, size: int) -> AsyncGenerator[list[T]]:
    """The same of records that come one by one. The source is closed when the consumer leaves early."""
    held: list[T] = []
    async with aclosing(cast("AsyncGenerator[T]", records)) as source:
        async for record in source:
            held.append(record)
            if len(held) == size:
                yield held
                held = []
    if held:
        yield held

"""Records one after another: in batches, what is done with many of them can leave the event loop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Final, TypeVar, cast

T = TypeVar("T")
_PAGE: Final = 500


def batches(things: Iterable[T], /, *, size: int = 512) -> Iterator[list[T]]:
    """Lists of up to `size` things, in order."""
    rest = iter(things)
    return iter(lambda: list(islice(rest, size)), [])


def closing(records: AsyncIterator[T], /) -> aclosing[AsyncGenerator[T]]:
    """Records that come one by one. Their source is closed at the end of the block, wherever that is left."""
    return aclosing(cast("AsyncGenerator[T]", records))


async def every_record(page: Callable[..., Awaitable[Sequence[T]]], id_of: Callable[[T], str], /) -> AsyncGenerator[T]:
    """Every record of a list that is asked page by page: at most `limit`, `after` the id of the last one."""
    after: str | None = None
    while records := await page(limit=_PAGE, after=after):
        for record in records:
            yield record
        after = id_of(records[-1])


def each(page: Callable[..., Sequence[T]], id_of: Callable[[T], str], /) -> Iterator[T]:
    """Every record of a list that is asked page by page, where nothing is awaited."""
    after: str | None = None
    while records := page(limit=_PAGE, after=after):
        yield from records
        after = id_of(records[-1])


async def async_batches(records: AsyncIterator[T], /, *, size: int) -> AsyncGenerator[list[T]]:
    """Yield batches of records that come one by one. The source is closed when the consumer leaves early."""
    held: list[T] = []
    async with closing(records) as source:
        async for record in source:
            held.append(record)
            if len(held) == size:
                yield held
                held = []
    if held:
        yield held

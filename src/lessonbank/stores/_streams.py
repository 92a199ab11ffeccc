"""What a store's threads find, waited for in any event loop: one result, or the records of one snapshot in batches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any, Final, Protocol, TypeVar

import anyio
from anyio import to_thread

T = TypeVar("T")
R = TypeVar("R")

_FIRST: Final = 4
"""Records that a stream fetches first: some look at one alone."""
_BATCH: Final = 64
"""Records it fetches at a time then: to look through many more would take Python's collector milliseconds."""


class Connections(Protocol):
    """What does the work of a store, in threads."""

    def check_open(self) -> None:
        """Raise StoreUnavailable once it was closed."""
        ...

    def call(self, work: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """The future result of a call that takes a while."""
        ...

    def stream(self, sql: str, values: Sequence[Any], scope: str, /) -> Any:
        """The rows of a query, as one snapshot that is read in batches."""
        ...

    def take(self, stream: Any, count: int, /) -> Sequence[Any]:
        """The next rows of a stream, fewer at the end: the snapshot is given back then."""
        ...

    def done(self, stream: Any, /) -> None:
        """End a stream. Twice is fine."""
        ...

    def hurry(self, seconds: float, /) -> None:
        """Wait for nobody else longer than so many seconds from now on, also in calls under way."""
        ...

    def close(self) -> None:
        """Wait for calls under way, then let go of everything."""
        ...


def result(future: Future[T], /) -> Awaitable[T]:
    """What a thread returns, to be waited for in whatever event loop this is."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return to_thread.run_sync(future.result)
    return asyncio.wrap_future(future)


async def streamed(
    database: Connections, scope: str, sql: str, values: Sequence[Any], parse: Callable[[Any], R | None], /
) -> AsyncIterator[R]:
    """The rows of a query as records, from one snapshot, without those that `parse` makes nothing of."""
    opening = database.call(_begun, database, (sql, values, scope), parse)
    try:
        stream, batch, there_may_be_more = await result(opening)
    except BaseException:
        # Whoever asked is gone; a snapshot that nobody closes would be kept for ever.
        opening.add_done_callback(lambda opened: _abandon(database, opened))
        raise
    size = _FIRST
    try:
        while True:
            for record in batch:
                if record is not None:
                    yield record
            if not there_may_be_more:
                return
            size = min(8 * size, _BATCH)
            batch, there_may_be_more = await result(database.call(_taken, database, stream, size, parse))
    finally:
        if there_may_be_more:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(database.done, stream)


def _begun(
    database: Connections, query: tuple[str, Sequence[Any], str], parse: Callable[[Any], R]
) -> tuple[Any, list[R], bool]:
    """A stream, and what `_taken` gives of it first."""
    stream = database.stream(*query)
    try:
        return stream, *_taken(database, stream, _FIRST, parse)
    except BaseException:
        database.done(stream)
        raise


def _taken(database: Connections, stream: Any, count: int, parse: Callable[[Any], R]) -> tuple[list[R], bool]:
    """The next records, and whether there may be more."""
    rows = database.take(stream, count)
    return list(map(parse, rows)), len(rows) == count


def _abandon(database: Connections, opened: Future[tuple[Any, list[R], bool]]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        database.done(opened.result()[0])

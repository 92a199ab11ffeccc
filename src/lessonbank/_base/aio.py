"""Wait for several things at once, or one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from inspect import isawaitable
from typing import Any, Final, Generic, TypeVar, cast

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from lessonbank.errors import NotFound, StoreError, StoreUnavailable, UsageError

from .checks import kind

A = TypeVar("A")
T = TypeVar("T")
SOON: Final = 0.25
"""Seconds that a reader waits for a write it can do without."""
_LONG: Final = 8_000
"""Characters of a reply from which on it may take milliseconds to read."""


class TimeIsOver(StoreUnavailable):
    """What was waited for did not come in the time that there was."""


class PerLoop(Generic[T]):
    """One object for each event loop, such as a lock: what waits in one loop cannot be woken from another."""

    def __init__(self, make: Callable[[], T], /) -> None:
        self._make = make
        self._made: RunVar[T] = RunVar("made")

    def here(self) -> T:
        """Return the object of this event loop."""
        try:
            return self._made.get()
        except LookupError:
            made = self._make()
            self._made.set(made)
            return made


def first_error(error: BaseException, /) -> BaseException:
    """The failure that ended a group of tasks, however deep the group holds it; another error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


async def promised_answer(
    part: Callable[[A], object], argument: A, name: str, returns: str, fits: Callable[[object], bool], /
) -> Any:
    """What an async function of the caller's own answers. Raises UsageError: it is not async, or the answer misfits."""
    answer = part(argument)
    result = await cast("Awaitable[object]", answer) if isawaitable(answer) else None
    if not fits(result):
        got = kind(result if isawaitable(answer) else answer)
        raise UsageError(f"{name} takes an async function that returns {returns}; this one gave {got}")
    return result


async def get_or_none(record: Awaitable[T], /) -> T | None:
    """What is found, or nothing where that was erased, or never was."""
    try:
        return await record
    except NotFound:
        return None


async def read_reply(read: Callable[[str], T], reply: str, /) -> T:
    """`read(reply)`: in a thread where the reply is long, so that the event loop goes on meanwhile."""
    return read(reply) if len(reply) < _LONG else await to_thread.run_sync(read, reply)


async def try_write(write: Awaitable[object], /) -> str | None:
    """Wait a moment for a write that a reader can do without: why it was not done, or `None` where it was."""
    seconds = min(SOON, seconds_left() / 2)
    with anyio.move_on_after(seconds):
        try:
            await write
        except StoreError as error:
            return str(error)
        return None
    return f"other writers kept the bank busy for {seconds:.2g} seconds"


@contextmanager
def within(seconds: float | None, what: str, /) -> Generator[anyio.CancelScope]:
    """Inside, nothing is waited for after `seconds`; `None`: for as long as it takes. `what` says what was not done.

    It gives the limit, whose `deadline` can be moved.

    Raises:
        TimeIsOver: the time is over.
    """
    with anyio.move_on_after(seconds) as limit:
        yield limit
    if limit.cancelled_caught:
        raise TimeIsOver(f"{what} within {seconds:g} seconds: see what holds the bank, or give more patience=")


def seconds_left() -> float:
    """Until nobody waits any more for what is done here; infinity where nobody set a limit, as `within` does."""
    return max(anyio.current_effective_deadline() - anyio.current_time(), 0.0)


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
        raise first_error(group) from None
    if len(results) < len(todo):  # a task group takes a call that cancelled itself for one that it cancelled
        raise anyio.get_cancelled_exc_class()("a call cancelled itself")
    return [results[position] for position in range(len(todo))]

"""One lock for each scope and event loop, so that no tenant ever waits for another."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final
from weakref import WeakValueDictionary

import anyio
from anyio.lowlevel import RunVar

from .errors import UsageError

_NESTED: Final = "a consolidator may not call `learn` or `consolidate` of its own bank in the same scope"


class ScopeLocks:
    """`async with locks.of(scope)`: one task of the scope after another. A lock is forgotten when nobody holds it."""

    def __init__(self) -> None:
        self._locks: RunVar[WeakValueDictionary[str, anyio.Lock]] = RunVar("scope_locks")
        self._deciding: ContextVar[frozenset[str]] = ContextVar("deciding", default=frozenset())

    @asynccontextmanager
    async def of(self, scope: str, /) -> AsyncGenerator[None]:
        """Hold the lock of `scope`. Raises UsageError where this very task holds it already."""
        lock = self._lock(scope)
        try:
            await lock.acquire()
        except RuntimeError as error:
            raise UsageError(_NESTED) from error
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def deciding(self, scope: str, /) -> Generator[None]:
        """Note that a consolidator decides about `scope`. Raises UsageError where it does so already in this task."""
        inside = self._deciding.get()
        if scope in inside:
            raise UsageError(_NESTED)
        token = self._deciding.set(inside | {scope})
        try:
            yield
        finally:
            self._deciding.reset(token)

    def _lock(self, scope: str) -> anyio.Lock:
        try:
            locks = self._locks.get()
        except LookupError:
            locks = WeakValueDictionary[str, anyio.Lock]()
            self._locks.set(locks)
        return locks.setdefault(scope, anyio.Lock())

"""One lock for each scope and event loop, so that no tenant ever waits for another."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import anyio
from anyio.lowlevel import RunVar

from .errors import UsageError


class ScopeLocks:
    """`async with locks.of(scope)`: one task of the scope after another. A lock is forgotten when nobody holds it."""

    def __init__(self) -> None:
        self._locks: RunVar[WeakValueDictionary[str, anyio.Lock]] = RunVar("scope_locks")

    @asynccontextmanager
    async def of(self, scope: str, /) -> AsyncGenerator[None]:
        """Hold the lock of `scope`. Raises UsageError where this very task holds it already."""
        lock = self._lock(scope)
        try:
            await lock.acquire()
        except RuntimeError as error:
            raise UsageError("a consolidator may not call `learn` or `consolidate` of its own bank") from error
        try:
            yield
        finally:
            lock.release()

    def _lock(self, scope: str) -> anyio.Lock:
        try:
            locks = self._locks.get()
        except LookupError:
            locks = WeakValueDictionary[str, anyio.Lock]()
            self._locks.set(locks)
        return locks.setdefault(scope, anyio.Lock())

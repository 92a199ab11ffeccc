"""One lock for each scope and event loop, so that no tenant ever waits for another."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakValueDictionary

import anyio

from lessonbank.errors import UsageError

from .aio import PerLoop

_DECIDING: ContextVar[tuple[tuple[ScopeLocks, str], ...]] = ContextVar("deciding", default=())
"""Inside of whose consolidators this task is, and for which scopes."""


class ScopeLocks:
    """`async with locks.of(scope)`: one task of the scope after another. A lock is forgotten when nobody holds it."""

    def __init__(self) -> None:
        self._locks = PerLoop(WeakValueDictionary[str, anyio.Lock])

    @contextmanager
    def deciding(self, scope: str, /) -> Generator[None]:
        """A consolidator decides for `scope` within. Raises UsageError where it does so already, without end."""
        if (self, scope) in _DECIDING.get():
            raise UsageError(
                "a consolidator called `learn` or `consolidate` of its own bank: it may only return changes"
            )
        token = _DECIDING.set((*_DECIDING.get(), (self, scope)))
        try:
            yield
        finally:
            _DECIDING.reset(token)

    def of(self, scope: str, /) -> anyio.Lock:
        """The lock of `scope`."""
        return self._locks.here().setdefault(scope, anyio.Lock())

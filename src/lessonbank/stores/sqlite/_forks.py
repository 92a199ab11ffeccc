"""A fork keeps only one thread: each store lets its calls end before, and begins afresh in the child."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Final, Protocol

PATIENCE: Final = 5.0
"""Seconds a fork waits for the calls of other threads."""


class Forked(Protocol):
    """What a fork tells a store."""

    def before_fork(self) -> None:
        """Let the calls under way finish, and start no new ones."""
        ...

    def after_fork_in_parent(self) -> None:
        """Go on."""
        ...

    def after_fork_in_child(self) -> None:
        """Forget the threads and locks of the parent without touching them."""
        ...


_watched: weakref.WeakSet[Forked] = weakref.WeakSet()
inherited: Final[list[object]] = []
"""Kept alive for good: finalising what the parent still uses would use its locks."""


def watch(store: Forked, /) -> None:
    """Tell it of every fork from now on."""
    _watched.add(store)


def watched() -> tuple[Forked, ...]:
    """Every store of this process that was opened and is still in use somewhere."""
    return tuple(_watched)


def _each(step: Callable[[Forked], None]) -> Callable[[], None]:
    def run() -> None:
        for store in watched():
            step(store)

    return run


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_each(lambda store: store.before_fork()),
        after_in_parent=_each(lambda store: store.after_fork_in_parent()),
        after_in_child=_each(lambda store: store.after_fork_in_child()),
    )

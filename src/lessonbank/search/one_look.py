"""So that one decision searches for its task once: first for lessons that say the same, then for the topic."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeAlias

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Match

AROUND: Final = 20
"""How many experiences are asked for at least: as many as the topic of a task is told from."""


_Look: TypeAlias = dict[tuple[int, str, str], tuple[int, Sequence[Match]]]
"""By store, scope and task: how many were asked for, and what there was."""
_LOOK: ContextVar[_Look | None] = ContextVar("look", default=None)


@contextmanager
def one_look() -> Generator[None]:
    """Within, `by_words` asks a store for a task once. What is written meanwhile is not seen."""
    token = _LOOK.set({})
    try:
        yield
    finally:
        _LOOK.reset(token)


async def by_words(store: Store, task: str, /, *, scope: str, limit: int) -> Sequence[Match]:
    """What `Index.search` finds; within `one_look`, what it found before, if that was enough."""
    look = _LOOK.get()
    if look is None:
        return await store.search(task, scope=scope, limit=limit)
    key = id(store), scope, task
    asked, found = look.get(key, (0, ()))
    if asked < limit and len(found) == asked:  # fewer than were asked for are all that there are
        asked = max(limit, AROUND)
        found = await store.search(task, scope=scope, limit=asked)
        look[key] = asked, found
    return found[:limit]

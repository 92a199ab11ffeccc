"""So that one decision reads once what it needs of the bank: what its task finds, and lessons that come again."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Lesson, Match

AROUND: Final = 20
"""How many experiences are asked for at least: as many as the topic of a task is told from."""
_Key: TypeAlias = tuple[int, str, str]
"""A store, a scope, and a task or an id."""


@dataclass(frozen=True, slots=True)
class _Cache:
    matches: dict[_Key, tuple[int, Sequence[Match]]] = field(default_factory=dict[_Key, tuple[int, Sequence[Match]]])
    """By task: how many were asked for, and what there was."""
    lessons: dict[_Key, Lesson] = field(default_factory=dict[_Key, Lesson])
    """By id."""


_CACHE: ContextVar[_Cache | None] = ContextVar("reads", default=None)


@contextmanager
def cached_reads() -> Generator[None]:
    """Within, a store is asked for nothing twice. What is written meanwhile is not seen."""
    token = _CACHE.set(_Cache())
    try:
        yield
    finally:
        _CACHE.reset(token)


async def by_words(store: Store, task: str, /, *, scope: str, limit: int) -> Sequence[Match]:
    """What `Index.search` finds; within `cached_reads`, what it found before, if that was enough."""
    cache = _CACHE.get()
    if cache is None:
        return await store.search(task, scope=scope, limit=limit)
    key = id(store), scope, task
    asked, matches = cache.matches.get(key, (0, ()))
    if asked < limit and len(matches) == asked:  # fewer than were asked for are all that there are
        asked = max(limit, AROUND)
        matches = await store.search(task, scope=scope, limit=asked)
        cache.matches[key] = asked, matches
    return matches[:limit]


def note_lessons(store: Store, lessons: Iterable[Lesson], /, *, scope: str) -> None:
    """Within `cached_reads`, remember lessons of a scope that were read."""
    if cache := _CACHE.get():
        cache.lessons.update({(id(store), scope, lesson.id): lesson for lesson in lessons})


async def held_lessons(store: Store, ids: Collection[str], /, *, scope: str) -> Sequence[Lesson]:
    """The lessons of those ids that the scope has; within `cached_reads`, those that were read before as they were."""
    cache = _CACHE.get() or _Cache()
    known = {lesson_id: lesson for lesson_id in ids if (lesson := cache.lessons.get((id(store), scope, lesson_id)))}
    if missing := [lesson_id for lesson_id in ids if lesson_id not in known]:
        owners = await store.experiences("lesson", missing, scope=scope)
        known |= {lesson.id: lesson for owner in owners for lesson in owner.lessons if lesson.id in missing}
    return [known[lesson_id] for lesson_id in ids if lesson_id in known]

"""One look at a file tells what is nearest, and whether anything has no vector yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from lessonbank.contracts.ports import Nearest
from lessonbank.contracts.records import Experience, Replace
from lessonbank.contracts.store_calls import drop_index
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, SPACE, added, experience, lesson, towards

pytestmark = pytest.mark.anyio


async def three(store: SqliteStore) -> list[Experience]:
    made = [experience(f"task {n}", minute=n) for n in range(3)]
    await added(store, *made, along=[towards(n) for n in range(3)])
    return made


async def test_an_answer_is_complete_while_everything_has_a_vector(path: Path) -> None:
    store = await SqliteStore.open(path)
    await three(store)
    for axis in range(4):
        found = await store.nearest(towards(axis), scope=MINE, space=SPACE, limit=2)
        assert (len(found.matches), found.is_complete) == (2, True)
    await store.close()


async def test_it_is_not_as_soon_as_anybody_adds_what_has_no_vector(path: Path) -> None:
    ours, theirs = await SqliteStore.open(path), await SqliteStore.open(path)

    async def seen() -> tuple[int, bool]:
        found = await ours.nearest(towards(0), scope=MINE, space=SPACE, limit=9)
        return len(found.matches), found.is_complete

    (first, *_) = await three(ours)
    assert await seen() == (3, True)
    await added(theirs, new := experience("another"))
    assert await seen() == (3, False)
    await theirs.index({new.id: towards(1)}, scope=MINE, space=SPACE)
    assert await seen() == (4, True)
    await theirs.apply(
        [Replace(experience=first.model_copy(update={"task": "another task now"}))], scope=MINE, writer="tests"
    )
    assert await seen() == (3, False)
    await drop_index(theirs, scope=MINE, space=SPACE)
    assert await seen() == (0, False)
    await ours.close()
    await theirs.close()


async def test_an_empty_scope_has_nothing_near_and_nothing_missing(path: Path) -> None:
    store = await SqliteStore.open(path)
    assert await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9) == Nearest()
    await three(store)
    assert await store.nearest(towards(0), scope="other", space=SPACE, limit=9) == Nearest()
    await store.close()


async def test_lessons_without_a_vector_are_missing_in_a_space_of_lessons(path: Path) -> None:
    store = await SqliteStore.open(path)

    async def seen(*, lessons: bool) -> tuple[int, bool]:
        found = await store.nearest(towards(0), scope=MINE, space="lessons", limit=9, lessons=lessons)
        return len(found.matches), found.is_complete

    known = experience("task", lessons=(lesson(), lesson()))
    await added(store, known)
    await store.index({known.lessons[0].id: towards(0)}, scope=MINE, space="lessons")
    assert await seen(lessons=True) == (1, False)
    await store.index({known.lessons[1].id: towards(1)}, scope=MINE, space="lessons")
    assert await seen(lessons=True) == (2, True)
    assert await seen(lessons=False) == (2, False), "no task has a vector in this space"
    assert await seen(lessons=True) == (2, True)
    await store.close()

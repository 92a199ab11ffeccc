"""What may be found follows what the file says, whoever wrote it and however its vectors lie there."""

from __future__ import annotations

from pathlib import Path

import pytest
from _trouble import opened

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Replace, Rollback
from lessonbank.contracts.store_calls import purge_one
from lessonbank.errors import NotFound
from lessonbank.stores.sqlite._rows import PARTS
from lessonbank.testing.store_samples import MINE, SPACE, added, experience, lesson, towards

pytestmark = pytest.mark.anyio


async def near(store: Store, axis: int = 0, *, space: str = SPACE) -> list[tuple[str, float]]:
    found = (await store.nearest(towards(axis), scope=MINE, space=space, limit=99)).matches
    return [(m.experience.task, m.score) for m in found]


async def test_what_was_rolled_back_is_not_found_when_others_come(path: Path) -> None:
    async with opened(path) as store:
        await added(store, experience("kept"), along=[towards(0)])
        await added(store, experience("taken out"), along=[towards(0)])
        await store.apply([Rollback(to=1, reason="test")], scope=MINE, writer="tests")
        for n in range(5):
            await added(store, experience(f"later {n}"), along=[towards(4)])
            assert [task for task, score in await near(store) if score == 1.0] == ["kept"]
        await store.apply([Rollback(to=2, reason="test")], scope=MINE, writer="tests")
        assert {task for task, _ in await near(store)} == {"kept", "taken out"}


async def test_lessons_of_what_was_rolled_back_are_not_found(path: Path) -> None:
    async with opened(path) as store, opened(path) as other:
        kept, gone = experience("kept"), experience("taken out")
        await added(store, kept)
        await added(store, gone)
        vectors = {kept.lessons[0].id: towards(0), gone.lessons[0].id: towards(0)}
        await store.index(vectors, scope=MINE, space="lessons")
        assert len(await near(other, space="lessons")) == 2
        await store.apply([Rollback(to=1, reason="test")], scope=MINE, writer="tests")
        assert await near(store, space="lessons") == await near(other, space="lessons") == [("kept", 1.0)]


async def test_a_purged_scope_leaves_no_vector_in_a_matrix_that_showed_it(path: Path) -> None:
    async with opened(path) as store, opened(path) as other:
        await added(store, experience("before"), along=[towards(0)])
        assert await near(store) == await near(other) == [("before", 1.0)]
        await purge_one(store, "scope", "", scope=MINE, writer="tests", reason="test")
        await added(store, experience("after"), along=[towards(4)])
        assert await near(store) == await near(other) == [("after", 0.0)]


@pytest.mark.full
async def test_lessons_beyond_the_last_place_of_a_vector_touch_nobody_elses(path: Path) -> None:
    big = experience("big", lessons=[lesson(str(n)) for n in range(5000)])
    small = experience("small", minute=1, lessons=[lesson(str(n)) for n in range(50)])
    async with opened(path) as store:
        await added(store, big, small, along=[towards(0), towards(1)])
        missing = await store.unindexed(scope=MINE, space="lessons", limit=9999, lessons=True)
        assert [id for id, _ in missing] == [i.id for i in (*big.lessons[: PARTS - 1], *small.lessons)]
        await store.index({id: towards(2) for id, _ in missing}, scope=MINE, space="lessons")
        assert list(await store.unindexed(scope=MINE, space="lessons", limit=9999, lessons=True)) == []
        shorter = big.model_copy(update={"lessons": big.lessons[:2]})
        await store.apply([Replace(experience=shorter)], scope=MINE, writer="tests")
        assert await near(store, 1) == [("small", 1.0), ("big", 0.0)]
        assert len(await near(store, 2, space="lessons")) == 52
        every = (await store.nearest(towards(2), scope=MINE, space="lessons", limit=9999)).matches
        assert len(every) == 52


@pytest.mark.full
async def test_a_vector_of_an_lesson_beyond_the_last_place_is_refused(path: Path) -> None:
    async with opened(path) as store:
        big = experience(lessons=[lesson(str(n)) for n in range(PARTS)])
        await added(store, big)
        with pytest.raises(NotFound, match="no experience or lesson"):
            await store.index({big.lessons[-1].id: towards(0)}, scope=MINE, space="lessons")

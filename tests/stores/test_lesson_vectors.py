"""Vectors of lessons in a file: what another store sees of them, and what outlives a long life."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from lessonbank.contracts.ports import Store, Vectors
from lessonbank.contracts.records import Add, Change, Experience, Lesson, Replace, Restore, Retire, Rollback
from lessonbank.contracts.store_calls import care_of, drop_index, purge_one
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, experience, lesson, towards

pytestmark = pytest.mark.anyio
SPACE = "sample:8#lessons"


def vector_of(text: str) -> Vectors:
    """A unit vector that follows from a text."""
    seed = list(hashlib.sha256(text.encode()).digest()[:8])
    row = np.random.default_rng(seed).normal(size=8).astype(np.float32)
    return row / np.float32(np.linalg.norm(row))


def some_lessons(*titles: str, minute: int = 0) -> Experience:
    return experience(lessons=[lesson(title) for title in titles], minute=minute)


async def index(store: Store, *experiences: Experience) -> None:
    vectors = {i.id: vector_of(i.text) for e in experiences for i in e.lessons}
    await store.index(vectors, scope=MINE, space=SPACE)


async def apply(store: Store, *changes: Change) -> int:
    return (await store.apply(changes, scope=MINE, writer="tests"))[-1].sequence


async def titles(store: Store, *, limit: int = 999) -> set[str]:
    found = (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=limit)).matches
    return {i.title for match in found for i in match.experience.lessons if i.id == match.lesson_id}


async def test_another_store_on_the_same_file_sees_every_step(path: Path) -> None:
    one, other = await SqliteStore.open(path), await SqliteStore.open(path)
    first, second = some_lessons("a", "b"), some_lessons("c", minute=1)
    await added(one, first)
    await index(one, first)
    assert await titles(other) == {"a", "b"}
    await added(other, second)
    await index(other, second)
    assert await titles(one) == {"a", "b", "c"}
    before = await apply(one, Retire(lesson_ids=(first.lessons[0].id,), reason="test"))
    assert await titles(other) == {"b", "c"}
    retired, told = (first.lessons[n].model_copy(update=u) for n, u in enumerate(({"retired": True}, {"title": "z"})))
    await apply(other, Replace(experience=first.model_copy(update={"lessons": (retired, told)})))
    assert await titles(one) == {"c"}
    assert list(await one.unindexed(scope=MINE, space=SPACE, limit=9, lessons=True)) == [(told.id, told.text)]
    await one.index({told.id: towards(0)}, scope=MINE, space=SPACE)
    assert await titles(other) == {"c", "z"}
    await apply(other, Rollback(to=1, reason="test"))
    assert await titles(one) == await titles(other) == {"a"}
    await apply(one, Rollback(to=before, reason="test"))
    assert await titles(one) == await titles(other)
    await drop_index(one, scope=MINE, space=SPACE)
    assert await titles(other) == set()
    await one.close()
    await other.close()


# --- a long life -----------------------------------------------------------------------------------------------------

Deed = Callable[[Store], Awaitable[object]]


def changed(chance: random.Random, known: Experience, title: str) -> Experience:
    """The same experience with a lesson moved, dropped, reworded, put in, retired or restored; or another task."""
    lessons, at = list(known.lessons), chance.randrange(len(known.lessons))
    match chance.choice(("move", "drop", "reword", "insert", "turn", "task")):
        case "move":
            chance.shuffle(lessons)
        case "drop":
            del lessons[at]
        case "reword":
            lessons[at] = lessons[at].model_copy(update={"title": title})
        case "insert":
            lessons.insert(at, lesson(title))
        case "turn":
            lessons[at] = lessons[at].model_copy(update={"retired": not lessons[at].retired})
        case _:
            return known.model_copy(update={"task": title})
    return known.model_copy(update={"lessons": tuple(lessons)})


def a_change(chance: random.Random, known: list[Experience], last: int, title: str) -> Change:
    lessons = [i for e in known for i in e.lessons]
    filled = [e for e in known if e.lessons]
    chosen = chance.choice(lessons) if lessons else None
    kind = chance.choice(("add", "add", "replace", "replace", "retire", "rollback"))
    if kind == "rollback" and last:
        return Rollback(to=chance.randint(0, last), reason="test")
    if kind == "retire" and chosen:
        return (Restore if chosen.retired else Retire)(lesson_ids=(chosen.id,), reason="test")
    if kind == "replace" and filled:
        return Replace(experience=changed(chance, chance.choice(filled), title))
    return Add(
        experience=some_lessons(*(f"{title}.{n}" for n in range(chance.randint(0, 4))), minute=chance.randint(0, 5))
    )


async def a_deed(chance: random.Random, store: Store, title: str) -> Deed:
    """Something to be done to two stores alike."""
    known = [e async for e in store.scan(scope=MINE)]
    last = max([entry.sequence async for entry in store.journal(scope=MINE)], default=0)
    lessons = [i for e in known for i in e.lessons]
    kind = chance.choice(("change", "change", "change", "index", "index", "purge", "rebuild"))
    if kind == "index" and lessons:
        some = {i.id: vector_of(i.text) for i in chance.sample(lessons, chance.randint(1, len(lessons)))}
        return lambda each: each.index(some, scope=MINE, space=SPACE)
    if kind == "purge" and lessons:
        id = chance.choice(lessons).id
        return lambda each: purge_one(each, "lesson", id, scope=MINE, writer="tests", reason="test")
    if kind == "rebuild":
        return lambda each: care_of(each).rebuild()
    change = a_change(chance, known, last, title)
    return lambda each: each.apply([change], scope=MINE, writer="tests")


async def sound(store: Store) -> set[str]:
    """Each active lesson is found once by its own vector, or waits for one; nothing else is. Returns who waits."""
    active: dict[str, Lesson] = {i.id: i async for e in store.scan(scope=MINE) for i in e.active_lessons}
    waiting = dict(await store.unindexed(scope=MINE, space=SPACE, limit=9999, lessons=True))
    found = (await store.nearest(vector_of("q"), scope=MINE, space=SPACE, limit=9999)).matches
    assert sorted([*waiting, *(str(match.lesson_id) for match in found)]) == sorted(active)
    for match in found:
        told = active[str(match.lesson_id)]
        assert told in match.experience.lessons
        assert match.score == pytest.approx(float(vector_of(told.text) @ vector_of("q")), abs=1e-3)
    return set(waiting)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6 if "LESSONBANK_SOAK" in os.environ else 2))
async def test_through_a_long_life_every_lesson_is_found_as_itself_or_waits_for_its_vector(
    path: Path, seed: int
) -> None:
    chance, reference = random.Random(seed), SqliteStore.in_memory()
    one, other = await SqliteStore.open(path), await SqliteStore.open(path)
    for step in range(50):
        deed = await a_deed(chance, reference, f"{step}")
        await deed(chance.choice((one, other)))
        await deed(reference)
        assert await sound(one) == await sound(reference)
    again = await SqliteStore.open(path)
    assert await sound(other) == await sound(again)
    for store in (one, other, again, reference):
        await store.close()

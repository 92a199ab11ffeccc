"""What was purged is in no byte of the file: not in a tag, a vector or an index of words either."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Literal

import pytest
from _bytes import leftovers
from _trouble import files, opened

from lessonbank.contracts.ports import LessonFilter
from lessonbank.contracts.records import Edit, Replace, Rollback, Settlement
from lessonbank.contracts.store_calls import forget, purge_one
from lessonbank.stores._listing import tags
from lessonbank.stores._vectors import unit
from lessonbank.stores.sqlite._rows import to_blobs
from lessonbank.testing.store_purging import SECRET, asked
from lessonbank.testing.store_samples import MINE, START, added, collected, experience, lesson, towards, trajectory
from lessonbank.text.bm25 import words

pytestmark = pytest.mark.anyio


def holds(path: Path, row: object) -> bool:
    """Whether the bytes of a vector are anywhere in the files of a bank."""
    (blob,) = to_blobs([unit(row, what="a row")])
    return any(blob in file.read_bytes() for file in files(path))


async def test_a_purged_recall_is_in_no_byte_of_the_file(path: Path) -> None:
    async with opened(path) as store:
        recall = await asked(store, SECRET)
        known = experience().model_copy(update={"recall_id": recall.id})
        await added(store, known)
        done = Settlement(recall_id=recall.id, scope=MINE, outcome="success", template=SECRET)
        await store.apply([], scope=MINE, writer="tests", settlement=done)
        tag = next(iter(tags(recall.metadata)))
        assert leftovers(path, SECRET)
        assert any(tag in file.read_bytes() for file in files(path))
        await purge_one(store, "recall", recall.id, scope=MINE, writer="ana", reason="asked to")
        assert leftovers(path, SECRET, recall.id) == []
        assert not any(tag in file.read_bytes() for file in files(path))


async def test_a_forgotten_run_and_recall_are_in_no_byte_of_the_file(path: Path) -> None:
    async with opened(path) as store:
        await store.save_runs([trajectory(SECRET)], scope=MINE)
        settled, _ = await asked(store, SECRET), await asked(store, SECRET)
        done = Settlement(recall_id=settled.id, scope=MINE, outcome="success")
        await store.apply([], scope=MINE, writer="tests", settlement=done)
        assert leftovers(path, SECRET)
        await forget(store, scope=MINE, before=START + timedelta(days=36_500), writer="retention")
        assert leftovers(path, SECRET) == []


@pytest.mark.full
@pytest.mark.parametrize("what", ["lesson", "scope"])
async def test_purged_texts_words_and_vectors_are_gone(path: Path, what: str) -> None:
    known_lesson, row = lesson(f"{SECRET} first"), towards(3, tilt=0.37)
    known = experience("Plain task", lessons=(known_lesson, lesson("other")))
    async with opened(path) as store:
        await added(store, known, experience("kept"), along=[towards(0), towards(1)])
        for vector in (row, towards(5)):
            await store.index({known_lesson.id: vector}, scope=MINE, space="lessons")
            await store.index({known.lessons[1].id: vector}, scope=MINE, space="lessons")
        await store.index({known_lesson.id: row}, scope=MINE, space="lessons")
        earlier = known.model_copy(update={"lessons": (known_lesson,), "task": f"A task of {SECRET}"})
        if what == "scope":
            await store.apply([Replace(experience=earlier)], scope=MINE, writer="tests")
            await store.index({known_lesson.id: row}, scope=MINE, space="lessons")
            await store.apply([Rollback(to=2, reason=SECRET)], scope=MINE, writer="tests")
        assert leftovers(path, SECRET)
        assert holds(path, row)
        await purge_one(store, what, known_lesson.id, scope=MINE, writer="ana", reason="asked to")  # type: ignore[arg-type]
        assert leftovers(path, SECRET, known_lesson.id) == []
        assert not holds(path, row)
        assert len(await collected(store.scan(scope=MINE))) == (2 if what == "lesson" else 0)
        assert (await store.verify()).problems == []
    assert not holds(path, row)


@pytest.mark.full
@pytest.mark.parametrize("what", ["lesson", "scope"])
@pytest.mark.parametrize("tail", [1, 4], ids=["in the index", "waiting for it"])
async def test_no_index_knows_the_words_of_a_purged_lesson(
    path: Path, monkeypatch: pytest.MonkeyPatch, what: Literal["lesson", "scope"], tail: int
) -> None:
    monkeypatch.setattr("lessonbank.stores.sqlite._derived.TAIL", tail)
    known, other = lesson(f"first {SECRET}"), lesson("kept")
    async with opened(path) as store:
        await added(store, experience("one", lessons=(other,)), experience("two", lessons=(known,)))
        edit = Edit(
            lesson_id=known.id,
            title=f"then {SECRET}",
            description="",
            content="c",
            only_for_tasks=(),
            by="A",
            reason="",
        )
        await store.apply([edit], scope=MINE, writer="tests")
        assert (SECRET.lower() in words_of(path)) == (tail == 1)
        await purge_one(store, what, known.id, scope=MINE, writer="ana", reason="asked to")
        assert words_of(path) == (set(words(other.text)) if what == "lesson" and tail == 1 else set())
        assert [one.id for one in await store.lessons(LessonFilter(text=SECRET), scope=MINE)] == []
        assert (await store.verify()).problems == []


def words_of(path: Path) -> set[str]:
    """The words of lessons that the file's index holds."""
    with closing(sqlite3.connect(path)) as file:
        return {term.partition("x")[2] for (term,) in file.execute("SELECT term FROM lesson_counts")}

"""What was purged is not in the file any more: not in a row, an index, a free page or the log."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from _bytes import leftovers
from _trouble import BIG, files, opened
from any_text import any_text
from hypothesis import given
from hypothesis import strategies as st

from lessonbank.contracts.ports import LessonFilter
from lessonbank.contracts.records import Edit, Erasure, Replace, Rollback, Settlement
from lessonbank.contracts.store_calls import count_records, forget, purge_one
from lessonbank.errors import StoreUnavailable
from lessonbank.stores import _texts
from lessonbank.stores._listing import tags
from lessonbank.stores._mentions import naming
from lessonbank.stores._vectors import unit
from lessonbank.stores.sqlite import SqliteStore, _derived, _erased_bytes, _log
from lessonbank.stores.sqlite._arrays import to_blobs
from lessonbank.stores.sqlite._log import Checkpoint, empty_log
from lessonbank.testing.store_purging import SECRET, asked, everything, lived_in
from lessonbank.testing.store_samples import (
    MINE,
    SPACE,
    START,
    added,
    collected,
    experience,
    lesson,
    towards,
    trajectory,
)
from lessonbank.text.bm25 import words

pytestmark = pytest.mark.anyio


async def test_no_byte_of_a_purged_run_is_left(path: Path) -> None:
    store = await SqliteStore.open(path)
    run, *_ = await lived_in(store)
    assert leftovers(path, SECRET, run.id) == [SECRET, run.id]
    await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, SECRET, run.id) == []
    await store.close()
    assert leftovers(path, SECRET, run.id) == []


async def test_no_byte_of_an_earlier_version_is_left(path: Path) -> None:
    store = await SqliteStore.open(path)
    gone, plain = lesson(f"{SECRET} " * 50), lesson("plain")
    await added(store, *[experience(f"Task {n}") for n in range(30)])
    known = experience(lessons=(gone, plain))
    await added(store, known)
    await store.apply([Replace(experience=known.model_copy(update={"lessons": (plain,)}))], scope=MINE, writer="tests")
    await purge_one(store, "lesson", gone.id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, SECRET, gone.id) == []
    assert (await store.verify()).problems == []
    await store.close()


async def test_a_reader_of_an_older_state_is_named_and_a_rebuild_finishes(path: Path) -> None:
    store = await SqliteStore.open(path, busy_timeout=0.05)
    await store.save_runs([trajectory(BIG[:400_000])], scope=MINE)
    run, *_ = await lived_in(store)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM journal").fetchone()
    with pytest.raises(StoreUnavailable, match="another reader"):
        await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    assert SECRET not in await everything(store)
    assert any("purge was interrupted" in problem for problem in (await store.verify()).problems)
    log = Path(f"{path}-wal")
    assert log.stat().st_size < path.stat().st_size, "as long as somebody reads, the file is not written again"
    other.close()
    await store.rebuild()
    assert (await store.verify()).problems == []
    assert leftovers(path, SECRET, run.id) == []
    await store.close()


COPYING = """
import fcntl, sys
with open(sys.argv[1], "r+b") as shared:
    fcntl.lockf(shared, fcntl.LOCK_EX, 1, 121)
    print("held", flush=True)
    sys.stdin.readline()
"""
"""Holds what SQLite holds while it copies the log to the file."""


async def test_a_purge_waits_for_another_process_that_copies_the_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(path)
    run, *_ = await lived_in(store)
    told = [sys.executable, "-c", COPYING, f"{path}-shm"]
    with subprocess.Popen(told, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        pauses = list[float]()

        async def paused(seconds: float) -> None:
            pauses.append(seconds)
            other.communicate("end\n")

        monkeypatch.setattr(_log, "sleep", paused)
        await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    assert len(pauses) == 1
    assert leftovers(path, SECRET, run.id) == []
    assert (await store.verify()).problems == []
    await store.close()


@pytest.mark.full
@pytest.mark.parametrize("small", [0, 1 << 20])
async def test_purges_of_a_large_bank_end_while_other_processes_write(
    path: Path, monkeypatch: pytest.MonkeyPatch, small: int
) -> None:
    monkeypatch.setattr(_erased_bytes, "_SMALL", small)
    store = await SqliteStore.open(path)
    for _ in range(8):
        await added(store, *[experience(f"{BIG[at : at + 4000]}") for at in range(0, 400_000, 4000)])
    told = [sys.executable, str(Path(__file__).with_name("writer.py")), str(path)]
    writers = [subprocess.Popen([*told, name, "100000"], stdout=subprocess.PIPE, text=True) for name in "ab"]
    try:
        for _ in range(3):
            before = [writer.stdout.readline() for writer in writers if writer.stdout]
            run = trajectory(f"Move {SECRET}")
            await store.save_runs([run], scope=MINE)
            await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
            assert all(before)
        await store.save_runs([trajectory(SECRET)], scope=MINE)
        await forget(store, scope=MINE, before=datetime.now(UTC) + timedelta(days=1), writer="retention")
        await store.rebuild()
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert path.stat().st_size > 1000 * 4096
    assert leftovers(path, SECRET) == []
    assert (await store.verify()).problems == []
    await store.close()


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ([Checkpoint(is_busy=True, frames=9, copied=4), Checkpoint(is_busy=True, frames=-1, copied=-1)], "a reader"),
        ([Checkpoint(is_busy=True, frames=9, copied=4), Checkpoint(is_busy=True, frames=9, copied=9)], "use"),
        ([Checkpoint(is_busy=True, frames=-1, copied=-1)], "use"),
    ],
)
async def test_a_reader_is_blamed_only_where_one_held_pages_back_all_the_time(
    path: Path, monkeypatch: pytest.MonkeyPatch, told: list[Checkpoint], why: str
) -> None:
    clock, left = iter(range(99)), [*told]

    async def attempt() -> Checkpoint:
        return left.pop(0) if len(left) > 1 else left[0]

    async def paused(seconds: float) -> None:
        pass

    monkeypatch.setattr(_log, "sleep", paused)
    monkeypatch.setattr(_log, "monotonic", lambda: float(next(clock)))
    said = {"a reader": "another reader holds an older state", "use": "used it without a pause for 5 s"}[why]
    with pytest.raises(StoreUnavailable, match=said):
        await empty_log(attempt, path, patience=5.0)


async def test_to_erase_ten_lessons_reads_the_records_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size, ten = 300, 10
    store = await SqliteStore.open(path)
    every = [experience(f"Task {n}") for n in range(size)]
    await added(store, *every)
    read, plain = list[int](), _texts.checked

    def counted(data: bytes, /) -> bytes:
        read.append(len(data))
        return plain(data)

    monkeypatch.setattr("lessonbank.stores.sqlite._purge.checked", counted)
    lessons: list[tuple[Erasure, str]] = [("lesson", one.lessons[0].id) for one in every[:ten]]
    assert len(await store.purge(lessons, scope=MINE, writer="ana", reason="asked to")) == ten
    assert size <= len(read) < 2 * size
    assert (await count_records(store, scope=MINE)).lessons == size - ten
    assert (await store.verify()).problems == []
    await store.close()


async def test_to_erase_a_lesson_takes_no_word_of_another_out_of_the_index(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(path)
    every = [experience(f"Task {n} of zebra{n}") for n in range(300)]
    await added(store, *every)
    read, plain = list[str](), _derived.words

    def counted(text: str, /) -> list[str]:
        read.append(text)
        return plain(text)

    monkeypatch.setattr(_derived, "words", counted)
    for gone in (every[7], every[-1]):  # the last one's number is given out again
        await purge_one(store, "lesson", gone.lessons[0].id, scope=MINE, writer="ana", reason="asked to")
    assert read == [every[7].task, every[-1].task]
    await added(store, again := experience("Another zebra299"))
    assert leftovers(path, every[7].task, every[-1].task) == []
    assert [m.experience.id for m in await store.search("zebra299 zebra7", scope=MINE, limit=3)] == [again.id]
    assert len(await store.search("zebra8 zebra298", scope=MINE, limit=5)) == 2
    assert (await store.verify()).problems == []
    await store.close()


async def test_a_purged_scope_takes_vectors_of_another_dimension(path: Path) -> None:
    async with opened(path) as store:
        await added(store, experience(), along=[towards(0)])
        await purge_one(store, "scope", "", scope=MINE, writer="ana", reason="asked to")
        again, wider = experience(), np.append(towards(0), np.float32(0.0))
        await added(store, again, along=[wider])
        found = await store.nearest(wider, scope=MINE, space=SPACE, limit=1)
        assert [match.experience.id for match in found.matches] == [again.id]


async def test_a_purge_writes_no_run_that_it_does_not_concern(path: Path) -> None:
    store = await SqliteStore.open(path)
    runs = [trajectory(f"Task {n}") for n in range(20)]
    await store.save_runs(runs, scope=MINE)
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE written (id TEXT)")
        other.execute(
            "CREATE TRIGGER any_write AFTER UPDATE ON trajectories BEGIN INSERT INTO written VALUES (new.id); END"
        )
        await purge_one(store, "trajectory", runs[3].id, scope=MINE, writer="ana", reason="asked to")
        assert other.execute("SELECT id FROM written").fetchall() == []
    await store.close()


@pytest.mark.full
@given(st.lists(any_text(), min_size=1, max_size=4), any_text())
def test_few_ids_are_found_wherever_many_are(said: list[str], extra: str) -> None:
    text = json.dumps({extra: said}, ensure_ascii=False).encode()
    ids, others = said[:1], [f"no such id {n}" for n in range(20)]
    assert [*naming([(1, text)], ids)] == [*naming([(1, text)], [*ids, *others])] == [(1, text)]


# --- tags, vectors and words ------------------------------------------------------------------------------------------


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

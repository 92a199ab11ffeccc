"""What only a store in a file promises: it lasts, it is shared, it says clearly when it cannot be used."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import anyio
import pytest
from blockbuster import BlockBuster

from lessonbank.contracts.records import Add, Experience, Replace, Retire
from lessonbank.contracts.store_calls import (
    count_records,
    drop_index,
    every_recall,
    experience_of_lesson,
    experience_of_runs,
    get_setting,
    get_trajectory,
    list_scopes,
    pending_runs,
    settled_runs,
)
from lessonbank.errors import NotFound, StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import (
    MINE,
    SPACE,
    added,
    collected,
    experience,
    towards,
)

Fill = Callable[[Path], Awaitable[SqliteStore]]

pytestmark = pytest.mark.anyio

WRITER = Path(__file__).with_name("writer.py")


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Another process that adds `count` experiences and prints the id of each once it was acknowledged."""
    command = [sys.executable, str(WRITER), str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def answers(store: SqliteStore) -> list[object]:
    """Everything that can be asked of it."""
    return [
        await collected(store.scan(scope=MINE)),
        await collected(store.journal(scope=MINE)),
        await collected(every_recall(store, scope=MINE)),
        await pending_runs(store, scope=MINE),
        await count_records(store, scope=MINE),
        await list_scopes(store),
        await get_setting(store, "embedder"),
        await store.search("cancel the order or book boots", scope=MINE, limit=9),
        (await store.nearest(towards(0, tilt=0.4), scope=MINE, space=SPACE, limit=9)).matches,
        await store.unindexed(scope=MINE, space=SPACE, limit=9),
    ]


async def test_everything_is_there_after_reopening(path: Path, filled: Fill) -> None:
    store = await filled(path)
    before = await answers(store)
    await store.close()
    store = await SqliteStore.open(path)
    assert await answers(store) == before
    assert (await store.verify()).problems == []
    await store.close()


@pytest.mark.full
async def test_two_processes_that_write_lose_nothing(path: Path) -> None:
    store = await SqliteStore.open(path)
    writers = [writer(path, name, 100) for name in ("one", "two")]
    acknowledged = [await anyio.to_thread.run_sync(w.communicate) for w in writers]
    ids = {id for out, _ in acknowledged for id in out.split()}
    assert len(ids) == 200
    assert {e.id async for e in store.scan(scope=MINE)} == ids
    assert [entry.sequence async for entry in store.journal(scope=MINE)] == list(range(1, 201))
    assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=999)).matches) == 200
    assert (await store.verify()).problems == []
    await store.close()


async def test_a_killed_writer_loses_nothing_it_acknowledged(path: Path) -> None:
    for heard in (1, 7):
        process = writer(path, f"killed after {heard}", 10_000)
        assert process.stdout
        acknowledged = [process.stdout.readline().strip() for _ in range(heard)]
        process.send_signal(signal.SIGKILL)
        acknowledged += process.stdout.read().split()[:-1]  # the last line may have been cut
        process.wait()
        process.stdout.close()
        store = await SqliteStore.open(path)
        kept = {e.id: e async for e in store.scan(scope=MINE)}
        assert set(acknowledged) <= set(kept)
        assert (await store.verify()).problems == []
        assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9999)).matches) == len(kept)
        await store.close()


@pytest.mark.full
async def test_a_reader_sees_what_another_process_wrote(path: Path) -> None:
    store = await SqliteStore.open(path)
    known = experience("Something else")
    await added(store, known, along=[towards(0, tilt=2.0)])
    assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches) == 1
    with writer(path, "other", 3) as other:
        ids = other.communicate()[0].split()
    nearest = [m.experience.id for m in (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches]
    assert nearest == [*reversed(ids), known.id]
    assert len(await store.search("task of other", scope=MINE, limit=9)) == 3
    await store.close()


async def test_changes_of_another_store_reach_a_loaded_matrix(path: Path) -> None:
    ours, theirs = await SqliteStore.open(path), await SqliteStore.open(path)

    async def nearest() -> list[str]:
        return [m.experience.id for m in (await ours.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches]

    known = [experience(minute=n) for n in range(3)]
    await added(theirs, *known, along=[towards(0)] * 3)
    assert await nearest() == [known[2].id, known[1].id, known[0].id]
    await theirs.apply([Retire(lesson_ids=(known[1].lessons[0].id,), reason="x")], scope=MINE, writer="tests")
    assert await nearest() == [known[2].id, known[0].id]
    await theirs.index({known[2].id: towards(0, tilt=0.2)}, scope=MINE, space=SPACE)
    assert await nearest() == [known[0].id, known[2].id]
    renamed = known[0].model_copy(update={"task": "Another one"})
    await theirs.apply([Replace(experience=renamed)], scope=MINE, writer="tests")
    assert await nearest() == [known[2].id]
    await drop_index(theirs, scope=MINE, space=SPACE)
    assert await nearest() == []
    await ours.close()
    await theirs.close()


@pytest.mark.full
async def test_a_matrix_stays_right_through_many_changes(path: Path) -> None:
    store = await SqliteStore.open(path)
    known = [experience(minute=n) for n in range(30)]
    await added(store, *known, along=[towards(n % 8) for n in range(30)])
    for turn in range(90):
        await store.index({known[turn % 30].id: towards(turn % 7, tilt=0.1 * turn)}, scope=MINE, space=SPACE)
        ours = (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=30)).matches
    fresh = await SqliteStore.open(path)
    assert (await fresh.nearest(towards(0), scope=MINE, space=SPACE, limit=30)).matches == ours
    await store.close()
    await fresh.close()


async def test_an_unfinished_scan_does_not_keep_a_store_open(path: Path) -> None:
    store = await SqliteStore.open(path)
    await added(store, *[experience(minute=n) for n in range(500)])
    scan = store.scan(scope=MINE)
    await anext(scan)
    await added(store, experience(minute=999))
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await collected(scan)


async def test_deleted_indexes_are_rebuilt_to_the_same_answers(path: Path, filled: Fill) -> None:
    store = await filled(path)
    before = await answers(store)
    vectors = {e.id: towards(n) for n, e in enumerate([e async for e in store.scan(scope=MINE)])}
    await store.close()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("INSERT INTO word_index (word_index) VALUES ('delete-all')")
    for table in ("lessons", "attempts", "vectors"):
        raw.execute(f"DELETE FROM {table}")
    raw.execute("UPDATE indexed SET upto = 99")
    raw.execute("UPDATE scopes SET words = 0, documents = 0")
    raw.execute("UPDATE trajectories SET pending = 0")
    raw.close()
    store = await SqliteStore.open(path)
    assert len((await store.verify()).problems) >= 4
    await store.rebuild()
    waiting = await store.unindexed(scope=MINE, space=SPACE, limit=99)
    await store.index({id: vectors[id] for id, _ in waiting}, scope=MINE, space=SPACE)
    assert await answers(store) == before
    assert (await store.verify()).problems == []
    await store.close()


@pytest.fixture
def blocking_is_an_error() -> Iterator[None]:
    guard = BlockBuster()
    guard.activate()
    yield
    guard.deactivate()


@pytest.mark.usefixtures("blocking_is_an_error")
async def test_no_call_blocks_the_event_loop(path: Path, filled: Fill) -> None:
    store = await filled(path)
    await answers(store)
    known = (await collected(store.scan(scope=MINE)))[0]
    await experience_of_lesson(store, known.lessons[0].id, scope=MINE)
    await settled_runs(store, ["x"], scope=MINE)
    await experience_of_runs(store, ["x"], scope=MINE)
    await drop_index(store, scope=MINE, space=SPACE)
    await store.rebuild()
    await store.verify()
    with pytest.raises(NotFound):
        await get_trajectory(store, "x", scope=MINE)
    await store.close()


def test_a_store_can_be_used_from_several_event_loops(path: Path, filled: Fill) -> None:
    store = asyncio.run(filled(path))
    before = asyncio.run(answers(store))
    assert asyncio.run(answers(store)) == before
    asyncio.run(store.close())


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
async def test_a_store_works_on_both_sides_of_a_fork(path: Path) -> None:
    script = """
import asyncio, os, sys
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, SPACE, added, collected, experience, towards

store = asyncio.run(SqliteStore.open(sys.argv[1]))
known = [experience(f"Task {n}", minute=n) for n in range(3)]
asyncio.run(added(store, known[0], along=[towards(0)]))

async def use(new, count):
    await added(store, new, along=[towards(0)])
    found = (await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)).matches
    assert len(found) == count, found
    assert (await store.verify()).problems == []

child = os.fork()
if child == 0:
    asyncio.run(use(known[1], 2))
    asyncio.run(store.close())
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
asyncio.run(use(known[2], 3))
assert [e.id for e in asyncio.run(collected(store.scan(scope=MINE)))] == [e.id for e in known]
asyncio.run(store.close())
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_reading_never_writes(path: Path, filled: Fill) -> None:
    store = await filled(path)
    raw = sqlite3.connect(path)
    before = raw.execute("PRAGMA data_version").fetchone()
    await answers(store)
    await store.verify()
    assert raw.execute("PRAGMA data_version").fetchone() == before
    raw.close()
    await store.close()


async def test_a_cancelled_write_is_whole_or_absent(path: Path) -> None:
    store = await SqliteStore.open(path)
    new = [experience(minute=n) for n in range(300)]
    with anyio.move_on_after(0.005):
        await store.apply([Add(experience=e) for e in new], scope=MINE, writer="tests")
    kept: list[Experience] = await collected(store.scan(scope=MINE))
    assert kept in ([], new)
    assert (await store.verify()).problems == []
    await store.close()

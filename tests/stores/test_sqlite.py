"""What only a store in a file promises: it lasts, it is shared, it says clearly when it cannot be used."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from _trouble import Fill, looks
from blockbuster import BlockBuster

from lessonbank.contracts.records import Replace, Retire
from lessonbank.contracts.store_calls import (
    drop_index,
    experience_of_lesson,
    experience_of_runs,
    get_trajectory,
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

pytestmark = pytest.mark.anyio

WRITER = Path(__file__).with_name("writer.py")


def writer(path: Path, name: str, count: int) -> subprocess.Popen[str]:
    """Another process that adds `count` experiences and prints the id of each once it was acknowledged."""
    command = [sys.executable, str(WRITER), str(path), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_everything_is_there_after_reopening(path: Path, filled: Fill) -> None:
    store = await filled(path)
    before = await looks(store)
    await store.close()
    store = await SqliteStore.open(path)
    assert await looks(store) == before
    assert (await store.verify()).problems == []
    await store.close()


@pytest.mark.full
async def test_two_processes_that_write_lose_nothing(path: Path) -> None:
    store = await SqliteStore.open(path)
    writers = [writer(path, name, 40) for name in ("one", "two")]
    acknowledged = [await anyio.to_thread.run_sync(w.communicate) for w in writers]
    ids = {id for out, _ in acknowledged for id in out.split()}
    assert len(ids) == 80
    assert {e.id async for e in store.scan(scope=MINE)} == ids
    assert [entry.sequence async for entry in store.journal(scope=MINE)] == list(range(1, 81))
    assert len((await store.nearest(towards(0), scope=MINE, space=SPACE, limit=999)).matches) == 80
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


async def test_an_unfinished_scan_keeps_no_write_waiting_and_no_store_open(path: Path) -> None:
    store = await SqliteStore.open(path)
    await added(store, *[experience(minute=n) for n in range(500)])
    scan = store.scan(scope=MINE)
    await anext(scan)
    await added(store, experience(minute=999))
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await collected(scan)


@pytest.fixture
def blocking_is_an_error() -> Iterator[None]:
    guard = BlockBuster()
    guard.activate()
    yield
    guard.deactivate()


@pytest.mark.usefixtures("blocking_is_an_error")
async def test_no_call_blocks_the_event_loop(path: Path, filled: Fill) -> None:
    store = await filled(path)
    await looks(store)
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
    before = asyncio.run(looks(store))
    assert asyncio.run(looks(store)) == before
    asyncio.run(store.close())


async def test_reading_never_writes(path: Path, filled: Fill) -> None:
    store = await filled(path)
    raw = sqlite3.connect(path)
    before = raw.execute("PRAGMA data_version").fetchone()
    await looks(store)
    await store.verify()
    assert raw.execute("PRAGMA data_version").fetchone() == before
    raw.close()
    await store.close()

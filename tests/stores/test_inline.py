"""Short calls are made in the event loop, and never hold it up for somebody else or for much work."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import numpy as np
import pytest
from blockbuster import blockbuster_ctx

from lessonbank.stores.sqlite import SqliteStore, _inline, _ranking
from lessonbank.stores.sqlite._derived import TAIL
from lessonbank.stores.sqlite._inline import Lengthy, Pace
from lessonbank.testing._store_samples import MINE, SPACE, added, collected, experience, towards
from lessonbank.types import Recall

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(path: Path) -> AsyncGenerator[SqliteStore]:
    opened = await SqliteStore.open(path)
    yield opened
    await opened.close()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call is taken to be short."""
    monkeypatch.setattr(_inline, "_IN_A_ROW", 0)


async def where(store: SqliteStore, *, writing: bool = False) -> str:
    """The thread that a call is made in."""

    def name(_: sqlite3.Connection) -> str:
        return threading.current_thread().name

    return await (store._write_unsynced(name, small=True) if writing else store._find(name))


# --- how long is short ------------------------------------------------------------------------------------------------


async def test_a_call_is_short_once_a_few_like_it_were_and_no_more_after_one_that_was_not() -> None:
    pace = Pace()
    for _ in range(_inline._IN_A_ROW):
        assert not pace.is_short
        assert pace.timed(lambda: 1) == 1
    assert pace.is_short
    pace.took(_inline._SHORT)
    assert not pace.is_short


async def test_a_call_that_fails_counts_as_well() -> None:
    pace = Pace()
    for _ in range(_inline._IN_A_ROW):
        with pytest.raises(KeyError):
            pace.timed(lambda: {}["nothing"])
    assert pace.is_short


@pytest.mark.parametrize("writing", [False, True])
async def test_calls_come_into_the_event_loop_once_they_are_known_to_be_short(
    store: SqliteStore, writing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_inline, "_SHORT", 60.0)
    threads = [await where(store, writing=writing) for _ in range(_inline._IN_A_ROW + 1)]
    assert all(name.startswith("lessonbank-") for name in threads[:-1])
    assert threads[-1] == threading.current_thread().name


# --- for nobody does the loop stand still -----------------------------------------------------------------------------


@pytest.mark.usefixtures("at_once")
async def test_a_write_that_must_wait_for_another_process_leaves_the_loop(store: SqliteStore, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    receipt = Recall(scope=MINE, task="Cancel it")
    waiting = asyncio.ensure_future(store.record(receipt))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done, "and the loop came this far"
    other.execute("ROLLBACK")
    await waiting
    assert (await store.recall(receipt.id, scope=MINE)).task == "Cancel it"
    other.close()


@pytest.mark.usefixtures("at_once")
async def test_a_search_that_must_wait_for_its_matrix_leaves_the_loop(store: SqliteStore) -> None:
    await added(store, experience(), along=[towards(0)])
    assert await store.nearest(towards(0), scope=MINE, space=SPACE, limit=1)
    with store._matrices.slot(MINE, SPACE):
        waiting = asyncio.ensure_future(store.nearest(towards(0), scope=MINE, space=SPACE, limit=1))
        done, _ = await asyncio.wait([waiting], timeout=0.05)
        assert not done
    assert len(await waiting) == 1


@pytest.mark.usefixtures("at_once")
async def test_no_write_that_waits_for_the_disk_is_made_in_the_loop(store: SqliteStore) -> None:
    def name(_: sqlite3.Connection) -> str:
        return threading.current_thread().name

    assert await store._write(name) == "lessonbank-writer"


@pytest.mark.usefixtures("at_once")
async def test_a_receipt_goes_to_the_thread_while_that_has_something_to_write(store: SqliteStore) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> None:
        begun.set()
        go_on.wait(30)

    held = asyncio.ensure_future(store._write(hold))
    await asyncio.to_thread(begun.wait, 30)
    waiting = asyncio.ensure_future(where(store, writing=True))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    go_on.set()
    assert await waiting == "lessonbank-writer"
    await held


@pytest.mark.usefixtures("at_once")
async def test_a_write_in_the_loop_gives_other_tasks_their_turn(store: SqliteStore) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    other = asyncio.ensure_future(count())
    for _ in range(20):
        await store.record(Recall(scope=MINE, task="t"))
        await store.counts(scope=MINE)
    other.cancel()
    assert turns >= 20


# --- nor for much work ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("at_once")
async def test_what_others_wrote_in_bulk_is_taken_in_by_a_thread(store: SqliteStore, path: Path) -> None:
    await added(store, experience("first"), along=[towards(0)])
    assert await store.nearest(towards(0), scope=MINE, space=SPACE, limit=9)
    other = await SqliteStore.open(path)
    many = [experience(f"task {n}") for n in range(40)]
    await added(other, *many, along=[towards(n % 7) for n in range(40)])
    with pytest.raises(Lengthy):
        store._database.read(_asking(store), hurried=True)
    assert len(await store.nearest(towards(0), scope=MINE, space=SPACE, limit=99)) == 41
    store._database.read(_asking(store), hurried=True)
    await other.close()


def _asking(store: SqliteStore) -> Callable[[sqlite3.Connection], object]:
    def ask(file: sqlite3.Connection) -> object:
        query = np.asarray(towards(0), dtype=np.float32)
        return _ranking.nearest(
            file, store._matrices, query, scope=MINE, space=SPACE, limit=1, exclude=(), hurried=True
        )

    return ask


@pytest.mark.usefixtures("at_once")
async def test_answers_are_the_same_across_every_moment_at_which_a_thread_takes_over(store: SqliteStore) -> None:
    for number in range(3 * TAIL):
        await added(store, experience(f"odd{number} task", minute=number), along=[towards(number % 7)])
    assert not await store.verify()
    for number in (0, TAIL - 1, TAIL, 3 * TAIL - 1):
        (found,) = await store.search(f"odd{number}", scope=MINE, limit=1)
        assert found.experience.task == f"odd{number} task"
    assert (await store.counts(scope=MINE)).experiences == 3 * TAIL
    assert [entry.sequence async for entry in store.journal(scope=MINE)] == list(range(1, 3 * TAIL + 1))


@pytest.mark.usefixtures("at_once")
async def test_the_log_of_many_small_writes_is_emptied_again_and_again(store: SqliteStore, path: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    for _ in range(400):
        await store.record(Recall(scope=MINE, task="t" * 3000))
    await store.set_setting("written by", "the thread that empties it")
    assert log.stat().st_size < 2_000_000, "where nobody empties it, it grows by several pages a commit"


@pytest.mark.usefixtures("at_once")
async def test_a_write_that_fails_in_the_loop_has_changed_nothing(store: SqliteStore) -> None:
    def fail(file: sqlite3.Connection) -> None:
        file.execute("INSERT INTO settings (key, value) VALUES ('half', 'done')")
        raise KeyError

    with pytest.raises(KeyError):
        await store._write_unsynced(fail, small=True)
    assert await store.setting("half") is None
    assert await where(store, writing=True) == threading.current_thread().name


@pytest.mark.usefixtures("at_once")
async def test_several_loops_may_share_a_store_that_writes_in_them(path: Path) -> None:
    opened = await SqliteStore.open(path)

    async def write(number: int) -> None:
        for at in range(10):
            await opened.record(Recall(scope=MINE, task=f"task {number} {at}"))

    threads = [threading.Thread(target=asyncio.run, args=(write(number),)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert len(await collected(opened.receipts(scope=MINE))) == 40
    assert not await opened.verify()
    await opened.close()


# --- nor where somebody watches it ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("at_once")
async def test_where_a_loop_is_watched_for_calls_that_block_every_call_is_a_threads(path: Path) -> None:
    store = await SqliteStore.open(path)
    with blockbuster_ctx(scanned_modules=["lessonbank"]):
        new, receipt = experience("watched"), Recall(scope=MINE, task="t")
        await added(store, new, along=[towards(0)])
        await store.record(receipt)
        assert (await store.get(new.id, scope=MINE)).task == "watched"
        assert len(await store.nearest(towards(0), scope=MINE, space=SPACE, limit=1)) == 1
        assert len(await store.search("watched", scope=MINE, limit=1)) == 1
        assert (await where(store)).startswith("lessonbank-")
        assert (await where(store, writing=True)).startswith("lessonbank-")
    assert not await store.verify()
    await store.close()

"""Writes that share a commit share nothing else: neither their failures nor their cancelling."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from _trouble import opened

from lessonbank.contracts.store_calls import count_records
from lessonbank.errors import Conflict, StoreUnavailable
from lessonbank.stores.sqlite import _connection
from lessonbank.testing.store_samples import MINE, added, collected, experience

pytestmark = pytest.mark.full


@pytest.mark.anyio
async def test_a_store_that_gets_no_thread_says_so_and_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:

        def refuse(thread: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(StoreUnavailable, match="no thread can be started"):
                await added(store, experience())
        await added(store, experience())
        assert (await count_records(store, scope=MINE)).experiences == 1


@pytest.mark.anyio
async def test_writes_that_fail_take_nothing_with_them(path: Path) -> None:
    known = experience("known")
    async with opened(path) as store:
        await added(store, known)
        fine = [experience(f"fine {n}", minute=n) for n in range(100)]
        wrong = [added(store, known) for _ in range(20)]
        damaging = store._database.write(lambda file: file.execute("INSERT, not SQL"))
        answers = await asyncio.gather(*(added(store, e) for e in fine), *wrong, return_exceptions=True)
        assert [type(a) for a in answers].count(Conflict) == 20
        assert isinstance(damaging.exception(10), StoreUnavailable)
        assert {e.id for e in await collected(store.scan(scope=MINE))} == {known.id, *(e.id for e in fine)}
        assert (await store.verify()).problems == []


@pytest.mark.anyio
async def test_when_another_process_holds_the_file_all_that_wait_fail_after_one_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, plain = list[str](), _connection.patiently

    def counted(file: sqlite3.Connection, statement: str, /, **told: Any) -> sqlite3.Cursor:
        waits.append(statement)
        return plain(file, statement, **told)

    monkeypatch.setattr(_connection, "patiently", counted)
    async with opened(path, busy_timeout=0.3) as store:
        raw = sqlite3.connect(path, isolation_level=None)
        raw.execute("BEGIN IMMEDIATE")
        waits.clear()
        calls = (added(store, experience()) for _ in range(300))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(a) for a in answers} == {StoreUnavailable}
        assert 0 < len(waits) < 30, "those that are written together wait together"
        raw.execute("ROLLBACK")
        raw.close()
        await added(store, experience())
        assert (await count_records(store, scope=MINE)).experiences == 1


@pytest.mark.anyio
async def test_of_cancelled_writes_each_is_whole_or_absent(path: Path) -> None:
    async with opened(path) as store:
        known = [experience(minute=n) for n in range(60)]
        tasks = [asyncio.create_task(added(store, e)) for e in known]
        for _ in range(3):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        there = {e.id for e in await collected(store.scan(scope=MINE))}
        done = {e.id for e, answer in zip(known, answers, strict=True) if answer is None}
        assert {e.id for e in known[1::2]} <= done <= there
        assert [e.sequence for e in await collected(store.journal(scope=MINE))] == list(range(1, len(there) + 1))
        assert (await store.verify()).problems == []


@pytest.mark.anyio
async def test_a_process_may_end_while_writes_wait(path: Path) -> None:
    script = """
import asyncio, sys
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import added, experience

async def main():
    store = await SqliteStore.open(sys.argv[1])
    first = experience()
    await added(store, first)
    print(first.id)
    for _ in range(300):
        store._database.write(lambda file: file.execute("SELECT 1").fetchone())

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    async with opened(path) as store:
        assert [e.id for e in await collected(store.scan(scope=MINE))] == done.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.anyio
async def test_writes_that_wait_through_a_fork_are_done_once_and_by_the_parent(path: Path) -> None:
    async with opened(path) as store:
        known = [experience(minute=n) for n in range(40)]
        waiting = [asyncio.create_task(added(store, e)) for e in known]
        await asyncio.sleep(0)
        child = os.fork()
        if not child:
            # What waited is the parent's; the child begins with nothing.
            try:
                os._exit(0 if store._database.write(lambda file: "done").result(20) == "done" else 1)
            finally:
                os._exit(2)
        await asyncio.gather(*waiting)
        assert os.waitpid(child, 0)[1] == 0
        assert await collected(store.scan(scope=MINE)) == known
        assert (await store.verify()).problems == []

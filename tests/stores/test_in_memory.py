"""A bank in memory is the same bank, but for the file: nothing of it touches the disk, and it ends with its store."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lessonbank
from lessonbank.contracts.settings import File
from lessonbank.contracts.store_calls import count_records
from lessonbank.errors import UsageError
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, experience, trajectory

pytestmark = pytest.mark.anyio

WATCHED = """
import os, sys
import lessonbank
opened = []
def watch(event, told):
    if event == "open" and isinstance(told[2], int) and told[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        opened.append(told[0])
    if event in ("os.mkdir", "os.rename", "tempfile.mkstemp"):
        opened.append(told)
bank = lessonbank.connect(":memory:", scope="t", embedder="hashing")
for n in range(30):
    recall = bank.retrieve(f"cancel order {n}")
    bank.learn("I clicked", task=f"cancel order {n}", recall=recall, reward=1.0)
sys.addaudithook(watch)
before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
for n in range(30):
    bank.learn("I clicked " * 5000, task=f"cancel order {n}", recall=bank.retrieve(f"cancel order {n}"), reward=1.0)
bank.admin.rebuild(), bank.admin.verify(), bank.runs.list(), bank.history.list()
after = set(os.listdir("/proc/self/fd")) if before else set()
bank.close()
print(opened, len(after - before), os.listdir("."))
"""


@pytest.mark.full
async def test_nothing_of_it_touches_the_disk(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", WATCHED], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "[] 0 []", ran.stderr


async def test_a_backup_of_it_is_a_bank_in_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical") as bank:
        await bank.learn("I clicked", task="cancel the order", outcome="success")
        await bank.learn("my secret word is xylophone", task="say the word", outcome="success")
        await bank.admin.purge(run=(await bank.runs.list())[0].trajectory.id, reason="asked for")
        counts = await bank.admin.counts()
        await bank.admin.backup(copy)
    assert b"xylophone" not in copy.read_bytes()
    if os.name == "posix":
        assert copy.stat().st_mode & 0o777 == 0o600
    async with await lessonbank.connect_async(copy, scope="t", embedder="lexical") as bank:
        assert await bank.admin.counts() == counts
        assert await bank.admin.verify() == ()


async def test_opening_one_to_read_only_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing to read"):
        await lessonbank.connect_async(File(":memory:", read_only=True), scope="t", embedder="lexical")


def test_threads_with_loops_of_their_own_share_one() -> None:
    store = SqliteStore.in_memory()

    def work() -> None:
        asyncio.run(store.save_runs([trajectory() for _ in range(20)], scope=MINE))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asyncio.run(count_records(store, scope=MINE)).trajectories == 80
    asyncio.run(store.close())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_after_a_fork_each_process_has_its_own_copy() -> None:
    store = SqliteStore.in_memory()
    asyncio.run(added(store, experience()))
    hear, say = os.pipe()
    child = os.fork()
    if not child:
        asyncio.run(added(store, experience(minute=1)))
        found = asyncio.run(count_records(store, scope=MINE)).experiences
        os.write(say, str(found).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(hear, 9) == b"2"
    assert asyncio.run(count_records(store, scope=MINE)).experiences == 1
    asyncio.run(store.close())
    os.close(hear), os.close(say)


async def test_sorting_and_statement_journals_stay_in_memory() -> None:
    store = SqliteStore.in_memory()

    def told(connection: sqlite3.Connection) -> list[object]:
        return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("temp_store", "journal_mode")]

    assert await store._find(None, told) == [2, "memory"]
    await store.close()

"""What is committed without waiting for the disk reaches it a moment later, whatever happens in between."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from lessonbank.stores.sqlite import SqliteStore
from lessonbank.stores.sqlite._syncing import Syncing, synced
from lessonbank.testing._store_samples import MINE, settlement
from lessonbank.types import Recall


class Disk:
    """Counts how often it is waited for."""

    def __init__(self) -> None:
        self.syncs = 0
        self.synced = threading.Event()

    def __call__(self) -> None:
        self.syncs += 1
        self.synced.set()


def test_what_is_due_is_synced_soon_and_many_commits_at_once() -> None:
    disk = Disk()
    syncing = Syncing(disk, soon=0.02)
    for _ in range(100):
        syncing.due()
    assert disk.synced.wait(30)
    syncing.stop()
    assert disk.syncs == 1


def test_what_comes_after_a_sync_is_synced_as_well() -> None:
    disk = Disk()
    syncing = Syncing(disk, soon=0.0)
    for _ in range(3):
        disk.synced.clear()
        syncing.due()
        assert disk.synced.wait(30)
    syncing.stop()
    assert disk.syncs == 3


def test_stopping_waits_for_what_is_due() -> None:
    disk = Disk()
    syncing = Syncing(disk, soon=30)
    syncing.due()
    syncing.stop()
    assert disk.syncs == 1


def test_nothing_is_synced_where_nothing_is_due() -> None:
    disk = Disk()
    Syncing(disk).stop()
    assert disk.syncs == 0


def test_what_comes_after_the_end_is_synced_at_once() -> None:
    disk = Disk()
    syncing = Syncing(disk)
    syncing.stop()
    syncing.due()
    assert disk.syncs == 1


def test_a_file_that_is_gone_is_no_reason_to_fail(tmp_path: Path) -> None:
    synced(tmp_path / "nothing")


@pytest.mark.anyio
async def test_only_receipts_go_without_waiting_for_the_disk(path: Path) -> None:
    store = await SqliteStore.open(path)
    connection = store._database._writers[0]
    receipt = Recall(scope=MINE, task="t")
    seen: list[bool] = []
    await store.record(receipt)
    seen.append(connection.synced)
    await store.apply([], scope=MINE, writer="tests", settlement=settlement(receipt))
    seen.append(connection.synced)
    await store.record(Recall(scope=MINE, task="u"))
    await store.set_setting("a", "b")
    seen.append(connection.synced)
    assert seen == [False, True, True]
    (level,) = connection.execute("PRAGMA synchronous").fetchone()
    assert level == 2, "FULL"
    await store.close()

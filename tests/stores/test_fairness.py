"""One file, many users: every write is made, every writer gets its turn, and who only reads waits for nobody."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from _trouble import Fill, looks, opened, quick_folder

import lessonbank
from lessonbank import Experience, Step, Trajectory
from lessonbank.contracts.records import Add
from lessonbank.contracts.store_calls import (
    count_records,
    every_recall,
    get_trajectory,
)
from lessonbank.errors import StoreUnavailable
from lessonbank.testing import HashingEmbedder
from lessonbank.testing.settings import grouped
from lessonbank.testing.store_samples import MINE, added, collected, experience, lesson

OPTIONS: dict[str, Any] = {"scope": MINE, "holdout": None}
WRITES = 80 if "LESSONBANK_SOAK" in os.environ else 40
"""Of each process: enough that one which starves is far behind."""

pytestmark = [pytest.mark.anyio, pytest.mark.full]


def run(number: int) -> Trajectory:
    """A run that failed, and that teaches what no other does: an order is named by letters."""
    step = Step(action=f"open order {name(number)}", observation=f"error: order {name(number)} is locked")
    return Trajectory(id=f"run-{number}", task=f"Cancel order {name(number)}", steps=(step,))


def name(number: int) -> str:
    """The number, with letters for digits."""
    return str(number).translate(str.maketrans("0123456789", "bcdfghjklm"))


@contextmanager
def long_write(path: Path) -> Generator[None]:
    """Another program in the middle of a write that does not end."""
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    raw.execute("CREATE TABLE under_way (a)")
    raw.executemany("INSERT INTO under_way VALUES (?)", [("x" * 4000,)] * 3000)
    try:
        yield
    finally:
        raw.execute("ROLLBACK")
        raw.close()


def crowd() -> dict[str, Any]:
    """What eight writers at once report, after nothing was lost and nobody waited for ever."""
    pytest.importorskip("lessonbank_bench")
    with quick_folder() as folder:
        words = ("--fair", str(WRITES), "--json", "--folder", str(folder))
        command = [sys.executable, "-m", "lessonbank_bench.measure.soak", *words]
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    report = json.loads(done.stdout)
    assert (report["problems"], report["lost"], report["half_written"]) == ([], [], [])
    assert report["writes"] == report["journal"] == report["experiences"] == 8 * WRITES
    assert report["write_ms"]["max"] < 5000, "far above what is promised: this only finds a writer that starves"
    return report


@pytest.mark.full
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_eight_processes_that_write_at_once_all_get_their_turns() -> None:
    """Once of three times: a busy machine may leave a process without a processor for as long as others write."""
    fair = (crowd()["unluckiest_share"] > 1 / 8 / 3 for _ in range(3))
    assert any(fair), "of the writes made until the first of them was done"


async def test_no_reader_waits_for_a_write_that_is_under_way(path: Path, filled: Fill) -> None:
    await (await filled(path)).close()
    async with opened(path, busy_timeout=0.05) as store, opened(path, busy_timeout=0.05) as unused:
        before = await looks(store)
        with long_write(path):
            assert await looks(store) == before
            assert await looks(unused) == before, "its first connection is made during the write"
            async with opened(path, busy_timeout=0.05) as late:
                assert await looks(late) == before
            with pytest.raises(StoreUnavailable):
                await added(store, experience())
        assert await looks(store) == before
        await added(store, experience())


@pytest.mark.full
async def test_no_reader_waits_for_a_write_of_its_own_store(path: Path, filled: Fill) -> None:
    store = await filled(path)
    known = await collected(store.scan(scope=MINE))
    many = [experience(f"Task {n}", minute=n, lessons=[lesson() for _ in range(20)]) for n in range(400)]
    seen: list[list[Experience]] = []

    async def write() -> None:
        await store.apply([Add(experience=e) for e in many], scope=MINE, writer="tests")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write)
        while not seen or len(seen[-1]) == len(known):
            seen.append(await collected(store.scan(scope=MINE)))
    assert len(seen[0]) == len(known), "it was read while it was written"
    assert {len(each) for each in seen} == {len(known), len(known) + 400}
    await store.close()


def test_threads_of_one_process_share_a_bank_and_lose_nothing(path: Path) -> None:
    with lessonbank.connect(path, embedder=HashingEmbedder(), **grouped(**OPTIONS)) as bank:
        problems: list[BaseException] = []

        def work(first: int) -> None:
            try:
                for number in range(first, first + 5):
                    learned = bank.learn(run(number), outcome="failure")
                    recall = bank.retrieve(run(number).task, limit=3)
                    assert learned.experience
                    assert learned.experience.id in {c.experience_id for c in recall.candidates}
                    bank.learn(run(1000 + number), outcome="failure", recall=recall)
            except BaseException as error:  # noqa: BLE001 - a thread cannot raise for the test
                problems.append(error)

        threads = [threading.Thread(target=work, args=(n * 5,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert problems == []
        counts = bank.admin.counts()
        assert (counts.experiences, counts.recalls, counts.recalls_with_a_run) == (80, 40, 40)
        assert bank.admin.verify() == ()


async def test_a_retrieve_changes_nothing_but_the_receipts(path: Path) -> None:
    bank = await lessonbank.connect_async(path, embedder=HashingEmbedder(), **grouped(retrieval="hybrid", **OPTIONS))
    for number in range(5):
        await bank.learn(run(number), outcome="failure")

    async def rest() -> list[object]:
        store = bank.store
        return [
            [e.model_dump_json() for e in await collected(store.scan(scope=MINE))],
            [e.model_dump_json() for e in await collected(store.journal(scope=MINE))],
            [await get_trajectory(store, f"run-{n}", scope=MINE) for n in range(5)],
            (await count_records(store, scope=MINE)).model_dump(exclude={"recalls"}),
        ]

    before = await rest()
    recalls = [await bank.retrieve("Cancel order 3", limit=3) for _ in range(4)]
    assert recalls[0].candidates
    assert await rest() == before
    assert (await bank.admin.counts()).recalls == 4
    kept = await collected(every_recall(bank.store, scope=MINE))
    assert [r.text for r in kept] == [r.text for r in recalls]
    await bank.close()

"""Acknowledged means on disk: whoever is killed, whenever, nothing that was promised is lost, and nothing is half."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from _crowd import Log, Writer
from _promises import compare, read_logs
from _trouble import Fill, quick_folder

from lessonbank.contracts.records import Add, Experience
from lessonbank.contracts.store_calls import count_records
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_purging import SECRET, everything, lived_in
from lessonbank.testing.store_rewinding import present
from lessonbank.testing.store_samples import MINE, added, collected, experience, towards, trajectory

KILLS = 6 if "LESSONBANK_SOAK" in os.environ else 4
"""Each at another moment of the call."""
INTERRUPTED = Path(__file__).with_name("_interrupted.py")

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork"), pytest.mark.full]


def soak(*arguments: object) -> dict[str, Any]:
    """The report of a run of the soak."""
    pytest.importorskip("lessonbank_bench")
    command = [sys.executable, "-m", "lessonbank_bench.measure.soak", "--json", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.stderr == ""
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (1 if report["lost"] or report["half_written"] or report["problems"] else 0)
    return report


def check(report: dict[str, Any]) -> None:
    """Nothing is wrong."""
    assert report["lost"] == []
    assert report["half_written"] == []
    assert report["problems"] == []


def test_nothing_acknowledged_is_lost_and_nothing_half_written_when_processes_are_killed() -> None:
    report: dict[str, Any] = {}
    for minutes in (0.03, 0.1, 0.5):  # a busy machine needs longer to come to the first write
        with quick_folder() as folder:
            report = soak("--kills", 10, "--minutes", minutes, "--readers", 2, "--folder", folder)
        check(report)
        assert report["kills"] >= 5, "of 10: the time decides where the machine is busy"
        if report["acknowledged"] and report["under_way"]:
            break
    assert report["acknowledged"] > 0
    assert report["under_way"] > 0


@pytest.mark.release
def test_nothing_acknowledged_is_lost_at_a_thousand_kills() -> None:
    report = soak("--kills", 1000, "--minutes", os.environ.get("LESSONBANK_SOAK", "20"))
    check(report)
    assert report["kills"] >= 1000


@pytest.mark.anyio
async def test_the_check_finds_what_is_lost_changed_or_half_written(path: Path) -> None:
    log = Log(path.with_name("writer-0-1.log"))
    writer = Writer(await SqliteStore.open(path), log, name="writer", slot=0, seed=1)
    for _ in range(40):
        await writer.move()
    report = await compare(path, read_logs(path.parent))
    check(report)
    assert report["acknowledged"] > 40

    await writer.add()
    op = [line for line in read_logs(path.parent)[0] if "op" in line][-1]
    scope, (known,) = op["scope"], [id for _, id, _ in op["facts"]]
    log.line(op=1001, scope=scope, facts=[("experience", "0" * 32, "0" * 16)], entries=[])
    log.line(done=1001, ms=1.0, sequences=[])
    log.line(op=1002, scope=scope, facts=[("recall", known, "0" * 16)], entries=["0" * 16])
    log.line(done=1002, ms=1.0, sequences=[1])
    log.line(op=1003, scope=scope, facts=[], entries=[*op["entries"], "0" * 16])
    lone = Experience(scope=scope, task="case", metadata={"batch": "b", "size": 3, "seal": "wrong"})
    await writer.store.apply([Add(experience=lone)], scope=scope, writer="tests")
    await writer.store.close()
    report = await compare(path, read_logs(path.parent))
    assert [text.split(" of ")[0] for text in report["lost"]] == [
        "entries [1]",
        f"experience {'0' * 32}",
        f"recall {known}",
    ]
    assert len(report["half_written"]) == 3, "an operation, a batch, and a record"
    assert f"the vector of {lone.id}" not in str(report["lost"]), "nobody was promised one"


def rounds(folder: Path, call: str, count: int) -> list[Path]:
    """The banks that `count` kills in the middle of this call left."""
    subprocess.run([sys.executable, str(INTERRUPTED), str(folder), call, str(count)], check=True)
    return [folder / f"round-{number}" / "bank.db" for number in range(count)]


@pytest.mark.anyio
async def test_a_bank_whose_making_was_killed_can_be_opened_and_used(tmp_path: Path) -> None:
    for path in rounds(tmp_path, "make", KILLS):
        store = await SqliteStore.open(path)
        new = experience()
        await added(store, new, along=[towards(0)])
        assert await collected(store.scan(scope=MINE)) == [new]
        assert (await store.verify()).problems == []
        await store.close()


@pytest.mark.anyio
async def test_a_rollback_that_is_killed_is_whole_or_absent(path: Path) -> None:
    store = await SqliteStore.open(path)
    await added(store, *[experience(minute=n) for n in range(300)], along=[towards(n % 8) for n in range(300)])
    before = await present(store)
    await store.close()
    for left in rounds(path.parent, "roll_back", KILLS):
        store = await SqliteStore.open(left)
        entries = [e.sequence async for e in store.journal(scope=MINE)]
        assert entries in (list(range(1, 301)), list(range(1, 302)))
        if len(entries) == 300:
            assert await present(store) == before
        else:
            assert await collected(store.scan(scope=MINE)) == before[0][:10]
        assert (await store.verify()).problems == []
        await store.close()


def contents(path: Path) -> str:
    """Every byte of a bank and its log."""
    return "".join(file.read_bytes().decode("latin-1") for file in path.parent.glob(f"{path.name}*"))


@pytest.mark.anyio
@pytest.mark.parametrize("call", ["purge", "overwrite"])
async def test_a_purge_that_is_killed_is_absent_or_can_be_finished(path: Path, call: str) -> None:
    store = await SqliteStore.open(path)
    run = trajectory(f"Move {SECRET}", answer=SECRET)
    await store.save_runs([run], scope=MINE)
    await lived_in(store)
    await added(store, *[experience("word " * 300, minute=n) for n in range(100)])
    length = len(await collected(store.journal(scope=MINE)))
    await store.close()
    for left in rounds(path.parent, call, KILLS):
        store = await SqliteStore.open(left)
        problems = (await store.verify()).problems
        purged = len(await collected(store.journal(scope=MINE))) > length
        assert (run.id in await everything(store)) is not purged
        assert len(problems) <= 1, problems
        assert purged or not problems
        assert problems or (run.id in contents(left)) is not purged, "what is left is named"
        await store.rebuild()
        assert (await store.verify()).problems == []
        assert (await count_records(store, scope=MINE)).experiences > 100
        await store.close()
        assert (run.id in contents(left)) is not purged


@pytest.mark.anyio
async def test_a_rebuild_that_is_killed_changes_no_answer(path: Path, filled: Fill) -> None:
    store = await filled(path)
    await added(store, *[experience(f"Cancel {n} orders", minute=n) for n in range(200)], along=[towards(3)] * 200)
    before = await present(store)
    await store.close()
    for left in rounds(path.parent, "rebuild", 4):
        store = await SqliteStore.open(left)
        assert await present(store) == before
        assert (await store.verify()).problems == []
        await store.close()

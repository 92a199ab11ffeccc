"""What killed programs and other programs leave where a bank or its copies belong."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import pytest

import lessonbank
from lessonbank._base.atomic_write import WORK, abandon, begin, finish, replacing, spare, synced
from lessonbank.contracts.store_calls import count_records
from lessonbank.errors import StoreUnavailable, UsageError, VersionMismatch
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.stores.sqlite._schema import FORMAT
from lessonbank.testing.store_samples import MINE, added, collected, experience

pytestmark = pytest.mark.anyio

HOLDING = """
import sys, time
from pathlib import Path
from lessonbank._base.atomic_write import begin
print(begin(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def aged(file: Path) -> Path:
    long_ago = time.time() - 60
    os.utime(file, (long_ago, long_ago))
    return file


@pytest.mark.parametrize("name", ["漢" * 80, "n" * 250])
async def test_a_file_may_have_as_long_a_name_as_its_folder_takes(tmp_path: Path, name: str) -> None:
    part = begin(tmp_path / name)
    part.with_name(f"{part.name}{WORK}-journal").write_text("beside")
    finish(part, tmp_path / name)
    assert (tmp_path / name).is_file()


async def test_no_file_takes_the_place_of_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder: name a file for the page"):
        spare(tmp_path, what="page")
    with pytest.raises(UsageError, match="is a folder: name a file for the export"):
        async with replacing(tmp_path, what="export"):
            pytest.fail("nothing is written for it")
    spare(tmp_path / "page.html", what="page")


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="parts are locked on POSIX systems")
async def test_the_part_of_a_killed_program_goes_with_the_next_backup_and_that_of_a_living_one_stays(
    tmp_path: Path,
) -> None:
    target = tmp_path / "copy.db"
    other = tmp_path / ".copy.db.notours.txt"
    other.write_text("mine")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(target)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as living:
        assert living.stdout is not None
        part = aged(Path(living.stdout.readline().strip()))
        beside = part.with_name(f"{part.name}{WORK}-wal")
        beside.write_bytes(b"what a salvage had begun")
        async with await lessonbank.connect_async(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
            await bank.admin.backup(target)
            assert part.exists()
            part.touch()
            living.kill()
            living.wait()
            await bank.admin.backup(target)
            assert not part.exists()
            assert not beside.exists()
            part = aged(begin(target))
            await bank.admin.export(tmp_path / "lines.jsonl")
            assert part.exists()
            abandon(part)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        ".copy.db.notours.txt",
        "bank.db",
        "copy.db",
        "lines.jsonl",
    ]


async def test_a_file_that_is_just_being_put_in_its_place_is_left_until_it_is_old(tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    whole = synced(begin(target))
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        await bank.admin.backup(target)
        assert whole.exists()
        aged(whole)
        await bank.admin.backup(target)
        assert not whole.exists()


async def test_an_empty_file_is_no_bank_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    async with await lessonbank.connect_async(path, scope="t", embedder="lexical") as bank:
        await bank.learn("I did it.", task="a task", outcome="success")
    os.truncate(path, 0)
    with pytest.raises(StoreUnavailable, match="empty file and no bank"):
        await lessonbank.connect_async(path, scope="t", embedder="lexical")
    assert path.read_bytes() == b""
    with tempfile.NamedTemporaryFile(dir=tmp_path) as file, pytest.raises(StoreUnavailable, match="delete it"):
        await SqliteStore.open(file.name)
    path.unlink()
    async with await lessonbank.connect_async(path, scope="t", embedder="lexical") as bank:
        assert (await bank.admin.counts()).experiences == 0


@pytest.mark.full
def test_processes_that_make_a_bank_at_once_make_one(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    program = f"import lessonbank; lessonbank.connect({str(path)!r}, scope='t').learn('x', task='y', outcome='success')"
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [process.wait() for process in running] == [0] * 2
    with lessonbank.connect(path, scope="t", embedder="lexical") as bank:
        assert bank.admin.counts().trajectories == 2
        assert bank.admin.verify() == ()
    assert [file.name for file in tmp_path.iterdir()] == ["bank.db"]


async def test_an_open_bank_that_a_newer_release_upgraded_is_not_read_any_more(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    store, newer = await SqliteStore.open(path), await SqliteStore.open(path)
    await added(store, experience())
    await collected(store.scan(scope=MINE))
    await newer._change(None, lambda tables: tables.execute(f"PRAGMA user_version = {1 << 20 | FORMAT + 1}"))
    with pytest.raises(VersionMismatch, match="newer release"):
        await count_records(store, scope=MINE)
    with pytest.raises(VersionMismatch, match="newer release"):
        await collected(store.scan(scope=MINE))
    await store.close()
    await newer.close()


async def test_a_look_that_is_called_off_before_it_begins_ends_as_one_that_was_interrupted(tmp_path: Path) -> None:
    store = await SqliteStore.open(tmp_path / "bank.db")
    database = store._database
    with (
        pytest.raises(StoreUnavailable),
        database._lease([], keep=False) as connection,
        closing(connection),
    ):
        database._paused = True  # as while this process forks
        database._looked_at(connection, lambda _: None)
    database._paused = False
    await store.close()

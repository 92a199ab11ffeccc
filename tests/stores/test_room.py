"""A disk that is full, or may not be written: one clear error, nothing half done, and nobody else is kept from work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from _trouble import BIG, Call, Fill, companion, looks, opened, sentence

from lessonbank.contracts.records import Recall
from lessonbank.contracts.store_calls import get_experience, pending_runs, purge_one
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, experience, towards, trajectory

resource = pytest.importorskip("resource", reason="this system cannot limit a process")
pytestmark = [pytest.mark.anyio, pytest.mark.full]


@contextmanager
def room(most: int) -> Generator[None]:
    """No file of this process may be written beyond this many bytes, for this process alone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def log_size(path: Path) -> int:
    """Bytes of the write-ahead log."""
    return path.with_name(f"{path.name}-wal").stat().st_size


async def purge(store: SqliteStore) -> None:
    """Of a run that waits."""
    run = (await pending_runs(store, scope=MINE))[0]
    await purge_one(store, "trajectory", run.id, scope=MINE, writer="tests", reason="asked to")


WRITES: dict[str, Call] = {
    "keep": lambda store: store.save_runs([trajectory(answer=BIG)], scope=MINE),
    "apply": lambda store: added(store, experience(BIG), along=[towards(1)]),
    "record": lambda store: store.save_recall(Recall(scope=MINE, task="t", text=BIG)),
    "set_setting": lambda store: store.put_setting("big", BIG),
}


@pytest.mark.parametrize("more", [0, 30_000], ids=["no room", "too little room"])
@pytest.mark.parametrize("what", WRITES)
async def test_a_write_without_room_fails_alone(path: Path, filled: Fill, what: str, more: int) -> None:
    store = await filled(path)
    before = await looks(store)
    with room(log_size(path) + more):
        with pytest.raises(StoreUnavailable) as caught:
            await WRITES[what](store)
        assert "disk" in sentence(caught)
        assert await looks(store) == before, "reading needs no room"
    assert await looks(store) == before
    await WRITES[what](store)
    assert (await store.verify()).problems == []
    await store.close()


@pytest.mark.parametrize("most", [0, 200_000], ids=["no room", "no room to write the file anew"])
async def test_a_purge_without_room_is_absent_or_can_be_finished(path: Path, filled: Fill, most: int) -> None:
    store = await filled(path)
    await added(store, experience(BIG))
    before = await looks(store)
    with room(most), pytest.raises(StoreUnavailable) as caught:
        await purge(store)
    assert "disk" in sentence(caught)
    problems = (await store.verify()).problems
    if problems:
        assert "interrupted" in " ".join(problems)
        await store.rebuild()
        assert len(await pending_runs(store, scope=MINE)) == len(before["pending"]) - 1
    else:
        assert await looks(store) == before
    assert (await store.verify()).problems == []
    await store.close()


async def test_a_process_without_room_keeps_no_other_from_writing(path: Path, filled: Fill) -> None:
    store = await filled(path)
    with companion(path, busy_timeout=5) as other:
        with room(log_size(path) + 30_000):
            for what in WRITES.values():
                with pytest.raises(StoreUnavailable):
                    await what(store)
                (id,) = other.ask("add")
                assert (await get_experience(store, id, scope=MINE)).id == id
        new = experience()
        await added(store, new)
        assert new.id in other.ask("look")
    assert (await store.verify()).problems == []
    await store.close()


FULL_DISK = """
import asyncio, os, subprocess, sys
from pathlib import Path
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, collected, experience, towards

async def fill(store, known, size):
    while True:
        new = experience("word " * size)
        try:
            await added(store, new, along=[towards(0)])
        except StoreUnavailable as error:
            return str(error)
        known.append(new)

async def main(folder):
    filler, path, known = Path(folder, "filler"), Path(folder, "bank.db"), []
    filler.write_bytes(bytes(300_000))
    store = await SqliteStore.open(path)
    said = [await fill(store, known, size) for size in (4000, 400, 4)]
    assert len(known) > 3
    assert await collected(store.scan(scope=MINE)) == known
    filler.unlink()
    known.append(experience())
    await added(store, known[-1])
    assert await collected(store.scan(scope=MINE)) == known
    assert (await store.verify()).problems == []
    said.append(await fill(store, known, 400))
    await store.close()
    store = await SqliteStore.open(path)
    assert await collected(store.scan(scope=MINE)) == known
    assert (await store.verify()).problems == []
    try:
        await SqliteStore.open(Path(folder, "second.db"))
    except StoreUnavailable as error:
        said.append(str(error))
    print(*said, sep="\\n")

if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", sys.argv[1]], capture_output=True).returncode:
    print("not permitted")
else:
    asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs Linux's unshare")
async def test_a_disk_that_is_really_full_is_named_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    namespace = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    command = [*namespace, sys.executable, "-c", FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "not permitted" in done.stdout or "unshare" in done.stderr:
        pytest.skip("no file system may be mounted here")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 5
    assert done.stdout.count("the disk of") + done.stdout.count("check the disk") == 5


READ_ONLY = """
import asyncio, sys
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, added, collected, experience

async def main(path):
    try:
        store = await SqliteStore.open(path)
        print("read", len(await collected(store.scan(scope=MINE))))
        await added(store, experience())
        print("written")
    except StoreUnavailable as error:
        print("refused:", error)

for path in sys.argv[1:]:
    asyncio.run(main(path))
"""


def as_a_user() -> list[str]:
    """What makes a command obey file modes, which root does not."""
    if os.geteuid():
        return []
    caps = "-dac_override,-dac_read_search"
    command = ["setpriv", f"--inh-caps={caps}", f"--bounding-set={caps}"]
    if shutil.which("setpriv") is None or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("root may write everywhere, and cannot give that up here")
    return command


async def test_a_bank_that_may_not_be_written_says_so(tmp_path: Path, filled: Fill) -> None:
    """Because of its file, of both, or of its folder."""
    modes = {"file": (0o755, 0o444), "both": (0o555, 0o444), "folder": (0o555, 0o644)}
    paths, before = list[Path](), list[bytes]()
    for name, (folder, file) in modes.items():
        path = tmp_path / name / "bank.db"
        path.parent.mkdir()
        await (await filled(path)).close()
        paths.append(path)
        before.append(path.read_bytes())
        path.chmod(file)
        path.parent.chmod(folder)
    command = [*as_a_user(), sys.executable, "-c", READ_ONLY, *map(str, paths)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        for path in paths:
            path.parent.chmod(0o755)
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    refused = [line for line in said if line.startswith("refused: ")]
    assert len(refused) == len(modes)
    assert all("writ" in line or "cannot be opened" in line for line in refused)
    assert {line for line in said if line not in refused} <= {"read 3"}, "what it can read it reads right"
    for path, bytes_before in zip(paths, before, strict=True):
        assert path.read_bytes() == bytes_before
        async with opened(path) as store:
            assert (await store.verify()).problems == []


async def test_a_bank_that_was_read_only_once_names_the_file_that_still_is(tmp_path: Path, filled: Fill) -> None:
    path = tmp_path / "bank.db"
    await (await filled(path)).close()
    command = [*as_a_user(), sys.executable, "-c", READ_ONLY, str(path)]
    path.chmod(0o400)
    subprocess.run(command, capture_output=True, check=False)
    path.chmod(0o600)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    (last,) = done.stdout.splitlines()[-1:]
    assert last.startswith(f"refused: {path} cannot be written, because bank.db-shm may not")
    (tmp_path / "bank.db-shm").chmod(0o600)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["written"]

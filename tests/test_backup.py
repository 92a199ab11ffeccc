"""A backup is the bank at one moment, whole or not at all, whatever others write meanwhile."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import ReasoningBank, Step, Trajectory
from lessonbank.errors import StoreUnavailable, UsageError
from lessonbank.testing.settings import grouped

OPTIONS: dict[str, Any] = {"scope": "t", "embedder": "hashing", "holdout": None}
posix = pytest.mark.skipif(os.name != "posix", reason="limits and permissions of POSIX")

WRITER = """
import sys, lessonbank
from lessonbank import Step, Trajectory

with lessonbank.connect(sys.argv[1], scope="t", embedder="hashing", evidence=lessonbank.Evidence(holdout=None)) as bank:
    for n in range(10_000):
        step = Step(action="print label", observation="error: no form " + "x" * 2000)
        bank.learn(Trajectory(task=f"Ship box {n} of {sys.argv[2]}", steps=(step,)), outcome="failure")
        print(n, flush=True)
"""


def run(task: str) -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="print label", observation="error: no form"),))


def filled(path: Path, count: int = 4) -> ReasoningBank:
    bank = lessonbank.connect(path, **grouped(**OPTIONS))
    for n in range(count):
        bank.learn(run(f"Ship box {n}"), recall=bank.retrieve(f"Ship box {n}"), outcome="failure")
    return bank


def contents(bank: ReasoningBank) -> tuple[object, ...]:
    found = bank.retrieve("Ship box 3", limit=3)
    return (
        bank.history.list(),
        bank.lessons.list(retired=True, limit=10_000)[::-1],
        bank.runs.pending(limit=10_000),
        bank.history.state(2),
        found.lessons,
        found.scores,
    )


def test_a_backup_is_the_bank_with_all_it_holds(tmp_path: Path) -> None:
    with filled(tmp_path / "bank.db") as bank:
        bank.lessons.retire(bank.lessons.list(limit=10_000)[::-1][0].id, reason="misleads")
        bank.learn(Trajectory(task="waits", steps=(Step(action="x", observation="y"),)))
        bank.scoped("t/other").learn(run("elsewhere"), outcome="failure")
        held, counts = contents(bank), bank.admin.counts()  # the first keeps a recall
        bank.admin.backup(tmp_path / "copy.db")
        with lessonbank.connect(tmp_path / "copy.db", **grouped(**OPTIONS)) as copy:
            assert copy.admin.counts() == counts
            assert copy.admin.scopes() == bank.admin.scopes()
            assert contents(copy) == held
            assert copy.admin.verify() == ()
            copy.learn(run("only in the copy"), outcome="failure")
            assert copy.admin.counts().experiences == bank.admin.counts().experiences + 1
    assert not list(tmp_path.glob(".*.part*"))


def test_a_link_to_a_backup_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    with filled(tmp_path / "bank.db", 1) as bank:
        (tmp_path / "latest.db").symlink_to(tmp_path / "far" / "copy.db")
        bank.admin.backup(tmp_path / "latest.db")
    assert (tmp_path / "latest.db").is_symlink()
    assert (tmp_path / "far" / "copy.db").is_file()


@posix
def test_a_backup_of_a_bank_that_nobody_may_write_to_can_be_written_to(tmp_path: Path) -> None:
    filled(tmp_path / "bank.db").close()
    (tmp_path / "bank.db").chmod(0o440)
    with lessonbank.connect(lessonbank.File(tmp_path / "bank.db", read_only=True), scope="t") as bank:
        bank.admin.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o640


class Writers:
    """Two processes that learn until they are killed, and what they were told is on disk."""

    def __init__(self, path: Path) -> None:
        command = [sys.executable, "-c", WRITER, str(path)]
        self.acknowledged = dict.fromkeys(("one", "two"), 0)
        self._processes = {
            name: subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in self.acknowledged
        }
        self._threads = [threading.Thread(target=self._listen, args=(name,)) for name in self.acknowledged]

    def _listen(self, name: str) -> None:
        with self._processes[name] as process:
            for line in process.stdout or ():
                self.acknowledged[name] = int(line) + 1

    def wait_for(self, more: int) -> dict[str, int]:
        """What is acknowledged once each has learned so many more runs."""
        wanted = {name: count + more for name, count in self.acknowledged.items()}
        while any(self.acknowledged[name] < count for name, count in wanted.items()):
            assert all(process.poll() is None for process in self._processes.values())
            self._threads[0].join(0.01)
        return dict(self.acknowledged)

    def __enter__(self) -> Writers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
        for thread in self._threads:
            thread.join()


@pytest.mark.full
def test_a_backup_while_others_write_is_a_state_between_two_acknowledged_writes(tmp_path: Path) -> None:
    with filled(tmp_path / "bank.db", 1) as bank, Writers(tmp_path / "bank.db") as writers:
        for _ in range(2):
            before = writers.wait_for(5)
            bank.admin.backup(tmp_path / "copy.db")
            after = bank.history.list()
            with lessonbank.connect(tmp_path / "copy.db", **grouped(**OPTIONS)) as copy:
                assert copy.admin.verify() == ()
                assert copy.history.list() == after[: len(copy.history.list())], "the writes there were, none left out"
                tasks = [e.task for e in copy.history.state(len(copy.history.list())).experiences]
            for name, count in before.items():
                numbers = [int(task.split()[2]) for task in tasks if task.endswith(name)]
                assert numbers == list(range(len(numbers)))
                assert len(numbers) >= count, "what was acknowledged before the backup began"


def other_database(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE customers (name)")
    raw.close()


@pytest.mark.parametrize(
    ("name", "make", "sentence"),
    [
        ("bank.db", None, "is the bank itself"),
        ("bank.db-journal", None, "is the bank itself"),
        ("bank.db-wal", None, "is the bank itself"),
        ("link.db", lambda path: path.symlink_to(path.with_name("bank.db")), "is the bank itself"),
        ("hard.db", lambda path: path.hardlink_to(path.with_name("bank.db")), "is the bank itself"),
        ("folder", Path.mkdir, "is a folder"),
        ("notes.txt", lambda path: path.write_text("three wishes", encoding="utf-8"), "is not a bank"),
        ("empty.db", Path.touch, "is not a bank"),
        ("other.db", other_database, "is not a bank"),
    ],
)
def test_a_backup_never_takes_the_place_of_anything_else(
    tmp_path: Path, name: str, make: Callable[[Path], object] | None, sentence: str
) -> None:
    with filled(tmp_path / "bank.db", 1) as bank:
        path = tmp_path / name
        if make:
            make(path)
        before, journal = path.read_bytes() if path.is_file() else None, bank.history.list()
        with pytest.raises(UsageError, match=sentence):
            bank.admin.backup(path)
        assert (path.read_bytes() if path.is_file() else None) == before
        assert bank.history.list() == journal  # a backup that was refused is no act
        assert bank.admin.verify() == ()


def test_an_earlier_backup_that_somebody_reads_is_not_replaced_under_them(tmp_path: Path) -> None:
    with filled(tmp_path / "bank.db", 1) as bank:
        bank.admin.backup(tmp_path / "copy.db")
        with lessonbank.connect(tmp_path / "copy.db", **grouped(**OPTIONS)) as copy:
            copy.learn(run("written to the copy"), outcome="failure")
            with pytest.raises(StoreUnavailable, match="somebody has the earlier backup"):
                bank.admin.backup(tmp_path / "copy.db")
            assert copy.admin.counts().experiences == 2
        bank.admin.backup(tmp_path / "copy.db")
        with lessonbank.connect(tmp_path / "copy.db", **grouped(**OPTIONS)) as copy:
            assert copy.lessons.list(limit=10_000)[::-1] == bank.lessons.list(limit=10_000)[::-1]


@pytest.mark.full
def test_the_log_of_a_killed_reader_of_the_earlier_backup_is_not_applied_to_the_new_one(tmp_path: Path) -> None:
    with filled(tmp_path / "bank.db", 1) as bank:
        bank.admin.backup(tmp_path / "copy.db")
        code = f"import sys; sys.argv = ['', {str(tmp_path / 'copy.db')!r}, 'killed']\n" + WRITER
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout
            writer.stdout.readline()
            writer.kill()
        assert (tmp_path / "copy.db-wal").exists()
        journal = bank.history.list()
        bank.admin.backup(tmp_path / "copy.db")
        with lessonbank.connect(tmp_path / "copy.db", **grouped(**OPTIONS)) as copy:
            assert copy.admin.verify() == ()
            assert copy.history.list() == journal


FULL = """
import resource, sys, lessonbank
from lessonbank.errors import StoreUnavailable

bank = lessonbank.connect(sys.argv[1], scope="t", embedder="hashing")
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
try:
    bank.admin.backup(sys.argv[2])
except StoreUnavailable as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(bank.admin.counts().experiences)
"""


@pytest.mark.full
@posix
def test_a_full_disk_leaves_the_earlier_backup(tmp_path: Path) -> None:
    with filled(tmp_path / "bank.db") as bank:
        bank.admin.backup(tmp_path / "copy.db")
        before = (tmp_path / "copy.db").read_bytes()
        bank.learn(run("later"), outcome="failure")
    command = [sys.executable, "-c", FULL, str(tmp_path / "bank.db"), str(tmp_path / "copy.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "cannot back up to" in done.stdout
    assert "an earlier backup is untouched" in done.stdout
    assert done.stdout.splitlines()[-1] == "5", "the bank itself goes on"
    assert (tmp_path / "copy.db").read_bytes() == before
    assert not list(tmp_path.glob(".*"))


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_leaves_the_earlier_backup(tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    copy = tmp_path / "backups" / "copy.db"
    with filled(tmp_path / "bank.db") as bank:
        bank.admin.backup(copy)
        before = copy.read_bytes()
        copy.parent.chmod(0o500)
        try:
            with pytest.raises(StoreUnavailable, match="Permission denied"):
                bank.admin.backup(copy)
        finally:
            copy.parent.chmod(0o700)
        assert copy.read_bytes() == before


def test_a_folder_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with filled(tmp_path / "bank.db", 1) as bank, pytest.raises(StoreUnavailable, match="cannot back up to"):
        bank.admin.backup(tmp_path / "missing" / "copy.db")


@pytest.mark.full
def test_a_damaged_bank_does_not_take_the_place_of_a_sound_backup(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    with filled(path, 30) as bank:
        bank.admin.backup(tmp_path / "copy.db")
    sound = (tmp_path / "copy.db").read_bytes()
    size = int.from_bytes(sound[16:18], "big")
    with lessonbank.connect(path, **grouped(**OPTIONS)) as bank:
        with path.open("r+b") as file:
            for page in range(len(sound) // size // 2, len(sound) // size):
                file.seek(page * size)
                file.write(b"\xff" * 64)
        with pytest.raises(StoreUnavailable, match="cannot back up to"):
            bank.admin.backup(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_bytes() == sound

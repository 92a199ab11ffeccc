"""A backup takes the place of a bank safely: a log that is not the file's is never applied to it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import ReasoningBank, Step, Trajectory
from lessonbank.errors import LessonbankError, StoreDamaged, StoreUnavailable, UsageError
from lessonbank.testing.settings import grouped
from lessonbank.wiring import migrate

OPTIONS: dict[str, Any] = {"scope": "t", "embedder": "hashing", "holdout": None}

OTHER = """
import sys, lessonbank
with lessonbank.connect(sys.argv[1], scope="t", embedder="hashing") as bank:
    print(bank.admin.counts().experiences, flush=True)
    sys.stdin.readline()
"""


def connect(path: Path) -> ReasoningBank:
    return lessonbank.connect(path, **grouped(**OPTIONS))


def learn(bank: ReasoningBank, *tasks: str) -> None:
    for task in tasks:
        step = Step(action="print label", observation="error: no form")
        bank.learn(Trajectory(task=task, steps=(step,)), outcome="failure")


def tasks(bank: ReasoningBank) -> list[str]:
    return [e.task for e in bank.history.state(len(bank.history.list())).experiences]


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def crashed(path: Path, *later: str) -> Path:
    """What a crash leaves at `path`: a bank with a log that was never emptied. Its backup from before `later`."""
    backup, running = path.with_name("backup.db"), path.with_name("running.db")
    with connect(running) as bank:
        learn(bank, "Ship box 1", "Ship box 2")
        bank.admin.backup(backup)
        learn(bank, *(later or ("Ship box 3",)))
        shutil.copyfile(running, path)
        shutil.copyfile(log_of(running), log_of(path))
    assert log_of(path).stat().st_size
    return backup


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith("-shm")}


def test_a_bank_with_its_own_log_opens_after_a_crash(tmp_path: Path) -> None:
    crashed(tmp_path / "bank.db")
    with connect(tmp_path / "bank.db") as bank:
        assert tasks(bank) == ["Ship box 1", "Ship box 2", "Ship box 3"]
        assert bank.admin.verify() == ()


@pytest.mark.parametrize("how", ["connect", "read only"])
def test_a_backup_copied_over_a_crashed_bank_is_refused_before_anything_is_written(tmp_path: Path, how: str) -> None:
    path = tmp_path / "bank.db"
    shutil.copyfile(crashed(path), path)
    before = files(tmp_path)
    with pytest.raises(StoreUnavailable, match=r"is not the log of .*lessonbank restore") as caught:
        connect(path) if how == "connect" else lessonbank.connect(lessonbank.File(path, read_only=True), scope="t")
    assert len(str(caught.value)) < 500
    assert files(tmp_path) == before


@pytest.mark.full
def test_an_older_copy_made_by_hand_is_refused_beside_a_later_log(tmp_path: Path) -> None:
    path, copy = tmp_path / "bank.db", tmp_path / "copy.db"
    with connect(path) as bank:
        learn(bank, "Ship box 1")
    shutil.copyfile(path, copy)
    for n in range(2):
        with connect(path) as bank:
            learn(bank, f"Ship box {n + 2}")
            shutil.copyfile(log_of(path), log_of(copy))
    with pytest.raises(StoreUnavailable, match="is not the log of"):
        connect(copy)


@pytest.mark.full
def test_a_copy_made_right_before_the_log_began_is_brought_up_to_date_by_it(tmp_path: Path) -> None:
    """This is what a crash leaves: SQLite may apply the log, and nothing is lost or mixed."""
    path, copy = tmp_path / "bank.db", tmp_path / "copy.db"
    with connect(path) as bank:
        learn(bank, "Ship box 1")
    shutil.copyfile(path, copy)
    with connect(path) as bank:
        learn(bank, "Ship box 2")
        shutil.copyfile(log_of(path), log_of(copy))
    with connect(copy) as bank:
        assert tasks(bank) == ["Ship box 1", "Ship box 2"]
        assert bank.admin.verify() == ()


@pytest.mark.parametrize(
    "copied",
    [
        "crashed",
        *(pytest.param(how, marks=pytest.mark.full) for how in ("copied over by hand", "damaged", "closed", "missing")),
    ],
)
def test_restore_puts_the_backup_in_place_and_keeps_what_was_there(tmp_path: Path, copied: str) -> None:
    path = tmp_path / "bank.db"
    backup = crashed(path)
    if copied == "copied over by hand":
        shutil.copyfile(backup, path)
    elif copied == "damaged":
        path.write_bytes(b"\xff" * 8192)
    elif copied == "closed":
        connect(path).close()
    elif copied == "missing":
        path.unlink()
        log_of(path).unlink()
    before = path.read_bytes() if path.exists() else None
    done = lessonbank.restore(backup, path)
    with connect(path) as bank:
        assert tasks(bank) == ["Ship box 1", "Ship box 2"]
        assert bank.admin.verify() == ()
        learn(bank, "Ship box 9")
    assert done.now.counts is not None
    assert done.now.counts.lessons == 2
    if before is None:
        assert (done.before, done.kept) == (None, None)
        return
    assert done.kept is not None
    assert Path(done.kept).read_bytes() == before
    assert log_of(Path(done.kept)).exists() == (copied != "closed")
    assert done.before is not None
    if copied in ("crashed", "closed"):
        assert done.before.counts is not None
        assert done.before.counts.lessons == 3
        with connect(Path(done.kept)) as earlier:
            assert tasks(earlier)[-1] == "Ship box 3"
    else:
        assert done.before.counts is None
        assert done.before.problem


def test_restore_refuses_while_this_process_has_the_bank_open(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    backup = crashed(path)
    with connect(path) as bank:
        with pytest.raises(StoreUnavailable, match=r"somebody has .* open"):
            lessonbank.restore(backup, path)
        learn(bank, "Ship box 4")
        assert len(tasks(bank)) == 4


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="there, nobody can replace a file that is open")
def test_restore_refuses_while_another_process_has_the_bank_open(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    backup = crashed(path)
    command = [sys.executable, "-c", OTHER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "3\n"
        with pytest.raises(StoreUnavailable, match=r"somebody has .* open"):
            lessonbank.restore(backup, path)
        other.communicate("\n")
    assert lessonbank.restore(backup, path).before is not None


@pytest.mark.full
def test_an_unsound_backup_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    backup = crashed(path)
    data = bytearray(backup.read_bytes())
    data[-4096:] = b"\xff" * 4096
    backup.write_bytes(data)
    before = files(tmp_path)
    with pytest.raises(StoreDamaged, match="so nothing was restored"):
        lessonbank.restore(backup, path)
    assert files(tmp_path) == before


@pytest.mark.full
@pytest.mark.parametrize(
    ("backup", "bank", "sentence"),
    [
        ("missing.db", "bank.db", "there is no backup"),
        ("notes.txt", "bank.db", "is not a bank"),
        ("backup.db", "backup.db", "is the backup itself"),
        ("backup.db", ".", "is a folder"),
        ("backup.db", "nowhere/bank.db", "in a folder that does not exist"),
        ("backup.db", "", "takes the path of a file"),
    ],
)
def test_restore_says_what_is_wrong_with_its_arguments(tmp_path: Path, backup: str, bank: str, sentence: str) -> None:
    crashed(tmp_path / "bank.db")
    (tmp_path / "notes.txt").write_text("three wishes" * 100, encoding="utf-8")
    with pytest.raises(UsageError, match=sentence):
        lessonbank.restore(tmp_path / backup, tmp_path / bank if bank else bank)


@pytest.mark.parametrize("place", [":memory:", "sqlite::memory:", "postgresql://jane:geheim@host/bank"])
def test_a_place_that_is_no_file_is_neither_restored_nor_salvaged_nor_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    connect(tmp_path / "bank.db").close()
    for call in (
        lambda: lessonbank.restore("bank.db", place),
        lambda: lessonbank.restore(place, "bank.db"),
        lambda: lessonbank.salvage("bank.db", place),
        lambda: lessonbank.salvage(place, "new.db"),
    ):
        with pytest.raises(UsageError, match="neither an address nor ':memory:'") as raised:
            call()
        assert "geheim" not in str(raised.value)
    assert [file.name for file in tmp_path.iterdir()] == ["bank.db"]


def test_no_bank_is_copied_to_where_it_ends_with_the_process(tmp_path: Path) -> None:
    connect(tmp_path / "bank.db").close()
    with pytest.raises(UsageError, match="ends with this process"):
        migrate(tmp_path / "bank.db", "sqlite::memory:")


USES: dict[str, Callable[[ReasoningBank], object]] = {
    "read": lambda bank: bank.lessons.list(),
    "retrieve": lambda bank: bank.retrieve("Ship box 1"),
    "write": lambda bank: learn(bank, "Ship box 5"),
}


@pytest.mark.parametrize("log", ["with a log", pytest.param("without a log", marks=pytest.mark.full)])
@pytest.mark.parametrize("use", ["write", *(pytest.param(use, marks=pytest.mark.full) for use in ("read", "retrieve"))])
def test_a_backup_copied_over_an_open_bank_is_neither_read_nor_written_to(tmp_path: Path, use: str, log: str) -> None:
    path, backup = tmp_path / "bank.db", tmp_path / "backup.db"
    with connect(path) as bank:
        learn(bank, "Ship box 1")
        bank.admin.backup(backup)
    with connect(path) as bank:
        if log == "with a log":
            learn(bank, "Ship box 2")
        assert bank.lessons.list()
        shutil.copyfile(backup, path)
        with pytest.raises(LessonbankError, match=r"replaced"):
            USES[use](bank)
        copied = path.read_bytes()
        assert copied == backup.read_bytes()


def test_a_bank_named_by_mistake_is_not_changed_by_the_log_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    shutil.copyfile(crashed(path), path)
    before = files(tmp_path)
    with connect(tmp_path / "other.db") as other, pytest.raises(UsageError, match="is a bank"):
        other.admin.export(path)
    after = files(tmp_path)
    assert {name: after[name] for name in before} == before

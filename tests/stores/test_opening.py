"""A bank is private, may be opened to read alone, and is opened by SQLite alone: a process keeps its locks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _trouble import TOUCHES, Fill, files, looks, sentence

import lessonbank
from lessonbank import Evidence, importers
from lessonbank.errors import FormatError, LessonbankError, ReadOnly, StoreUnavailable, UsageError
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.stores.sqlite._database import Database
from lessonbank.testing.store_samples import added, experience

pytestmark = [pytest.mark.anyio, pytest.mark.full]

OTHER = """
import sqlite3, sys
bank = sqlite3.connect(sys.argv[1])
bank.execute("SELECT count(*) FROM sqlite_schema").fetchall()
bank.close()
"""
"""Whoever closes a bank that nobody else seems to use takes its log away."""


def linked(path: Path) -> Path:
    """Another name of the same file, as a folder of runs may hold one."""
    folder = path.with_name("runs")
    folder.mkdir()
    (folder / "bank.json").symlink_to(path)
    return folder / "bank.json"


MISTAKES: dict[str, Callable[[Any, Path], object]] = {
    "export": lambda bank, path: bank.admin.export(path),
    "export onto its log": lambda bank, path: bank.admin.export(path.with_name("bank.db-wal")),
    "export onto the index of its log": lambda bank, path: bank.admin.export(path.with_name("bank.db-shm")),
    "export onto its journal": lambda bank, path: bank.admin.export(path.with_name("bank.db-journal")),
    "backup": lambda bank, path: bank.admin.backup(path),
    "import": lambda bank, path: bank.admin.import_(path),
    "import of a part of it": lambda bank, path: bank.admin.import_(path.with_name("bank.db-shm")),
    "recorded runs": lambda bank, path: list(importers.read(path)),
    "recorded runs in a part of it": lambda bank, path: list(importers.read(path.with_name("bank.db-shm"))),
    "recorded runs of a format": lambda bank, path: list(importers.read(path, format="neutral")),
    "a folder of recorded runs": lambda bank, path: list(importers.read(linked(path).parent)),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_bank_named_by_mistake_keeps_the_locks_of_its_process(path: Path, what: str) -> None:
    with lessonbank.connect(path, scope="a", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        bank.learn([{"role": "user", "content": "Find the order"}], outcome="success")
        with pytest.raises(LessonbankError) as caught:
            MISTAKES[what](bank, path)
        assert isinstance(caught.value, UsageError | FormatError)
        subprocess.run([sys.executable, "-c", OTHER, str(path)], check=True)
        bank.learn([{"role": "user", "content": "Find a third order"}], outcome="success")
        assert bank.admin.verify() == ()
        assert len(bank.runs.pending(limit=10_000)) == 0


@pytest.mark.skipif(os.name != "posix", reason="modes are of POSIX")
async def test_a_new_bank_its_log_and_its_backup_are_its_owners_alone(path: Path, filled: Fill) -> None:
    store = await filled(path)
    await store.backup(path.with_name("backup.db"))
    found = {file.name: file.stat().st_mode & 0o777 for file in files(path.parent / "ba")}
    assert set(found) == {"bank.db", "bank.db-wal", "bank.db-shm", "backup.db"}
    assert set(found.values()) == {0o600}
    await store.close()


async def test_a_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    await (await SqliteStore.open("~/mine.db")).close()
    assert (tmp_path / "mine.db").is_file()


@pytest.mark.parametrize("writer", ["none", "another store"])
async def test_a_bank_opened_to_read_answers_and_changes_nothing(path: Path, filled: Fill, writer: str) -> None:
    other = await filled(path)
    before = await looks(other)
    if writer == "none":
        await other.close()
    data, names = path.read_bytes() if writer == "none" else b"", files(path)
    store = await SqliteStore.open(path, read_only=True)
    assert await looks(store) == before
    assert (await store.verify()).problems == []
    for name in ("keep", "apply", "record", "set_setting", "rebuild"):
        with pytest.raises(ReadOnly, match="read-only") as caught:
            await TOUCHES[name](store)
        assert caught.value.code == "read_only"
        sentence(caught)
    assert await looks(store) == before
    if writer != "none":
        await added(other, experience("seen at once"))
        assert len((await looks(store))["scan"]) == len(before["scan"]) + 1
        await store.close()
        await other.close()
        return
    await store.close()
    assert files(path) == names
    assert path.read_bytes() == data


async def test_what_is_not_there_is_not_made_to_be_read(path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="does not exist"):
        await SqliteStore.open(path, read_only=True)
    assert files(path) == []
    path.touch()
    with pytest.raises(LessonbankError, match="open it for writing once"):
        await SqliteStore.open(path, read_only=True)
    assert path.read_bytes() == b""


def test_a_bank_that_is_closed_while_its_file_is_looked_over_says_nothing(path: Path) -> None:
    raised: list[threading.ExceptHookArgs] = []
    before, threading.excepthook = threading.excepthook, raised.append
    try:
        for n in range(100):
            database = Database(path.with_name(f"{n}.db"), busy_timeout=5)
            database.open()
            database.write(str)  # the first change begins the look
            for _ in range(n % 40):
                database.read(str).result()
            database.close()
    finally:
        threading.excepthook = before
    assert raised == []

"""A bank file that cannot be used says why in one sentence, and nothing is half done."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from _trouble import Fill, sentence

from lessonbank.contracts.records import Replace
from lessonbank.errors import StoreUnavailable, VersionMismatch
from lessonbank.stores.sqlite import SqliteStore, _schema
from lessonbank.stores.sqlite._errors import unavailable
from lessonbank.stores.sqlite._migrations import MIGRATIONS
from lessonbank.stores.sqlite._schema import check_library
from lessonbank.testing.store_samples import (
    MINE,
    SPACE,
    added,
    collected,
    experience,
    towards,
)

pytestmark = [pytest.mark.anyio, pytest.mark.full]


@pytest.mark.parametrize(
    ("format", "words"),
    [
        pytest.param(99, "newer release", id="a newer release"),
        pytest.param(5, r"development version .*: run `lessonbank salvage BANK NEW`", id="a development version"),
    ],
)
async def test_a_file_of_another_format_is_named_and_left_alone(
    path: Path, filled: Fill, format: int, words: str
) -> None:
    await (await filled(path)).close()
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA user_version = {format}")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(VersionMismatch, match=words):
        await SqliteStore.open(path)
    assert path.read_bytes() == before


async def test_a_bank_of_the_format_before_is_brought_to_this_one_by_every_opener_or_none(
    path: Path, filled: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await filled(path)).close()
    statements = ["CREATE TABLE more (a)", "INSERT INTO nowhere VALUES (1)"]

    def more(connection: sqlite3.Connection) -> None:
        for statement in statements:
            connection.execute(statement)

    monkeypatch.setattr("lessonbank.stores.sqlite._migrations.MIGRATIONS", {**MIGRATIONS, _schema.FORMAT: more})
    monkeypatch.setattr(_schema, "FORMAT", _schema.FORMAT + 1)
    with pytest.raises(StoreUnavailable, match="no such table"):
        await SqliteStore.open(path)
    statements.pop()
    stores = await asyncio.gather(*(SqliteStore.open(path) for _ in range(4)))
    for store in stores:
        assert (await store.verify()).problems == []
        await store.close()
    with sqlite3.connect(path) as raw:
        assert _schema.version(raw) == _schema.FORMAT
        assert raw.execute("SELECT count(*) FROM more").fetchone() == (0,)
    raw.close()


async def test_a_file_that_is_no_bank_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"just some text, certainly no database" * 100)
    with pytest.raises(StoreUnavailable, match="not a bank"):
        await SqliteStore.open(path)
    assert path.read_bytes().startswith(b"just some text")
    other = path.with_name("other.db")
    with sqlite3.connect(other) as raw:
        raw.execute("CREATE TABLE customers (name)")
    raw.close()
    before = other.read_bytes()
    with pytest.raises(StoreUnavailable, match="another program"):
        await SqliteStore.open(other)
    assert other.read_bytes() == before


async def test_places_where_no_bank_can_be_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="is a folder"):
        await SqliteStore.open(tmp_path)
    with pytest.raises(StoreUnavailable, match="create it first"):
        await SqliteStore.open(tmp_path / "missing" / "bank.db")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
async def test_a_read_only_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StoreUnavailable, match=r"cannot be (opened|written)"):
            await SqliteStore.open(tmp_path / "bank.db")
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_file_system_without_locks_is_named_with_what_to_do(path: Path, tmp_path: Path, is_new: bool) -> None:
    """The C library is told to answer `fcntl` with ENOLCK there, as a network mount does."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler, and Linux")
    library = tmp_path / "no_locks.so"
    source = Path(__file__).with_name("no_locks.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    script = (
        "import sys, asyncio; from lessonbank.errors import StoreUnavailable\n"
        "from lessonbank.stores.sqlite import SqliteStore\n"
        "async def main():\n"
        "    try:\n"
        "        await (await SqliteStore.open(sys.argv[1], busy_timeout=0.2)).close()\n"
        "    except StoreUnavailable as error:\n"
        "        print(error)\n"
        "asyncio.run(main())\n"
    )
    if not is_new:
        await (await SqliteStore.open(path)).close()
    refusing = {**os.environ, "LD_PRELOAD": str(library), "FOLDER_WITHOUT_LOCKS": str(path.parent)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], env=refusing, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"the file system of {path} gives no locks" in done.stdout
    assert "put the bank on a local disk" in done.stdout
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((lock, "put the bank on a local disk") for lock in ("SQLITE_IOERR_LOCK", "SQLITE_IOERR_SHMMAP")),
        ("SQLITE_PROTOCOL", "put the bank on a local disk"),
        ("SQLITE_IOERR_READ", "check the disk"),
        ("SQLITE_BUSY", "another process kept"),
    ],
)
def test_what_sqlite_says_is_named_with_what_to_do(path: Path, name: str, words: str) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorname, error.sqlite_errorcode = name, getattr(sqlite3, name)
    assert words in sentence(unavailable(error, path))


def test_an_older_sqlite_is_refused_before_it_takes_a_bank_for_damaged() -> None:
    check_library((3, 37, 0))
    with pytest.raises(StoreUnavailable, match=r"SQLite 3\.36\.1, and a bank needs 3\.37 or newer"):
        check_library((3, 36, 1))


async def test_verify_names_rows_that_belong_to_nothing_and_missing_journal_lines(path: Path, filled: Fill) -> None:
    store = await filled(path)
    await store.close()
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("DELETE FROM experiences WHERE number = 1")
    raw.execute("DELETE FROM journal WHERE kind = 'settle'")
    raw.close()
    store = await SqliteStore.open(path)
    problems = " | ".join((await store.verify()).problems)
    assert [m.experience.task for m in await store.search("cancel boots", scope=MINE, limit=5)] == [
        "Exchange the blue boots"
    ]
    for part in (
        "lessons without",
        "attempts without",
        "vectors of no",
        "gap in their journal",
        "settlements without",
    ):
        assert part in problems
    await store.close()


async def test_a_task_can_change_after_the_word_index_was_lost(path: Path, filled: Fill) -> None:
    store = await filled(path)
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("INSERT INTO word_index (word_index) VALUES ('delete-all')")
    raw.close()
    known = (await collected(store.scan(scope=MINE)))[0]
    renamed = known.model_copy(update={"task": "A new task"})
    await store.apply([Replace(experience=renamed)], scope=MINE, writer="tests")
    assert [m.experience.id for m in await store.search("new", scope=MINE, limit=5)] == [known.id]
    await store.close()


@pytest.mark.parametrize("change", [lambda blob: b"\0", lambda blob: blob[:-1], lambda blob: blob + b"x"])
async def test_a_vector_of_the_wrong_length_is_reported_not_answered_from(
    path: Path, change: Callable[[bytes], bytes]
) -> None:
    store = await SqliteStore.open(path)
    await added(store, experience(), experience(), along=[towards(1), towards(2)])
    await store.close()
    with sqlite3.connect(path) as raw:
        (blob,) = raw.execute("SELECT vector FROM vectors").fetchone()
        raw.execute("UPDATE vectors SET vector = ? WHERE number = 1", (change(blob),))
    raw.close()
    store = await SqliteStore.open(path)
    with pytest.raises(StoreUnavailable, match=r"wrong length.*rebuild its vectors"):
        await store.nearest(towards(0), scope=MINE, space=SPACE, limit=1)
    assert any("unlike their space" in problem for problem in (await store.verify()).problems)
    await store.close()

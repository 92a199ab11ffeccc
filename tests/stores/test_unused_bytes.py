"""What SQLite leaves in a file when it moves rows is overwritten, and the rows are as they were."""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from _bytes import leftovers

from lessonbank.contracts.ports import RunFilter
from lessonbank.contracts.records import Replace
from lessonbank.contracts.records.settings import ZEROED
from lessonbank.contracts.store_calls import purge_one
from lessonbank.stores.sqlite import SqliteStore, _erased_bytes, _unused_bytes
from lessonbank.stores.sqlite._erased_bytes import overwrite_unused
from lessonbank.testing.store_purging import SECRET, lived_in
from lessonbank.testing.store_samples import MINE, added, experience, lesson, trajectory

_SIZES = 0, 3, 40, 300, 1500, 9000


@pytest.fixture
def crowded(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """Rows that were put between others, grew, and of which half were deleted: only those held two Qs together."""
    monkeypatch.setattr(_erased_bytes, "_SMALL", 0)
    monkeypatch.setattr(_erased_bytes, "_SHARE", 0)
    chance = random.Random(7)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON;"
            "CREATE TABLE a (n INTEGER PRIMARY KEY, k TEXT, t TEXT); CREATE INDEX ak ON a (k);"
            "CREATE TABLE b (k TEXT PRIMARY KEY, t TEXT) WITHOUT ROWID"
        )
        connection.execute("BEGIN")
        for n in chance.sample(range(1200), 1200):
            sign = "Qz"[n % 2]
            key, text = sign * chance.randint(1, 40) + str(chance.random()), sign * chance.choice(_SIZES)
            connection.execute("INSERT INTO a VALUES (?, ?, ?)", (n, key, sign))
            connection.execute("UPDATE a SET t = ? WHERE n = ?", (text, n))
            connection.execute("INSERT INTO b VALUES (?, ?)", (str(chance.random()) + sign, text[:2000]))
        connection.execute("DELETE FROM a WHERE n % 2 = 0")
        connection.execute("DELETE FROM b WHERE k LIKE '%Q'")
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        yield connection


def test_no_two_bytes_of_a_deleted_row_are_left_and_no_other_row_differs(
    crowded: sqlite3.Connection, path: Path
) -> None:
    before = [crowded.execute(f"SELECT * FROM {table}").fetchall() for table in "ab"]
    assert path.read_bytes().count(b"QQ") > 100
    assert overwrite_unused(crowded, path, patience=5)
    assert path.read_bytes().count(b"QQ") == 0
    assert [crowded.execute(f"SELECT * FROM {table}").fetchall() for table in "ab"] == before
    assert crowded.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_who_reads_a_page_meanwhile_does_not_write_it_back(
    crowded: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _unused_bytes.RawFile.free

    def free_and_read(file: _unused_bytes.RawFile, /) -> dict[int, int]:
        assert crowded.execute("SELECT max(t), max(k) FROM a").fetchone()  # it has the pages in memory now
        return plain(file)

    monkeypatch.setattr(_unused_bytes.RawFile, "free", free_and_read)
    with closing(sqlite3.connect(path, isolation_level=None)) as own, path.open("r+b") as file:
        assert _unused_bytes.overwrite_unused(path, own, file.fileno(), seconds=5)
        crowded.execute("UPDATE a SET t = 'y' WHERE t <> ''")
        crowded.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert path.read_bytes().count(b"QQ") == 0


def test_what_was_freed_without_being_overwritten_goes_too(crowded: sqlite3.Connection, path: Path) -> None:
    crowded.execute("PRAGMA secure_delete = OFF")
    crowded.execute("UPDATE a SET t = replace(t, 'z', 'QQQQ')")
    crowded.execute("DELETE FROM a WHERE n % 3")
    crowded.execute("UPDATE a SET t = ''")
    crowded.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    assert path.read_bytes().count(b"Q" * 300) > 10
    assert overwrite_unused(crowded, path, patience=5)
    assert path.read_bytes().count(b"Q" * 4) == 0  # between two rows are three bytes at most
    assert crowded.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_small_file_and_one_that_is_mostly_free_are_written_again_instead(
    crowded: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, number in (("_SHARE", 4), ("_SMALL", 4096)):
        with monkeypatch.context() as context:
            context.setattr(_erased_bytes, limit, number)
            assert not overwrite_unused(crowded, path, patience=5)


def test_a_program_that_embeds_python_is_not_started_again(
    crowded: sqlite3.Connection, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/usr/bin/uwsgi")
    assert not overwrite_unused(crowded, path, patience=5)


def test_nothing_is_written_where_a_reader_holds_the_log(crowded: sqlite3.Connection, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM a").fetchone()
        crowded.execute("UPDATE a SET t = 'y'")
        held = path.read_bytes()
        assert not overwrite_unused(crowded, path, patience=0.2)
        assert path.read_bytes() == held


def test_a_file_that_gives_pages_back_by_itself_is_written_again_instead(
    crowded: sqlite3.Connection, path: Path
) -> None:
    crowded.execute("PRAGMA auto_vacuum = INCREMENTAL")
    crowded.execute("VACUUM")
    crowded.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    held = path.read_bytes()
    assert not overwrite_unused(crowded, path, patience=5)
    assert path.read_bytes() == held


@pytest.mark.parametrize(
    "wrong",
    ["a page with rows", *(pytest.param(one, marks=pytest.mark.full) for one in ("too few", "one beyond the end"))],
)
def test_a_list_of_free_pages_that_is_wrong_takes_no_row_with_it(
    crowded: sqlite3.Connection, path: Path, wrong: str
) -> None:
    before = crowded.execute("SELECT * FROM a").fetchall()
    (leaf,) = crowded.execute("SELECT max(pageno) FROM dbstat WHERE name = 'a' AND pagetype = 'leaf'").fetchone()
    size = crowded.execute("PRAGMA page_size").fetchone()[0]
    raw = bytearray(path.read_bytes())
    trunk, count = struct.unpack_from(">II", raw, 32)
    assert count > 1
    if wrong == "too few":
        struct.pack_into(">I", raw, 36, count - 1)
    else:
        struct.pack_into(">I", raw, (trunk - 1) * size + 8, leaf if wrong == "a page with rows" else len(raw))
    path.write_bytes(raw)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert not overwrite_unused(connection, path, patience=5)
        assert connection.execute("SELECT * FROM a NOT INDEXED").fetchall() == before


def test_a_page_that_is_not_as_sqlite_writes_it_is_left_alone(path: Path) -> None:
    assert [*_unused_bytes.unused(memoryview(b"\x0d\0\0\0\0\0\x10\0" + bytes(4088)), 0, 4096)] == [(8, 16)]
    for page in (b"\x0d\0\0\0\0\x20\0\0", b"\x0d\0\x20\0\0\0\x30\0" + bytes(4088)):
        with pytest.raises(_unused_bytes.DamagedPageError):
            list(_unused_bytes.unused(memoryview(page), 0, 4096))


@pytest.mark.anyio
@pytest.mark.parametrize("program", [_unused_bytes.__file__, "/none.py"])
async def test_no_byte_of_a_run_is_left_with_that_process_and_where_it_fails(
    path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(_erased_bytes, "_SMALL", 0)
    monkeypatch.setattr(_unused_bytes, "__file__", program)
    store = await SqliteStore.open(path)
    run, *_ = await lived_in(store)
    gone, plain = lesson(f"{SECRET} " * 50), lesson("plain")
    await added(store, *[experience(f"Task {n}") for n in range(30)])
    known = experience(lessons=(gone, plain))
    await added(store, known)
    await store.apply([Replace(experience=known.model_copy(update={"lessons": (plain,)}))], scope=MINE, writer="tests")
    await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, run.id) == []
    await purge_one(store, "lesson", gone.id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, SECRET, run.id, gone.id) == []
    assert (await store.verify()).problems == []
    await store.close()


@pytest.mark.anyio
async def test_where_no_process_overwrites_what_is_left_in_a_file_it_is_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_erased_bytes, "_SMALL", 0)
    store = await SqliteStore.open(path)
    runs = [trajectory(f"Task {n}") for n in range(2)]
    await store.save_runs(runs, scope=MINE)
    await purge_one(store, "trajectory", runs[0].id, scope=MINE, writer="ana", reason="asked to")
    with closing(sqlite3.connect(path, isolation_level=None)) as careless:
        careless.executescript("PRAGMA secure_delete = OFF; CREATE TABLE a (t TEXT)")
        careless.execute("INSERT INTO a VALUES (?)", (SECRET * 900,))
        careless.execute("DELETE FROM a")
    monkeypatch.setattr(_unused_bytes, "__file__", "/none.py")
    await purge_one(store, "trajectory", runs[1].id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, SECRET) == []
    await store.close()


@pytest.mark.anyio
async def test_the_first_purge_of_a_file_of_an_earlier_release_writes_it_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_erased_bytes, "_SMALL", 0)
    monkeypatch.setattr(_erased_bytes, "_SHARE", 0)
    store = await SqliteStore.open(path)
    runs = [trajectory(f"Task {n} " * 1000) for n in range(20)]
    await store.save_runs(runs, scope=MINE)
    await store.put_setting(ZEROED, None)
    free = list[int]()
    for run in runs[:2]:
        await purge_one(store, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
        with closing(sqlite3.connect(path)) as connection:
            free.append(connection.execute("PRAGMA freelist_count").fetchone()[0])
    assert free[0] == 0 < free[1]
    await store.close()


@pytest.mark.full
@pytest.mark.anyio
async def test_a_bank_that_is_named_by_a_link_is_written_and_purged_as_by_its_own_name(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_erased_bytes, "_SMALL", 0)
    monkeypatch.setattr(_erased_bytes, "_SHARE", 0)
    link = path.with_name("link.db")
    link.symlink_to(path)
    store, linked = await SqliteStore.open(path), await SqliteStore.open(link)
    runs = [trajectory(f"{SECRET} {n} " * 1000) for n in range(20)]
    for n, run in enumerate(runs):
        await (linked if n % 2 else store).save_runs([run], scope=MINE)
    for run in runs[:10]:
        await purge_one(linked, "trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, *(run.id for run in runs[:10])) == []
    assert {run.trajectory.id for run in await store.runs(RunFilter(), scope=MINE)} == {run.id for run in runs[10:]}
    assert (await store.verify()).problems == []
    await linked.close()
    await store.close()

"""What can be read of a damaged bank comes back, nothing of it is silently wrong, and what is lost is named."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Extraction, Lesson, ReasoningBank, Step, Trajectory
from lessonbank.contracts.records import Add, Missing, Salvaged
from lessonbank.errors import LessonbankError, StoreDamaged, StoreUnavailable, UsageError
from lessonbank.stores.sqlite import _database  # pyright: ignore[reportPrivateUsage]
from lessonbank.testing.settings import grouped

pytestmark = pytest.mark.full

PAGE = 4096


async def extract(attempts: Any, /) -> Extraction:
    """Words of its own for each task."""
    n = int(attempts[0].trajectory.task.split()[-1])
    content = f"Before parcel {n} is shipped, open the form of carrier {n * 7}."
    return Extraction(lessons=(Lesson(title=f"Open form {n}", content=content),))


def connect(path: Path) -> ReasoningBank:
    options: dict[str, Any] = {"embedder": "hashing", "holdout": None, "extractor": extract, "admission": None}
    return lessonbank.connect(path, **grouped(scope="t", **options))


def learn(bank: ReasoningBank, n: int) -> tuple[Lesson, ...]:
    step = Step(action="print label", observation=f"error: no form {random.Random(n).randbytes(300).hex()}")
    run = Trajectory(id=f"run-{n}", task=f"Ship parcel {n}", steps=(step,), metadata={"n": n})
    return bank.learn(run, recall=bank.retrieve(run.task), outcome="failure").lessons


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank with every kind of change, closed."""
    path = tmp_path_factory.mktemp("sound") / "bank.db"
    with connect(path) as bank:
        for n in range(24):
            learn(bank, n)
        known = [lesson.id for lesson in bank.lessons.list(limit=99)]
        bank.lessons.approve(known[3], by="Ana")
        bank.lessons.retire(known[4], known[5], reason="misleads")
        bank.lessons.edit(known[6], content="Ask the carrier for the form first.", by="Ana")
        bank.history.rollback(to=len(bank.history.list()) - 1, reason="no")
        bank.lessons.retire(known[7], reason="misleads")
        learn(bank, 24)
        learn(bank.scoped("elsewhere"), 25)
        assert bank.admin.verify() == ()
    return path


def contents(path: Path) -> dict[str, Lesson]:
    with connect(path) as bank:
        assert bank.admin.verify() == ()
        scopes = ("t", "elsewhere")
        return {i.id: i for s in scopes for i in bank.scoped(s).lessons.list(limit=999, retired=True)}


def wiped(path: Path, *pages: int) -> None:
    """Overwrite pages, counted from 0."""
    with path.open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(random.Random(page).choice((b"\0", b"\xff")) * PAGE)


def pages_with(path: Path, *blobs: bytes) -> set[int]:
    """The pages on which one of these lies, or begins."""
    data = path.read_bytes()
    return {data.index(blob[:120]) // PAGE for blob in blobs}


def entries(path: Path, sql: str = "") -> list[bytes]:
    with closing(sqlite3.connect(path)) as raw:
        return [blob for (blob,) in raw.execute(f"SELECT CAST(entry AS BLOB) FROM journal {sql}")]


def copied(sound: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "damaged.db"
    shutil.copyfile(sound, path)
    return path


def check(found: Salvaged, before: dict[str, Lesson]) -> set[str]:
    """Nothing is wrong, and everything that is not there is listed; the lessons that are lost."""
    after = contents(Path(found.new))
    assert {id: after[id] for id in after} == {id: before[id] for id in after}, "no lesson is silently wrong"
    gone = set(before) - set(after)
    assert gone <= {id for lost in found.lost for id in lost.lessons}
    return gone


def test_a_sound_bank_is_salvaged_whole(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    data = path.read_bytes()
    found = lessonbank.salvage(str(path), tmp_path / "new.db")
    assert found.complete
    assert found.notes == ()
    assert path.read_bytes() == data
    with connect(path) as bank, connect(tmp_path / "new.db") as new:
        assert (
            new.admin.counts()
            == bank.admin.counts()
            == found.counts.model_copy(update=bank.admin.counts().model_dump())
        )
        for scope in ("t", "elsewhere"):
            assert new.scoped(scope).history.list() == bank.scoped(scope).history.list()
            assert new.scoped(scope).runs.list(limit=99) == bank.scoped(scope).runs.list(limit=99)
            assert new.scoped(scope).recalls.list(limit=99) == bank.scoped(scope).recalls.list(limit=99)
        assert new.history.state(20) == bank.history.state(20)
        assert new.settings["embedder"] == bank.settings["embedder"]
        assert new.retrieve("Ship parcel 3").lessons
        new.history.rollback(to=20, reason="as before")
        bank.history.rollback(to=20, reason="as before")
        assert new.lessons.list(limit=99, retired=True) == bank.lessons.list(limit=99, retired=True)
        assert new.admin.verify() == ()
    if os.name == "posix":
        assert (tmp_path / "new.db").stat().st_mode & 0o777 == path.stat().st_mode & 0o777


def salvaged_page_by_page(sound: Path, tmp_path: Path, pages: Sequence[int]) -> None:
    before = contents(sound)
    data = sound.read_bytes()
    with closing(sqlite3.connect(sound)) as raw:
        held = raw.execute(
            "SELECT i.id, j.entry FROM lessons i JOIN journal j ON EXISTS"
            " (SELECT 1 FROM json_each(j.whole) WHERE value = i.experience)"
        ).fetchall()
    for page in pages:
        path = copied(sound, tmp_path / f"{page}")
        wiped(path, page)
        gone = check(lessonbank.salvage(path, path.with_name("new.db")), before)
        here = {id for id, entry in held if data.index(entry.encode()) // PAGE == page}
        assert gone <= here, f"page {page} cost lessons that the journal has elsewhere"
        shutil.rmtree(path.parent)


def test_one_damaged_page_costs_no_lesson_that_the_journal_has(sound: Path, tmp_path: Path) -> None:
    """The first pages are those that lead to all others."""
    salvaged_page_by_page(sound, tmp_path, [0, 1, *pages_with(sound, *entries(sound, "LIMIT 1"))])


@pytest.mark.release
def test_no_damaged_page_costs_a_lesson_that_the_journal_has(sound: Path, tmp_path: Path) -> None:
    salvaged_page_by_page(sound, tmp_path, range(sound.stat().st_size // PAGE))


@pytest.mark.release
def test_two_damaged_pages_cost_few_lessons(sound: Path, tmp_path: Path) -> None:
    chance, before = random.Random(0), contents(sound)
    kept: list[float] = []
    for n in range(20):
        path = copied(sound, tmp_path / f"{n}")
        wiped(path, *chance.sample(range(sound.stat().st_size // PAGE), 2))
        kept.append(1 - len(check(lessonbank.salvage(path, path.with_name("new.db")), before)) / len(before))
        shutil.rmtree(path.parent)
    assert sum(kept) / len(kept) >= 0.95


def test_a_lost_change_does_not_bring_back_what_it_took_away(sound: Path, tmp_path: Path) -> None:
    """The experience's own record is later than what is left of the journal."""
    path, before = copied(sound, tmp_path), contents(sound)
    retirements = entries(sound, "WHERE kind IN ('retire', 'edit', 'trust', 'rollback')")
    wiped(path, *pages_with(path, *retirements))
    found = lessonbank.salvage(path, tmp_path / "new.db")
    check(found, before)
    (lost,) = (lost for lost in found.lost if lost.scope == "t")
    assert lost.changes
    with connect(tmp_path / "new.db") as new:
        journal = new.history.list()
        assert {e.sequence for e in journal if isinstance(e.entry, Missing)} == set(lost.changes)
        assert any(e.writer == "salvage" and not isinstance(e.entry, Missing) for e in journal)


@pytest.mark.full
def test_without_its_tables_a_bank_comes_back_from_the_journal(sound: Path, tmp_path: Path) -> None:
    path, before = copied(sound, tmp_path), contents(sound)
    journal = pages_with(path, *entries(sound))
    wiped(path, *(page for page in range(path.stat().st_size // PAGE) if page not in journal))
    found = lessonbank.salvage(path, tmp_path / "new.db")
    assert check(found, before) == set()


@pytest.mark.full
def test_without_the_journal_its_tables_name_what_is_lost(sound: Path, tmp_path: Path) -> None:
    path, before = copied(sound, tmp_path), contents(sound)
    wiped(path, *pages_with(path, *entries(sound)))
    found = lessonbank.salvage(path, tmp_path / "new.db")
    gone = check(found, before)
    assert 0 < len(gone) < len(before), "those that were changed later have a record of their own"
    assert found.counts.trajectories == 26
    (lost,) = (lost for lost in found.lost if lost.scope == "t")
    with connect(sound) as bank:
        adds = {e.entry.experience.id for e in bank.history.list() if isinstance(e.entry, Add)}
    assert set(lost.experiences) < adds


def test_the_log_that_a_crash_left_is_read_too(tmp_path: Path) -> None:
    path, running = tmp_path / "bank.db", tmp_path / "running.db"
    with connect(running) as bank:
        ids = {lesson.id for n in range(3) for lesson in learn(bank, n)}
        shutil.copyfile(running, path)
        shutil.copyfile(running.with_name("running.db-wal"), path.with_name("bank.db-wal"))
    found = lessonbank.salvage(path, tmp_path / "new.db")
    assert found.complete
    assert contents(tmp_path / "new.db").keys() == ids
    assert path.with_name("bank.db-wal").exists()


@pytest.mark.full
def test_the_log_of_another_file_is_left_aside(sound: Path, tmp_path: Path) -> None:
    path, running = copied(sound, tmp_path), tmp_path / "running.db"
    with connect(running) as bank:
        learn(bank, 1)
        shutil.copyfile(running.with_name("running.db-wal"), path.with_name(f"{path.name}-wal"))
    found = lessonbank.salvage(path, tmp_path / "new.db")
    assert "the log was left aside" in found.notes[0]
    assert check(found, contents(sound)) == set()


@pytest.mark.full
def test_what_a_damaged_file_took_comes_back(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("_LOOKED_OVER", "_BEFORE_A_CHANGE"):  # as a file that is too large for them
        monkeypatch.setattr(f"lessonbank.stores.sqlite._database.{bound}", 0)
    before = contents(sound)
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(sound)) as raw:
        (run,) = raw.execute("SELECT CAST(record AS BLOB) FROM trajectories WHERE number = 9").fetchone()
    wiped(path, *pages_with(path, run))
    with connect(path) as bank:
        new = Trajectory(task="Ship parcel 99", steps=(Step(action="look", observation="an error"),))
        added: Sequence[Lesson] = ()
        with suppress(StoreDamaged):  # refused where it has to read that page; else it must come back
            added = bank.learn(new, outcome="failure").lessons
    found = lessonbank.salvage(path, tmp_path / "new.db")
    check(found, before | {lesson.id: lesson for lesson in added})
    assert {lesson.id for lesson in added} <= contents(tmp_path / "new.db").keys()


def test_a_lesson_that_is_not_what_was_written_is_not_read_and_nothing_is_written_any_more(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    data, (_, second, *_) = bytearray(path.read_bytes()), entries(sound, "WHERE kind = 'add'")
    data[data.index(second) + len(second) // 2] ^= 4
    path.write_bytes(data)
    with connect(path) as bank:
        with pytest.raises(StoreDamaged, match=r"run `lessonbank salvage BANK NEW`, or restore a backup") as caught:
            bank.lessons.list(limit=99)
        assert caught.value.code == "store_damaged"
        for write in (
            lambda: bank.learn(Trajectory(task="x", steps=(Step(action="y", observation="z"),)), outcome="failure"),
            lambda: bank.lessons.retire(bank.lessons.list()[0].id, reason="misleads"),
            bank.admin.rebuild,
        ):
            with pytest.raises(StoreDamaged, match="lessonbank salvage"):
                write()
        with pytest.raises(StoreDamaged, match="lessonbank salvage"):
            bank.admin.export(tmp_path / "export.jsonl")
    assert not (tmp_path / "export.jsonl").exists()


def looked_over() -> None:
    """Wait until the banks that this process has open were looked over."""
    for thread in threading.enumerate():
        if thread.name == "lessonbank-check":
            thread.join(60)


def test_damage_that_no_call_has_read_is_known_soon_after_the_bank_is_opened(
    sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(path)) as raw:
        (run,) = raw.execute("SELECT CAST(record AS BLOB) FROM trajectories WHERE number = 1").fetchone()
    wiped(path, *pages_with(path, run))
    with connect(path) as bank:
        looked_over()
        with pytest.raises(StoreDamaged, match=r"nothing is written to a damaged bank .*lessonbank salvage BANK NEW"):
            learn(bank, 99)
    (said,) = [record.message for record in caplog.records if "damaged.db is damaged" in record.message]
    assert "\n" not in said


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(record AS BLOB) FROM trajectories WHERE number = 9",
        "SELECT CAST(entry AS BLOB) FROM journal",
        "SELECT vector FROM vectors",
    ],
)
def test_the_first_change_waits_until_a_small_file_was_looked_over(sound: Path, tmp_path: Path, sql: str) -> None:
    """The end of a long value lies on a page of its own, of which SQLite asks nothing."""
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(sound)) as raw:
        value = max((value for (value,) in raw.execute(sql)), key=len)
    data = bytearray(path.read_bytes())
    at = data.index(value[-200:])
    data[at : at + 200] = b"\xff" * 200
    path.write_bytes(data)
    with connect(path) as bank, pytest.raises(StoreDamaged, match="nothing is written to a damaged bank"):
        learn(bank, 99)
    with connect(path) as bank, pytest.raises(StoreDamaged, match="nothing is written to a damaged bank"):
        bank.learn("Shipped.", task="Ship parcel 99", outcome="failure")


@pytest.mark.parametrize(
    "sql", ["SELECT CAST(entry AS BLOB) FROM journal", "SELECT CAST(record AS BLOB) FROM trajectories WHERE number = 9"]
)
def test_the_first_change_of_a_larger_file_waits_until_every_checksum_was_read(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setattr("lessonbank.stores.sqlite._database._BEFORE_A_CHANGE", 0)  # as if it took longer than that
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(sound)) as raw:
        *_, (value,) = raw.execute(sql)
    data = bytearray(path.read_bytes())
    data[data.index(value) + len(value) // 2] ^= 4
    path.write_bytes(data)
    with connect(path) as bank:
        assert bank.retrieve("Pack a lamp").kept, "a receipt waits for nothing"
        with pytest.raises(StoreDamaged, match="nothing is written to a damaged bank"):
            bank.lessons.add(title="Ask", content="Ask twice.", task="mend the door", by="Ana")


def test_changes_that_wait_for_the_look_are_written_when_the_bank_is_closed(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    with connect(path) as bank:
        ids = [bank.submit("Shipped.", task=f"Pack lamp {n}", outcome="failure") for n in range(3)]
    with connect(path) as bank:
        assert len(ids) == 3
        assert len(bank.runs.list(text="Pack lamp", limit=9)) == 3
        assert bank.admin.verify() == ()


def test_a_damaged_vector_keeps_changes_out_until_a_rebuild_dropped_it(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("UPDATE vectors SET vector = zeroblob(length(vector)) WHERE key = (SELECT min(key) FROM vectors)")
    with connect(path) as bank:
        for _ in range(2):
            with pytest.raises(StoreDamaged, match=r"nothing is written .* call `admin.rebuild\(\)`"):
                bank.lessons.add(title="Ask", content="Ask twice.", task="mend the door", by="Ana")
        bank.admin.rebuild()
        bank.admin.reindex()
        assert learn(bank, 99)
        assert bank.admin.verify() == ()


@pytest.mark.full
def test_on_a_small_file_no_damaged_page_is_written_on(sound: Path, tmp_path: Path) -> None:
    written: list[int] = []
    for page in range(0, sound.stat().st_size // PAGE, 6):
        wiped(path := copied(sound, tmp_path), page)
        with suppress(LessonbankError), connect(path) as bank:
            learn(bank, 99)
            written.append(page)
        for left in tmp_path.glob("damaged.db*"):
            left.unlink()
    assert written == []


def test_a_sound_bank_takes_writes_after_it_was_looked_over_and_ends_the_look_when_it_is_closed(
    sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = copied(sound, tmp_path)
    with connect(path) as bank:
        looked_over()
        assert learn(bank, 99)
    for _ in range(5):
        connect(path).close()
        assert "lessonbank-check" not in {thread.name for thread in threading.enumerate() if thread.is_alive()}
    assert caplog.records == []


@pytest.mark.full
@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE lessons SET place = place + 7",
        "UPDATE journal SET at = 9223372036854775807",
        "UPDATE journal SET whole = 'x', part = '{'",
        "UPDATE scopes SET sequence = 4611686018427387904",
        "UPDATE experiences SET created_at = -9223372036854775808",
    ],
)
def test_a_value_that_no_bank_can_hold_gives_no_other_error(sound: Path, tmp_path: Path, sql: str) -> None:
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        assert raw.execute(sql).rowcount
    with connect(path) as bank:
        for look in (
            lambda: bank.lessons.list(limit=99),
            bank.history.list,
            lambda: bank.retrieve("Ship parcel 3"),
            lambda: bank.runs.list(limit=9),
            lambda: bank.history.rollback(to=3, reason="test"),
        ):
            with suppress(LessonbankError):
                look()
        assert bank.admin.verify()


@pytest.mark.full
@pytest.mark.parametrize("log", [b"7", b"7" * 23, b"7" * 8 + (4099).to_bytes(4) + b"7" * 5000])
def test_a_log_that_is_cut_off_or_damaged_holds_up_no_salvage(sound: Path, tmp_path: Path, log: bytes) -> None:
    path = copied(sound, tmp_path)
    path.with_name(f"{path.name}-wal").write_bytes(log)
    assert check(lessonbank.salvage(path, tmp_path / "new.db"), contents(sound)) == set()


@pytest.mark.full
@pytest.mark.parametrize("number", ["(SELECT number FROM scopes WHERE name = 'elsewhere')", "7"])
@pytest.mark.parametrize("table", ["recalls", "experiences"])
def test_a_damaged_number_of_a_scope_brings_nothing_to_another_one(
    sound: Path, tmp_path: Path, table: str, number: str
) -> None:
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute(f"UPDATE {table} SET scope = {number} WHERE number = 5")
    assert not lessonbank.salvage(path, tmp_path / "new.db").notes
    with connect(sound) as before, connect(tmp_path / "new.db") as after:
        assert after.admin.verify() == ()
        for scope in ("t", "elsewhere"):
            banks = [bank.scoped(scope) for bank in (before, after)]
            assert len({tuple(i.id for i in bank.lessons.list(limit=99, retired=True)) for bank in banks}) == 1
            assert len({tuple(r.id for r in bank.recalls.list(limit=99)) for bank in banks}) == 1


def test_salvage_says_what_is_wrong_with_its_arguments(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    with pytest.raises(UsageError, match="there is no file"):
        lessonbank.salvage(tmp_path / "missing.db", tmp_path / "new.db")
    with pytest.raises(UsageError, match="is there already"):
        lessonbank.salvage(path, path)
    with pytest.raises(UsageError, match="takes the path of a file"):
        lessonbank.salvage(path, "")
    with connect(path), pytest.raises(StoreUnavailable, match=r"somebody has .* open"):
        lessonbank.salvage(path, tmp_path / "new.db")
    notes = tmp_path / "notes.txt"
    notes.write_bytes(b"three wishes" * 1000)
    with pytest.raises(StoreDamaged, match="nothing of a bank"):
        lessonbank.salvage(notes, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    assert not list(tmp_path.glob(".*"))


def test_of_several_users_that_open_a_file_at_once_one_reads_it_whole(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, reads, begun, goes_on = copied(sound, tmp_path), list[str](), threading.Event(), threading.Event()
    read_whole = _database.check_rows

    def counted(connection: sqlite3.Connection, /, **told: Any) -> tuple[str, str]:
        reads.append(threading.current_thread().name)
        begun.set()
        goes_on.wait()
        return read_whole(connection, **told)

    monkeypatch.setattr(_database, "check_rows", counted)
    monkeypatch.setattr(_database, "_HELD_BACK", 60.0)
    with connect(path) as one, connect(path) as other:
        writers = [threading.Thread(target=learn, args=(bank, number)) for number, bank in enumerate((one, other), 99)]
        for writer in writers:
            writer.start()
        begun.wait()
        goes_on.set()
        for writer in writers:
            writer.join()
        assert one.admin.verify() == ()
    assert reads == ["lessonbank-check"]


def test_a_file_that_was_found_sound_is_not_read_whole_again_on_the_same_day(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    with connect(path) as bank:
        learn(bank, 99)
        looked_over()
    with connect(path) as bank:
        assert not [thread for thread in threading.enumerate() if thread.name == "lessonbank-check"]
        learn(bank, 100)
        assert bank.admin.verify() == ()
    with closing(sqlite3.connect(path)) as raw:
        *_, (value,) = raw.execute("SELECT CAST(entry AS BLOB) FROM journal")
    data = bytearray(path.read_bytes())
    data[data.index(value) + len(value) // 2] ^= 4
    other = tmp_path / "another.db"
    other.write_bytes(data)
    with connect(other) as bank, pytest.raises(StoreDamaged, match="nothing is written to a damaged bank"):
        learn(bank, 101)

"""However much a bank holds, a page reads about as many records as it shows."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from pictures import PAGES
from seeding import SCOPE, opened, seed
from serving_pages import Site, serving

from lessonbank import Experience, Lesson
from lessonbank.contracts.records import Add
from lessonbank.contracts.records.timeline import about
from lessonbank.stores import _texts
from lessonbank.stores.sqlite import SqliteStore, _rows

pytestmark = pytest.mark.full
MANY = 2_400
MOST = 350
"""Records: the map of the topics takes most."""
LATER = {"helps", "evidence", "diff", "rollback", "doctor", "compare", "purge", "purge-by-words", "inbox-proposed"}
"""What reads more: pages that a person asks for one by one, and parts that come after their page."""


async def _grow(path: Path) -> None:
    store = await SqliteStore.open(path)
    lessons = [Lesson(title=f"L {n}", content=f"c {n}") for n in range(MANY)]
    adds = [
        Add(experience=Experience(scope=SCOPE, task=f"Task {n}", lessons=(lesson,))) for n, lesson in enumerate(lessons)
    ]
    await store.apply(adds, scope=SCOPE, writer="test")
    await store.close()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grown") / "bank.db"
    seed(path, tasks=10)
    anyio.run(_grow, path)
    return path


@pytest.fixture(scope="module")
def large(grown: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    path = Path(shutil.copy(grown, tmp_path_factory.mktemp("large") / "bank.db"))
    with opened(path) as bank:
        bank.lessons.add(title="The last", content="It came after many.", task="Come last", by="Ana")
    with serving(path, scope=SCOPE) as site:
        yield site.enter()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the records that are read."""
    found, plain = list[int](), _texts.checked

    def counted(data: bytes, /) -> bytes:
        found.append(len(data))
        return plain(data)

    for room in ("_listing", "_rows", "_read", "_database", "_verify"):
        monkeypatch.setattr(f"lessonbank.stores.sqlite.{room}.checked", counted, raising=False)
    return found


def test_no_page_reads_the_whole_bank(large: Site, read: list[int]) -> None:
    found = dict[str, int]()
    for name, where in PAGES.items():
        read.clear()
        if name not in LATER and not where.startswith("/runs/run-0"):
            assert large.get(where).status in (200, 404), name
            found[name] = len(read)
    assert found["lessons"] > 40, "it counts what is read"
    assert {name: count for name, count in found.items() if count > MOST} == {}


@pytest.mark.parametrize("asked", ["17", "c+17", "c+17+nowhere", "nowhere"])
def test_lessons_with_some_words_are_found_without_reading_the_others(large: Site, read: list[int], asked: str) -> None:
    page = large.get(f"/lessons?q={asked}")
    assert len(read) < MOST
    assert ("L 17" in page.text) == ("nowhere" not in asked)
    assert ("No lesson has all of these words" in page.text) == ("nowhere" in asked)


def test_what_a_lesson_said_is_found_without_reading_what_was_added_just_before(large: Site, read: list[int]) -> None:
    (id,) = re.findall(r'href="/lessons/(\w+)"[^>]*>The last', large.get("/lessons?q=last").text)
    read.clear()
    assert "As it was first written" in large.get(f"/lessons/{id}/versions").text
    assert len(read) < MOST


def test_what_a_lesson_said_is_found_without_what_came_before_a_rollback(
    grown: Path, tmp_path: Path, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for what was written in the ten seconds before: clocks may differ by so much."""
    monkeypatch.setattr("lessonbank.bank.views.history._SKEW", timedelta())
    path = Path(shutil.copy(grown, tmp_path / "bank.db"))
    with opened(path) as bank:
        bank.lessons.retire(bank.lessons.list()[0].id, reason="it harms", by="Ana")
        bank.history.rollback(to=bank.admin.counts().changes - 1, reason="it helps", by="Ana")
        last = bank.lessons.add(title="The last", content="It came after many.", task="Come last", by="Ana")
    with serving(path, scope=SCOPE) as site:
        site.enter()
        read.clear()
        assert "As it was first written" in site.get(f"/lessons/{last.id}/versions").text
    assert 2 < len(read) < MOST


def test_of_all_lessons_only_those_that_recalls_found_are_read_for_the_evidence(large: Site, read: list[int]) -> None:
    (id, *_) = re.findall(r'href="/lessons/(\w{32})"', large.get("/lessons?q=order").text)
    read.clear()
    assert large.get(f"/lessons/{id}/lift", HX_Request="true").status == 200
    assert 5 < len(read) < MOST


def test_what_takes_long_comes_when_it_is_asked_for(large: Site) -> None:
    found = large.get("/lessons?q=Task+17&by=task")
    assert "Look through all lessons" in found.text
    assert "L 17" in large.get("/lessons?q=Task+17&by=task&whole=yes").text
    tried = large.get("/why?task=Task+17")
    assert "/why/try?task=Task+17" in tried.text
    assert "L 17" in large.get("/why/try?task=Task+17", HX_Request="true").text
    assert "L 17" in large.get("/why/try?task=Task+17").text


def test_the_doctor_looks_quickly_and_reads_every_record_where_it_is_asked_to(large: Site, read: list[int]) -> None:
    quick = large.get("/doctor").text
    assert "No record was read" in quick
    assert "are sound" not in quick
    assert len(read) <= 1_100, "those among which proposals are looked for"
    assert "/doctor?records=yes" in quick
    assert re.search(r"2,4\d\d records: about 1 second ", quick)
    whole = large.get("/doctor?records=yes", HX_Request="true").text
    assert "The records are sound" in whole
    assert len(read) > MANY


@pytest.mark.parametrize(
    ("damage", "in_quick"),
    [
        ("UPDATE journal SET entry = '0' WHERE number = (SELECT max(number) FROM journal)", True),
        ("UPDATE journal SET entry = '0' WHERE number = (SELECT max(number) - 1500 FROM journal)", False),
        ("DELETE FROM tasks WHERE number = (SELECT max(number) FROM tasks)", True),
    ],
)
def test_a_quick_look_calls_nothing_sound_that_it_did_not_read(
    grown: Path, tmp_path: Path, damage: str, in_quick: bool
) -> None:
    path = Path(shutil.copy(grown, tmp_path / "bank.db"))
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(damage)
    with serving(path, scope=SCOPE) as site:
        quick = site.enter().get("/doctor").text
        assert "are sound" not in quick
        assert ("is not sound" in quick) == in_quick
        assert "is not sound" in site.get("/doctor?records=yes").text


def test_what_a_lesson_said_is_told_without_every_entry_where_the_scope_was_rolled_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bank.db"
    seed(path, tasks=10)
    with opened(path) as bank:
        lesson = bank.lessons.list()[0]
        before = bank.history.list()[-1].sequence
        bank.lessons.edit(lesson.id, title="In other words", by="Ana")
        bank.history.rollback(to=before, reason="it was right", by="Ana")
        bank.lessons.edit(lesson.id, title="In new words", by="Ana")
    anyio.run(_grow, path)
    parsed, plain = list[bytes](), _rows.entry_of
    sizes, own = list[int](), _texts.checked

    def counted(text: bytes, /) -> object:
        parsed.append(text)
        return plain(text)

    def opened_up(data: bytes, /) -> bytes:
        sizes.append(len(data))
        return own(data)

    monkeypatch.setattr("lessonbank.stores.sqlite._read.entry_of", counted)
    monkeypatch.setattr("lessonbank.stores.sqlite._read.checked", opened_up)
    with serving(path, scope=SCOPE) as site:
        told = site.enter().get(f"/lessons/{lesson.id}/versions").text
    assert ("In new" in told, "rollback" in told, len(parsed) < MOST) == (True, True, True)
    assert len(sizes) < MOST
    with opened(path) as bank:
        story = [entry.sequence for entry in bank.history.list(lesson=lesson.id)]
        assert story == [entry.sequence for entry in about(bank.history.list(), lesson=lesson.id)]

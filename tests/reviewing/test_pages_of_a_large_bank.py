"""However much a bank holds, a page reads about as many records as it shows."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import anyio
import pytest
from pictures import PAGES
from seeding import SCOPE, seed
from serving_pages import Site, serving

from lessonbank import Experience, Lesson
from lessonbank.stores import _packing
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.types import Add

pytestmark = pytest.mark.full
MANY = 2_400
MOST = 350
"""Records: the map of the topics takes most."""
LATER = {"helps", "evidence", "diff", "rollback", "doctor", "compare", "purge", "inbox-proposed"}
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
def large(tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    path = tmp_path_factory.mktemp("large") / "bank.db"
    seed(path, tasks=10)
    anyio.run(_grow, path)
    with serving(path, scope=SCOPE) as site:
        yield site.enter()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the records that are unpacked."""
    found, plain = list[int](), _packing.unpacked

    def counted(data: bytes, /) -> bytes:
        found.append(len(data))
        return plain(data)

    for room in ("_listing", "_rows", "_read", "_database"):
        monkeypatch.setattr(f"lessonbank.stores.sqlite.{room}.unpacked", counted, raising=False)
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


def test_what_reads_every_lesson_comes_when_it_is_asked_for(large: Site, read: list[int]) -> None:
    page = large.get("/lessons?q=nowhere")
    assert "Look through all lessons" in page.text
    assert len(read) < MOST
    assert "No lesson is like that" in large.get("/lessons?q=nowhere&whole=yes").text
    assert len(read) > MANY
    assert "No lesson is like that" in large.get("/lessons?q=nowhere", HX_Request="true").text
    tried = large.get("/why?task=Task+17")
    assert "/why/try?task=Task+17" in tried.text
    assert "L 17" in large.get("/why/try?task=Task+17", HX_Request="true").text
    assert "L 17" in large.get("/why/try?task=Task+17").text

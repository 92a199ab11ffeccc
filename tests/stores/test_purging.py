"""What was purged is not in the file any more: not in a row, an index, a free page or the log."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from lessonbank.errors import StoreUnavailable
from lessonbank.stores import _packing
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_purging import SECRET, everything, lived_in
from lessonbank.testing.store_samples import MINE, SPACE, added, collected, experience, lesson, towards
from lessonbank.types import Erasure, Replace

Fill = Callable[[Path], Awaitable[SqliteStore]]

pytestmark = pytest.mark.anyio


def leftovers(path: Path, *texts: str) -> list[str]:
    """Which of the texts any file of the bank still holds, whatever the case of their letters."""
    held = b"".join(file.read_bytes().lower() for file in path.parent.glob(f"{path.name}*"))
    return [text for text in texts if text.lower().encode() in held]


async def test_no_byte_of_a_purged_run_is_left(path: Path) -> None:
    store = await SqliteStore.open(path)
    run, *_ = await lived_in(store)
    assert leftovers(path, SECRET, run.id) == [SECRET, run.id]
    await store.purge("trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, SECRET, run.id) == []
    await store.close()
    assert leftovers(path, SECRET, run.id) == []


async def test_no_byte_of_an_earlier_version_is_left(path: Path) -> None:
    store = await SqliteStore.open(path)
    gone, plain = lesson(f"{SECRET} " * 50), lesson("plain")
    await added(store, *[experience(f"Task {n}") for n in range(30)])
    known = experience(lessons=(gone, plain))
    await added(store, known)
    await store.apply([Replace(experience=known.model_copy(update={"lessons": (plain,)}))], scope=MINE, writer="tests")
    await store.purge("lesson", gone.id, scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, SECRET, gone.id) == []
    assert await store.verify() == []
    await store.close()


async def test_no_byte_of_a_purged_scope_is_left(path: Path) -> None:
    store = await SqliteStore.open(path)
    await lived_in(store)
    await store.purge("scope", "", scope=MINE, writer="ana", reason="asked to")
    assert leftovers(path, SECRET, "Cancel the pending", "Check the status", "cancel") == []
    await store.close()


async def test_a_reader_of_an_older_state_is_named_and_a_rebuild_finishes(path: Path) -> None:
    store = await SqliteStore.open(path, busy_timeout=0.05)
    run, *_ = await lived_in(store)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM journal").fetchone()
    with pytest.raises(StoreUnavailable, match="another reader"):
        await store.purge("trajectory", run.id, scope=MINE, writer="ana", reason="asked to")
    assert SECRET not in await everything(store)
    assert any("purge was interrupted" in problem for problem in await store.verify())
    other.close()
    await store.rebuild()
    assert await store.verify() == []
    assert leftovers(path, SECRET, run.id) == []
    await store.close()


async def test_a_purge_reaches_the_matrix_of_another_store(path: Path) -> None:
    ours, theirs = await SqliteStore.open(path), await SqliteStore.open(path)
    await lived_in(theirs)
    assert len(await ours.nearest(towards(0), scope=MINE, space=SPACE, limit=9)) > 0
    await theirs.purge("scope", "", scope=MINE, writer="ana", reason="asked to")
    assert list(await ours.nearest(towards(0), scope=MINE, space=SPACE, limit=9)) == []
    new = experience()
    await added(theirs, new, along=[towards(2)])
    found = await ours.nearest(towards(2), scope=MINE, space=SPACE, limit=9)
    assert [m.experience for m in found] == [new]
    assert await collected(ours.scan(scope=MINE)) == [new]
    await ours.close()
    await theirs.close()


async def test_to_erase_ten_lessons_reads_the_records_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size, ten = 300, 10
    store = await SqliteStore.open(path)
    every = [experience(f"Task {n}") for n in range(size)]
    await added(store, *every)
    read, plain = list[int](), _packing.unpacked

    def counted(data: bytes, /) -> bytes:
        read.append(len(data))
        return plain(data)

    monkeypatch.setattr("lessonbank.stores.sqlite._purge.unpacked", counted)
    lessons: list[tuple[Erasure, str]] = [("lesson", one.lessons[0].id) for one in every[:ten]]
    assert len(await store.purge_many(lessons, scope=MINE, writer="ana", reason="asked to")) == ten
    assert size <= len(read) < 2 * size
    assert (await store.counts(scope=MINE)).lessons == size - ten
    assert await store.verify() == []
    await store.close()

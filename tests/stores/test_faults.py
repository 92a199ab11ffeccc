"""A file that is deleted, replaced, cut or damaged: one clear error, and never a wrong answer."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _trouble import (
    BIG,
    LOOKS,
    TOUCHES,
    Fill,
    companion,
    files,
    looks,
    opened,
    right_or_refused,
    sentence,
)

from lessonbank.cli import main as command_line
from lessonbank.contracts.store_calls import get_experience
from lessonbank.errors import StoreDamaged, StoreUnavailable, VersionMismatch
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.stores.sqlite._wal_identity import WalIdentity
from lessonbank.testing.store_samples import MINE, added, collected, experience, towards

PAGE = 4096

pytestmark = [pytest.mark.anyio, pytest.mark.full]


async def refused_everywhere(store: SqliteStore) -> None:
    """Every kind of call says that the file is not the one that was opened."""
    for touch in TOUCHES.values():
        with pytest.raises(StoreUnavailable, match="moved, deleted or replaced") as caught:
            await touch(store)
        sentence(caught)


async def test_a_deleted_bank_is_neither_read_nor_made_again(path: Path, filled: Fill) -> None:
    store = await filled(path)
    for file in files(path):
        file.unlink()
    await refused_everywhere(store)
    await store.close()
    assert files(path) == []


@pytest.mark.full
async def test_a_bank_in_the_place_of_an_open_one_is_not_taken_for_it(path: Path, filled: Fill) -> None:
    store = await filled(path)
    for file in files(path):
        file.rename(path.with_name(f"moved-{file.name}"))
    async with opened(path) as newer:
        one, other = experience(), experience()
        await added(newer, one)
        await refused_everywhere(store)
        await added(newer, other)
        await store.close()
        assert await collected(newer.scan(scope=MINE)) == [one, other]
        with companion(path) as reader:
            assert reader.ask("look") == [one.id, other.id], "closing the old one took nothing from the new one"
            (third,) = reader.ask("add")
    async with opened(path) as newer:
        assert [e.id for e in await collected(newer.scan(scope=MINE))] == [one.id, other.id, third]
        assert (await newer.verify()).problems == []


async def test_a_bank_that_is_cut_to_nothing_gives_no_wrong_answer(path: Path, filled: Fill) -> None:
    await (await filled(path)).close()
    async with opened(path) as store:
        before = await looks(store)
        os.truncate(path, 0)
        await right_or_refused(store, before)
        for touch in ("keep", "apply", "record", "set_setting", "verify"):
            with pytest.raises(StoreUnavailable) as caught:
                await TOUCHES[touch](store)
            sentence(caught)


@pytest.mark.full
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
async def test_a_write_after_its_log_was_deleted_is_refused_or_lasts(path: Path, filled: Fill, ending: str) -> None:
    await (await filled(path)).close()
    with companion(path) as other:
        other.ask("add")
        path.with_name(f"{path.name}{ending}").unlink()
        answer = other.ask("add")
    async with opened(path) as store:
        kept = [e.id for e in await collected(store.scan(scope=MINE))]
        assert (await store.verify()).problems == []
    assert "error" in answer or answer[0] in kept


@pytest.mark.parametrize("touch", ["apply", "rebuild"])
async def test_an_open_bank_that_a_newer_release_took_over_is_left_alone(path: Path, filled: Fill, touch: str) -> None:
    store = await filled(path)
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    try:
        with pytest.raises(VersionMismatch) as caught:
            await TOUCHES[touch](store)
        sentence(caught)
    finally:
        await store.close()


def overwrite(place: Callable[[int], int], length: int) -> Callable[[Path], None]:
    """Damage of `length` bytes at the place that belongs to a file of so many bytes."""

    def damage(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(place(path.stat().st_size))
            file.write(b"\xff" * length)

    return damage


DAMAGES: dict[str, Callable[[Path], None]] = {
    "header": overwrite(lambda size: 0, 100),
    "first page": overwrite(lambda size: 100, PAGE - 100),
    "second page": overwrite(lambda size: PAGE, PAGE),
    "third of it": overwrite(lambda size: size // PAGE // 3 * PAGE, 10 * PAGE),
    "middle": overwrite(lambda size: size // PAGE // 2 * PAGE, 10 * PAGE),
    "last page": overwrite(lambda size: size - PAGE, PAGE),
    "second half": lambda path: os.truncate(path, path.stat().st_size // 2 // PAGE * PAGE),
    "end of it": lambda path: os.truncate(path, path.stat().st_size - PAGE - 1000),
    "all of it": lambda path: path.write_bytes(b"\xff" * path.stat().st_size),
}


@pytest.mark.full
@pytest.mark.parametrize("where", DAMAGES)
async def test_damage_is_reported_and_never_answered_from(
    path: Path, filled: Fill, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = await prepared(path, filled)
    DAMAGES[where](path)
    damaged = path.read_bytes()
    try:
        async with opened(path) as store:
            await right_or_refused(store, before)
            problems = (await store.verify()).problems
    except StoreUnavailable as error:
        problems = [sentence(error)]
    assert problems
    assert path.read_bytes() == damaged, "looking repairs nothing and breaks nothing"
    monkeypatch.setattr(sys, "argv", ["lessonbank", "doctor", "--bank", str(path), "--scope", MINE])
    with pytest.raises(SystemExit) as left:
        command_line()
    said = capsys.readouterr()
    assert left.value.code == 1
    assert said.err.startswith("lessonbank: ") or "verify" in said.out
    assert "Traceback" not in said.err


async def prepared(path: Path, filled: Fill) -> dict[str, Any]:
    """A bank of some sixty pages at this path, closed; what it answers."""
    store = await filled(path)
    await added(store, *[experience(f"Cancel {n} orders", minute=n) for n in range(60)], along=[towards(3)] * 60)
    await store.put_setting("embedder", "lexical")
    before = await looks(store)
    await store.close()
    return before


def free_pages(path: Path) -> int:
    """Pages that hold nothing: whatever is written over them, nothing is lost."""
    raw = sqlite3.connect(path)
    (count,) = raw.execute("PRAGMA freelist_count").fetchone()
    raw.close()
    return int(count)


@pytest.mark.full
async def test_no_page_can_be_lost_without_being_noticed(path: Path, filled: Fill) -> None:
    before = await prepared(path, filled)
    free, sound = free_pages(path), path.read_bytes()
    unnoticed: list[int] = []
    for place in range(0, len(sound), PAGE):
        lost = (b"\x00" if place // PAGE % 2 else b"\xff") * PAGE
        path.write_bytes(sound[:place] + lost + sound[place + PAGE :])
        try:
            async with opened(path) as store:
                await right_or_refused(store, before)
                if not (await store.verify()).problems:
                    unnoticed.append(place // PAGE)
        except StoreUnavailable as error:
            sentence(error)
        for file in files(path):
            file.unlink()
    assert len(unnoticed) <= free, unnoticed


def middles(data: bytes) -> list[int]:
    """The middle page of every long text: a row of pages each of which begins with the number of the next one."""
    found: list[int] = []
    row: list[int] = []
    for page in range(len(data) // PAGE):
        if int.from_bytes(data[page * PAGE : page * PAGE + 4]) == page + 2:  # pages are counted from 1
            row.append(page)
            continue
        found += [row[len(row) // 2]] if len(row) > 50 else []
        row = []
    assert found
    return found


@pytest.mark.full
async def test_where_the_file_is_sound_everybody_reads_on_and_whoever_saw_damage_writes_no_more(
    path: Path, filled: Fill
) -> None:
    store = await filled(path)
    before = await looks(store)
    await added(store, experience(BIG, scope="big"), scope="big")
    await store.close()
    with path.open("r+b") as file:
        for middle in middles(path.read_bytes()):
            file.seek(middle * PAGE)
            file.write(b"\xff" * PAGE)
    async with opened(path) as store:
        with pytest.raises(StoreUnavailable, match="damaged") as caught:
            await collected(store.scan(scope="big"))
            await collected(store.journal(scope="big"))
        sentence(caught)
        assert {name: before[name] for name in before if name != "scopes"} == {
            name: await look(store) for name, look in LOOKS.items() if name != "scopes"
        }
        with companion(path) as other:
            theirs = other.ask("add")  # refused if it has looked the file over by now
            for touch in ("keep", "apply", "record", "set_setting", "rebuild"):
                with pytest.raises(StoreDamaged, match="lessonbank salvage") as caught:
                    await TOUCHES[touch](store)
                sentence(caught)
            assert "error" in theirs or theirs[0] in other.ask("look")
            assert "error" in theirs or (await get_experience(store, theirs[0], scope=MINE)).id == theirs[0]


async def test_a_log_that_somebody_begins_just_now_is_not_taken_for_that_of_another_file(
    path: Path, filled: Fill
) -> None:
    await (await filled(path)).close()
    salts = b"12345678"
    head = bytes.fromhex("377f0682") + (3007000).to_bytes(4) + PAGE.to_bytes(4) + bytes(4) + salts + bytes(8)
    page = (1).to_bytes(4) + bytes(4) + salts + bytes(8)
    for begun in (head, head + page, head + page + bytes(PAGE)):
        path.with_name(f"{path.name}-wal").write_bytes(begun)
        WalIdentity(path).check()

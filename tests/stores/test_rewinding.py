"""Whatever is done to a bank, every moment of it can be told and brought back."""

from __future__ import annotations

import asyncio
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Add, Experience, Retire
from lessonbank.contracts.records.ids import digest
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_rewinding import as_of, present, some_change, wind
from lessonbank.testing.store_samples import MINE, SPACE, added, collected, experience, towards

MOVES = st.lists(st.tuples(st.booleans(), st.integers(0, 2**32)), min_size=1, max_size=25)


async def lives(store: Store, moves: list[tuple[bool, int]]) -> list[list[object]]:
    """What is seen after each of these moves: a rollback to a moment chosen by the number, or a change it draws."""
    seen = [await present(store)]
    for back, number in moves:
        if back and number % 3 == 0:
            await wind(store, number % len(seen))
        else:
            change = some_change(seen[-1][0], random.Random(number))
            vectors = {change.experience.id: towards(number % 8)} if isinstance(change, Add) else {}
            await store.apply([change], scope=MINE, writer="tests", vectors=vectors, space=SPACE)
        seen.append(await present(store))
    return seen


async def check(store: Store, moves: list[tuple[bool, int]]) -> None:
    seen = await lives(store, moves)
    for sequence, then in enumerate(seen):
        assert list((await as_of(store, sequence)).experiences) == then[0]
    target = moves[0][1] % len(seen)
    await wind(store, target)
    assert await present(store) == seen[target]
    assert (await store.verify()).problems == []
    await store.rebuild()
    assert await present(store) == seen[target]
    await wind(store, len(seen) - 1)
    assert await present(store) == seen[-1]
    assert (await store.verify()).problems == []


@pytest.mark.full
@given(moves=MOVES)
@settings(max_examples=12)
def test_a_file_tells_and_brings_back_every_moment(moves: list[tuple[bool, int]]) -> None:
    async def in_a_file(folder: str) -> None:
        store = await SqliteStore.open(Path(folder) / "bank.db")
        await check(store, moves)
        await store.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(in_a_file(folder))


def digest_of(experiences: Iterable[Experience]) -> str:
    """One digest of everything they hold."""
    return digest("\n".join(e.model_dump_json() for e in experiences))


async def digest_of_all(store: Store) -> str:
    return digest_of(await collected(store.scan(scope=MINE)))


@pytest.mark.anyio
@pytest.mark.release
async def test_a_hundred_thousand_lessons_go_back_and_forth_bit_for_bit(path: Path) -> None:
    store = await SqliteStore.open(path)
    for thousand in range(100):
        some = [experience(f"Task {thousand} of {n}", minute=thousand) for n in range(1000)]
        await added(store, *some, along=[towards(n % 8, tilt=n / 1000) for n in range(1000)])
        await store.apply([Retire(lesson_ids=(some[0].lessons[0].id,), reason="no use")], scope=MINE, writer="tests")
    last = [entry.sequence async for entry in store.journal(scope=MINE, since=100_000)][-1]
    assert last == 100_100
    whole, told = await digest_of_all(store), await as_of(store, 50_050)
    for to in (50_050, last, 50_050):
        await wind(store, to)
        wanted = whole if to == last else digest_of(told.experiences)
        assert await digest_of_all(store) == wanted
    assert (await store.verify()).problems == []
    await store.close()

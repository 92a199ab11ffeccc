"""Whatever is done to a file through one store, another one sees, and both answer as a bank in memory does."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from _trouble import quick_folder
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "security" / "corpus"))
from tenants import LOOKS, MOVES, Tenant

from lessonbank.bank.views.journal_check import differences
from lessonbank.stores._erasure import SALT
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing.store_samples import MINE, THEIRS, collected, ranked_by_words

pytestmark = [pytest.mark.usefixtures("small_boundaries"), pytest.mark.full]

CALLS = (*MOVES, *("apply",) * 50, *("index",) * 60, "reopen", "reopen")
STEPS = st.lists(st.tuples(st.sampled_from(CALLS), st.integers(0, 2**32)), min_size=100, max_size=200)


async def walk(steps: list[tuple[str, int]]) -> None:
    """The same calls to a file, by one of its two stores, and to a bank in memory, which reads vectors each time."""
    with quick_folder() as folder:
        path, memory = folder / "bank.db", SqliteStore.in_memory()
        stores = [await SqliteStore.open(path), await SqliteStore.open(path)]
        ours, reference = (Tenant(one, [MINE, MINE, MINE, THEIRS], folder, mark="walk") for one in (stores[0], memory))
        for one in (stores[0], memory):
            await one.put_setting(SALT, "the same in both")
        for move, number in steps:
            chance = random.Random(number)
            at = chance.randrange(2)
            if move == "reopen":
                await stores[at].close()
                stores[at] = await SqliteStore.open(path)
                continue
            await both(move, number, stores[at], ours, reference)
            for look in (chance.choice(LOOKS), "nearest", "nearest", "search"):
                await both(look, chance.randrange(1 << 30), stores[chance.randrange(2)], ours, reference)
        for store in stores:
            await is_sound(store)
            await store.close()


async def both(call: str, number: int, store: SqliteStore, ours: Tenant, reference: Tenant) -> None:
    ours.store = store
    reference.store = SqliteStore(reference.store._database)
    await ours.act(call, number)
    await reference.act(call, number)
    assert ours.told.pop() == reference.told.pop(), (call, number)


async def is_sound(store: SqliteStore) -> None:
    assert (await store.verify()).problems == []
    for scope in (MINE, THEIRS):
        assert await differences(store, scope=scope) == ()
        found: list[Any] = list(await store.search("cancel order boots", scope=scope, limit=99))
        every = ranked_by_words(await collected(store.scan(scope=scope)), "cancel order boots")
        assert [(match.experience, match.score) for match in found] == every[:99]


@given(steps=STEPS)
@settings(max_examples=settings().max_examples // 10, phases=(Phase.explicit, Phase.generate))
def test_two_stores_of_one_file_and_one_in_memory_always_agree(steps: list[tuple[str, int]]) -> None:
    asyncio.run(walk(steps))

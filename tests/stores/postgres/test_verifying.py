"""What is wrong with a number beside the records is noticed, and a rebuild makes it anew: else writes would fail."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from lessonbank.contracts.records import Retire, Rollback
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, SPACE, THEIRS, added, collected, experience, towards

pytestmark = [pytest.mark.full, pytest.mark.anyio]

MENDED = {
    "the last change": "UPDATE lessonbank.scopes SET sequence = sequence - 1",
    "the last number": "UPDATE lessonbank.scopes SET numbers = 0",
    "the entry of an experience": "UPDATE lessonbank.experiences SET entry = 1 WHERE number = 2",
    "what no vector lacks": "UPDATE lessonbank.spaces SET tasks_checked = 1000",
    "vectors that a rollback hid": "UPDATE lessonbank.vectors SET shown = NOT shown",
    "spaces": "UPDATE lessonbank.vectors SET space = 'another'",
    "dimensions": "UPDATE lessonbank.spaces SET dimensions = 4",
}


@pytest.mark.parametrize("sql", MENDED.values(), ids=MENDED)
async def test_a_wrong_number_is_noticed_and_made_anew(postgres_bank: Callable[..., str], sql: str) -> None:
    address = postgres_bank(2)
    store = await PostgresStore.open(address)
    known = [experience(f"Task {n}", minute=n) for n in range(3)]
    await added(store, *known[:2], along=[towards(0), towards(1)])
    await store.apply([Retire(lesson_ids=(known[1].lessons[0].id,), reason="r")], scope=MINE, writer="tests")
    await added(store, known[2], along=[towards(2)])
    await store.apply([Rollback(to=3, reason="r")], scope=MINE, writer="tests")
    await added(store, experience(scope=THEIRS), scope=THEIRS)
    with psycopg.connect(address) as raw:
        raw.execute("SELECT set_config('lessonbank.scope', %s, true)", (MINE,))
        assert raw.execute(sql.encode()).rowcount
    assert (await store.verify()).problems
    await store.rebuild()
    assert (await store.verify()).problems == []
    await store.apply([Rollback(to=2, reason="r")], scope=MINE, writer="tests")
    lacking = [id for id, _ in await store.unindexed(scope=MINE, space=SPACE, limit=9)]
    await added(store, experience("Another", minute=9))
    await store.index({id: towards(5) for id in lacking}, scope=MINE, space=SPACE)
    assert (await collected(store.scan(scope=MINE)))[:2] == known[:2]
    assert (await store.verify()).problems == []
    await store.close()

"""Whoever runs the database is told how it is, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable

import psycopg
import pytest

from lessonbank.stores.postgres import PostgresStore, _health, _vectors
from lessonbank.testing.store_samples import MINE, SPACE, added, experience, towards

pytestmark = [pytest.mark.full, pytest.mark.anyio]


async def test_a_sound_database_asks_for_nothing(postgres: Callable[[], str]) -> None:
    store = await PostgresStore.open(postgres(), partitions=2)
    told = (await store.verify(tables=False)).storage
    await store.close()
    assert told["PostgreSQL"].split(".")[0].isdecimal()
    assert told["tables"] == "step 1 of 1"
    assert (told["role"], told["indexes"]) == ("keeper: owner; row-level security binds it", "all are there")
    assert (told["dead rows"], told["long transactions"]) == ("few", "none")


async def test_what_is_missing_or_not_safe_is_named(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank(2)
    store = await PostgresStore.open(address, partitions=2)
    await added(store, experience())
    assert (await store.verify()).problems == []
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP INDEX lessonbank.lessons_by_wording")
    assert (await store.verify()).problems == [
        "the index lessons_by_wording is missing: make it again, see migrations/"
    ]
    assert "lessons_by_wording is missing" in (await store.verify(tables=False)).storage["indexes"]
    await store.close()
    superuser = await PostgresStore.open(address.replace("keeper@", "postgres@"))
    assert "row-level security does not bind it" in (await superuser.verify(tables=False)).storage["role"]
    await superuser.close()


async def test_dead_rows_and_transactions_left_open_are_named(
    postgres_bank: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_health, "_MANY", 10)
    monkeypatch.setattr(_health, "_LONG", 0)
    address = postgres_bank(2)
    store = await PostgresStore.open(address, partitions=2)
    await added(store, *[experience() for _ in range(40)])
    with psycopg.connect(address) as forgotten, psycopg.connect(address, autocommit=True) as raw:
        forgotten.execute("SELECT 1")
        raw.execute("SELECT set_config('lessonbank.scope', %s, false)", (MINE,))
        raw.execute("UPDATE lessonbank.lessons SET place = place")
        raw.execute("SELECT pg_stat_force_next_flush()")
        told = (await store.verify(tables=False)).storage
        assert re.search(r"\d+ % of lessons_\d: VACUUM lessonbank\.lessons_\d;", told["dead rows"])
        assert re.search(r"(is|are) open for over", told["long transactions"])
    await store.close()


async def test_a_large_scope_gets_an_index_that_finds_what_comparing_all_finds(
    postgres_bank: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_vectors, "LARGE", 20)
    store = await PostgresStore.open(postgres_bank(2), partitions=2)
    try:
        known = [experience(minute=n) for n in range(60)]
        await added(store, *known, along=[towards(n % 8, tilt=n / 100) for n in range(60)])
        before = (await store.nearest(towards(1, tilt=0.3), scope=MINE, space=SPACE, limit=9)).matches
        assert "CREATE INDEX vectors_near_8" in (await store.verify(tables=False)).storage["indexes"]
        assert len(await store.index_vectors()) == 1
        assert (await store.verify(tables=False)).storage["indexes"] == "all are there"
        assert await store.index_vectors() == []
        assert (await store.nearest(towards(1, tilt=0.3), scope=MINE, space=SPACE, limit=9)).matches == before
    finally:
        await store.close()


async def test_nothing_stays_in_a_session_so_that_a_pooler_may_stand_between(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank(2)
    store = await PostgresStore.open(address, partitions=2)
    for _ in range(12):  # more often than the driver waits before it prepares a statement
        await added(store, experience(), along=[towards(0)])
        await store.nearest(towards(0), scope=MINE, space=SPACE, limit=3)

    with store._database._pool.connection() as connection:  # pyright: ignore[reportPrivateUsage]
        left = connection.execute(
            "SELECT (SELECT count(*) FROM pg_prepared_statements), current_setting('lessonbank.scope', true),"
            " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
        ).fetchone()
    assert left == (0, "", 0)
    await store.close()

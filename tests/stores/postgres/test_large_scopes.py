"""What one call reads does not grow with its scope."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, added, attempt, experience, trajectory

pytestmark = [pytest.mark.full, pytest.mark.anyio]
MANY = 2000


async def test_to_learn_from_one_run_in_a_large_scope_reads_few_rows(postgres: Callable[[], str]) -> None:
    address = postgres()
    store = await PostgresStore.open(address, partitions=1)
    for _ in range(4):
        runs = [trajectory() for _ in range(MANY // 4)]
        await store.keep(runs, scope=MINE)
        await added(store, *[experience(attempts=[attempt(run, "success")]) for run in runs])
    await store.close()
    with psycopg.connect(address.replace("keeper@", "postgres@"), autocommit=True) as raw:
        raw.execute("ANALYZE")
    before = rows_read(address)
    store, run = await PostgresStore.open(address), trajectory()
    await store.keep([run], scope=MINE)
    assert await store.holding([run.id], scope=MINE) is None
    await added(store, known := experience(attempts=[attempt(run, "success")]))
    assert await store.holding([run.id], scope=MINE) == known
    await store.close()
    assert rows_read(address) - before < MANY / 4


def rows_read(address: str, /) -> int:
    """By every session of the store; each tells when it ends."""
    others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
    sql = (
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables"
        " WHERE schemaname = 'lessonbank' AND relname != 'migrations'"
    )
    with psycopg.connect(address, autocommit=True) as raw:
        while raw.execute(others.encode()).fetchone():
            pass
        (found,) = raw.execute(sql.encode()).fetchone() or (0,)
    return int(found)

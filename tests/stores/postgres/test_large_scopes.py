"""What one call reads does not grow with its scope."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from lessonbank.contracts.records import Erasure
from lessonbank.contracts.store_calls import experience_of_runs
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, added, attempt, experience, trajectory

pytestmark = [pytest.mark.full, pytest.mark.anyio]
MANY = 2000
PARTITIONED = {
    *("journal", "experiences", "lessons", "repeats", "attempts"),
    *("trajectories", "recalls", "shown", "terms", "postings", "vectors"),
}
"""The tables that may hold what a purge erases."""


async def test_to_learn_from_one_run_in_a_large_scope_reads_few_rows(postgres: Callable[[], str]) -> None:
    address = postgres()
    store = await PostgresStore.open(address, partitions=1)
    for _ in range(4):
        runs = [trajectory() for _ in range(MANY // 4)]
        await store.save_runs(runs, scope=MINE)
        await added(store, *[experience(attempts=[attempt(run, "success")]) for run in runs])
    await store.close()
    with psycopg.connect(address.replace("keeper@", "postgres@"), autocommit=True) as raw:
        raw.execute("ANALYZE")
    before = rows_read(address)
    store, run = await PostgresStore.open(address), trajectory()
    await store.save_runs([run], scope=MINE)
    assert await experience_of_runs(store, [run.id], scope=MINE) is None
    await added(store, known := experience(attempts=[attempt(run, "success")]))
    assert await experience_of_runs(store, [run.id], scope=MINE) == known
    await store.close()
    assert rows_read(address) - before < MANY / 4


async def test_to_erase_ten_lessons_reads_a_scope_once_and_vacuums_its_own_tables(postgres: Callable[[], str]) -> None:
    address, size, ten = postgres(), 300, 10
    store = await PostgresStore.open(address)
    every = [experience(attempts=[attempt(trajectory(), "success")]) for _ in range(size)]
    await added(store, *every)
    await store.close()
    before = rows_read(address, "journal")
    store = await PostgresStore.open(address)
    lessons: list[tuple[Erasure, str]] = [("lesson", one.lessons[0].id) for one in every[:ten]]
    assert len(await store.purge(lessons, scope=MINE, writer="test", reason="asked to")) == ten
    await store.close()
    assert rows_read(address, "journal") - before < 2 * size
    with psycopg.connect(address, autocommit=True) as raw:
        found = raw.execute("SELECT relname FROM pg_stat_user_tables WHERE vacuum_count > 0").fetchall()
        erased = raw.execute("SELECT relname FROM pg_stat_user_tables WHERE n_tup_del > 0").fetchall()
    assert {name.rpartition("_")[0] for (name,) in found} == PARTITIONED
    assert {name for (name,) in erased if name != "spaces"} <= {name for (name,) in found}
    assert len({name.rpartition("_")[2] for (name,) in found}) == 1


def rows_read(address: str, /, table: str = "") -> int:
    """By every session of the store; each tells when it ends. `table`: of the one of that name."""
    others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
    sql = (
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables"
        " WHERE schemaname = 'lessonbank' AND relname != 'migrations' AND starts_with(relname, %s)"
    )
    with psycopg.connect(address, autocommit=True) as raw:
        while raw.execute(others.encode()).fetchone():
            pass
        (found,) = raw.execute(sql.encode(), [table]).fetchone() or (0,)
    return int(found)

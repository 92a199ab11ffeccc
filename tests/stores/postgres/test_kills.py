"""Whatever dies, what was acknowledged is there and nothing is half done."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from lessonbank.contracts.store_calls import get_experience, settled_runs
from lessonbank.errors import StoreUnavailable
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, added, collected, experience, refused, towards

pytestmark = [pytest.mark.full, pytest.mark.anyio]
DIES_AT_A_VECTOR = (
    "CREATE FUNCTION public.dies() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$"
    " BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$",
    "CREATE TRIGGER dies AFTER INSERT ON lessonbank.vectors FOR EACH ROW EXECUTE FUNCTION public.dies()",
)
"""The session that writes a vector, when half of its write is done, is ended by the server."""


async def test_a_killed_writer_loses_nothing_it_said_was_kept(postgres_bank: Callable[..., str]) -> None:
    address, said = postgres_bank(2), list[str]()
    store = await PostgresStore.open(address, partitions=2)
    for _ in range(2):
        command = [sys.executable, str(Path(__file__).with_name("writer.py")), address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said += [writer.stdout.readline().strip() for _ in range(5)]
            writer.kill()
            said += [line.strip() for line in writer.stdout if line.endswith("\n")]
    there = {e.id: e for e in await collected(store.scan(scope=MINE))}
    assert set(said) <= set(there)
    assert len(there) <= len(said) + 2, "at most one was kept and not yet said, for each writer"
    learned = await settled_runs(store, [a.trajectory_id for e in there.values() for a in e.attempts], scope=MINE)
    assert len(learned) == len(there)
    assert (await store.verify()).problems == []
    await store.close()


async def test_sessions_that_the_server_ends_are_replaced(
    postgres_bank: Callable[..., str], postgres_server: str
) -> None:
    store = await PostgresStore.open(postgres_bank(2), partitions=2)
    known = experience()
    await added(store, known)
    scan = store.scan(scope=MINE)
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'keeper'"
        for _ in range(2):
            connection.execute(end)
            assert await get_experience(store, known.id, scope=MINE) == known
            await added(store, experience())
        assert await anext(scan) == known
    assert len([e async for e in scan]) == 2
    await store.close()


async def test_a_write_that_the_server_ends_in_the_middle_changes_nothing(postgres_bank: Callable[..., str]) -> None:
    store, new = await PostgresStore.open(address := postgres_bank(2), partitions=2), experience()
    with psycopg.connect(address.replace("keeper@", "postgres@"), autocommit=True) as raw:
        for line in DIES_AT_A_VECTOR:
            raw.execute(line.encode())
        with refused(StoreUnavailable):
            await added(store, new, along=[towards(0)])
        raw.execute("DROP TRIGGER dies ON lessonbank.vectors")
    assert await collected(store.scan(scope=MINE)) == []
    assert [entry async for entry in store.journal(scope=MINE)] == []
    await added(store, new)
    assert (await store.verify()).problems == []
    await store.close()


async def test_a_forked_child_uses_the_bank_that_its_parent_opened(postgres_bank: Callable[..., str]) -> None:
    script = """
import asyncio, os, sys
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, added, collected, experience
store = asyncio.run(PostgresStore.open(sys.argv[1], partitions=2))
asyncio.run(added(store, experience()))
child = os.fork()
asyncio.run(added(store, experience()))
if child == 0:
    os._exit(0)
_, status = os.waitpid(child, 0)
asyncio.run(added(store, experience()))
async def count():
    return len(await collected(store.scan(scope=MINE)))
print(status, asyncio.run(count()))
asyncio.run(store.close())
"""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-c", script, postgres_bank(2)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert done.stdout.split() == ["0", "4"], done.stderr

"""A second wall behind the code: what a session that forgets its filter sees, and what a role may never do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from lessonbank.contracts.records import Recall
from lessonbank.contracts.store_calls import get_experience, get_trajectory, list_scopes, purge_one
from lessonbank.errors import NotFound, StoreUnavailable
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import (
    MINE,
    SPACE,
    THEIRS,
    added,
    attempt,
    experience,
    refused,
    settlement,
    towards,
    trajectory,
)

pytestmark = [pytest.mark.full, pytest.mark.anyio]
TABLES = (
    *("scopes", "journal", "experiences", "lessons", "repeats", "attempts", "trajectories", "recalls", "shown"),
    *("terms", "spaces", "vectors"),
)


@pytest.fixture
def role(postgres: Callable[[], str], postgres_server: str) -> Iterator[tuple[str, Callable[..., str]]]:
    """The address of a bank's owner, and a function that makes a role with some rights and gives its address."""
    owner = postgres()
    made: list[str] = []

    def make(name: str, *rights: object) -> str:
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        made.append(name)
        with psycopg.connect(owner) as connection:
            connection.execute(f"SELECT lessonbank.admit(%s{', %s' * len(rights)})".encode(), (name, *rights))
        return owner.replace("keeper@", f"{name}@")

    yield owner, make
    for name in made:
        database = owner.replace("keeper@", "postgres@")
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


async def _lived_in(store: PostgresStore) -> None:
    """Something in every table, in two scopes."""
    for scope in (MINE, THEIRS):
        run, receipt = trajectory(), Recall(scope=scope, task="Cancel it")
        await store.save_runs([run], scope=scope)
        new = experience(scope=scope, attempts=[attempt(run, "success")])
        await added(store, new, scope=scope, along=[towards(0)])
        await store.save_recall(receipt)
        await store.apply([], scope=scope, writer="tests", settlement=settlement(receipt, scope=scope))


@contextmanager
def _session(address: str, scope: str | None) -> Iterator[Callable[[str], list[tuple[Any, ...]]]]:
    with psycopg.connect(address) as connection:
        if scope is not None:
            connection.execute("SELECT set_config('lessonbank.scope', %s, false)", (scope,))
        yield lambda sql: connection.execute(sql.encode()).fetchall()


async def test_a_session_that_forgets_its_filter_sees_one_scope_alone(role: tuple[str, Callable[..., str]]) -> None:
    owner, make = role
    store = await PostgresStore.open(owner, partitions=2)
    await _lived_in(store)
    await store.close()
    for address in (owner, make("agent")):
        with _session(address, MINE) as rows:
            for table in TABLES:
                assert {scope for (scope,) in rows(f"SELECT scope FROM lessonbank.{table}")} <= {MINE}, table
            assert rows("SELECT count(*) FROM lessonbank.experiences") == [(1,)]
            assert rows(f"UPDATE lessonbank.lessons SET state = 'x' WHERE scope = '{THEIRS}' RETURNING id") == []
        with _session(address, MINE) as rows, pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level"):
            rows(f"INSERT INTO lessonbank.scopes (scope) VALUES ('{THEIRS}/x') RETURNING scope")
        with _session(address, None) as rows:
            for table in TABLES:
                assert rows(f"SELECT scope FROM lessonbank.{table}") == [], table


async def test_a_tenants_role_is_bound_to_its_scopes_whatever_it_asks_for(
    role: tuple[str, Callable[..., str]],
) -> None:
    owner, make = role
    store = await PostgresStore.open(owner, partitions=2)
    await _lived_in(store)
    address = make("tenant", "acme/support")
    tenant = await PostgresStore.open(address)
    try:
        (found,) = await tenant.search("Cancel the order", scope=MINE, limit=5)
        assert await get_experience(tenant, found.experience.id, scope=MINE) == found.experience
        assert await tenant.search("Cancel the order", scope=THEIRS, limit=5) == []
        assert (await tenant.nearest(towards(0), scope=THEIRS, space=SPACE, limit=5)).matches == []
        assert await list_scopes(tenant) == []
        with refused(StoreUnavailable):
            await tenant.save_runs([trajectory()], scope=THEIRS)
        with refused(StoreUnavailable):
            await tenant.save_runs([trajectory()], scope="acme/supporters")
        below = trajectory()
        assert await tenant.save_runs([below], scope=f"{MINE}/eu") == [below.id]
        with refused(NotFound):
            await get_trajectory(store, below.id, scope=MINE)
    finally:
        await tenant.close()
        await store.close()


async def test_an_agents_role_learns_and_recalls_but_changes_no_history(role: tuple[str, Callable[..., str]]) -> None:
    owner, make = role
    store = await PostgresStore.open(owner, partitions=2)
    await _lived_in(store)
    address = make("agent")
    agent = await PostgresStore.open(address)
    try:
        new = experience("Exchange the boots")
        await added(agent, new, along=[towards(1)])
        assert await get_experience(agent, new.id, scope=MINE) == new
        assert await list_scopes(agent) == []
        assert await agent.claim(worker="w", limit=9, seconds=1.0) == []
        with refused(StoreUnavailable):
            await purge_one(agent, "lesson", new.lessons[0].id, scope=MINE, writer="agent", reason="hide it")
        for change in ("UPDATE lessonbank.journal SET writer = 'ana'", "DELETE FROM lessonbank.journal"):
            with _session(address, MINE) as rows, pytest.raises(psycopg.errors.InsufficientPrivilege):
                rows(f"{change} RETURNING sequence")
        assert await get_experience(store, new.id, scope=MINE) == new
        assert (await store.verify()).problems == []
    finally:
        await agent.close()
        await store.close()


async def test_a_workers_role_takes_runs_of_every_scope(role: tuple[str, Callable[..., str]]) -> None:
    owner, make = role
    store = await PostgresStore.open(owner, partitions=2)
    for scope in (MINE, THEIRS):
        await store.save_runs([trajectory()], scope=scope, wait=0.0)
    worker = await PostgresStore.open(make("worker", None, True))
    try:
        assert await list_scopes(worker) == sorted([MINE, THEIRS])
        assert [claim.scope for claim in await worker.claim(worker="w", limit=9, seconds=60.0)] == [MINE, THEIRS]
    finally:
        await worker.close()
        await store.close()

"""A tenant is answered as if there were no other one, whatever the others do meanwhile and however much they hold."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import bank_tenants
import pytest
import tenants
from doors import Ids
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sharing import NOBODYS, OURS, PORTS, STORES, THEIRS, every_call, folder, furnished, methods, opened

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.ports import RecallFilter, RunFilter, Store
from lessonbank.errors import NotFound
from lessonbank.stores._erasure import SALT
from lessonbank.stores.sqlite import SqliteStore, _listing, _read
from lessonbank.testing.store_samples import added, experience, trajectory

pytestmark = [pytest.mark.usefixtures("small_boundaries"), pytest.mark.full]

LOOKALIKES = (
    "acme",
    "acme/support/x",
    "acme/suppor",
    "ACME/support",
    "acme/support-",
    "acme_support",
)
CALLABLE_LOOKALIKES = ("acme", "acme/support/x", "acme/suppor", "ACME/support", "acme_support", "acme/sales")


# --- two who act at the same time ------------------------------------------------------------------------------------


def test_the_walks_know_every_method_there_is() -> None:
    """A new method needs a call in `tenants.py` or `bank_tenants.py`, or nobody knows whether it keeps scopes apart."""
    assert {name for port in PORTS for name in methods(port)} == tenants.CALLS.keys()
    assert every_call(AsyncReasoningBank) == bank_tenants.CALLS.keys()
    assert every_call(lessonbank.ReasoningBank) <= bank_tenants.CALLS.keys()


Move = tuple[bool, str, int]
AS_DRAWN = (Phase.explicit, Phase.generate)
"""The first answer that differs says enough: to make a walk shorter takes minutes."""


async def store_walk(kind: str, moves: Sequence[Move], *, alone: bool) -> list[Any]:
    """What one tenant is told by a store that another one uses, or does not."""
    with folder() as where:
        store: Store = SqliteStore.in_memory() if kind == "memory" else await SqliteStore.open(where / "bank.db")
        await store.put_setting(SALT, "the same in both walks")
        us = tenants.Tenant(store, [OURS], where, mark="ours")
        them = tenants.Tenant(store, LOOKALIKES, where, mark="theirs")
        await us.act("apply", 1)
        for ours, method, number in moves:
            if ours or not alone:
                await (us if ours else them).act(method, number)
        for number, look in enumerate((*tenants.LOOKS, "search", "nearest", "close")):
            await us.act(look, number)
        await store.close()
        return us.told


async def bank_walk(kind: str, moves: Sequence[Move], *, alone: bool) -> list[Any]:
    """The same of a bank."""
    with folder() as where:
        async with opened(kind, where) as bank:
            await bank.store.put_setting(SALT, "the same in both walks")
            us = bank_tenants.BankTenant(bank, [OURS], where, mark="ours")
            them = bank_tenants.BankTenant(bank, CALLABLE_LOOKALIKES, where, mark="theirs")
            for ours, method, number in moves:
                if ours or not alone:
                    await (us if ours else them).act(method, number)
            for number, look in enumerate((*bank_tenants.LOOKS, "retrieve", "close")):
                await us.act(look, number)
            return us.told


def walks(moves: Sequence[str], *, size: int) -> st.SearchStrategy[list[Move]]:
    return st.lists(
        st.tuples(st.booleans(), st.sampled_from(moves), st.integers(0, 2**32)), min_size=size, max_size=2 * size
    )


def compared(walk: Callable[..., Awaitable[list[Any]]], kind: str, moves: Sequence[Move]) -> None:
    beside = asyncio.run(walk(kind, moves, alone=False))  # type: ignore[arg-type]
    alone = asyncio.run(walk(kind, moves, alone=True))  # type: ignore[arg-type]
    assert "theirs" not in repr(beside)
    for there, here in zip(beside, alone, strict=True):
        assert there == here


@pytest.mark.parametrize("kind", STORES)
@given(moves=walks(tenants.MOVES, size=60))
@settings(max_examples=4, phases=AS_DRAWN)
def test_a_store_answers_a_tenant_as_if_there_were_no_other(kind: str, moves: list[Move]) -> None:
    compared(store_walk, kind, moves)


@pytest.mark.parametrize("kind", STORES)
@given(moves=walks(bank_tenants.MOVES, size=30))
@settings(max_examples=3, phases=AS_DRAWN)
def test_a_bank_answers_a_tenant_as_if_there_were_no_other(kind: str, moves: list[Move]) -> None:
    compared(bank_walk, kind, moves)


@pytest.mark.parametrize("kind", STORES)
def test_the_walks_get_somewhere(kind: str) -> None:
    """A walk of refusals alone would show nothing."""
    draw = random.Random(1)
    moves = [(n % 2 == 0, draw.choice(tenants.MOVES), n) for n in range(700)]
    told = asyncio.run(store_walk(kind, moves, alone=False))
    done = {
        method for method, _, answer in told if not (isinstance(answer, tuple) and answer and answer[0] in _REFUSALS)
    }
    assert done >= {"apply", "save_runs", "experiences", "runs", "recalls", "purge", "index", "search", "nearest"}


_REFUSALS = ("NotFound", "Conflict", "UsageError", "SpaceMismatch", "StoreUnavailable")


# --- what a clock could tell -----------------------------------------------------------------------------------------


def steps(connection: sqlite3.Connection, call: Callable[[], Any]) -> int:
    """How many steps SQLite's machine takes: what a clock would measure, without the clock's noise."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    connection.set_progress_handler(count, 1)
    try:
        call()
    except NotFound:
        pass
    finally:
        connection.set_progress_handler(None, 0)
    return taken


def looks(connection: sqlite3.Connection, ids: Ids) -> dict[str, Callable[[], Any]]:
    return {
        "counts": lambda: _read.counts(connection, OURS),
        "pending": lambda: _listing.runs(connection, OURS, RunFilter(status="pending", oldest_first=True)),
        "by run": lambda: _read.experiences(connection, OURS, "run", [ids.run]),
        "by id": lambda: _read.experiences(connection, OURS, "id", [ids.experience]),
        "by lesson": lambda: _read.experiences(connection, OURS, "lesson", [ids.lesson]),
        "by what it repeats": lambda: _read.experiences(connection, OURS, "repeats", [ids.lesson]),
        "run": lambda: _listing.runs(connection, OURS, RunFilter(ids=[ids.run])),
        "recall": lambda: _listing.recalls(connection, OURS, RecallFilter(ids=[ids.recall], settlements=True)),
        "scan": lambda: connection.execute(_read.SCAN, (OURS,)).fetchall(),
        "recalls": lambda: _listing.recalls(connection, OURS, RecallFilter(oldest_first=True)),
        "unsettled": lambda: _listing.recalls(connection, OURS, RecallFilter(settled=False)),
        "journal": lambda: connection.execute(_read.JOURNAL, (OURS, 0, None)).fetchall(),
        "settlements": lambda: connection.execute(_read.JOURNAL, (OURS, 0, '["settle"]')).fetchall(),
    }


@pytest.mark.anyio
async def test_the_work_of_an_answer_tells_nothing_of_how_much_others_hold_or_of_their_ids(tmp_path: Path) -> None:
    taken: list[dict[str, Any]] = []
    for size in (0, 300):
        path = tmp_path / f"{size}.db"
        store = await SqliteStore.open(path)
        own = await furnished(store, OURS)
        foreign = await furnished(store, THEIRS, "foreign-")
        await added(store, *[experience(scope=THEIRS) for _ in range(size)], scope=THEIRS)
        await store.save_runs([trajectory() for _ in range(size)], scope=THEIRS)
        await store.close()
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        for ids in (own, foreign, NOBODYS):
            taken.append({name: steps(connection, look) for name, look in looks(connection, ids).items()})
        connection.close()
    own, foreign, nobodys, *beside_many = taken
    assert min(own.values()) > 5
    assert foreign == nobodys
    assert beside_many == [own, foreign, nobodys]

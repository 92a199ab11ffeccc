"""Programs that share a database: none waits to read because another one writes, and a lesson is kept once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import psycopg
import pytest

import lessonbank
from lessonbank import Evidence, Extraction, Lesson, Parts, ReasoningBank, Step, Trajectory
from lessonbank.stores.postgres import PostgresStore
from lessonbank.testing.store_samples import MINE, SPACE, added, experience, towards

pytestmark = pytest.mark.full

TASK = "Pay the supplier invoice"
AT_ONCE = 4


async def draws(_: Any, /) -> Extraction:
    return Extraction(lessons=(Lesson(title="Check the IBAN", content="Compare the IBAN with the master record."),))


def connect(address: str) -> ReasoningBank:
    evidence, parts = Evidence(holdout=None), Parts(extractor=draws)
    return lessonbank.connect(address, scope="acme/pay", embedder="lexical", evidence=evidence, parts=parts)


def a_run(task: str) -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="open it", observation="opened"),))


def test_a_retrieve_does_not_wait_for_a_lock_and_learn_keeps_its_receipt(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank()
    with connect(address) as bank:
        bank.learn(a_run(TASK), outcome="success")
        with psycopg.connect(address) as other:
            other.execute("LOCK TABLE lessonbank.recalls IN EXCLUSIVE MODE")
            begun = monotonic()
            recalls = [bank.retrieve(f"{TASK} {number}") for number in range(20)]  # more than there are connections
            assert monotonic() - begun < 30, "a quarter of a second each; the lock stays"
        assert all(recall.text for recall in recalls)
        assert not any(recall.kept for recall in recalls)
        assert "this receipt is not kept yet" in " ".join(recalls[0].notes)
        told = bank.learn(a_run(f"{TASK} 0"), recall=recalls[0], outcome="failure")
        assert "not measured" not in " ".join(told.notes)
        assert bank.recalls.explain(recalls[0].id).outcome == "failure"


@pytest.mark.anyio
async def test_a_search_by_meaning_does_not_wait_for_who_writes_to_the_scope(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank()
    store = await PostgresStore.open(address)
    await added(store, *(experience(minute=n) for n in range(100)), along=[towards(n % 8) for n in range(100)])
    with psycopg.connect(address) as other:  # an import of another program, which takes its time
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended('lessonbank ' || %s, 0))", (MINE,))
        nearest = await store.nearest(towards(0), scope=MINE, space=SPACE, limit=1)
        assert (len(nearest.matches), nearest.is_complete) == (1, True)
        assert await store.unindexed(scope=MINE, space=SPACE, limit=1) == []
        other.rollback()
        await store.nearest(towards(0), scope=MINE, space=SPACE, limit=1)
        other.execute("SELECT set_config('lessonbank.scope', %s, true)", (MINE,))
        assert other.execute("SELECT tasks_checked FROM lessonbank.spaces").fetchall() == [(100,)]
    await store.close()


def test_connections_that_teach_the_same_at_once_leave_one_lesson(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank()
    connect(address).close()
    banks = [connect(address) for _ in range(AT_ONCE)]
    start = threading.Barrier(AT_ONCE)

    def teach(number: int) -> None:
        start.wait()
        banks[number].learn(a_run(f"{TASK} of town {number}"), outcome="success")

    threads = [threading.Thread(target=teach, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [lesson.title for lesson in banks[0].lessons.list()] == ["Check the IBAN"]
    assert banks[0].admin.counts().trajectories == AT_ONCE
    assert banks[0].admin.verify() == ()
    for bank in banks:
        bank.close()

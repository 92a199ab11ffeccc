"""A search in a past state finds what a search by words found then, to the last digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Step, Trajectory
from lessonbank.contracts.records import Match
from lessonbank.errors import NotFound, UsageError

pytestmark = pytest.mark.anyio
STEPS = (Step(action="print label", observation="error: no form"),)
TASKS = ("Ship a parcel to Oslo", "Ship two parcels", "Cancel the order", "Ship a parcel", "Pay for a parcel to Oslo")


async def opened(where: str | Path) -> AsyncReasoningBank:
    return await lessonbank.connect_async(where, scope="t", embedder="lexical", evidence=Evidence(holdout=None))


async def found_now(bank: AsyncReasoningBank, task: str) -> tuple[Match, ...]:
    return tuple(await bank.store.search(task, scope="t", limit=9))


@pytest.mark.full
async def test_it_finds_what_was_found_then(tmp_path: Path) -> None:
    async with await opened(tmp_path / "bank.db") as bank:
        then = [await found_now(bank, "Ship a parcel to Oslo")]
        for task in TASKS:
            await bank.learn(Trajectory(task=task, steps=STEPS), outcome="failure")
            then.append(await found_now(bank, "Ship a parcel to Oslo"))
        lesson = then[-1][0].experience.lessons[0]
        await bank.lessons.retire(lesson.id, reason="?")
        then.append(await found_now(bank, "Ship a parcel to Oslo"))
        await bank.history.rollback(to=2, reason="?")
        then.append(await found_now(bank, "Ship a parcel to Oslo"))
        receipts = (await bank.admin.counts()).recalls
        for moment, wanted in enumerate(then):
            found = await bank.history.retrieve("Ship a parcel to Oslo", at=moment, limit=9)
            assert found.matches == wanted
            assert found.notes == (f"by the words of the tasks, as of change {moment}",)
        assert len(then[5]) == 4
        assert lesson.id not in {i.id for m in then[6] for i in m.experience.active_lessons}
        assert (await bank.admin.counts()).recalls == receipts == 0


WORDS = ["ship", "parcel", "oslo", "the", "not", "包", "裹", "two"]
words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


@pytest.mark.full
@settings(deadline=None, max_examples=15)
@given(tasks=st.lists(words, max_size=12), asked=words)
async def test_it_ranks_as_the_store_does(tasks: list[str], asked: str) -> None:
    async with await opened(":memory:") as bank:
        for task in tasks:
            await bank.learn(Trajectory(task=task, steps=STEPS), outcome="failure")
        found = await bank.history.retrieve(asked, at=len(await bank.history.list()), limit=9)
        assert found.matches == await found_now(bank, asked)


async def test_it_takes_the_limit_of_the_bank_and_refuses_what_it_cannot_answer() -> None:
    async with await opened(":memory:") as bank:
        for task in TASKS:
            await bank.learn(Trajectory(task=task, steps=STEPS), outcome="failure")
        assert len((await bank.history.retrieve("parcel", at=5)).matches) == 3
        assert (await bank.history.retrieve("nothing alike", at=5)).matches == ()
        for task, limit in (("  ", 1), (None, 1), ("x", 0), ("x", True)):
            with pytest.raises(UsageError):
                await bank.history.retrieve(task, at=5, limit=limit)  # type: ignore[arg-type]
        with pytest.raises(NotFound, match="the last one is 5"):
            await bank.history.retrieve("x", at=6)


async def test_a_difference_reads_the_journal_once() -> None:
    async with await opened(":memory:") as bank:
        for task in TASKS:
            await bank.learn(Trajectory(task=task, steps=STEPS), outcome="failure")
        store, read = bank.store, list[str]()
        journal = store.journal

        def counted(*, scope: str, **more: Any):
            read.append(scope)
            return journal(scope=scope, **more)

        store.journal = counted  # type: ignore[method-assign]
        entry = (await bank.history.list())[2]
        del read[:]
        assert (
            len((await bank.history.diff(entry.at, 1)).removed)
            == len((await bank.history.diff(1, entry.at)).added)
            >= 2
        )
        assert read == ["t", "t"]

"""A store of somebody else's needs `Records` and `Index` alone: a bank runs on it, and says what it cannot do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

import lessonbank
from lessonbank import Evidence, Parts, Trajectory
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.contracts.ports import Care, Index, Queue, Records, RunFilter, Store
from lessonbank.contracts.records import Extraction
from lessonbank.contracts.store_calls import calls_of
from lessonbank.errors import NotSupported
from lessonbank.evidence.policy import Holdout
from lessonbank.http.workers import Worker
from lessonbank.stores.sqlite import SqliteStore
from lessonbank.testing import StoreContract

pytestmark = pytest.mark.anyio

RUN = Trajectory(task="Refund order 8812 of the customer", answer="refunded")


class TwoPorts:
    """A store of somebody else's: a bank in memory answers, but only the calls of `Records` and `Index` are there."""

    def __init__(self) -> None:
        self._memory = SqliteStore.in_memory()

    def __getattr__(self, name: str) -> Any:
        if name not in {*calls_of(Records), *calls_of(Index)}:
            raise AttributeError(name)
        return getattr(self._memory, name)


@pytest.mark.full
class TestTwoPorts(StoreContract):
    async def make(self) -> Store:
        return cast("Store", TwoPorts())


@asynccontextmanager
async def bank_on(store: Any) -> AsyncGenerator[AsyncReasoningBank]:
    """A bank as `connect` makes it without a model, on another store."""
    async with await lessonbank.connect_async(
        store, scope="acme/support", embedder="lexical", evidence=Evidence(Holdout(0.0))
    ) as bank:
        yield bank


async def test_a_bank_learns_retrieves_and_measures_on_a_store_that_has_no_more_than_records_and_an_index() -> None:
    async with bank_on(TwoPorts()) as bank:
        await bank.lessons.add(title="Look up the order", content="Find it first.", task=RUN.task, by="Ana")
        recall = await bank.retrieve(RUN.task)
        learned = await bank.learn(RUN, recall=recall, outcome="success")
        assert learned.verdicts[0].outcome == "success"
        again = await bank.retrieve(RUN.task)
        assert [one.title for one in (*again.shown, *again.withheld)] == ["Look up the order"]
        assert (await bank.runs.get(RUN.id)).status == "learned"
        assert (await bank.lift()).settled == 1
        counts = await bank.admin.counts()
        assert (counts.trajectories, counts.recalls, counts.recalls_with_a_run) == (1, 2, 1)


class HeldStore(TwoPorts):
    """Keeps what is said again of a run only once the test lets it."""

    def __init__(self, holds: Callable[[str | None], bool]) -> None:
        super().__init__()
        self.holds = holds
        """Whether a word with this outcome waits."""
        self.waits, self.go_on = anyio.Event(), anyio.Event()

    async def save_runs(self, trajectories: Sequence[Trajectory], /, **options: Any) -> Sequence[str]:
        submission = trajectories[0].submission
        outcome = submission.verdict.outcome if submission and submission.verdict else None
        if await self._memory.runs(RunFilter(ids=(RUN.id,)), scope="acme/support") and self.holds(outcome):
            self.waits.set()
            await self.go_on.wait()
        return await self._memory.save_runs(trajectories, **options)


async def test_what_is_told_of_a_submitted_run_is_not_said_otherwise_by_its_own_learning() -> None:
    async with bank_on(store := HeldStore(lambda outcome: outcome != "success")) as bank:
        await bank.submit(RUN, outcome="failure")
        await bank.tell(RUN.id, outcome="success")
        store.go_on.set()
        await bank.drain()
        assert (await bank.runs.get(RUN.id)).verdict.outcome == "success"


async def test_a_word_that_is_kept_only_after_the_run_was_learned_corrects_it() -> None:
    store = HeldStore(lambda _: True)

    async def extract(attempts: Sequence[lessonbank.Run], /) -> Extraction:
        await store.waits.wait()
        return Extraction()

    async with await lessonbank.connect_async(
        store, scope="acme/support", embedder="lexical", parts=Parts(extractor=extract)
    ) as bank:

        async def learn() -> None:
            await bank.learn(RUN, outcome="failure")
            store.go_on.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(learn)
            while not await bank.runs.list():
                await anyio.sleep(0.01)
            await bank.tell(RUN.id, outcome="success")
        assert (await bank.runs.get(RUN.id)).verdict.outcome == "success"


CALLS: dict[str, Callable[[AsyncReasoningBank, Path], Awaitable[object]]] = {
    "runs.queue": lambda bank, _: bank.runs.queue(),
    "runs.retry": lambda bank, _: bank.runs.retry(),
    "admin.verify": lambda bank, _: bank.admin.verify(),
    "admin.storage": lambda bank, _: bank.admin.storage(),
    "admin.rebuild": lambda bank, _: bank.admin.rebuild(),
    "admin.backup": lambda bank, folder: bank.admin.backup(folder / "copy.db"),
}


@pytest.mark.parametrize("call", CALLS)
async def test_what_needs_a_queue_or_care_is_refused_in_one_sentence(call: str, tmp_path: Path) -> None:
    async with bank_on(TwoPorts()) as bank:
        with pytest.raises(NotSupported, match="the store 'TwoPorts' has no") as caught:
            await CALLS[call](bank, tmp_path)
        assert caught.value.code == "not_supported"


async def test_no_worker_works_for_a_store_without_a_queue() -> None:
    async with bank_on(TwoPorts()) as bank:
        with pytest.raises(NotSupported, match="no queue"):
            Worker(bank)


def test_the_four_ports_have_at_most_26_calls_together() -> None:
    calls = [name for port in (Records, Index, Queue, Care) for name in calls_of(port)]
    assert len(calls) == len(set(calls)) <= 26

"""A worker learns from the runs that others submitted: once each, again after a failure, and never for ever."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

import lessonbank
from lessonbank import AsyncReasoningBank
from lessonbank.contracts.ports import Completion
from lessonbank.contracts.records import Experience, Lesson, Step, Trajectory, Usage, Verdict
from lessonbank.contracts.settings import Evidence, File, Learning, Parts
from lessonbank.contracts.store_calls import get_trajectory, settlement_of
from lessonbank.errors import ModelError, ModelUnavailable, ReadOnly, StoreUnavailable, UsageError
from lessonbank.guard.identity import of_process
from lessonbank.http.workers import Budget, Worked, Worker
from lessonbank.http.workers.budgets import Budgets
from lessonbank.stores.sqlite import SqliteStore

pytestmark = [pytest.mark.anyio, pytest.mark.full]
SCOPE = "acme/support"
MINED = {"title": "Read the status first", "description": "When an order changes.", "content": "Read it, then act."}


def run(number: int = 0, /) -> Trajectory:
    """A run of a task of its own."""
    return Trajectory(task=f"Cancel order W{number}", steps=(Step(action="cancel", observation="ok"),), answer="done")


class Provider:
    """A model that draws the same lesson from every run, or fails."""

    name = "tests:provider"

    def __init__(self) -> None:
        self.asked = 0
        self.error: ModelError | None = None
        self.answered: anyio.Event | None = None
        self.begun = anyio.Event()

    async def generate(self, messages: Any, /, *, temperature: float = 0.0, schema: Any = None) -> Any:
        self.asked += 1
        self.begun.set()
        if self.answered is not None:
            await self.answered.wait()
        if self.error is not None:
            raise self.error
        text = json.dumps({"items": [MINED]})
        return Completion(text=text, usage=Usage(requests=1, input_tokens=90, output_tokens=10, cost=0.5))


async def pleased(_: Trajectory, /) -> Verdict:
    """A judge that finds every run good."""
    return Verdict(outcome="success")


@asynccontextmanager
async def opened(path: Path | str | File = ":memory:", /, **settings: Any) -> AsyncGenerator[AsyncReasoningBank]:
    """A bank that leaves what is submitted to workers."""
    settings = {"embedder": "lexical", "evidence": Evidence(holdout=None), "parts": Parts(judge=pleased), **settings}
    bank = await lessonbank.connect_async(path, scope=SCOPE, **{"learning": Learning(submit="worker"), **settings})
    async with bank:
        yield bank


async def test_what_is_submitted_waits_for_a_worker_that_learns_it_as_the_bank_would() -> None:
    async with opened() as bank:
        recall = await bank.retrieve(run().task)
        (id,) = await bank.submit(run(), recall=recall, outcome="success")
        await bank.drain()
        assert (await bank.runs.get(id)).status == "pending"
        assert (await bank.runs.queue()).waiting == 1
        assert (await Worker(bank).run(drain=True)).learned == 1
        learned = await bank.runs.get(id)
        assert (learned.status, learned.verdict.outcome, learned.recall_id) == ("learned", "success", recall.id)
        assert (await bank.admin.counts()).experiences == 1
        assert (await Worker(bank).run(drain=True)).learned == 0


async def test_a_worker_erases_old_runs_in_its_own_name_once_it_has_learned() -> None:
    at_once = Learning(submit="worker", keep_runs=1e-9)
    async with opened(learning=at_once) as bank:
        await bank.scoped(writer="Bob").submit([run(1)], outcome="success")
        assert (await Worker(bank).run(drain=True)).learned == 1
        assert await bank.runs.list() == ()
        (entry,) = [one for one in await bank.history.list() if one.entry.kind == "forgotten"]
        assert entry.writer != "Bob"


async def test_by_default_what_is_submitted_is_learned_here_and_no_worker_takes_it() -> None:
    async with await lessonbank.connect_async(":memory:", scope=SCOPE, embedder="lexical") as bank:
        await bank.submit(run(), outcome="success")
        assert (await Worker(bank).run(drain=True)).learned == 0
        await bank.drain()
        assert (await bank.runs.queue()).waiting == 0


async def test_a_worker_serves_every_scope_and_learns_runs_of_one_call_together() -> None:
    async with opened() as bank:
        await bank.submit([run(), run()], outcome="failure")
        await bank.scoped("acme/sales").submit(run(1), outcome="success")
        assert (await Worker(bank).run(drain=True)).learned == 2
        assert (await bank.admin.counts()).experiences == 1
        assert (await bank.scoped("acme/sales").admin.counts()).experiences == 1
        assert (await bank.store.queue()).waiting == 0


async def test_a_try_that_fails_is_made_again_later_and_given_up_in_the_end() -> None:
    model = Provider()
    async with opened(model=model) as bank:
        (id,) = await bank.submit(run())
        model.error = ModelError("the answer makes no sense")
        assert (await Worker(bank, tries=3).run(drain=True)).failed == 1
        kept = await bank.runs.get(id)
        assert (kept.status, kept.tries) == ("pending", 1)
        assert "the answer makes no sense" in str(kept.problem)
        assert (await Worker(bank, tries=3).run(drain=True)).failed == 0, "it is not its time yet"

        (id,) = await bank.submit(run(1))
        worked = await Worker(bank, tries=1).run(drain=True)
        assert (worked.failed, worked.given_up) == (0, 1)
        (failed,) = await bank.runs.list(status="failed")
        assert failed.trajectory.id == id
        assert "the answer makes no sense" in str(failed.problem)
        assert (await bank.runs.queue()).failed == 1

        model.error = None
        assert len(await bank.runs.retry()) == 2
        assert (await bank.runs.get(id)).status == "learned"
        assert (await bank.runs.queue()).failed == 0


async def test_a_run_that_was_given_up_is_still_found_by_its_recall() -> None:
    async def judge(_: Trajectory, /) -> Any:
        raise RuntimeError("a bug")

    async with opened(parts=Parts(judge=judge)) as bank:
        recall = await bank.retrieve("Cancel order W0")
        (id,) = await bank.submit(run(), recall=recall)
        assert (await Worker(bank, tries=1).run(drain=True)).given_up == 1
        await bank.tell(recall, outcome="failure")
        kept = await bank.runs.get(id)
        assert (kept.status, kept.verdict.outcome) == ("learned", "failure")


async def test_a_failed_run_is_tried_again_until_its_tries_are_used_up() -> None:
    model = Provider()
    async with opened(model=model) as bank:
        await bank.submit(run())
        model.error = ModelError("no")
        worker = Worker(bank, tries=4, wait=0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            while not (await bank.runs.queue()).failed:
                await anyio.sleep(0.01)
            worker.stop()
        assert (worker.worked.failed, worker.worked.given_up) == (3, 1)


async def test_a_run_that_ended_its_worker_too_often_is_given_up() -> None:
    async with opened() as bank:
        (id,) = await bank.submit(run(), outcome="success")
        for number in range(3):
            await bank.store.claim(worker=f"killed {number}", limit=1, seconds=0.0)
        assert (await Worker(bank, tries=3).run(drain=True)).given_up == 1
        failed = await bank.runs.get(id)
        assert failed.status == "failed"
        assert "3 times" in str(failed.problem)


async def test_nobody_loses_a_try_while_the_model_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    model = Provider()
    model.error = ModelUnavailable("the key is refused")
    async with opened(model=model) as bank:
        for number in range(6):
            await bank.submit(run(number))
        worked = await Worker(bank, concurrency=2, tries=1).run(drain=True)
        assert (worked.put_off, worked.given_up) == (2, 0)
        assert model.asked == 2, "then it is not asked for a while"
        assert [one.tries for one in await bank.runs.list(limit=50)] == [0] * 6
        assert [r.getMessage() for r in caplog.records if "not available" in r.getMessage()] == [
            "the model is not available: no run is learned for 30 seconds"
        ]


async def test_two_workers_share_what_there_is() -> None:
    model = Provider()
    async with opened(model=model) as bank:
        for number in range(8):
            await bank.scoped(f"acme/{number}").submit(run(number), outcome="success")
        workers = [Worker(bank, concurrency=2), Worker(bank, concurrency=2)]
        async with anyio.create_task_group() as group:
            for worker in workers:
                group.start_soon(lambda worker=worker: worker.run(drain=True))
        assert sum(worker.worked.learned for worker in workers) == 8
        assert all(worker.worked.learned for worker in workers)
        assert model.asked == 8


async def test_a_worker_that_stops_finishes_what_is_under_way() -> None:
    model = Provider()
    model.answered = anyio.Event()
    async with opened(model=model) as bank:
        ids = [*await bank.submit(run(0)), *await bank.submit(run(1))]
        worker = Worker(bank, concurrency=1)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            await model.begun.wait()
            worker.stop()
            model.answered.set()
        assert worker.worked.learned == 1
        assert [(await bank.runs.get(id)).status for id in ids] == ["learned", "pending"]
        assert (await bank.runs.queue()).claimed == 0


@pytest.mark.parametrize("again", [False, True])
async def test_what_takes_longer_than_the_time_of_grace_is_given_back_untried(again: bool) -> None:
    model = Provider()
    model.answered = anyio.Event()
    async with opened(model=model) as bank:
        (id,) = await bank.submit(run())
        worker = Worker(bank, grace=3600.0 if again else 0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            await model.begun.wait()
            worker.stop()
            if again:
                worker.stop()
        assert worker.worked.put_off == 1
        kept = await bank.runs.get(id)
        assert (kept.status, kept.tries) == ("pending", 0)
        assert (await bank.runs.queue()).claimed == 0


async def test_a_claim_is_renewed_while_it_takes_and_a_run_that_another_worker_took_is_left_to_it() -> None:
    model = Provider()
    model.answered = anyio.Event()
    async with opened(model=model) as bank:
        (id,) = await bank.submit(run())
        worker = Worker(bank, lease=1.5)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            await model.begun.wait()
            deadline = anyio.current_time() + 2.0
            while anyio.current_time() < deadline:
                assert not await bank.store.claim(worker="another", limit=1, seconds=60.0)
                await anyio.sleep(0.01)
            # Not at once free for all: the worker itself, which looks for more, could be the quicker one.
            await bank.store.release(id, scope=SCOPE, worker=worker.name, wait=60.0)
            assert await bank.store.claim(worker="another", limit=1, seconds=60.0, include_given_up=True)
            while worker.under_way:
                await anyio.sleep(0.01)
            worker.stop()
        assert worker.worked == Worked()
        assert (await bank.runs.queue()).claimed == 1
        assert model.asked == 1


async def test_a_scope_waits_for_tomorrow_when_its_budget_is_spent() -> None:
    model = Provider()
    async with opened(model=model) as bank:
        for number in range(3):
            await bank.submit(run(number), outcome="success")
        await bank.scoped("acme/sales").submit(run(9), outcome="success")
        worker = Worker(bank, concurrency=1, budget=Budget(tokens=150))
        worked = await worker.run(drain=True)
        assert (worked.learned, worked.put_off) == (3, 1)
        assert (await bank.runs.queue()).waiting == 1
        another = Worker(bank, budget=Budget(cost=0.5))
        await bank.scoped("acme/sales").submit(run(10), outcome="success")
        assert (await another.run(drain=True)).put_off == 1, "it knows what the first one spent"
        assert "acme" not in str(await bank.store.settings("spent "))


async def test_what_fitted_the_lessons_to_a_task_is_part_of_the_budget() -> None:
    model = Provider()
    async with opened(model=model) as bank:
        lesson = Lesson(title="Read the status first", content="Then act.")
        await bank.consolidate(Experience(scope=SCOPE, task=run(0).task, lessons=(lesson,)))
        shown = await bank.retrieve(run(1).task, fit="select")
        assert shown.fit
        assert shown.fit.usage.input_tokens == 90
        await bank.submit(run(1), recall=shown, outcome="success")
        before = model.asked
        worker = Worker(bank, budget=Budget(tokens=10_000))
        await worker.run(drain=True)
        (spent,) = (Usage.model_validate_json(text) for text in (await bank.store.settings("spent ")).values())
        assert spent.requests == model.asked - before + 1


async def test_a_budget_is_for_one_day_and_yesterdays_is_forgotten() -> None:
    at = datetime(2026, 5, 1, 18, tzinfo=UTC)
    async with opened() as bank:
        budgets = Budgets(bank.store, Budget(tokens=10), worker="one", clock=lambda: at)
        await budgets.spend(SCOPE, Usage(requests=1, output_tokens=10))
        assert await budgets.wait(SCOPE) == 6 * 3600
        assert await budgets.wait("acme/sales") == 0.0
        at += timedelta(hours=6)
        assert await budgets.wait(SCOPE) == 0.0
        await budgets.spend(SCOPE, Usage(requests=1, output_tokens=1))
        assert len(await bank.store.settings("spent ")) == 1


async def test_a_bank_knows_which_workers_run_and_what_each_may_spend(tmp_path: Path) -> None:
    async with opened(tmp_path / "bank.db") as bank:
        gone = Budgets(bank.store, Budget(tokens=7), worker="killed", clock=lambda: datetime(2026, 5, 1, tzinfo=UTC))
        await gone.tell(60.0)
        seen = (await bank.runs.spending()).allowances
        assert seen == ()
        workers = [Worker(bank), Worker(bank, budget=Budget(tokens=50, cost=0.5))]
        async with anyio.create_task_group() as group:
            for worker in workers:
                group.start_soon(worker.run)
            while len(await bank.store.settings("running ")) < 3:
                await anyio.sleep(0.01)
            seen = (await bank.runs.spending()).allowances
            for worker in workers:
                worker.stop()
        assert {(one.tokens, one.cost) for one in seen} == {(None, None), (50, 0.5)}
        assert (await bank.runs.spending()).allowances == ()
        assert await bank.store.settings("running ") == {}, "nor is the one that was killed kept for ever"


async def test_a_worker_tells_that_it_runs_for_as_long_as_it_does() -> None:
    async with opened() as bank:
        worker, told = Worker(bank, lease=0.03), set[str]()
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            while len(told) < 4:
                told |= set((await bank.store.settings("running ")).values())
                await anyio.sleep(0.005)
            worker.stop()


async def test_a_price_that_is_not_known_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    async with opened() as bank:
        budgets = Budgets(bank.store, Budget(cost=1.0), worker="one")
        for _ in range(2):
            await budgets.spend(SCOPE, Usage(requests=1, output_tokens=10))
        assert len([r for r in caplog.records if "price" in r.getMessage()]) == 1


async def test_a_worker_says_what_it_cannot_be(tmp_path: Path) -> None:
    async with opened(tmp_path / "bank.db") as bank:
        wrong: list[dict[str, Any]] = [
            {"concurrency": 0},
            {"tries": 0},
            {"lease": 0.0},
            {"wait": -1.0},
            {"grace": "soon"},
        ]
        for one in wrong:
            with pytest.raises(UsageError):
                Worker(bank, **one)
        bounds: list[dict[str, Any]] = [{"tokens": 0}, {"cost": 0.0}]
        for one in bounds:
            with pytest.raises(UsageError):
                Budget(**one)
        with pytest.raises(UsageError):
            Worker("bank.db")  # pyright: ignore[reportArgumentType]
    async with opened(File(tmp_path / "bank.db", read_only=True)) as bank:
        with pytest.raises(ReadOnly):
            await Worker(bank).run(drain=True)


async def test_a_part_that_raises_costs_a_try_and_not_the_worker(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    async def judge(_: Trajectory, /) -> Any:
        raise RuntimeError("a bug")

    async with opened(parts=Parts(judge=judge)) as bank:
        (id,) = await bank.submit(run(0))
        await bank.submit(run(1), outcome="success")
        worked = await Worker(bank).run(drain=True)
        assert (worked.learned, worked.failed) == (1, 1)
        assert "a bug" in str((await bank.runs.get(id)).problem)


async def test_a_run_is_learned_as_whoever_submitted_it() -> None:
    async with opened() as bank:
        key = await bank.admin.add_writer("ana")
        recall = await bank.retrieve(run().task)
        await bank.scoped(writer="ana", key=key).submit([run(), run()], recall=recall, outcome="success")
        assert (await Worker(bank).run(drain=True)).learned == 1
        settlement = await settlement_of(bank.store, recall.id, scope=SCOPE)
        assert settlement is not None
        assert settlement.identity == "key:ana"
        learned = [entry for entry in await bank.history.list() if entry.entry.kind != "admin"]
        assert {entry.writer for entry in learned} == {"ana"}


@pytest.mark.parametrize("forged", [{}, {"seal": ""}, {"seal": "\ufffd"}, {"identity": "key:ben"}, {"writer": ""}])
async def test_a_run_that_says_who_submitted_it_is_not_believed(forged: dict[str, Any]) -> None:
    async with opened() as bank:
        key = await bank.admin.add_writer("ana")
        (honest,) = await bank.scoped(writer="ana", key=key).submit(run(), outcome="success")
        told = (await get_trajectory(bank.store, honest, scope=SCOPE)).submission
        assert told
        recall = await bank.retrieve(run().task)
        stolen = told.model_copy(update={"recall_id": recall.id, **forged})
        other = run().model_copy(update={"submission": stolen})
        await bank.store.save_runs([other], scope=SCOPE, wait=0.0)
        assert (await Worker(bank).run(drain=True)).learned == 2
        settlement = await settlement_of(bank.store, recall.id, scope=SCOPE)
        assert settlement is not None
        assert settlement.identity == of_process()


async def test_a_worker_waits_for_a_store_that_does_not_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Torn(SqliteStore):
        tries = 0

        async def claim(self, **told: Any) -> Any:
            self.tries += 1
            if self.tries < 3:
                raise StoreUnavailable("the store is busy")
            return await super().claim(**told)

    async with opened() as bank:
        await bank.submit(run(), outcome="success")
        bank.store.__class__ = Torn
        worker = Worker(bank)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            while not worker.worked.learned:
                await anyio.sleep(0.01)
            worker.stop()
        assert len([r for r in caplog.records if "the store is busy" in r.getMessage()]) == 1

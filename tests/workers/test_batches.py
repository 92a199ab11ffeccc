"""Runs are learned through a provider's batch API, and a batch that is under way when its worker dies is not lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

if None in map(find_spec, ("pydantic_ai", "openai", "anthropic")):  # to import them costs each process seconds
    pytest.skip("needs the extras models, openai and anthropic", allow_module_level=True)

import lessonbank
from lessonbank.contracts.ports import Completion, Message, Owed
from lessonbank.contracts.records import Step, Trajectory
from lessonbank.contracts.settings import Model
from lessonbank.errors import ModelError, UsageError
from lessonbank.http.workers import Worker
from lessonbank.providers.models.batched import Batched
from lessonbank.wiring import resolve_models

from ._batch_provider import BatchProvider
from ._batch_worker import opened, patient

pytestmark = [pytest.mark.anyio, pytest.mark.full]
RUNS = 6


LESSON = {"evidence": ["step 1"], "title": "Read the status first", "description": "When an order changes."}


def said(request: str, /) -> str:
    """What a judge, an extractor and the gate for lessons say, as far as a worker can tell."""
    if code := re.search(r'\\"check\\": \\"(\w+)\\"', request):
        return json.dumps({"check": code[1], "reason": "Step 1 did it.", "outcome": "success", "confidence": 0.95})
    if "<<<lesson 1" in request:
        return json.dumps({"answers": [{"lesson": 1, "answer": "keep"}]})
    return json.dumps({"items": [{**LESSON, "content": "Read its status, then cancel."}]})


@pytest.fixture
def provider() -> Iterator[BatchProvider]:
    with BatchProvider(said) as started:
        yield started


def run(number: int = 0, /) -> Trajectory:
    """A run of a task of its own."""
    return Trajectory(task=f"Cancel order W{number}", steps=(Step(action="cancel", observation="ok"),), answer="done")


@pytest.mark.parametrize("name", ["openai", "anthropic"])
async def test_runs_are_judged_and_learned_in_batches_and_by_no_live_call(provider: BatchProvider, name: str) -> None:
    provider.is_done.set()
    async with await opened(":memory:", patient(provider.url, provider=name)) as bank:
        for number in range(RUNS):
            await bank.submit(run(number))
        worked = await Worker(bank, concurrency=20).run(drain=True)
        assert worked.learned == RUNS, [one.problem for one in await bank.runs.list()]
        assert (await bank.admin.counts()).lessons == 1, "all teach the same"
        assert (await bank.runs.list())[0].verdict.source == "judge"
    assert len(provider.requests) == 3 * RUNS, "the verdict, the lesson, and whether it may be kept"
    assert len(provider.batches) < 2 * RUNS, "requests go together"
    assert not [call for call in provider.calls if re.search(r"/(responses|messages|chat/completions)(\?|$)", call)]


async def test_what_a_batch_costs_is_counted_at_its_price(provider: BatchProvider) -> None:
    provider.is_done.set()
    async with await opened(":memory:", patient(provider.url)) as bank:
        learned = await bank.learn(run(), outcome="success")
    assert (learned.usage.requests, learned.usage.input_tokens) == (2, 2000)
    assert learned.usage.cost == pytest.approx(0.5 * 2 * (1000 * 2.5 + 100 * 10) / 1e6)


async def test_a_batch_outlives_its_worker_and_nothing_is_paid_for_twice(
    provider: BatchProvider, tmp_path: Path
) -> None:
    path = str(tmp_path / "bank.db")
    async with await opened(path, patient(provider.url)) as bank:
        ids = [id for number in range(RUNS) for id in await bank.submit(run(number), outcome="success")]
        script = Path(__file__).with_name("_batch_worker.py")
        with subprocess.Popen([sys.executable, str(script), path, provider.url]) as worker:
            while len(await bank.store.settings("batch ")) < RUNS:  # sent, and kept
                assert worker.poll() is None
                await anyio.sleep(0.02)
            worker.kill()
        assert worker.returncode != 0
        provider.is_done.set()
        other = Worker(bank, concurrency=20, lease=1.0)
        async with anyio.create_task_group() as group:
            group.start_soon(other.run)
            while (await bank.runs.queue()).oldest:
                await anyio.sleep(0.02)
            other.stop()
        assert other.worked.learned == RUNS
        assert {(await bank.runs.get(id)).status for id in ids} == {"learned"}
        assert (await bank.admin.counts()).experiences == RUNS
    extracted = [text for text in provider.requests if "<<<lesson 1" not in text]
    assert len(extracted) == RUNS, "the second worker waited for the batch of the first"


async def test_a_worker_that_is_stopped_leaves_its_batch_to_the_next(provider: BatchProvider, tmp_path: Path) -> None:
    path = str(tmp_path / "bank.db")
    async with await opened(path, patient(provider.url)) as bank:
        await bank.submit(run(), outcome="success")
        first = Worker(bank, grace=0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(first.run)
            while not provider.polled.is_set():
                await anyio.sleep(0.02)
            first.stop()
        assert first.worked.put_off == 1
    provider.is_done.set()
    async with await opened(path, patient(provider.url)) as bank:
        assert (await Worker(bank).run(drain=True)).learned == 1
    assert len(provider.requests) == 2, "one for its lesson, one whether to keep it"
    assert not [call for call in provider.calls if "cancel" in call]


async def test_a_batch_that_the_provider_has_lost_is_sent_again(provider: BatchProvider) -> None:
    async with await opened(":memory:", patient(provider.url)) as bank:
        await bank.submit(run(), outcome="success")
        worker = Worker(bank, wait=0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            while not provider.polled.is_set():
                await anyio.sleep(0.02)
            provider.forget()
            provider.is_done.set()
            while not worker.worked.learned:
                await anyio.sleep(0.02)
            worker.stop()
        assert (worker.worked.failed, worker.worked.learned) == (1, 1)


async def test_a_request_that_is_refused_costs_a_try_and_is_made_anew(provider: BatchProvider) -> None:
    provider.answer = lambda text: 400 if len(provider.batches) == 1 else said(text)
    provider.is_done.set()
    async with await opened(":memory:", patient(provider.url)) as bank:
        await bank.submit(run(), outcome="success")
        worker = Worker(bank, wait=0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            while not worker.worked.learned:
                await anyio.sleep(0.02)
            worker.stop()
        assert (worker.worked.failed, worker.worked.learned) == (1, 1)
    assert len(provider.batches) == 3


async def test_a_model_without_a_batch_api_is_refused_when_the_bank_is_opened() -> None:
    def echo(prompt: str) -> str:
        return prompt

    for model in (Model(echo, batch=True), Model("qwen3", base_url="http://127.0.0.1:9/v1", batch=True)):
        with pytest.raises(UsageError, match="batch=True needs"):
            await lessonbank.connect_async(":memory:", scope="acme", model=model)


async def test_a_batched_model_that_is_asked_live_says_how_to_ask_it(provider: BatchProvider) -> None:
    batched = patient(provider.url).name
    async with await opened(":memory:", Model(batched)) as bank:
        learned = await bank.learn(run(), outcome="success")
    assert "batch=True" in str(learned.notes)
    with pytest.raises(UsageError, match="needs a bank"):
        resolve_models(Model(batched, batch=True))


class Slow:
    """A provider that has the answer to a request when it is asked for the second time."""

    name = "tests:slow"

    def __init__(self) -> None:
        self.sent = 0
        self.error: ModelError | None = None

    async def ask(self, messages: Sequence[Message], /, *, ticket: str | None = None, **how: Any) -> Completion | Owed:
        if self.error is not None:
            raise self.error
        if ticket is None:
            self.sent += 1
            return Owed(ticket=f"{messages[0].content}{self.sent}", seconds=0.0)
        return Completion(text=ticket)

    async def generate(self, messages: Sequence[Message], /, **how: Any) -> Completion:
        raise AssertionError("it is never asked live")


def fenced(code: str, /) -> list[Message]:
    """A request with a code that is drawn anew each time."""
    return [Message(role="user", content=f"<<<run {code}>>> text <<<end run {code}>>> say {code} ")]


async def test_equal_requests_get_answers_of_their_own_and_a_new_process_gets_the_same_ones() -> None:
    bank, provider = await opened(":memory:", None), Slow()
    store = bank.store
    model = Batched(provider, store=lambda: store)
    async with anyio.create_task_group() as group:
        for code in ("aaaaaaaa", "bbbbbbbb"):
            group.start_soon(model.generate, fenced(code))
    assert provider.sent == 2, "a second opinion is another answer"
    again = Batched(provider, store=lambda: store)
    first, second = await again.generate(fenced("cccccccc")), await again.generate(fenced("dddddddd"))
    assert provider.sent == 2, "paid for already"
    assert "say cccccccc" in first.text, "the code of this request, not of the one that was sent"
    assert "say dddddddd" in second.text
    await again.generate(fenced("eeeeeeee"))
    assert provider.sent == 3
    await bank.close()


async def test_what_failed_for_good_is_forgotten_and_what_is_a_week_old_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lessonbank.providers.models import batched

    bank, provider = await opened(":memory:", None), Slow()
    store = bank.store
    model = Batched(provider, store=lambda: store)
    await model.generate(fenced("aaaaaaaa"))
    assert len(await store.settings("batch ")) == 1
    provider.error = ModelError("no")
    with pytest.raises(ModelError, match="no"):
        await Batched(provider, store=lambda: store).generate(fenced("aaaaaaaa"))
    assert await store.settings("batch ") == {}
    provider.error = None
    await model.generate(fenced("bbbbbbbb"))
    today = batched.now()
    monkeypatch.setattr(batched, "now", lambda: today + timedelta(days=8))
    await model.generate([Message(role="user", content="another")])
    assert len(await store.settings("batch ")) == 1
    await bank.close()

"""The waiting bank, wherever it is called from."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from blockbuster import blockbuster_ctx

import lessonbank
from lessonbank import ReasoningBank, Step, Trajectory, Verdict
from lessonbank.errors import UsageError
from lessonbank.testing import HashingEmbedder, ScriptedModel
from lessonbank.testing.settings import grouped

OPTIONS: dict[str, Any] = {"scope": "t", "embedder": "lexical", "holdout": None}


def run(task: str = "find it") -> Trajectory:
    return Trajectory(task=task, steps=(Step(action="look", observation="error: nothing here"),))


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    with lessonbank.connect(tmp_path / "bank.db", **grouped(**OPTIONS)) as opened:
        yield opened


def test_threads_share_one_bank_and_lose_nothing(bank: ReasoningBank) -> None:
    threads = [threading.Thread(target=lambda: bank.learn(run(), outcome="failure")) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert bank.admin.counts().experiences == 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_uses_the_same_bank(bank: ReasoningBank) -> None:
    bank.learn(run(), outcome="failure")
    child = os.fork()
    if child == 0:
        try:
            bank.learn(run("in the child"), outcome="failure")
            os._exit(0 if bank.retrieve("find it").shown else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert bank.admin.counts().experiences == 2


@pytest.mark.full
def test_a_process_ends_by_itself_without_close(tmp_path: Path) -> None:
    code = (
        "import lessonbank; b = lessonbank.connect(r'%s', scope='t', embedder='lexical');"
        "b.retrieve('x'); print('done')" % (tmp_path / "bank.db")
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert out.stdout == "done\n", out.stderr


def test_context_variables_reach_the_judge() -> None:
    trace = contextvars.ContextVar("trace", default="unset")
    seen: list[str] = []

    async def judge(trajectory: Trajectory, /) -> Verdict:
        seen.append(trace.get())
        return Verdict(outcome="unknown")

    with lessonbank.connect(":memory:", **grouped(judge=judge, **OPTIONS)) as bank:
        trace.set("of the caller")
        bank.learn(run())
    assert seen == ["of the caller"]


def test_calling_the_waiting_bank_from_its_own_loop_is_refused_instead_of_hanging() -> None:
    async def judge(trajectory: Trajectory, /) -> Verdict:
        bank.retrieve("x")
        raise AssertionError

    with (
        lessonbank.connect(":memory:", **grouped(judge=judge, **OPTIONS)) as bank,
        pytest.raises(UsageError, match="own event loop"),
    ):
        bank.learn(run())


def test_an_interrupt_cancels_what_was_being_waited_for() -> None:
    cancelled = threading.Event()

    async def judge(trajectory: Trajectory, /) -> Verdict:
        try:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGALRM)
            await anyio.sleep_forever()
        except BaseException:
            cancelled.set()
            raise
        raise AssertionError

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with lessonbank.connect(":memory:", **grouped(judge=judge, **OPTIONS)) as bank:
            with pytest.raises(KeyboardInterrupt):
                bank.learn(run())
            assert cancelled.wait(60)
            assert len(bank.runs.pending(limit=10_000)) == 1
    finally:
        signal.signal(signal.SIGALRM, before)


def signatures(kind: type) -> dict[str, str]:
    named = {n: getattr(kind, n) for n in dir(kind) if not n.startswith("_")}
    return {n: str(inspect.signature(f)).split(" ->")[0] for n, f in named.items() if inspect.isfunction(f)}


def test_both_banks_and_their_views_have_the_same_methods_with_the_same_parameters() -> None:
    with lessonbank.connect(":memory:", **grouped(**OPTIONS)) as bank:
        names = ("lessons", "runs", "recalls", "history", "admin")
        for waiting, awaiting in (
            (bank, bank.aio),
            *((getattr(bank, name), getattr(bank.aio, name)) for name in names),
        ):
            assert signatures(type(waiting)) == signatures(type(awaiting))
            assert len(signatures(type(waiting))) >= 4


async def _use_everything(path: Path, model: ScriptedModel | None) -> None:
    options = {**OPTIONS, "embedder": HashingEmbedder(), "model": model}
    bank = await lessonbank.connect_async(path, **grouped(**options))
    recall = await bank.retrieve("find it")
    learned = await bank.learn(run(), recall=recall, outcome="failure")
    await bank.retrieve("find it")
    (await bank.lessons.list(limit=10_000))[::-1]
    await bank.lessons.retire(learned.lessons[0].id, reason="test")
    await bank.admin.export(path.with_suffix(".jsonl"))
    await bank.scoped("copy").admin.import_(path.with_suffix(".jsonl"))
    await bank.close()


def _forget_what_was_read() -> None:
    """So that this process reads its tables of words and rules again, as one does that begins."""
    for name, module in [*sys.modules.items()]:
        if name.startswith(("lessonbank.guard", "lessonbank.text.prompts")):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()


LESSON = {
    "evidence": ["step 1"],
    "cause": "the shed was locked",
    "title": "Look in the shed first",
    "description": "When a thing of the garden is not in the house.",
    "content": "If it is not in the house, open the shed with the key and look there.",
}


@pytest.mark.parametrize("asks_model", [False, True])
def test_nothing_blocks_the_event_loop(tmp_path: Path, asks_model: bool) -> None:
    """The detector raises when a blocking call (file, lock, sqlite, sleep) is made on the loop's thread."""
    model = ScriptedModel(lambda _: json.dumps({"items": [LESSON]})) if asks_model else None
    _forget_what_was_read()
    with blockbuster_ctx(scanned_modules=["lessonbank"]):
        asyncio.run(_use_everything(tmp_path / "bank.db", model))


def test_the_detector_does_detect() -> None:
    async def blocks() -> None:
        Path(__file__).read_text(encoding="utf-8")

    with blockbuster_ctx(), pytest.raises(Exception, match="Blocking call"):
        asyncio.run(blocks())

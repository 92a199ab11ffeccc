"""Memory does not hold an agent: whatever does not answer, a recall and the end of a run take `patience` at most."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import lessonbank
from lessonbank import Evidence, Retrieval
from lessonbank.errors import ModelTimeout, StoreUnavailable, UsageError
from lessonbank.providers.embedders.hashing import HashingEmbedder

pytestmark = pytest.mark.anyio
TASK = "Ship a parcel to Rome"
LONG = 20.0
"""Seconds that nothing here takes, however busy the machine is."""


class Silent:
    """An embedder that answers nothing more once it is told so."""

    space = "silent-64"

    def __init__(self) -> None:
        self._inner, self.answers, self.texts = HashingEmbedder(), 1_000, list[str]()

    async def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Any:
        if self.answers <= 0:
            await asyncio.Event().wait()
        self.answers -= 1
        self.texts += texts
        return await self._inner.embed(texts, role=role)


class Blocking:
    """One whose plain `embed` blocks its thread."""

    space = "blocking-8"

    def __init__(self) -> None:
        self.goes_on, self.is_silent = threading.Event(), False

    def embed(self, texts: Sequence[str], /, *, role: Literal["query", "document"]) -> Any:
        if self.is_silent:
            self.goes_on.wait()
        return np.ones((len(texts), 8))


async def connected(embedder: Any, where: str | Path = ":memory:") -> lessonbank.AsyncReasoningBank:
    retrieval = Retrieval(by=None, floor=None)
    return await lessonbank.connect_async(
        where, scope="t", embedder=embedder, evidence=Evidence(holdout=None), retrieval=retrieval
    )


async def add(bank: lessonbank.AsyncReasoningBank, task: str = TASK) -> None:
    await bank.lessons.add(title=f"Weigh it: {task}", content="Weigh it before you ship it.", task=task, by="Ana")


@pytest.mark.parametrize("kind", [Silent, Blocking])
async def test_words_stand_in_for_an_embedder_that_does_not_answer(kind: Any) -> None:
    embedder = kind()
    async with await connected(embedder) as bank:
        await add(bank)
        embedder.answers, embedder.is_silent = 0, True
        began = time.monotonic()
        recall = await bank.retrieve(TASK, patience=0.6)
        assert time.monotonic() - began < LONG
        assert recall.shown
        assert (
            "searched by words only, because the embedder failed: it gave no vectors within 0.45 seconds"
            in recall.notes
        )
        if isinstance(embedder, Blocking):
            embedder.goes_on.set()


@pytest.mark.full
async def test_what_was_embedded_in_time_is_found_by_vectors_the_next_time(tmp_path: Path) -> None:
    async with await connected("lexical", file := tmp_path / "bank.db") as bank:
        for number in range(70):
            await add(bank, f"Ship parcel {number} to Rome")
    embedder = Silent()
    async with await connected(embedder, file) as bank:
        embedder.answers = 3  # the question, and two portions of what has no vector
        recall = await bank.retrieve(TASK, patience=1.0)
        assert any("not every experience has a vector" in note for note in recall.notes)
        assert len(await bank.store.unindexed(scope="t", space=embedder.space, limit=100)) == 70 - 64


async def test_a_silent_embedder_is_left_alone_after_two_tasks() -> None:
    embedder = Silent()
    async with await connected(embedder) as bank:
        await add(bank)
        embedder.answers = 0
        for task in ("Ship a parcel", "Ship two parcels"):
            await bank.retrieve(task, patience=1.0)
        (note,) = [one for one in (await bank.retrieve(TASK)).notes if "by words" in one]
        assert "it is asked again in" in note


async def test_the_time_limit_of_a_model_is_that_of_its_provider_s_embedder(monkeypatch: pytest.MonkeyPatch) -> None:
    from lessonbank.wiring import _embedders  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    made = await _embedders._bare("openai:text-embedding-3-small", lessonbank.Model("openai:gpt-5-mini", timeout=7))  # pyright: ignore[reportPrivateUsage]
    assert made is not None
    monkeypatch.setattr(made, "_connection", _NoAnswer())
    monkeypatch.setattr(made, "_seconds", made._seconds / 100)  # type: ignore[attr-defined]
    with pytest.raises(ModelTimeout, match=r"no vectors within 0\.07 s"):
        await made.embed(["x"], role="query")


class _NoAnswer:
    async def here(self) -> Any:
        return self

    async def embed(self, *_: object, **__: object) -> Any:
        await asyncio.Event().wait()


class Held:
    """A file that another program writes to, and does not end its transaction."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("ROLLBACK")
        self._connection.close()


@pytest.mark.full
async def test_a_hung_writer_of_the_file_holds_no_agent(tmp_path: Path) -> None:
    async with await connected("lexical", file := tmp_path / "bank.db") as bank:
        await add(bank)
        with Held(file):
            for wait in (True, False):
                began = time.monotonic()
                async with bank.attempt(TASK, patience=1) as attempt:
                    assert attempt.text
                    await attempt.finish(answer="shipped", outcome="success", wait=wait)
                assert time.monotonic() - began < LONG
                assert "the run was not kept within 1 seconds" in " ".join(attempt.notes)
            for call in (bank.learn, bank.submit, bank.keep_unfinished):
                with pytest.raises(StoreUnavailable, match=r"not kept within 0\.2 seconds"):
                    await call("Done.", task=TASK, patience=0.2)


async def test_a_bank_is_closed_while_another_program_holds_its_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    may = asyncio.Event()

    async def judge(run: Any, /) -> lessonbank.Verdict:
        await may.wait()
        return lessonbank.Verdict(outcome="success", confidence=1.0, reason="as it should be")

    told: dict[str, Any] = {"scope": "t", "embedder": "lexical", "parts": lessonbank.Parts(judge=judge)}
    bank = await lessonbank.connect_async(file := tmp_path / "bank.db", **told)
    kept = [id for n in range(3) for id in await bank.submit(f"Done {n}.", task=TASK)]
    with Held(file):
        may.set()
        await bank.close(patience=0.3)
    notes = [one.getMessage() for one in caplog.records if "a submitted run stays pending" in one.getMessage()]
    assert notes == [
        "the bank gave no answer within 0.3 seconds while it was closed: a submitted run stays pending (3×)"
    ]
    async with await lessonbank.connect_async(file, **told) as again:
        await again.runs.retry(*kept)
        assert {run.status for run in await again.runs.list()} == {"learned"}


@pytest.mark.full
def test_a_program_ends_while_another_one_holds_its_file(tmp_path: Path) -> None:
    program = """
import sys, sqlite3, threading, lessonbank
bank = lessonbank.connect(sys.argv[1], scope="t", embedder="lexical")
bank.submit("Done.", task="Ship a parcel", outcome="success")
bank.drain()
calls = bank.aio.store._database._writing._calls
while calls:  # a commit answers those who wait for it just before it ends
    pass
held = sqlite3.connect(sys.argv[1], isolation_level=None)
held.execute("BEGIN IMMEDIATE")
threading.Thread(target=bank.submit, args=("Done again.",), kwargs={"task": "Ship it"}, daemon=True).start()
while not calls:
    pass
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "bank.db")], capture_output=True, text=True)
    assert done.returncode == 0
    assert "the program ends, and 1 calls to a bank had no answer" in done.stderr


async def test_the_wait_for_what_a_kept_run_teaches_has_no_limit() -> None:
    async def judge(run: Any, /) -> lessonbank.Verdict:
        await asyncio.sleep(0.5)
        return lessonbank.Verdict(outcome="success", confidence=1.0, reason="as it should be")

    parts = lessonbank.Parts(judge=judge)
    async with await lessonbank.connect_async(":memory:", scope="t", embedder="lexical", parts=parts) as bank:
        async with bank.attempt(TASK, patience=0.25) as attempt:
            learned = await attempt.finish(answer="shipped")
        assert [verdict.outcome for verdict in learned.verdicts] == ["success"]
        assert not any("within" in note for note in attempt.notes)


async def test_a_patience_that_cannot_be_is_refused_outside_a_block_and_harmless_inside() -> None:
    async with await connected("lexical") as bank:
        for call in (
            bank.retrieve(TASK, patience=0),
            bank.retrieve(TASK, patience=1e-9),
            bank.submit("Done.", task=TASK, patience=-1),
        ):
            with pytest.raises(UsageError, match="patience="):
                await call
        async with bank.attempt(TASK, patience="long") as attempt:  # type: ignore[arg-type]
            await attempt.finish(answer="shipped", outcome="success")
        assert attempt.learned
        assert attempt.learned.verdicts


async def test_a_run_that_was_erased_since_it_ended_is_not_kept_again() -> None:
    run = lessonbank.Trajectory(id="run-1", task=TASK, answer="shipped")
    async with await connected("lexical") as bank:
        ended = datetime.now(UTC)
        recall = await bank.retrieve(TASK)
        await bank.learn(run, outcome="success")
        assert await bank.submit(run, outcome="success", ended_at=ended) == ("run-1",)
        await bank.admin.purge(run="run-1", reason="asked for", by="Ana")
        assert await bank.submit(run, outcome="success", ended_at=ended) == ()
        assert await bank.submit(run.model_copy(update={"id": "run-2"}), ended_at=ended) == ("run-2",)
        await bank.admin.purge(recall=recall.id, reason="asked for", by="Ana")
        await bank.admin.purge(all=True, reason="asked for", by="Ana")
        await bank.keep_unfinished(run.model_copy(update={"id": "run-3"}), ended_at=ended)
        assert await bank.runs.list() == ()

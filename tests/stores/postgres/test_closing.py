"""The end of a bank whose server is frozen: its patience, one note, and nothing lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

import psycopg
import pytest

import lessonbank
from lessonbank import Trajectory
from lessonbank.contracts.records import Verdict

pytestmark = pytest.mark.full

SCOPE, TASK, PATIENCE = "acme", "Ship a parcel to Rome", 0.5
LONG = 60.0
"""Seconds after which the server goes on in any case, so that a test that waits for it fails, and does not hang."""
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@contextmanager
def frozen(asking: psycopg.Connection) -> Generator[threading.Event]:
    """The server processes of every other session stand still. The event says that they had to go on too early."""
    processes, gave_up = [pid for (pid,) in asking.execute(SESSIONS).fetchall()], threading.Event()

    def thaw() -> None:
        for process in processes:
            with suppress(ProcessLookupError):  # its client has gone
                os.kill(process, signal.SIGCONT)

    def end() -> None:
        gave_up.set()
        thaw()

    timer = threading.Timer(LONG, end)
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    timer.start()
    try:
        yield gave_up
    finally:
        timer.cancel()
        thaw()


class Judge:
    """Judges nothing before it may."""

    def __init__(self) -> None:
        self.may = threading.Event()

    async def __call__(self, run: Trajectory, /) -> Verdict:
        await asyncio.to_thread(self.may.wait)
        return Verdict(outcome="success", confidence=1.0, reason="as it should be")


async def connected(address: str, judge: Judge) -> lessonbank.AsyncReasoningBank:
    parts = lessonbank.Parts(judge=judge)
    return await lessonbank.connect_async(address, scope=SCOPE, embedder="lexical", parts=parts)


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["close", "async with"])
async def test_a_bank_is_closed_while_its_server_is_frozen_and_nothing_is_lost(
    postgres_bank: Callable[..., str], caplog: pytest.LogCaptureFixture, how: str
) -> None:
    address, judge = postgres_bank(2), Judge()
    with psycopg.connect(address, autocommit=True) as asking:
        bank = await connected(address, judge)
        kept = [id for n in range(3) for id in await bank.submit(Trajectory(id=f"run-{n}", task=TASK, answer="done"))]
        with frozen(asking) as gave_up, caplog.at_level(logging.WARNING, "lessonbank"):
            judge.may.set()
            if how == "close":
                await bank.close(patience=PATIENCE)
            else:
                async with bank:
                    pass
            assert not gave_up.is_set(), "it waited for the server"
    (note,) = [one.getMessage() for one in caplog.records if "while it was closed" in one.getMessage()]
    assert "a submitted run stays pending (" in note  # a learn that found a new connection is through
    async with await connected(address, judge) as again:
        assert {run.trajectory.id for run in await again.runs.list()} == set(kept)
        await again.runs.retry(*kept)
        assert {run.status for run in await again.runs.list()} == {"learned"}


PROGRAM = """
import sys, threading, lessonbank
bank = lessonbank.connect(sys.argv[1], scope="acme", embedder="lexical")
bank.lessons.add(title="Weigh it", content="Weigh it.", task="Ship a parcel to Rome", by="Ana")
print("ready", flush=True)
sys.stdin.readline()
bank.in_background(lambda: bank.aio.lessons.list(), lost="a list")
bank.in_background(lambda: bank.aio.lessons.list(), lost="a list")
threading.Thread(target=bank.lessons.list, daemon=True).start()
while not bank.aio.store._database._threads._calls:
    pass
print("ends", flush=True)
"""


def test_a_program_ends_while_the_server_is_frozen(postgres_bank: Callable[..., str]) -> None:
    address = postgres_bank(2)
    pipe = subprocess.PIPE
    with (
        psycopg.connect(address, autocommit=True) as asking,
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address], stdin=pipe, stdout=pipe, stderr=pipe, text=True
        ) as it,
    ):
        assert it.stdout
        assert it.stdout.readline() == "ready\n"
        with frozen(asking) as gave_up:
            _, said = it.communicate("go on\n")
            assert not gave_up.is_set(), "it waited for the server"
    assert it.returncode == 0
    assert said.count("the program ends, and") == 1

"""What stands in an agent's way in the checks of its adapter: a judge that waits, no retriever, a standstill."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence

import lessonbank
from lessonbank.contracts.ports import Vectors
from lessonbank.contracts.records import Experience, Found, Trajectory, Verdict

_TOO_LONG = 30
"""Seconds after which a run that waits for the bank is let go, and its check has failed."""


class WaitingJudge:
    """Says success, and waits before it does so where it is told to."""

    name = "patient"

    def __init__(self, *, waits: bool = False) -> None:
        self.asked: list[str] = []
        self.has_answered, self._go = False, threading.Event()
        if not waits:
            self._go.set()

    def go_on(self) -> None:
        """Let it answer."""
        self._go.set()

    async def __call__(self, run: Trajectory, /) -> Verdict:
        self.asked.append(run.task)
        await asyncio.to_thread(self._go.wait)
        self.has_answered = True
        return Verdict(outcome="success", reason="it was done")


class Standstill:
    """Holds the event loop of a bank: until it ends, nothing is searched, read or learned there."""

    def __init__(self, bank: lessonbank.ReasoningBank) -> None:
        self._bank, self._begun, self._over = bank, threading.Event(), threading.Event()
        self.lasts = False

    def begin(self) -> None:
        """Come back when it has begun."""
        self._bank.in_background(self._hold, lost="a standstill")
        assert self._begun.wait(_TOO_LONG)

    def end(self) -> None:
        """The bank goes on."""
        self._over.set()

    def __enter__(self) -> Standstill:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    async def _hold(self) -> None:
        self.lasts = True
        self._begun.set()
        self._over.wait(_TOO_LONG)  # a run that waits for the bank would wait for ever
        self.lasts = False


class BrokenRetriever:
    """Fails, or never answers."""

    name, space = "broken", None

    def __init__(self, *, fails: bool = False, waits: bool = False) -> None:
        self._fails, self._waits = fails, waits

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """No vectors."""
        return {}

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Nothing is left to index."""
        return 0

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        if self._fails:
            raise OSError("the bank is gone")
        await asyncio.Event().wait()
        return Found()

"""What an agent of the demo remembers with: nothing, or a bank that learns from every task."""

from __future__ import annotations

from typing import Protocol

import lessonbank
from lessonbank.contracts.records import Learned, Recall, Trajectory
from lessonbank.contracts.settings import Evidence

PATIENCE = 600.0
"""Seconds allowed for one answer: a model in an experiment may be slow, or a person."""


class Memory(Protocol):
    """Gives text for a task and is told how the task went."""

    def recall(self, goal: str, /) -> str:
        """The text the agent will see; `goal` is the task as the agent is asked it."""
        ...

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        """Take in a finished run; `None` as `success` leaves the verdict to the memory's own judge."""
        ...

    def close(self) -> None: ...


class NoMemory:
    """Never says anything."""

    def recall(self, goal: str, /) -> str:
        return ""

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        return None

    def close(self) -> None:
        return


class KeptBank:
    """A bank as memory: what is retrieved is shown, and what was done is learned with the verdict alone."""

    def __init__(self, bank: lessonbank.ReasoningBank, /, *, limit: int) -> None:
        self.bank = bank
        self.limit = limit
        self._recall: Recall | None = None

    def recall(self, goal: str, /) -> str:
        self._recall = self.bank.retrieve(goal, limit=self.limit, patience=PATIENCE)
        return self._recall.text

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        outcome = None if success is None else "success" if success else "failure"
        return self.bank.learn(run, recall=self._recall, outcome=outcome)

    def close(self) -> None:
        self.bank.close()


def new_bank(scope: str, /, *, limit: int = 3) -> KeptBank:
    """An empty bank that withholds nothing, so that it shows all it has."""
    bank = lessonbank.connect(
        ":memory:",
        scope=scope,
        embedder="lexical",
        evidence=Evidence(holdout=None),
    )
    return KeptBank(bank, limit=limit)

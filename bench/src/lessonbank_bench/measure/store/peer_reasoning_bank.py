"""`reasoning-bank` with its SQLite store: its own `retrieve`, with a ready-made embedding of the question."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from reasoning_bank import ReasoningBank, SQLiteVecStore
from reasoning_bank.lesson import Lesson

from .peer_run import run
from .workload import DIMENSIONS, SCOPE, TOP, Text, number_of

_SINGLY = 200
"""Lessons that are added with a commit each, to see what that takes."""


class _Ready:
    dim = DIMENSIONS

    def __init__(self) -> None:
        self.query: list[float] = []

    def embed(self, texts: list[str]) -> list[list[float]]:
        return [self.query for _ in texts]


class _Later:
    """Its connection, with commits put off: the rows are written by its own code all the same."""

    def __init__(self, connection: object) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def commit(self) -> None:
        """Not now."""


async def _no_model(prompt: str, *, system: str | None = None) -> str:
    raise RuntimeError("no model is asked in this benchmark")


class ReasoningBankPeer:
    """One memory a lesson; the task is its signature."""

    note = "its retrieve, five memories of the scope; it writes use counts (a commit each) and keeps no receipt"

    def __init__(self, folder: Path) -> None:
        self._embedder, self._store = _Ready(), SQLiteVecStore(folder / "bank.db", dim=DIMENSIONS)
        self._bank = ReasoningBank(llm=_no_model, store=self._store, embedder=self._embedder, scope=SCOPE)
        self.fill_note = ""

    def add(self, start: int, said: Sequence[Text], vectors: np.ndarray) -> None:
        """By its own `add`; all but the first 200 with one commit for the batch."""
        lessons = [_lesson(text, vectors[i]) for i, text in enumerate(said)]
        if not self.fill_note:
            began = time.perf_counter()
            for lesson in lessons[:_SINGLY]:
                self._store.add(lesson)
            rate = min(_SINGLY, len(lessons)) / (time.perf_counter() - began)
            self.fill_note = (
                f"by its own add, but with one commit for 1,000; with its commit for each lesson {rate:.0f}/s"
            )
            lessons = lessons[_SINGLY:]
        connection = self._store._conn
        self._store._conn = _Later(connection)
        for lesson in lessons:
            self._store.add(lesson)
        self._store._conn = connection
        connection.commit()

    def ready(self) -> None:
        """Nothing is left to do."""

    async def ask(self, query: np.ndarray) -> list[int]:
        """Its public retrieve."""
        self._embedder.query = query.tolist()
        found = await self._bank.retrieve("what now?", k=TOP, scope=SCOPE)
        return [number_of(lesson.task_signature) for lesson in found]

    def close(self) -> None:
        """Close the file."""
        self._store.close()


def _lesson(text: Text, vector: np.ndarray) -> Lesson:
    return Lesson(
        title=text.title,
        description=text.description,
        content=text.content,
        source="success",
        task_signature=text.task,
        scope=SCOPE,
        embedding=vector.tolist(),
    )


if __name__ == "__main__":
    run(ReasoningBankPeer)

"""Retrieval: through the bank with payload and receipt, and the store's two calls alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import numpy as np

import lessonbank
from lessonbank import AsyncReasoningBank, Evidence, Recall, Retrieval
from lessonbank.contracts.store_calls import get_experience

from .banks import Ready
from .clock import Call, Timing, alternate
from .figures import Figure, Target
from .workload import SCOPE, SPACE, TOP, Queries, exact, number_of, texts

_TASKS = 50_000_000
"""Tasks asked with are rows that no bank holds; all of them are made before the clock starts."""
_ASKED = 10_000
NAME = "retrieve, through the bank"
ONE_PASS = "one float32 pass of numpy over the same rows and the five best, in one thread"
AT = {10_000: Target(1.3, "ratio"), 100_000: Target(0.35, "ratio"), 1_000_000: Target(0.06, "ratio")}
RECALLED = Target(0.99, least=True)


@dataclass(slots=True)
class Asking:
    """A bank and what it is asked: every question, and every vector, once."""

    bank: AsyncReasoningBank
    embedder: Ready
    queries: Queries
    tasks: Iterator[str]

    @classmethod
    async def of(
        cls, path: Path, queries: Queries, *, scope: str = SCOPE, ready: tuple[Ready, list[str]] | None = None
    ) -> Asking:
        """Open the bank at `path` as a user would, with an embedder that has the answer ready."""
        embedder, tasks = ready or prepared()
        search, by_nearness = Retrieval(limit=TOP), Evidence(holdout=None)
        bank = await lessonbank.connect_async(
            path, scope=scope, embedder=embedder, retrieval=search, evidence=by_nearness
        )
        return cls(bank, embedder, queries, cycle(tasks))

    def take(self) -> np.ndarray:
        """A query that was not asked before."""
        return self.queries.take(1)[0]

    async def retrieve(self) -> Recall:
        """The whole call: search, payload, receipt kept."""
        self.embedder.query = self.take()
        return await self.bank.retrieve(next(self.tasks))

    async def nearest(self) -> None:
        """The vector search alone, with payload."""
        await self.bank.store.nearest(self.take(), scope=self.bank.scope, space=SPACE, limit=TOP)

    async def nearest_and_record(self) -> None:
        """The vector search, and a receipt of the same size as the bank's."""
        matches = (await self.bank.store.nearest(self.take(), scope=self.bank.scope, space=SPACE, limit=TOP)).matches
        lines = [f"{i.title}\n{i.content}" for m in matches for i in m.experience.lessons]
        await self.bank.store.save_recall(Recall(scope=self.bank.scope, task=next(self.tasks), text="\n".join(lines)))

    def raw(self, vectors: np.ndarray) -> Call:
        """One float32 pass over `vectors`."""
        return lambda: exact(vectors, self.take())

    async def recall(self, vectors: np.ndarray, times: int, *, start: int = 0) -> float:
        """The share of the true five nearest that the bank's own retrieve finds."""
        hits = 0
        for _ in range(times):
            recall = await self.retrieve()
            ids = dict.fromkeys(c.experience_id for c in recall.candidates)
            owners = [await get_experience(self.bank.store, id, scope=self.bank.scope) for id in ids]
            found = {number_of(each.task) - start for each in owners}
            hits += len(found & exact(vectors, self.embedder.query))
        return hits / (times * TOP)


def prepared(asked: int = _ASKED) -> tuple[Ready, list[str]]:
    """An embedder and tasks to ask with: takes a second, and is no part of opening a bank."""
    return Ready(), [text.task for text in texts(_TASKS, asked)]


async def retrieving(path: Path, vectors: np.ndarray, queries: Queries, *, calls: int) -> list[Figure]:
    """Every figure of one bank of one scope."""
    lessons = len(vectors)
    asking = await Asking.of(path, queries)
    async with asking.bank:
        timed = await alternate(
            {
                "retrieve": asking.retrieve,
                "nearest + record": asking.nearest_and_record,
                "nearest": asking.nearest,
                "raw": asking.raw(vectors),
            },
            calls,
        )
        found = await asking.recall(vectors, calls)
    target = AT.get(lessons)
    return [
        timing(NAME, lessons, timed["retrieve"], timed["raw"], target),
        timing("nearest + record, the store alone", lessons, timed["nearest + record"], timed["raw"], target),
        timing("nearest, the store alone", lessons, timed["nearest"], timed["raw"], None),
        Figure("recall@5 of retrieve", lessons, found, "", target=RECALLED, note="against the exact five"),
    ]


def timing(
    name: str, lessons: int, ours: Timing, raw: Timing | None, target: Target | None, *, under: str = ONE_PASS
) -> Figure:
    """A timed call as a figure."""
    return Figure(
        name,
        lessons,
        ours.wall,
        "ms",
        cpu=ours.cpu,
        raw=raw.wall if raw else None,
        raw_cpu=raw.cpu if raw else None,
        under=under if raw else "",
        target=target,
        note=f"median of {ours.calls}, p99 {ours.percentile(99):.3g} ms",
    )

"""What each way to search costs over the same store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import lessonbank.search
from lessonbank.contracts.ports import Embedder, Retriever, Store
from lessonbank.search import (
    DenseRetriever,
    Floor,
    HybridRetriever,
    LexicalRetriever,
)

from .clock import Call, alternate
from .figures import Figure, Missing
from .retrieving import Asking, timing
from .workload import SCOPE, TOP, Queries

_PART = 1000


async def retrievers(
    path: Path, vectors: np.ndarray, queries: Queries, *, calls: int
) -> tuple[list[Figure], list[Missing]]:
    """Each of them on tasks that the bank does not hold."""
    lessons = len(vectors)
    asking = await Asking.of(path, queries)
    async with asking.bank:
        ways, lost = await _ways(asking.bank.store, asking.embedder)
        asked = {name: _call(asking, way) for name, way in ways.items()}
        timed = await alternate({**asked, "raw": asking.raw(vectors)}, calls, seconds=900)
    raw = timed.pop("raw")
    return [timing(f"retriever, {name}", lessons, each, raw, None) for name, each in timed.items()], lost


async def _ways(store: Store, embedder: Embedder) -> tuple[dict[str, Retriever], list[Missing]]:
    """Retrievers by name."""
    dense, lexical = DenseRetriever(store, embedder), LexicalRetriever(store)
    ways: dict[str, Retriever] = {
        "dense": dense,
        "lexical": lexical,
        "hybrid (RRF)": HybridRetriever(dense, lexical),
        "dense + floor": Floor(dense, 0.3),
    }
    by_lesson, why = await _lesson_level(store, embedder)
    if by_lesson is None:
        return ways, [("retriever, dense by lesson", why)]
    return {**ways, "dense by lesson": by_lesson}, []


async def _lesson_level(store: Store, embedder: Embedder) -> tuple[Retriever | None, str]:
    make = getattr(lessonbank.search, "LessonRetriever", None)
    if make is None:
        return None, "lessonbank.search has no LessonRetriever"
    try:
        retriever: Retriever = make(store, embedder)
    except TypeError as error:
        return None, f"LessonRetriever(store, embedder) cannot be made: {error}"
    while await retriever.catch_up(scope=SCOPE, most=_PART):
        pass
    return retriever, ""


def _call(asking: Asking, way: Retriever) -> Call:
    async def ask() -> None:
        task, asking.embedder.query = next(asking.tasks), asking.take()
        await way(task, scope=SCOPE, limit=TOP)

    return ask

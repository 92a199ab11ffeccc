"""What each way to search costs over the same store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import lessonbank.search
from lessonbank.contracts.ports import Embedder, Retriever, Store
from lessonbank.search import (
    DenseRetriever,
    Diverse,
    Floor,
    HybridRetriever,
    LeaveOut,
    LexicalRetriever,
    same_task,
    same_template,
)

from .clock import WARM, Call, alternate
from .figures import Figure, Missing
from .retrieving import Asking, timing
from .workload import SCOPE, TOP, Queries, texts

_PART = 1000
_GUARDS = ("dense, same task left out", "dense, same template left out")
Known = tuple[str, np.ndarray]
"""A task of the bank, and its vector."""


async def retrievers(
    path: Path, vectors: np.ndarray, queries: Queries, *, calls: int
) -> tuple[list[Figure], list[Missing]]:
    """Each of them on tasks that the bank does not hold; the guards also on tasks that it does."""
    lessons = len(vectors)
    picked = np.random.default_rng(9).permutation(lessons)[: 2 * (calls + WARM)].tolist()
    known = [(next(texts(row, 1)).task, vectors[row]) for row in sorted(picked)]
    asking = await Asking.of(path, queries)
    async with asking.bank:
        ways, lost = await _ways(asking.bank.store, asking.embedder)
        asked = {name: _call(asking, way, of=known if name in _GUARDS else []) for name, way in ways.items()}
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
        "dense + MMR": Diverse(dense),
        "dense + floor": Floor(dense, 0.3),
        _GUARDS[0]: LeaveOut(dense, same_task),
        _GUARDS[1]: LeaveOut(dense, same_template(), what="same template"),
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


def _call(asking: Asking, way: Retriever, *, of: Sequence[Known]) -> Call:
    """`of`: tasks of the bank with their vectors, else new ones are taken."""
    known = iter(of)

    async def ask() -> None:
        task, asking.embedder.query = next(known) if of else (next(asking.tasks), asking.take())
        await way(task, scope=SCOPE, limit=TOP)

    return ask

"""How a bank searches: the retriever for recalls with its guards, and the bare one for finding duplicates."""

from __future__ import annotations

from typing import TypeAlias

from lessonbank.errors import UsageError
from lessonbank.protocols import Embedder, Retriever, Store
from lessonbank.retrieving import (
    DenseRetriever,
    Diverse,
    Floor,
    HybridRetriever,
    LeaveOut,
    LessonRetriever,
    LexicalRetriever,
    Retrieval,
    RetrievalName,
    same_task,
    same_template,
)

Choice: TypeAlias = RetrievalName | Retrieval | None


def choose(
    choice: Choice, own: Retriever | None, /, *, store: Store, embedder: Embedder | None
) -> tuple[Retriever, Retriever]:
    """The retriever for recalls, and the one without guards: a duplicate is looked for among its own kind too.

    Raises:
        UsageError: no such retrieval, one that needs an embedder the bank has not, or a retriever besides.
    """
    if own is not None:
        if choice is not None:
            raise UsageError("connect takes either retrieval= or a retriever= of your own: wrap your own yourself")
        return own, own
    asked = choice if isinstance(choice, Retrieval) else Retrieval(choice)
    if asked.level == "lesson":
        # Duplicates come from like tasks; the words of tasks are there, while vectors of tasks would be a second space.
        found = LessonRetriever(store, _needed(embedder, "level='lesson'"))
        return _guarded(asked, _floored(found, asked.floor)), LexicalRetriever(store)
    bare = _searching(asked, store, embedder, floor=None)
    return _guarded(asked, _searching(asked, store, embedder, floor=asked.floor)), bare


def _searching(asked: Retrieval, store: Store, embedder: Embedder | None, *, floor: float | None) -> Retriever:
    lexical = _floored(LexicalRetriever(store), floor)
    if asked.by == "lexical" or (asked.by is None and embedder is None):
        return lexical
    dense = _floored(DenseRetriever(store, _needed(embedder, repr(asked.by))), floor)
    return HybridRetriever(dense, lexical) if asked.by == "hybrid" else dense


def _needed(embedder: Embedder | None, by: str) -> Embedder:
    if embedder is None:
        raise UsageError(f"retrieval={by} needs an embedder, and this bank has none: embedder='hashing' will do")
    return embedder


def _floored(retriever: Retriever, least: float | None) -> Retriever:
    return Floor(retriever, least) if least else retriever


def _guarded(asked: Retrieval, retriever: Retriever) -> Retriever:
    if asked.exclude == "task":
        retriever = LeaveOut(retriever, same_task)
    elif asked.exclude is not None:
        template = asked.exclude if callable(asked.exclude) else None
        retriever = LeaveOut(retriever, same_template(template), what="same template")
    return Diverse(retriever, 1.0 - asked.diversity) if asked.diversity else retriever

"""How a bank searches: the retriever for recalls with its guards, and the bare one for finding duplicates."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
    WordFloor,
    default_floor,
    same_task,
    same_template,
)

Choice: TypeAlias = RetrievalName | Retrieval | None


def choose(
    choice: Choice, own: Retriever | None, /, *, store: Store, embedder: Embedder | None, profile: str
) -> tuple[Retriever, Retriever]:
    """The retriever for recalls, and the one without guards: a duplicate is looked for among its own kind too.

    Where no floor is asked for, the default profile has its own for experiences; the paper's has none.

    Raises:
        UsageError: no such retrieval, one that needs an embedder the bank has not, or a retriever besides.
    """
    if own is not None:
        if replace(settings(choice), preface=None) != Retrieval():
            raise UsageError("connect takes either retrieval= or a retriever= of your own: wrap your own yourself")
        return own, own
    asked = settings(choice)
    if asked.level == "lesson":
        # Duplicates come from like tasks; the words of tasks are there, while vectors of tasks would be a second space.
        found = LessonRetriever(store, _needed(embedder, "level='lesson'"))
        return _guarded(asked, Floor(found, asked.floor) if asked.floor else found), LexicalRetriever(store)
    bare = _searching(asked, store, embedder, _Floors())
    return _guarded(asked, _searching(asked, store, embedder, _floors(asked, embedder, profile))), bare


def settings(choice: Choice, /) -> Retrieval:
    """What was asked for: a name alone is short for it."""
    return choice if isinstance(choice, Retrieval) else Retrieval(choice)


@dataclass(frozen=True, slots=True)
class _Floors:
    """The floor of each way to search; `None` for none."""

    words: float | None = None
    vectors: float | None = None


def _floors(asked: Retrieval, embedder: Embedder | None, profile: str) -> _Floors:
    if asked.floor is not None:
        return _Floors(asked.floor or None, asked.floor or None)
    if profile == "paper":
        return _Floors()
    vectors = default_floor(embedder.space) if embedder else None
    if asked.by == "hybrid" and vectors is None:
        return _Floors()  # what vectors of an unknown scale bring in, words cannot judge
    return _Floors(default_floor(None), vectors)


def _searching(asked: Retrieval, store: Store, embedder: Embedder | None, floors: _Floors) -> Retriever:
    lexical = WordFloor(LexicalRetriever(store), floors.words) if floors.words else LexicalRetriever(store)
    if asked.by == "lexical" or (asked.by is None and embedder is None):
        return lexical
    dense = DenseRetriever(store, _needed(embedder, repr(asked.by)), floors.vectors, lexical)
    return HybridRetriever(dense, lexical) if asked.by == "hybrid" else dense


def _needed(embedder: Embedder | None, by: str) -> Embedder:
    if embedder is None:
        raise UsageError(f"retrieval={by} needs an embedder, and this bank has none: embedder='hashing' will do")
    return embedder


def _guarded(asked: Retrieval, retriever: Retriever) -> Retriever:
    if asked.exclude == "task":
        retriever = LeaveOut(retriever, same_task)
    elif asked.exclude is not None:
        template = asked.exclude if callable(asked.exclude) else None
        retriever = LeaveOut(retriever, same_template(template), what="same template")
    return Diverse(retriever, 1.0 - asked.diversity) if asked.diversity else retriever

"""How a bank searches: the retriever for recalls with its guards, the bare one for duplicates, and one to try."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lessonbank.bank.preview_settings import PreviewSettings
from lessonbank.contracts.ports import Embedder, LanguageModel, Retriever, Store
from lessonbank.contracts.settings import UNSET, Profile, Retrieval, TrustPolicy, chosen
from lessonbank.errors import UsageError
from lessonbank.search import (
    DenseRetriever,
    Floor,
    HybridRetriever,
    LessonRetriever,
    LexicalRetriever,
    RelativeFloor,
    TrustFilter,
    WordFloor,
    default_floor,
    default_words,
)
from lessonbank.search.fit import Fitter
from lessonbank.search.injection import Injector

from ._arguments import OwnRetriever


def choose_retrieval(
    asked: Retrieval, own: Retriever | None, /, *, store: Store, embedder: Embedder | None, profile: str
) -> tuple[Retriever, Retriever]:
    """The retriever for recalls, and the one without guards: a duplicate is looked for among its own kind too.

    Where no floor is asked for, the default profile has its own for experiences; the paper's has none.

    Raises:
        UsageError: no such retrieval, one that needs an embedder the bank has not, or a retriever besides.
    """
    if own is not None:
        if replace(asked, preface=UNSET, limit=UNSET, budget=UNSET, fit="none") != Retrieval():
            raise UsageError("with Parts(retriever=), Retrieval() takes limit, budget, preface and fit only")
        own = OwnRetriever(own)
        return own, own
    if asked.level == "lesson":
        floor = chosen(asked.floor, None)
        # Duplicates come from like tasks; the words of tasks are there, while vectors of tasks would be a second space.
        retriever = LessonRetriever(store, _needed(embedder, "Retrieval(level='lesson')"))
        retriever = Floor(retriever, floor) if floor else retriever
        share = asked.relative_floor
        return RelativeFloor(retriever, share) if share else retriever, LexicalRetriever(store)
    bare = _searching(asked, store, embedder, _Floors())
    return _searching(asked, store, embedder, _floors(asked, embedder, profile)), bare


def choose_fitter(asked: Retrieval, model: LanguageModel | None, /) -> Fitter | None:
    """Who fits lessons to tasks, where there is a model. Raises UsageError: it is asked for, and there is none."""
    if asked.fit != "none" and model is None:
        raise UsageError(f"Retrieval(fit={asked.fit!r}) needs a model, and this bank has none: pass model=…")
    return Fitter(model) if model else None


@dataclass(frozen=True, slots=True)
class _Floors:
    """The floor of each way to search; `None` for none."""

    words: float | None = None
    vectors: float | None = None
    words_of_vectors: float | None = None
    """The share of words that what vectors find has in common with the task."""
    relative: float | None = None


def _floors(asked: Retrieval, embedder: Embedder | None, profile: str) -> _Floors:
    floor, share = chosen(asked.floor, None), asked.relative_floor or None
    if floor is not None:
        return _Floors(floor or None, floor or None, relative=share)
    if profile == "paper":
        return _Floors(relative=share)
    vectors = default_floor(embedder.space) if embedder else None
    if asked.by == "hybrid" and vectors is None:
        return _Floors(relative=share)  # what vectors of an unknown scale bring in, words cannot judge
    shared = default_words(embedder.space) if embedder and asked.by != "hybrid" else None
    return _Floors(default_floor(None), vectors, shared, share)


def _searching(asked: Retrieval, store: Store, embedder: Embedder | None, floors: _Floors) -> Retriever:
    lexical: Retriever = LexicalRetriever(store)
    lexical = WordFloor(lexical, floors.words) if floors.words else lexical
    lexical = RelativeFloor(lexical, floors.relative) if floors.relative else lexical
    by = chosen(asked.by, None)
    if by == "lexical" or (by is None and embedder is None):
        return lexical
    dense: Retriever = DenseRetriever(store, _needed(embedder, f"retrieval={by!r}"), floors.vectors, lexical)
    dense = WordFloor(dense, floors.words_of_vectors, "words") if floors.words_of_vectors else dense
    dense = RelativeFloor(dense, floors.relative) if floors.relative else dense
    return HybridRetriever(dense, lexical) if by == "hybrid" else dense


def _needed(embedder: Embedder | None, by: str) -> Embedder:
    if embedder is None:
        raise UsageError(f"{by} needs an embedder, and this bank has none: pass embedder='hashing' or another one")
    return embedder


_OF_A_SEARCH = ("by", "budget", "floor", "preface")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewFactory:
    """How a bank searches, for making another search that differs in some settings."""

    asked: Retrieval
    own: Retriever | None
    store: Store
    embedder: Embedder | None
    profile: Profile
    trust: TrustPolicy
    injector: Injector
    domain: str

    def __call__(self, tried: PreviewSettings, /) -> tuple[Retriever, Injector]:
        """What searches, and what words the text. Raises UsageError: the bank cannot search so."""
        from ._profiles import injector

        given: dict[str, Any] = {name: value for name in _OF_A_SEARCH if (value := getattr(tried, name)) is not None}
        asked = replace(self.asked, **given)
        search, _ = choose_retrieval(asked, self.own, store=self.store, embedder=self.embedder, profile=self.profile)
        search = TrustFilter(search, tried.trust or self.trust)
        words = self.injector
        if tried.preface is not None:
            words = injector(tried.preface, self.domain, words.budget, paper=self.profile == "paper")
        if tried.budget is not None:
            words = replace(words, budget=tried.budget)
        return search, words

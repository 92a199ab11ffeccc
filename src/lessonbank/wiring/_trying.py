"""The bank's search with other settings, for a person who asks what they would show."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lessonbank.bank.trying import Tried
from lessonbank.contracts.ports import Embedder, Retriever, Store
from lessonbank.contracts.settings import Profile, Retrieval, TrustPolicy
from lessonbank.search import Trusted
from lessonbank.search.injection import Injector

from ._retrieval import choose

_OF_A_SEARCH = ("by", "budget", "floor", "preface")


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """How a bank searches, for making another search that differs in some settings."""

    asked: Retrieval
    own: Retriever | None
    store: Store
    embedder: Embedder | None
    profile: Profile
    trust: TrustPolicy
    injector: Injector
    domain: str

    def __call__(self, tried: Tried, /) -> tuple[Retriever, Injector]:
        """What searches, and what words the text. Raises UsageError: the bank cannot search so."""
        from ._profiles import injector

        given: dict[str, Any] = {name: value for name in _OF_A_SEARCH if (value := getattr(tried, name)) is not None}
        asked = replace(self.asked, **given)
        search, _ = choose(asked, self.own, store=self.store, embedder=self.embedder, profile=self.profile)
        search = Trusted(search, tried.trust or self.trust)
        words = self.injector
        if tried.preface is not None:
            words = injector(tried.preface, self.domain, words.budget, paper=self.profile == "paper")
        if tried.budget is not None:
            words = replace(words, budget=tried.budget)
        return search, words

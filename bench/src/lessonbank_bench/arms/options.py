"""How an arm that keeps a bank is put together, as plain values that a TOML table can hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lessonbank.contracts.settings import UNSET, Consolidation, Domain, Level, Profile, Retrieval, Search
from lessonbank.errors import UsageError

ExtractorName = Literal["extractive", "llm"]
_CHOICES = {
    "extractor": (None, "extractive", "llm"),
    "consolidation": ("append", "recognise"),
    "profile": ("default", "paper"),
    "domain": (None, "general", "web", "code"),
    "exclude": (None, "task", "template"),
}
_TYPES: dict[str, tuple[type, ...]] = {
    "embedder": (str, type(None)),
    "limit": (int, type(None)),
    "budget": (int,),
    "failures": (bool,),
    "floor": (int, float, type(None)),
    "preface": (str, type(None)),
}


@dataclass(frozen=True, slots=True)
class Options:
    """Which parts a bank is made of, and its numbers.

    Raises:
        UsageError: a value that cannot be; the sentence names the key.
    """

    retrieval: Search | None = None
    level: Level = "experience"
    floor: float | None = None
    preface: str | None = None
    """What stands before the lessons, as in `Retrieval(preface=…)`; `None`: the profile's."""
    exclude: Literal["task", "template"] | None = None
    """`task` and `template` are the arms that leave out one's own like: what is left is transfer."""
    embedder: str | None = None
    """`None`: by words, or `hashing` where the search needs vectors."""
    extractor: ExtractorName | None = None
    """`None`: `llm` where the experiment has a model, else `extractive`."""
    consolidation: Consolidation = "append"
    profile: Profile = "default"
    domain: Domain | None = None
    """`None`: what the environment says."""
    limit: int | None = None
    """Experiences per recall (k); `None`: what the experiment says."""
    budget: int = 1500
    failures: bool = True
    """Whether runs that failed are learned from."""

    def __post_init__(self) -> None:
        for key, choices in _CHOICES.items():
            if (value := getattr(self, key)) not in choices:
                told = ", ".join(repr(choice) for choice in choices if choice)
                raise UsageError(f"an arm's {key} is one of {told}; got {value!r}")
        for key, types in _TYPES.items():
            value = getattr(self, key)
            if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
                raise UsageError(f"an arm's {key} cannot be {value!r}")
        if (self.limit is not None and self.limit < 1) or self.budget < 100:
            raise UsageError("an arm needs a limit of at least 1 experience and a budget of at least 100 tokens")
        _ = self.search

    @property
    def search(self) -> Retrieval:
        """What the bank is asked to search by."""
        return Retrieval(
            by=self.retrieval,
            budget=self.budget,
            floor=self.floor,
            preface=UNSET if self.preface is None else self.preface,
            level=self.level,
        )

    @property
    def space(self) -> str:
        """The embedder's name: one that needs no download, unless one is named."""
        needs_vectors = self.retrieval in ("dense", "hybrid") or self.level == "lesson"
        return self.embedder or ("hashing" if needs_vectors else "lexical")

"""What a bank is made of: the parts that act in its loop, and the options that hold for every call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from lessonbank._base.checks import safe_getattr
from lessonbank.contracts.events import Hook
from lessonbank.contracts.ports import Consolidator, Extractor, Judge, LanguageModel, Retriever
from lessonbank.contracts.settings import Fit
from lessonbank.evidence.ledger import Ledger
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.names import checked_name
from lessonbank.learning.consolidation.append import asks_model
from lessonbank.learning.extraction import ExtractiveExtractor
from lessonbank.learning.judging import SUCCESS_AT, checked_threshold
from lessonbank.learning.topics import Topics
from lessonbank.matts.scaler import Scaler
from lessonbank.search.fit import Fitter
from lessonbank.search.injection import Injector

from .preview_settings import MakePreview


@dataclass(frozen=True, slots=True, kw_only=True)
class BankParts:
    """Who does the steps of the loop."""

    retriever: Retriever
    injector: Injector
    """Writes the text of a recall."""
    fitter: Fitter | None = None
    """Fits lessons to a task; `None` where there is no model."""
    judge: Judge
    extractor: Extractor
    consolidator: Consolidator
    topics: Topics | None = None
    """Sorts new lessons into topics."""
    ledger: Ledger = field(default_factory=Ledger)
    intake: IntakeFilter = field(default_factory=IntakeFilter)
    """Redacts what comes in, and rejects drafts that are no lessons."""
    scaler: Scaler = field(default_factory=Scaler)
    """Chooses among several runs of one task."""
    reflector: LanguageModel | None = None
    """Who looks back over the runs of a topic."""
    previews: MakePreview | None = None
    """Builds a retriever and an injector with other settings, for a preview."""
    hooks: Sequence[Hook] = ()
    asks_model: bool = field(init=False)
    """Whether judging or extracting may ask a model; a part that does not say so may.
    Then a run waits where its lessons could not be found again: a lesson that is paid for should not be lost."""
    space: str | None = field(init=False)
    """The space of the retriever's vectors; `None` where it makes none."""
    decides_at_once: bool = field(init=False)
    """Whether consolidating asks no model, be it an embedder."""
    learns_at_once: bool = field(init=False)
    """Whether a short run whose end is known is learned in no time: no model and no code of the caller's is asked."""

    def __post_init__(self) -> None:
        asks = any(safe_getattr(part, "asks_model") is not False for part in (self.judge, self.extractor))
        object.__setattr__(self, "asks_model", asks)
        object.__setattr__(self, "space", self.retriever.space)
        at_once = not (asks_model(self.consolidator) or (self.topics and self.topics.asks_model))
        object.__setattr__(self, "decides_at_once", at_once)
        is_own = type(self.extractor) is ExtractiveExtractor and self.intake.is_own and not self.hooks
        object.__setattr__(self, "learns_at_once", is_own and at_once and not self.space)

    def labelled(self, labels: bool, /) -> Self | None:
        """These parts, with an extractor whose contrast shows how runs ended, or hides it; `None` if it cannot."""
        relabel = safe_getattr(self.extractor, "labelled")
        return None if relabel is None else replace(self, extractor=relabel(labels))


@dataclass(frozen=True, slots=True, kw_only=True)
class BankOptions:
    """How every call of a bank behaves.

    Raises:
        UsageError: a value is wrong.
    """

    limit: int = 1
    """Experiences of a recall, or lessons where these are searched."""
    fit: Fit = "none"
    """Whether a model fits the lessons of a recall to its task."""
    writer: str = "learn"
    """Under whose name changes are kept."""
    success_at: float = SUCCESS_AT
    """The reward from which on a run is a success."""
    keep_runs: float | None = None
    """Days after which runs and recalls are erased."""
    keep_lessons: int | None = None
    """How many lessons a scope shows; those that are needed least are removed."""
    sleep_after: float | None = None
    """Days after which a lesson sleeps that no run met."""
    reflect_every: int | None = None
    """Look back over a topic whenever the number of experiences in the scope is a multiple of this."""
    submits_here: bool = True
    """Whether this process learns from what is submitted."""
    unique_wording: bool = False
    """Whether no lesson is written that has the words of another one."""
    corroborates: bool = False
    """Whether a lesson that two writers found counts as checked."""
    shows_known: bool = False
    """Whether the extractor is shown the nearest lessons of the bank, where it can say how its own stand to them."""
    observe: bool = False
    """Whether everything is learned and nothing is shown."""
    place: str = ""
    """Where the bank is, so that runs can wait for it on this machine. Empty: none does."""
    off: bool = False
    """Whether memory is switched off: every call does nothing and says so."""
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    """What is in force, for people: `bank.settings`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "writer", checked_name(self.writer, what="writer="))
        object.__setattr__(self, "success_at", checked_threshold(self.success_at))

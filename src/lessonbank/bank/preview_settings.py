"""What a person changes of a search to see what it would show, while the bank itself stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, get_args

from lessonbank._base.checks import a_share, maybe_count, maybe_one_of, maybe_text
from lessonbank.contracts.ports import Retriever
from lessonbank.contracts.settings import Retrieval, Search, TrustPolicy
from lessonbank.search.injection import Injector

LEAST_BUDGET = 100
"""Tokens: the block itself takes some."""


@dataclass(frozen=True, slots=True)
class PreviewSettings:
    """Settings of one search in the place of the bank's own; `None` leaves that of the bank.

    Raises:
        UsageError: a value is wrong.
    """

    by: Search | None = None
    budget: int | None = None
    floor: float | None = None
    preface: str | None = None
    trust: TrustPolicy | None = None

    def __post_init__(self) -> None:
        maybe_one_of(self.by, "by=", get_args(Search))
        maybe_count(self.budget, "budget=", least=LEAST_BUDGET)
        if self.floor is not None:
            a_share(self.floor, "floor=")
        Retrieval(preface=maybe_text(self.preface, "preface=") or "silent")
        maybe_one_of(self.trust, "trust=", get_args(TrustPolicy))

    @property
    def is_own(self) -> bool:
        """Whether the bank's own retriever and words serve: nothing else is asked for."""
        return self == PreviewSettings()


MakePreview: TypeAlias = Callable[[PreviewSettings], tuple[Retriever, Injector]]
"""Makes what searches, and what words the text, for settings that are tried. Raises UsageError."""

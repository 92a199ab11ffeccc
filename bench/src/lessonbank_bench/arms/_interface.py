"""What every arm of a comparison must do, and what it may know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.settings import Domain
from lessonbank.demo import PATIENCE as PATIENCE
from lessonbank.demo import Memory as Memory


@dataclass(frozen=True, slots=True)
class Setting:
    """What an arm may know."""

    scope: str
    """Names the bank; nothing of the world is read from it."""
    limit: int
    seed: int
    model: LanguageModel | None = None
    truth: Callable[[str], str] | None = None
    """What a perfect memory would say for a goal. Only the oracle asks; `None` where nobody knows."""
    domain: Domain = "general"
    """What runs are about, for judging and distilling, where an arm does not say."""
    beside: Callable[[str], str] | None = None
    """What the arm `lessonbank` of the same seed shows for a goal. Only the mirror asks."""


def lesson_code(title: str, content: str, /) -> str:
    """What names a lesson in an experiment's rows: twelve characters of the SHA-256 of its words."""
    return digest(f"{title}\n{content}")[:12]


Factory: TypeAlias = Callable[[Setting], Memory]

"""What every arm of a comparison must do, and what it may know."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from lessonbank.protocols import LanguageModel
from lessonbank.types import Learned, Trajectory
from lessonbank.types.ids import digest

PATIENCE = 600.0
"""Seconds allowed for one answer: a model in an experiment may be slow, or a person."""


class Memory(Protocol):
    """Gives text for a task and is told how the task went."""

    def recall(self, goal: str, /) -> str:
        """The text the agent will see; `goal` is the task as the agent is asked it."""
        ...

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        """Take in a finished run; `None` as `success` leaves the verdict to the memory's own judge."""
        ...

    def close(self) -> None: ...


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
    domain: str = "general"
    """What runs are about, for judging and distilling, where an arm does not say."""


def lesson_code(title: str, content: str, /) -> str:
    """What names a lesson in an experiment's rows: twelve characters of the SHA-256 of its words."""
    return digest(f"{title}\n{content}")[:12]


Factory: TypeAlias = Callable[[Setting], Memory]

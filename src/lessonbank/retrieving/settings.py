"""What a caller can ask of retrieval, as data: wiring makes the parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lessonbank.errors import UsageError

from .leave_out import Template

RetrievalName = Literal["dense", "lexical", "hybrid"]
Level = Literal["experience", "lesson"]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How a bank searches. `connect(retrieval=Retrieval("hybrid", floor=0.2))`; a name alone is short for it.

    Raises:
        UsageError: a floor or a diversity out of range, no such way to search, or none for lessons.
    """

    by: RetrievalName | None = None
    """`dense` (cosine between task embeddings), `lexical` (BM25), `hybrid` (both, fused by rank). `None`: dense where
    the bank has an embedder, else lexical."""
    floor: float | None = None
    """The least score, 0 to 1. A hybrid search keeps what either side scores that high."""
    diversity: float = 0.0
    """0 to 1: how much an experience loses for lessons already chosen (1 - lambda of MMR). Matters from limit 2."""
    exclude: Literal["task", "template"] | Template | None = None
    """Leave out experiences of the same task, or of the same template; a function says which template a text has."""
    level: Level = "experience"
    """What is searched and shown: `experience` compares tasks and shows all lessons of those found, as in the paper;
    `lesson` compares the text of each lesson by cosine, shows what it finds alone, and a limit counts lessons."""

    def __post_init__(self) -> None:
        if self.by not in (None, "dense", "lexical", "hybrid"):
            raise UsageError(f"retrieval is by 'dense', 'lexical' or 'hybrid'; got {self.by!r}")
        if self.level not in ("experience", "lesson"):
            raise UsageError(f"retrieval is of level 'experience' or 'lesson'; got {self.level!r}")
        if self.level == "lesson" and self.by not in (None, "dense"):
            raise UsageError(f"lessons are found by 'dense' only, since words are kept of tasks; got {self.by!r}")
        if not 0.0 <= self.diversity <= 1.0 or not 0.0 <= (self.floor or 0.0) <= 1.0:
            raise UsageError(f"floor and diversity go from 0 to 1; got {self.floor!r} and {self.diversity!r}")
        if not (self.exclude in (None, "task", "template") or callable(self.exclude)):
            raise UsageError(
                f"exclude is 'task', 'template' or a function from a task to its template; got {self.exclude!r}"
            )

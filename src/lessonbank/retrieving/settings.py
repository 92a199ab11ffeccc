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
    """The least similarity, 0 to 1: what is further away is not shown. Of vectors it is the cosine; of words it is the
    share of words in common (see `overlap`), which does not depend on how much the bank holds. A hybrid search keeps
    what either side finds that similar. `0` turns it off. `None`: the profile's. The default profile has 0.07 for words
    and 0.12 for `hashing`, and none for other embedders (their scales differ) or for lessons. The paper has none."""
    diversity: float = 0.0
    """0 to 1: how much an experience loses for lessons already chosen (1 - lambda of MMR). Matters from limit 2."""
    exclude: Literal["task", "template"] | Template | None = None
    """Leave out experiences of the same task, or of the same template; a function says which template a text has."""
    level: Level = "experience"
    """What is searched and shown: `experience` compares tasks and shows all lessons of those found, as in the paper;
    `lesson` compares the text of each lesson by cosine, shows what it finds alone, and a limit counts lessons."""
    preface: Literal["silent", "cite"] | str | None = None
    """What stands before the lessons in a prompt. `silent`: one short line, and the agent never mentions the lessons.
    `cite`: the agent says before each action which lessons it uses, by number; then `lift` knows which were cited. Any
    other text of at least two words is used as it is, in its inert form. `None`: the profile's, which is `silent` by
    default and the paper's own in the paper's profile. The lessons stand between marker lines whatever the preface."""

    def __post_init__(self) -> None:
        if self.by not in (None, "dense", "lexical", "hybrid"):
            raise UsageError(f"retrieval is by 'dense', 'lexical' or 'hybrid'; got {self.by!r}")
        if self.level not in ("experience", "lesson"):
            raise UsageError(f"retrieval is of level 'experience' or 'lesson'; got {self.level!r}")
        if self.level == "lesson" and self.by not in (None, "dense"):
            raise UsageError(f"lessons are found by 'dense' only, since words are kept of tasks; got {self.by!r}")
        if not 0.0 <= self.diversity <= 1.0 or not 0.0 <= (self.floor or 0.0) <= 1.0:
            raise UsageError(f"floor and diversity go from 0 to 1; got {self.floor!r} and {self.diversity!r}")
        if self.preface not in (None, "silent", "cite") and not _is_text(self.preface):
            raise UsageError(f"preface is 'silent', 'cite' or a text of at least two words; got {self.preface!r}")
        if not (self.exclude in (None, "task", "template") or callable(self.exclude)):
            raise UsageError(
                f"exclude is 'task', 'template' or a function from a task to its template; got {self.exclude!r}"
            )


def _is_text(preface: object) -> bool:
    """Whether it can stand before lessons. A single ASCII word is more likely a mistyped name than a preface."""
    return isinstance(preface, str) and (len(preface.split()) > 1 or not preface.isascii())

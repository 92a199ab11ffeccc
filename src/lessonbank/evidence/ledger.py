"""What a bank asks of its ledger: draw for a recall, take note of an outcome, say what memory changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from lessonbank.contracts.records import Change, Found, Proposal
from lessonbank.contracts.withholding import Assignment, Members
from lessonbank.errors import UsageError

from .lift import Lift


class Acted(NamedTuple):
    """What the evidence led to automatically: changes that are already made, and notes."""

    changes: Sequence[Change] = ()
    proposals: Sequence[Proposal] = ()
    """Lessons that it would have retired, had no person approved them."""
    notes: tuple[str, ...] = ()


class Met(NamedTuple):
    """When a lesson was found for a task last, and whether it is shown to do nothing."""

    at: datetime
    does_nothing: bool


class Ledger:
    """What a bank asks of its ledger. This one draws nothing and measures nothing.

    It never breaks a run: what fails in it becomes a note.
    """

    def reach(self, places: int, /) -> int:
        """How many matches a search should find, so that some may compete for `places`."""
        return places

    async def order(self, retrieval: Found, /, *, places: int, recall_id: str, scope: str) -> Found:
        """The `places` matches that are shown, the best first; of each, the lessons that are shown to help come first.

        `recall_id` decides whether one that is less near is tried; with an empty one, none is.
        """
        return retrieval

    async def assign(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """The draws for one recall, in which these lessons were found."""
        return Assignment(probability=dict.fromkeys(lessons, 0.0))

    async def on_outcome(self, *, scope: str) -> Acted:
        """A recall of `scope` was settled: look at the evidence, if it is time to, and do what follows from it."""
        return Acted()

    async def proposals(self, *, scope: str) -> Sequence[Proposal]:
        """Lessons of `scope` that the evidence would retire or make active, and about which nobody has decided yet."""
        return ()

    async def audit(self, count: int, *, scope: str, by: str, reason: str) -> None:
        """Draw about `count` recalls of `scope`, of which only a judge spoke, for a person to label."""

    async def unlabelled(self, *, scope: str) -> Sequence[str]:
        """Ids of recalls that were drawn and wait for a person's label, the oldest first."""
        return ()

    async def met(self, *, scope: str) -> Mapping[str, Met]:
        """By lesson that a task of `scope` ever found: when that was last, and what is known of it."""
        return {}

    async def lift(self, *, scope: str, level: float) -> Lift:
        """What memory changed in `scope` so far. Raises UsageError: nothing was measured."""
        raise UsageError("this bank has no ledger: open it with lessonbank.connect(…) to ask for its lift")

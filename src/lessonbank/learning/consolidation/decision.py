"""Carries one decision through to the store, although others change the bank while it is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Self, TypeVar

from lessonbank.errors import Conflict, NotFound, UsageError
from lessonbank.guard import one_line
from lessonbank.protocols import Consolidator, Decision
from lessonbank.types import Change, Edit, Experience, Trust, Usage

from .append import append

TRIES: Final = 3
"""How often a policy decides about one experience."""

T = TypeVar("T")


class Deciding:
    """A consolidator for one experience, that keeps count of what it cost and what came in its way.

    Between deciding and applying, another process may retire, change or take out what the changes refer to. The store
    then refuses them, and the policy decides again about the bank as it is now. If that happens `TRIES` times, the
    experience is appended, which refers to nothing.
    """

    def __init__(self, policy: Consolidator, /) -> None:
        self._policy = policy
        self.usage = Usage()
        self.notes: tuple[str, ...] = ()

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """What the policy decides."""
        decided = await self._policy(new)
        if any(isinstance(change, Edit) or (isinstance(change, Trust) and change.by == "person") for change in decided):
            raise UsageError("a consolidator cannot speak for a person: to approve and to edit is theirs")
        self.usage += spent(decided)
        return decided

    async def until(self, kept: Callable[[Self], Awaitable[T]], /) -> T:
        """Call `kept` with this, to ask it and to apply what it says, until the store takes it.

        Raises:
            NotFound, Conflict: the store refused even what refers to nothing.
        """
        why = ""
        for _ in range(TRIES):
            try:
                return await kept(self)
            except (Conflict, NotFound) as error:
                why = one_line(str(error), limit=200)
        self._policy = append
        self.notes = (f"added as it is, because the bank changed during each of {TRIES} decisions: {why}",)
        return await kept(self)


def spent(decided: Sequence[Change], /) -> Usage:
    """What the model that decided took, where the consolidator says so."""
    return decided.usage if isinstance(decided, Decision) else Usage()

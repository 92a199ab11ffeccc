"""What a policy draws for one recall: which lessons are left out at random, and with which probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from .records import GroupDraw

Members = Mapping[str, Sequence[str]]
"""The lessons that were found: the id of each, and its groups, the widest first."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What was drawn for one recall, and with which probabilities: all that an unbiased estimate needs later."""

    control: bool = False
    """Whether the whole recall is withheld: this task goes without memory."""
    control_probability: float = 0.0
    withheld: frozenset[str] = frozenset()
    """The lessons left out, each by a draw of its own, independent of all others."""
    probability: Mapping[str, float] = field(default_factory=dict[str, float])
    """By lesson id: the probability with which it was to be left out, fixed before the draw."""
    base_rate: float | None = None
    """The rate that the policy starts from; `None` where nothing is ever withheld."""
    groups: tuple[GroupDraw, ...] = ()
    """The draws for groups."""

    def of_one(self, group: str, /) -> Assignment:
        """Return a lesson's draw as one for `group`, which was drawn for as if it were the only lesson."""
        odds = 1.0 - (1.0 - self.control_probability) * (1.0 - self.probability.get(group, 0.0))
        draw = GroupDraw(group=group, withheld=self.control or group in self.withheld, probability=odds)
        return Assignment(base_rate=self.base_rate, groups=(draw,) if odds > 0.0 else ())


class Withholding(Protocol):
    """Draws for one recall. Must not depend on what becomes of its task; probabilities must be those drawn with."""

    @property
    def base_rate(self) -> float:
        """The rate that it starts from, for people to read."""
        ...

    def __call__(self, lessons: Members, /, *, recall_id: str, task: str, scope: str) -> Assignment:
        """`recall_id` is random, and the same draw must come of the same one: a retry of a task sees the same text."""
        ...

"""Recalls joined with what became of their tasks, as columns: what every estimate is made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .treatments import GROUP_LEVEL as GROUP_LEVEL
from .treatments import LESSON_LEVEL as LESSON_LEVEL
from .treatments import WHOLE_LEVEL as WHOLE_LEVEL

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Placed:
    """Which lesson had a place in which recall, drawn or not. Ordered by `row`."""

    row: Ints
    """The row of the recall in `Episodes`."""
    treatment: Ints
    """Memory as a whole, a group or a lesson, as a position in `Episodes.treatments`."""
    shown: Flags


@dataclass(frozen=True, slots=True)
class Draws(Placed):
    """What each recall tells of each treatment that it could withhold (see `treatments.entries`). Ordered by `row`."""

    chance: Floats
    """The probability of being shown, fixed before the draw; between 0 and 1."""


@dataclass(frozen=True)  # no slots: what follows from the columns is computed once
class Episodes:
    """One row per recall that had something to show, in the order in which the recalls were made.

    `nan` stands for unknown everywhere.
    """

    outcome: Floats
    """From 0 to 1: 1 success, 0 failure, a reward, or the mean of several runs; by the truth where it is known, else
    the judge."""
    true: Flags
    """Whether `outcome` is the truth (told by the caller, a person or the framework) rather than a judge's opinion."""
    cluster: Ints
    """Tasks that are not independent of one another share a number: those of one template, or equal tasks."""
    steps: Floats
    tokens: Floats
    cost: Floats
    """US dollars."""
    seconds: Floats
    draws: Draws
    placed: Placed
    treatments: tuple[str, ...]
    """Memory as a whole first; groups and lessons as they came."""
    level: Ints
    """By treatment: 0 the whole, 1 a group, 2 a lesson."""
    turn: Ints
    """By treatment: how many of its level came before it. A treatment whose evidence starts again comes again."""
    parents: tuple[tuple[int, ...], ...]
    """By treatment: the groups of a lesson when it was recalled last, the widest first."""
    broke: Flags
    """Whether the framework saw it fail: the truth, which nobody chose to tell."""
    at: Floats
    """When the recall was made, in seconds since 1970."""
    writer: Ints
    """Who told the outcome, as a position in `writers`; -1 where it is unknown."""
    writers: tuple[str, ...]
    judged: Floats
    """What a judge said, where one was asked, whatever the truth turned out to be."""
    audit_odds: Floats
    """With which odds an audit asked for the truth; `nan` where none did."""
    audited: Flags
    """Whether an audit drew it, so that chance chose it."""
    another_task: int
    """Recalls that a run of another task settled."""
    waiting: Flags
    """Whether it does not count yet, because its outcome or that of an earlier recall is still waited for."""
    model: Ints
    """On which model the agent ran, as a position in `models`; -1 where nobody said."""
    models: tuple[str, ...]
    again: Flags
    """Whether it was made in the middle of a run."""

    def __len__(self) -> int:
        return len(self.outcome)

    @cached_property
    def known(self) -> Flags:
        """Which rows have an outcome that counts."""
        return ~np.isnan(self.outcome) & ~self.waiting

    @cached_property
    def missing(self) -> Flags:
        """Which rows have no outcome although they should have one by now."""
        return np.isnan(self.outcome) & ~self.waiting

    @cached_property
    def without(self) -> Flags:
        """Which rows draws left without any lesson, as memory as a whole counts it: also where each went alone."""
        without = np.zeros(len(self), np.bool_)
        without[self.draws.row[(self.draws.treatment == 0) & ~self.draws.shown]] = True
        return without

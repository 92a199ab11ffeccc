"""What comes up, task by task, decided before anything is drawn: lessons, their groups, and what each really does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]
Together = Literal["sum", "share", "any"]
NOBODY = -1


@dataclass(frozen=True, slots=True)
class Planted:
    """A lesson of a stream."""

    id: str
    groups: tuple[str, ...] = ()
    """Outermost first, as on a receipt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinions:
    """A judge who errs, and how often the truth is told besides."""

    success: float = 0.9
    """The probability of calling a successful run a success."""
    failure: float = 0.1
    """The probability of calling a failed run one."""
    bare_success: float | None = None
    """The same where the agent was shown nothing; `None`: no different."""
    bare_failure: float | None = None
    told: float = 0.0
    """The share of recalls for which the truth is told too, drawn at random."""

    def likely(self, *, success: bool, bare: bool) -> float:
        """With which probability the judge calls the run a success."""
        usual, without = (self.success, self.bare_success) if success else (self.failure, self.bare_failure)
        return usual if without is None or not bare else without


@dataclass(frozen=True, eq=False, kw_only=True)
class Stream:
    """T tasks and N lessons. Nothing here depends on what is shown, so two policies meet the same tasks and luck."""

    lessons: tuple[Planted, ...]
    found: Ints
    """The lessons that a search finds for each task, best first, shape (T, m); -1 where there are no more."""
    shown: int = 3
    """How many of them have a place."""
    base: Floats
    """Success rate without memory, shape (T,)."""
    effect: Floats
    """What each lesson adds to the success rate, for each kind of task, shape (kinds, N)."""
    kind: Ints
    """Of each task, shape (T,)."""
    template: Ints
    """Of each task, shape (T,)."""
    luck: Floats
    """A task succeeds if this is below its chance; the other columns are for a judge, audits, silence. Shape (T, 4)."""
    together: Together = "sum"
    """How lessons add up. `sum`: effects add. `share`: of the effect of the lessons that have a place, the share that
    is shown. `any`: the largest effect among those shown, however many there are."""
    judge: Opinions | None = None
    """`None`: the truth is told of every run."""
    hangs: Floats = field(default_factory=lambda: np.empty(0))
    """With which probability a lesson that is shown makes a run hang: it fails, and nobody says so. Shape (N,)."""
    silence: tuple[float, float] = (0.0, 0.0)
    """Outcomes that are never told: the probability after a failure and after a success."""
    bounds: tuple[float, float] = (0.02, 0.98)

    def __len__(self) -> int:
        return len(self.base)

    @cached_property
    def _found(self) -> list[list[int]]:
        """As lists: one task at a time, they are quicker than arrays."""
        return self.found.tolist()

    @cached_property
    def _base(self) -> list[float]:
        return self.base.tolist()

    @cached_property
    def _adds(self) -> list[list[float]]:
        return self.effect.tolist()

    @cached_property
    def _kind(self) -> list[int]:
        return self.kind.tolist()

    @cached_property
    def lucks(self) -> list[list[float]]:
        """`luck` as lists."""
        return self.luck.tolist()

    @cached_property
    def templates(self) -> list[str]:
        """Of each task, by name."""
        return [f"{number}" for number in self.template.tolist()]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each lesson by its id."""
        return {lesson.id: number for number, lesson in enumerate(self.lessons)}

    def placed(self, task: int, out: Collection[int] = (), /) -> list[int]:
        """The lessons that have a place in the recall for a task, where those that are `out` are not found."""
        return [n for n in self._found[task] if n != NOBODY and n not in out][: self.shown]

    def chance(self, task: int, placed: Sequence[int], shown: Sequence[int], /) -> float:
        """The probability of success. A run that hangs is a failure."""
        low, high = self.bounds
        likely = self._base[task] + (self._together(self._adds[self._kind[task]], placed, shown) if shown else 0.0)
        return min(max(likely, low), high) * self.goes_on(shown)

    def _together(self, adds: Sequence[float], placed: Sequence[int], shown: Sequence[int]) -> float:
        told = [adds[n] for n in shown]
        if self.together == "any":
            return max(told, key=abs)
        return sum(told) / (len(placed) if self.together == "share" else 1)

    def goes_on(self, shown: Sequence[int], /) -> float:
        """The probability that a run does not hang."""
        return prod(1.0 - float(self.hangs[n]) for n in shown) if len(self.hangs) else 1.0

    def hung(self, task: int, shown: Sequence[int], /) -> bool:
        """Whether the run hangs."""
        return len(self.hangs) > 0 and self.lucks[task][3] >= self.goes_on(shown)

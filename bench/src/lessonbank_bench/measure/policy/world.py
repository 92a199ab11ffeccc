"""What a simulated bank meets: tasks, the lessons that a search finds, and what becomes of each task.

Nothing here imports lessonbank. A world decides from its own random numbers, so that two policies meet the same luck.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

SOURCE = "source/strategy/told/model"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A lesson that the search found."""

    id: str
    near: float = 1.0
    """How near it is, 0 to 1."""
    groups: tuple[str, ...] = (SOURCE,)


@dataclass(frozen=True, slots=True)
class Ask:
    """One call for memory."""

    task: str
    candidates: tuple[Candidate, ...]
    """The nearest first; there may be more than have a place."""
    places: int = 3
    other_process: bool = False
    """Whether a second process asks, which has a policy of its own."""


@dataclass(frozen=True, slots=True)
class Told:
    """An outcome that somebody tells."""

    ask: int
    """Of which call for memory, counted from 0."""
    value: float
    """The reward, 0 to 1."""
    after: float = 0.0
    """So many calls later."""
    runs: int = 1
    source: str = "ground_truth"
    model: str = ""
    template: str | None = None


@dataclass(frozen=True, slots=True)
class End:
    """What became of a call for memory."""

    chance: float
    """The expected reward with what was shown."""
    bare: float
    """The expected reward if nothing had been shown."""
    told: Sequence[Told] = ()


@dataclass
class World:
    """A bank of `effects` lessons, of which each task finds three at random. Other worlds change one method."""

    seed: int
    tasks: int = 1000
    effects: Sequence[float] = (0.0,)
    """What each lesson adds to the chance of success."""
    base: float = 0.5
    found: int = 3
    topics: int = 1
    low: float = 0.02
    high: float = 0.98
    looks: bool = False
    """Whether somebody asks for the lift every 40 tasks, too."""
    at: int = 0
    """How many calls for memory there were."""
    luck: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.luck = random.Random(f"{type(self).__name__}-{self.seed}")
        self.start()

    def start(self) -> None:
        """Prepare what a world needs."""

    def ask(self) -> Ask:
        """The next call for memory."""
        return Ask(self.task(), self.candidates(), self.found)

    def task(self) -> str:
        """Its words."""
        return f"cancel order {self.at}"

    def candidates(self) -> tuple[Candidate, ...]:
        """What the search finds for it."""
        some = self.luck.sample(range(len(self.effects)), min(self.found, len(self.effects)))
        return tuple(Candidate(f"l{n}", 1.0, self.groups(n)) for n in some)

    def groups(self, lesson: int) -> tuple[str, ...]:
        """The groups of a lesson, the widest first."""
        return (SOURCE, f"topic/{lesson % self.topics}")

    def hardness(self) -> float:
        """The chance of success without memory."""
        return self.base

    def adds(self, shown: Sequence[str]) -> float:
        """What the lessons that are shown add."""
        return sum(self.effects[int(id[1:])] for id in shown)

    def end(self, shown: Sequence[str]) -> End:
        """What becomes of the task."""
        bare = self.hardness()
        chance = min(max(bare + self.adds(shown), self.low), self.high)
        value = float(self.luck.random() < chance)
        return End(chance, bare, tuple(self.told(value, shown)))

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """Who says what of it, and when."""
        return (Told(self.at, value),)

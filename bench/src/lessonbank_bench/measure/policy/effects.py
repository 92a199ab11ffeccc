"""Worlds in which lessons help and harm: what a policy has to find, and what it may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .world import SOURCE, Candidate, World


@dataclass
class Six(World):
    """+25, +15, -20 and three that do nothing; each task finds three of them at random."""

    tasks: int = 3000
    effects: Sequence[float] = (0.25, 0.15, -0.20, 0.0, 0.0, 0.0)
    base: float = 0.4


@dataclass
class Turning(World):
    """A lesson that adds 25 points for 1,000 tasks and then takes 25 away, among six; each task finds three."""

    tasks: int = 4500
    effects: Sequence[float] = (0.25, 0.0, 0.0, 0.0, 0.0, 0.0)
    turn: int = 1000

    def adds(self, shown: Sequence[str]) -> float:
        """The other way from the turn on."""
        return World.adds(self, shown) * (1 if self.at < self.turn else -1)


@dataclass
class Poisoned(World):
    """30 lessons in five topics, four have a place: nine take 15 points away, six add 15.

    The six of a topic are found for each task of it, in an order and at distances that differ from task to task.
    """

    tasks: int = 3000
    effects: Sequence[float] = (-0.15,) * 9 + (0.15,) * 6 + (0.0,) * 15
    found: int = 4

    def start(self) -> None:
        """Topics by chance, some hard and some frequent."""
        homes = [n % 5 for n in range(30)]
        self.luck.shuffle(homes)
        self.home = homes
        self.hard = [self.luck.uniform(0.25, 0.75) for _ in range(5)]
        self.share = [self.luck.gammavariate(2.0, 1.0) for _ in range(5)]

    def groups(self, lesson: int) -> tuple[str, ...]:
        """One of two sources, and its topic."""
        kind = "strategy" if lesson % 2 else "guardrail"
        return (f"source/{kind}/told/model", f"topic/{self.home[lesson]}")

    def candidates(self) -> tuple[Candidate, ...]:
        """Those of the topic."""
        (self.topic,) = self.luck.choices(range(5), self.share)
        own = [n for n in range(30) if self.home[n] == self.topic]
        near = sorted((self.luck.uniform(0.5, 1.0) for _ in own), reverse=True)
        order = self.luck.sample(own, len(own))
        return tuple(Candidate(f"l{n}", far, self.groups(n)) for n, far in zip(order, near, strict=True))

    def hardness(self) -> float:
        """By topic."""
        return self.hard[self.topic]


@dataclass
class PoisonedFour(Poisoned):
    """The same, and a search finds four of the topic's six: nothing competes for a place."""

    def candidates(self) -> tuple[Candidate, ...]:
        """The four nearest."""
        return super().candidates()[:4]


@dataclass
class FirstTasks(World):
    """Every task finds the lessons of one topic, which add 50 points, however many are shown."""

    tasks: int = 250
    effects: Sequence[float] = (0.5,) * 2
    base: float = 0.3

    def adds(self, shown: Sequence[str]) -> float:
        """Any of them is enough."""
        return max((self.effects[int(id[1:])] for id in shown), default=0.0)


@dataclass
class FirstTasksOne(FirstTasks):
    """The same with one lesson."""

    effects: Sequence[float] = (0.5,)


@dataclass
class FirstTasksThree(FirstTasks):
    """The same with three lessons."""

    effects: Sequence[float] = (0.5,) * 3


@dataclass
class Nearer(World):
    """One place. The nearest lesson takes 40 points away, one that is a little less near adds 40."""

    tasks: int = 300
    effects: Sequence[float] = (-0.4, 0.4)
    found: int = 1
    gap: float = 0.9
    """How near the good one is, of the other."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Always both, the harmful one first."""
        own = (SOURCE, "topic/0")
        return Candidate("l0", 0.8, own), Candidate("l1", 0.8 * self.gap, own)


@dataclass
class NearerOfFour(Nearer):
    """One place and four lessons: the nearest harms, the others in random order are +40 and twice nothing."""

    effects: Sequence[float] = (-0.4, 0.4, 0.0, 0.0)

    def start(self) -> None:
        """Which is how near stays."""
        self.order = self.luck.sample([1, 2, 3], 3)

    def candidates(self) -> tuple[Candidate, ...]:
        """The harmful one first."""
        own = (SOURCE, "topic/0")
        rest = (Candidate(f"l{n}", 0.8 - 0.03 * k, own) for k, n in enumerate(self.order, 1))
        return Candidate("l0", 0.8, own), *rest


@dataclass
class NearIsGood(World):
    """One place, many lessons that each come up seldom: the nearest adds 20 points, the next one 16, and so on.

    No lesson comes up often enough for evidence, so that nearness is all there is to go by.
    """

    tasks: int = 1000
    effects: Sequence[float] = (0.2, 0.16, 0.12, 0.08)
    found: int = 1

    def candidates(self) -> tuple[Candidate, ...]:
        """Four of a large bank, each a tenth less near than the one before."""
        first = 4 * self.luck.randrange(400)
        own = (SOURCE, f"topic/{first // 40}")
        return tuple(Candidate(f"l{first + n}", 0.9**n, own) for n in range(4))

    def adds(self, shown: Sequence[str]) -> float:
        """By nearness."""
        return sum(self.effects[int(id[1:]) % 4] for id in shown)


@dataclass
class NearIsGoodThree(NearIsGood):
    """The same with three places."""

    found: int = 3
    effects: Sequence[float] = (0.1, 0.08, 0.06, 0.04)


@dataclass
class SixOpen(Six):
    """The six lessons again; all six are found for each task, and three have a place."""

    def candidates(self) -> tuple[Candidate, ...]:
        """All of them, in an order of their own for each task."""
        some = self.luck.sample(range(6), 6)
        return tuple(Candidate(f"l{n}", 1 - 0.05 * k, self.groups(n)) for k, n in enumerate(some))

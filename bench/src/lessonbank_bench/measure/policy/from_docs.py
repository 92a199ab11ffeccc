"""Worlds that follow what the guides say of users' banks: support desks, teams, nightly batches, changes of model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .effects import FirstTasks
from .nulls import Alike
from .world import SOURCE, Candidate, Told, World


@dataclass
class SameTasks(Alike):
    """Twelve tasks that come again word by word, and that the agent can always do or never (almost)."""

    def start(self) -> None:
        """Which tasks it can do."""
        self.can = [0.95 if n % 2 else 0.05 for n in range(12)]

    def task(self) -> str:
        """One of twelve."""
        self.which = self.luck.randrange(12)
        return f"export report {chr(97 + self.which)}"

    def hardness(self) -> float:
        """Of this task."""
        return self.can[self.which]


@dataclass
class NewModel(Alike):
    """The agent moves to a better model for good, after half of the tasks."""

    def hardness(self) -> float:
        """By model."""
        return 0.35 if self.at < self.tasks / 2 else 0.8

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """The model is named."""
        return (Told(self.at, value, model="small" if self.at < self.tasks / 2 else "large"),)


@dataclass
class NightlyBatch(Alike):
    """Outcomes are told in a batch after every hundredth task."""

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """At the end of the day."""
        return (Told(self.at, value, after=float(99 - self.at % 100)),)


@dataclass
class EasyThenHard(Alike):
    """A queue that is sorted: easy tasks first, hard ones last."""

    def hardness(self) -> float:
        """It falls all the time."""
        return 0.9 - 0.8 * self.at / self.tasks


@dataclass
class OfficeHours(Alike):
    """Success follows the hour, and so do the topics."""

    topics: int = 4

    def candidates(self) -> tuple[Candidate, ...]:
        """Two lessons of the hour's topic."""
        self.hour = self.at // 10 % 24
        topic = self.hour // 6
        return tuple(Candidate(f"l{n}", 1.0, self.groups(n)) for n in (topic, topic + 4))

    def hardness(self) -> float:
        """Best at noon."""
        return 0.5 - 0.4 * math.cos(self.hour / 12 * math.pi)


@dataclass
class ThreeTasksEach(Alike):
    """Lessons that hardly any task finds: each is found for about three tasks."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Three of many."""
        some = self.luck.sample(range(800), 3)
        return tuple(Candidate(f"l{n}", 1.0, (SOURCE, f"topic/{n % 40}")) for n in some)

    def adds(self, shown: Sequence[str]) -> float:
        """Nothing."""
        return 0.0


@dataclass
class FiveRuns(Alike):
    """Some tasks are done five times under one recall, and settled by their share."""

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """Of each third task the share of five runs."""
        if self.at % 3:
            return (Told(self.at, value),)
        share = (value + sum(self.luck.random() < 0.5 for _ in range(4))) / 5
        return (Told(self.at, share, runs=5),)


@dataclass
class StaleShop(World):
    """A lesson that helps by 30 points until the shop changes, and does nothing from then on."""

    tasks: int = 2000
    effects: Sequence[float] = (0.3, 0.0, 0.0, 0.0)

    def adds(self, shown: Sequence[str]) -> float:
        """Half of the time."""
        return super().adds(shown) if self.at < 1000 else 0.0


@dataclass
class OneBadOfTen(World):
    """One lesson of ten takes 25 points away; a task finds three of them."""

    tasks: int = 3000
    effects: Sequence[float] = (0.0, 0.0, -0.25) + (0.0,) * 7


@dataclass
class TeamBank(World):
    """Twelve lessons in four topics, each worth ten points on the tasks of its topic."""

    tasks: int = 2000
    effects: Sequence[float] = (0.1,) * 12
    topics: int = 4
    base: float = 0.45

    def candidates(self) -> tuple[Candidate, ...]:
        """The three of one topic."""
        topic = self.luck.randrange(4)
        return tuple(Candidate(f"l{n}", 1.0, self.groups(n)) for n in range(topic, 12, 4))


@dataclass
class BadSource(World):
    """Guardrails of a judge take 15 points away each, strategies add 10; a task finds two of each."""

    tasks: int = 2000
    effects: Sequence[float] = (0.1, -0.15) * 6

    def groups(self, lesson: int) -> tuple[str, ...]:
        """By kind, and one of three topics."""
        kind = "guardrail/judged" if lesson % 2 else "strategy/told"
        return (f"source/{kind}/model", f"topic/{lesson // 4}")

    def candidates(self) -> tuple[Candidate, ...]:
        """The four of one topic."""
        topic = self.luck.randrange(3)
        return tuple(Candidate(f"l{n}", 1.0, self.groups(n)) for n in range(4 * topic, 4 * topic + 4))


@dataclass
class FirstDay(FirstTasks):
    """A bank that begins empty and keeps a lesson of every task, until there are ten. Any of them adds 50 points."""

    effects: Sequence[float] = (0.5,) * 10

    def candidates(self) -> tuple[Candidate, ...]:
        """The three newest."""
        newest = range(min(self.at, 10))[-3:]
        return tuple(Candidate(f"l{n}", 1.0 - 0.05 * k, (SOURCE, "topic/0")) for k, n in enumerate(reversed(newest)))


@dataclass
class FirstDayNothing(FirstDay):
    """The same, and no lesson does anything."""

    effects: Sequence[float] = (0.0,) * 10


@dataclass
class Rules(World):
    """A nearer lesson that is wrong, and the right one just behind it, on each of three topics; one place."""

    tasks: int = 900
    effects: Sequence[float] = (-0.3, 0.3) * 3
    found: int = 1

    def candidates(self) -> tuple[Candidate, ...]:
        """Both of one topic."""
        topic = self.luck.randrange(3)
        own = (SOURCE, f"topic/{topic}")
        return Candidate(f"l{2 * topic}", 0.7, own), Candidate(f"l{2 * topic + 1}", 0.65, own)

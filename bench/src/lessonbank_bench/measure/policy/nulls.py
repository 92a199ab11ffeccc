"""Worlds in which no lesson does anything: every "helps" and every "harms" in them is false."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .world import SOURCE, Ask, Candidate, End, Told, World


@dataclass
class Alike(World):
    """Eight lessons on one topic; all tasks are alike."""

    tasks: int = 800
    effects: Sequence[float] = (0.0,) * 8
    looks: bool = True


@dataclass
class Drift(Alike):
    """Five topics of different hardness, with seasons and a slow drift."""

    effects: Sequence[float] = (0.0,) * 15
    topics: int = 5

    def candidates(self) -> tuple[Candidate, ...]:
        """All lessons of one topic."""
        self.topic = self.luck.randrange(self.topics)
        return tuple(Candidate(f"l{n}", 1.0, self.groups(n)) for n in range(self.topic, 15, 5))

    def hardness(self) -> float:
        """By topic, season and time."""
        season = 0.15 * math.sin(self.at / 40) + 0.2 * self.at / self.tasks
        return min(max(0.2 + 0.12 * self.topic + season, 0.02), 0.98)


@dataclass
class OneUser(Alike):
    """One user in four has hard tasks only, and lessons of its own."""

    def candidates(self) -> tuple[Candidate, ...]:
        """The user's own lessons."""
        self.hard = self.luck.random() < 0.25
        own = (0, 1) if self.hard else (2, 3, 4, 5, 6, 7)
        return tuple(Candidate(f"l{n}", 1.0, self.groups(n)) for n in self.luck.sample(own, 2))

    def hardness(self) -> float:
        """A hard task mostly fails."""
        return 0.1 if self.hard else 0.7


@dataclass
class Autocorrelated(Alike):
    """A good day follows a good day: long runs of success and of failure."""

    def start(self) -> None:
        """Begin with a good day."""
        self.good = True

    def hardness(self) -> float:
        """Days last 25 tasks on average."""
        self.good = self.good != (self.luck.random() < 0.04)
        return 0.85 if self.good else 0.15


@dataclass
class Untold(Alike):
    """40 % of failures and 5 % of successes are never told."""

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """Mostly successes."""
        return () if self.luck.random() < (0.05 if value else 0.4) else (Told(self.at, value),)


@dataclass
class Corrected(Alike):
    """15 % of outcomes are told wrong first, and corrected 30 tasks later."""

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """Wrong, then right."""
        if self.luck.random() > 0.15:
            return (Told(self.at, value),)
        return Told(self.at, 1 - value), Told(self.at, value, after=30)


@dataclass
class ThreeRuns(Alike):
    """Three runs under each recall, settled once by their share."""

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """The share of three."""
        more = value + (self.luck.random() < 0.5) + (self.luck.random() < 0.5)
        return (Told(self.at, more / 3, runs=3),)


@dataclass
class Retries(Alike):
    """A task that failed is tried again with memory asked anew, up to three times; every try is told."""

    only_last: bool = False

    def start(self) -> None:
        """The first task."""
        self.name, self.number, self.tries = 0.5, 0, 0

    def task(self) -> str:
        """The same while it is tried again."""
        if not self.tries:
            self.name, self.number = self.luck.uniform(0.1, 0.9), self.number + 1
        return f"cancel order {self.number}"

    def hardness(self) -> float:
        """Of this task."""
        return self.name

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """Each try, or only the last."""
        self.tries = 0 if value or self.tries == 2 else self.tries + 1
        return () if self.tries and self.only_last else (Told(self.at, value),)


@dataclass
class LastTry(Retries):
    """The same, and only the last try is told."""

    only_last: bool = True


@dataclass
class AskAgain(Alike):
    """The agent asks again when it got nothing, and tells the last recall only."""

    def start(self) -> None:
        """The first task."""
        self.again = self.number = 0

    def task(self) -> str:
        """The same when it asks again."""
        self.number += not self.again
        return f"cancel order {self.number}"

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """Nothing of a recall that was empty."""
        self.again = 0 if shown or self.again == 2 else self.again + 1
        return () if self.again else (Told(self.at, value),)


@dataclass
class TemplateAfter(Alike):
    """The template is named after the outcome is known."""

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """A template for failures."""
        return (Told(self.at, value, template="good" if value else "bad"),)


@dataclass
class TwoModels(Alike):
    """A strong model by day and a weak one by night, 60 tasks each."""

    def hardness(self) -> float:
        """By model."""
        return 0.75 if self.at // 60 % 2 else 0.3

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """The model is named."""
        return (Told(self.at, value, model="strong" if self.at // 60 % 2 else "weak"),)


@dataclass
class BiggerAfterFailure(Alike):
    """After a failure the next task gets a bigger model."""

    def start(self) -> None:
        """With the small model."""
        self.big = False

    def hardness(self) -> float:
        """By model."""
        return 0.8 if self.big else 0.4

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """The model is named."""
        name, self.big = ("big" if self.big else "small"), not value
        return (Told(self.at, value, model=name),)


@dataclass
class TwoProcesses(Alike):
    """Two processes with policies of their own, by turns of 30 tasks."""

    def ask(self) -> Ask:
        """By one of them."""
        return Ask(self.task(), self.candidates(), self.found, other_process=self.at // 30 % 2 == 1)

    def hardness(self) -> float:
        """They have other tasks."""
        return 0.75 if self.at // 30 % 2 else 0.35


@dataclass
class Broken(Alike):
    """Failures come as errors of the framework; of successes only 30 % are told."""

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """All failures."""
        if not value:
            return (Told(self.at, value, source="framework_error"),)
        return (Told(self.at, value),) if self.luck.random() < 0.3 else ()


@dataclass
class Growing(Alike):
    """A lesson more after each task, in 25 topics."""

    def start(self) -> None:
        """One lesson in each topic."""
        self.known = [[n] for n in range(25)]
        self.count = 25

    def candidates(self) -> tuple[Candidate, ...]:
        """Three of the topic's."""
        topic = self.luck.randrange(25)
        some = self.luck.sample(self.known[topic], min(3, len(self.known[topic])))
        self.known[topic].append(self.count)
        self.count += 1
        return tuple(Candidate(f"l{n}", 1.0, (SOURCE, f"topic/{topic}")) for n in some)

    def adds(self, shown: Sequence[str]) -> float:
        """Nothing."""
        return 0.0


@dataclass
class Late(Alike):
    """Failures are told late, and sooner where something was shown: runs with memory are shorter."""

    mean: float = 120.0
    late: float = 0.0
    """Which outcome is late: 0 failures, 1 successes."""
    halved: bool = True

    def told(self, value: float, shown: Sequence[str]) -> Sequence[Told]:
        """One of the two outcomes late."""
        mean = self.mean * (0.4 if self.halved and shown else 1.0)
        return (Told(self.at, value, after=self.luck.expovariate(1 / mean) if value == self.late else 0.0),)


@dataclass
class Graded(Alike):
    """Rewards between 0 and 1."""

    def end(self, shown: Sequence[str]) -> End:
        """A reward around a half."""
        value = min(max(self.luck.gauss(0.5, 0.25), 0.0), 1.0)
        return End(0.5, 0.5, (Told(self.at, value),))


@dataclass
class OneTopicOne(Alike):
    """One lesson, which every task finds."""

    effects: Sequence[float] = (0.0,)


@dataclass
class OneTopicTwo(Alike):
    """Two lessons on one topic, which every task finds."""

    effects: Sequence[float] = (0.0,) * 2


@dataclass
class OneTopicThree(Alike):
    """Three lessons on one topic, which every task finds."""

    effects: Sequence[float] = (0.0,) * 3


@dataclass
class NearnessOnly(Alike):
    """Ten lessons that compete for two places."""

    found: int = 2

    def candidates(self) -> tuple[Candidate, ...]:
        """All, by nearness."""
        near = sorted((self.luck.uniform(0.5, 1.0) for _ in range(8)), reverse=True)
        some = self.luck.sample(range(8), 8)
        return tuple(Candidate(f"l{n}", far, (SOURCE, "topic/0")) for n, far in zip(some, near, strict=True))

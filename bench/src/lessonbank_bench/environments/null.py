"""An environment in which nothing happens, so that what an experiment takes is the runner's own cost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Step, Trajectory
from lessonbank.errors import ModelError
from lessonbank_bench.arms import Memory, NoMemory

from .interface import Finished, Job, Settings
from .settings import refuse_others


class NullEnvironment:
    """Tasks that succeed by chance, two of five, in runs of eight steps that are there already."""

    name = "null"
    version = "null"

    def __init__(
        self, model: LanguageModel | None = None, settings: Settings | None = None, /, *, steps: int = 8
    ) -> None:
        refuse_others(self.name, settings, ())
        self.memories = _Nothing()
        self._steps = tuple(Step(action=f"press {n}", observation="Nothing happened.") for n in range(steps))

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """`n` tasks of seven families."""
        return [
            Job(f"null/{seed}/{place}", seed, f"task {place}", f"family {place % 7}", "", None) for place in range(n)
        ]

    def agent(self, seed: int, /, *, anew: bool) -> int:
        """A number."""
        return seed + anew

    def attempt(self, task: Job, agent: int, memory: str, /) -> Finished:
        """Drawn from the task and the agent."""
        success = random.Random(f"{task.id} {agent}").random() < 0.4
        return Finished(Trajectory(task=task.goal, steps=self._steps), success)

    def close(self) -> None:
        """Nothing is open."""


class _Nothing:
    """Nobody remembers anything, whatever the arm's name."""

    live = True
    failure: ModelError | None = None

    def make(self, name: str, seed: int, /, *, limit: int, answers: Path | None = None) -> Memory:
        return NoMemory()

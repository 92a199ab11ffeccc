"""What stands in for memory in a comparison: the bank itself, parts of it, and the controls it must beat."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import lessonbank
from lessonbank.protocols import LanguageModel
from lessonbank.types import Learned, Recall, Trajectory

from .desk import Task, World

PATIENCE = 600.0
"""Seconds allowed for one answer: a model in an experiment may be slow, or a person."""
ArmName = Literal["none", "random", "shuffled", "success-only", "lessonbank", "oracle"]


class Memory(Protocol):
    """Gives text for a task and is told how the task went."""

    def recall(self, task: Task, /) -> str:
        """The text the agent will see."""
        ...

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        """Take in a finished run; `None` as `success` leaves the verdict to the memory's own judge."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Setting:
    """What an arm may know. Only the oracle looks at the world."""

    world: World
    limit: int
    seed: int
    model: LanguageModel | None = None


class NoMemory:
    """Never says anything."""

    def recall(self, task: Task, /) -> str:
        return ""

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        return None

    def close(self) -> None:
        return


class OracleMemory(NoMemory):
    """Knows the form: what a perfect memory would say."""

    def __init__(self, world: World, /) -> None:
        self._world = world

    def recall(self, task: Task, /) -> str:
        form = self._world.form(task)
        first, second = form.order
        return f"For the task: {task.goal}\nStep 2: `{first}`; step 3: `{second}`; step 4: `{form.choice}`."


class BankMemory:
    """The whole public loop: what is retrieved is shown, and what was done is learned with the verdict alone."""

    def __init__(self, setting: Setting, /, *, failures: bool = True) -> None:
        scope = f"desk/{setting.world.seed}"
        self._bank = lessonbank.connect(
            ":memory:", scope=scope, model=setting.model, embedder="lexical", holdout=None, timeout=PATIENCE
        )
        self._limit = setting.limit
        self._failures = failures
        self._recall: Recall | None = None

    def recall(self, task: Task, /) -> str:
        self._recall = self._bank.retrieve(task.goal, limit=self._limit)
        return self._recall.text

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        if success is False and not self._failures:
            return None
        outcome = None if success is None else "success" if success else "failure"
        return self._bank.learn(run, recall=self._recall, outcome=outcome)

    def close(self) -> None:
        self._bank.close()


class ShuffledMemory(BankMemory):
    """The bank's text with its words in random order: the same tokens, no sense."""

    def __init__(self, setting: Setting, /) -> None:
        super().__init__(setting)
        self._draw = random.Random(f"shuffled {setting.seed}")

    def recall(self, task: Task, /) -> str:
        words = super().recall(task).split()
        self._draw.shuffle(words)
        return " ".join(words)


class RandomMemory(BankMemory):
    """As many experiences as the bank would show, drawn at random from those it holds."""

    def __init__(self, setting: Setting, /) -> None:
        super().__init__(setting)
        self._draw = random.Random(f"random {setting.seed}")
        self._tasks: list[str] = []

    def recall(self, task: Task, /) -> str:
        drawn = self._draw.sample(self._tasks, min(self._limit, len(self._tasks)))
        return "\n\n".join(self._bank.retrieve(goal, limit=1).text for goal in drawn)

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        self._tasks.append(run.task)
        return super().learn(run, success=success)


ARMS: Mapping[ArmName, Callable[[Setting], Memory]] = {
    "none": lambda setting: NoMemory(),
    "random": RandomMemory,
    "shuffled": ShuffledMemory,
    "success-only": lambda setting: BankMemory(setting, failures=False),
    "lessonbank": BankMemory,
    "oracle": lambda setting: OracleMemory(setting.world),
}

"""The closed world of the demo as an environment: synthetic, with a scripted agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.demo import attempt, desk
from lessonbank.demo.agents import READER_VERSION, Agent, ScriptedAgent

from .interface import ANEW, Finished, Job, Settings
from .llm_player import LLMAgent
from .memories import ArmMemories
from .settings import refuse_others


class DeskEnvironment:
    """Five sites, eight operations, hidden conventions; see `lessonbank.demo.desk`."""

    name = "desk"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, ())
        self._model = model
        self.version = f"desk, {player(model)}"
        self.memories = ArmMemories(self.name, model, truth=truth)

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """`n` tasks; there are always more."""
        return [job(self.name, seed, place, task) for place, task in enumerate(desk.stream(seed, n))]

    def agent(self, seed: int, /, *, anew: bool) -> Agent:
        """The model, or the scripted agent."""
        return agent_of(self._model, seed, anew=anew)

    def attempt(self, task: Job, agent: Agent, memory: str, /) -> Finished:
        """Pure Python: about a millisecond."""
        return Finished(*attempt(desk.world(task.seed), cast("desk.Task", task.content), agent, memory))

    def close(self) -> None:
        """Nothing is open."""


def job(name: str, seed: int, place: int, task: desk.Task, /) -> Job:
    """A task of the world as a task of an experiment."""
    return Job(f"{name}/{seed}/{place}", seed, task.goal, f"{task.site}: {task.operation}", task.vendor, task)


def player(model: LanguageModel | None, /) -> str:
    """Who acts, for an environment's version."""
    return f"agent {model.name}" if model else f"scripted agent {READER_VERSION}"


def agent_of(model: LanguageModel | None, seed: int, /, *, anew: bool) -> Agent:
    """The model, or the scripted agent."""
    if model is not None:
        return LLMAgent(model)
    return ScriptedAgent(seed + ANEW if anew else seed)


def truth(seed: int, goal: str, /) -> str:
    """What a perfect memory would say for a goal of a seed's world."""
    return desk.truth(desk.world(seed), goal)

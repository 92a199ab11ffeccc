"""Plays a stream of tasks with a memory, one after the other: what is learned from a task is there for the next."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from lessonbank.contracts.records import Learned, Step, Trajectory

from .agents import Agent, ScriptedAgent
from .desk import SUBMIT, Desk, Task, View, World, stream, world
from .memory import Memory


@dataclass(frozen=True, slots=True)
class Episode:
    """One task played: what the agent was shown, what it did, how it went, what was learned."""

    task: Task
    memory: str
    run: Trajectory
    success: bool
    """What the verifier says."""
    learned: Learned | None

    @property
    def presses(self) -> int:
        """Controls pressed."""
        return len(self.run.steps) - 1


def play(
    memory: Memory,
    seed: int,
    /,
    *,
    tasks: int = 80,
    agent: Agent | None = None,
    judged: bool = False,
    wrong_verdicts: float = 0.0,
) -> Iterator[Episode]:
    """Play world `seed` with `memory`, yielding episodes as they end. The memory is closed afterwards.

    Args:
        memory: what is asked before a task and told about it afterwards.
        seed: the world, its stream of tasks and the scripted agent's order of trying.
        tasks: length of the stream.
        agent: who plays; a `ScriptedAgent` by default.
        judged: leave the verdict to the memory's judge, instead of telling it the verifier's.
        wrong_verdicts: the share of verdicts told wrongly, to see what judge errors cost.
    """
    place, player = world(seed), agent or ScriptedAgent(seed)
    error = random.Random(f"verdicts {seed}")
    try:
        for task in stream(seed, tasks):
            text = memory.recall(task.goal)
            run, success = attempt(place, task, player, text)
            verdict = success != (error.random() < wrong_verdicts)
            learned = memory.learn(run, success=None if judged else verdict)
            yield Episode(task, text, run, success, learned)
    finally:
        memory.close()


def attempt(place: World, task: Task, agent: Agent, memory: str, /) -> tuple[Trajectory, bool]:
    """One task done by `agent`: the run as a memory may see it, and the verifier's word."""
    return played(Desk(place, task), agent, memory)


class Form(Protocol):
    """A task being done, wherever: see `Desk`."""

    def reset(self) -> View: ...

    def step(self, control: str, /) -> tuple[View, float, bool]: ...


def played(desk: Form, agent: Agent, memory: str, /) -> tuple[Trajectory, bool]:
    """As `attempt`, on any form that is seen and pressed as a `Desk` is."""
    view, reward, over = desk.reset(), 0.0, False
    agent.start(memory)
    steps = [Step(observation=f"{view.message}\nControls: {', '.join(view.controls)}")]
    control = ""
    while not over:
        control = agent.act(view)
        view, reward, over = desk.step(control)
        steps.append(Step(thought=agent.thought, action=control, observation=view.message))
    error = None if control == SUBMIT else f"all {len(steps) - 1} presses allowed were used"
    run = Trajectory(
        task=view.goal, instructions=agent.instructions, steps=tuple(steps), error=error, usage=agent.usage
    )
    return run, reward == 1.0

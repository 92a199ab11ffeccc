"""Plays a stream of tasks of the desk world through an arm, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lessonbank import demo
from lessonbank.contracts.ports import LanguageModel
from lessonbank.demo import Agent, Episode
from lessonbank.demo.desk import truth, world

from .arms import ARMS, ArmName, Setting


def play(
    arm: ArmName | str,
    seed: int,
    /,
    *,
    tasks: int = 80,
    limit: int = 3,
    agent: Agent | None = None,
    model: LanguageModel | None = None,
    judged: bool = False,
    wrong_verdicts: float = 0.0,
) -> Iterator[Episode]:
    """Play world `seed` with `arm` as memory, yielding episodes as they end.

    Args:
        arm: one of `ARMS`.
        seed: the world, its stream of tasks and the scripted agent's order of trying.
        tasks: length of the stream.
        limit: experiences retrieved per task.
        agent: who plays; a `ScriptedAgent` by default.
        model: who distils (and judges, with `judged`) for the arms that keep a bank.
        judged: leave the verdict to the bank's judge, instead of telling it the verifier's.
        wrong_verdicts: the share of verdicts told wrongly, to see what judge errors cost.
    """
    memory = ARMS[arm](Setting(f"desk/{seed}", limit, seed, model, partial(truth, world(seed))))
    yield from demo.play(memory, seed, tasks=tasks, agent=agent, judged=judged, wrong_verdicts=wrong_verdicts)

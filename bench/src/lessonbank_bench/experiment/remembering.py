"""The memory of an arm that does tasks several times: what it needs besides remembering, to choose and to judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import lessonbank
from lessonbank.contracts.records import Learned, Trajectory
from lessonbank.errors import UsageError
from lessonbank.guard import one_line
from lessonbank.matts import Scaler
from lessonbank_bench.arms import BankMemory, Memory, NoMemory, arm_from
from lessonbank_bench.arms.tables import Base
from lessonbank_bench.environments import Memories

from .records import Arm, Experiment, Runs, answers_name, memory_of
from .scripted_model import RuleChooser


class Chooser(NoMemory):
    """No memory, with a bank that judges and chooses runs as the other arms' banks do; nothing is ever kept in it."""

    def __init__(self, banked: BankMemory, /) -> None:
        self.chooser = banked.bank

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        """Nothing; but somebody has to say how the run ended."""
        if success is not None:
            return None
        verdict = self.chooser.judge(run)
        return Learned(verdicts=(verdict,), usage=verdict.usage)

    def close(self) -> None:
        self.chooser.close()


class MemoryPerTask:
    """An empty memory for each task.

    Args:
        make: a memory for the task at a place of the stream.
    """

    def __init__(self, make: Callable[[int], Memory], /) -> None:
        self._make = make
        self.memory = make(0)

    def begin(self, place: int, /) -> Memory:
        """The memory of the next task."""
        self.memory.close()
        self.memory = self._make(place)
        return self.memory

    def recall(self, goal: str, /) -> str:
        return self.memory.recall(goal)

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Learned | None:
        return self.memory.learn(run, success=success)

    def close(self) -> None:
        self.memory.close()


def memory_for(experiment: Experiment, arm: Arm, memories: Memories, seed: int, banks: Path | None, /) -> Memory:
    """The memory of an arm in one stream; its model's answers are kept in the folder `banks`.

    Raises:
        UsageError: there is no such memory, or it cannot do a task several times.
    """

    def made(place: int | None) -> Memory:
        answers = None if banks is None else banks / answers_name(arm.name, seed, place)
        memory = memories.make(memory_of(arm), seed, limit=arm.limit, answers=answers)
        if arm.runs is None:
            return memory
        if isinstance(memory, NoMemory) and memory_of(arm) in ("none", "a/a-none"):
            chooser = memories.make(_chooser(experiment), seed, limit=1, answers=answers)
            memory = Chooser(chooser) if isinstance(chooser, BankMemory) else memory
        _check(arm, memory, arm.runs)
        if not experiment.model and arm.runs.mode != "retry":
            _choose_by_rule(bank_of(memory))
        return memory

    return MemoryPerTask(made) if arm.runs and arm.runs.bank == "instance" else made(None)


def _check(arm: Arm, memory: Memory, runs: Runs) -> None:
    scales = isinstance(memory, Chooser) or (isinstance(memory, BankMemory) and memory.scales)
    if not (scales or runs.mode == "retry"):
        raise UsageError(
            f"arm {one_line(arm.name, limit=60)!r} cannot do a task several times in mode {runs.mode!r}: its memory is "
            "more than a bank; use mode 'retry', or none, synapse, awm, lessonbank or reasoningbank-paper"
        )


def _chooser(experiment: Experiment) -> str:
    """The bank of the arms besides, so that all choose and judge alike."""
    banks = [base for arm in experiment.arms if isinstance(base := arm_from(memory_of(arm)), Base)]
    return "reasoningbank-paper" if any(base.options.profile == "paper" for base in banks) else "lessonbank"


def _choose_by_rule(bank: lessonbank.ReasoningBank) -> None:
    """Without a model somebody has to choose who does not know the truth."""
    bank.aio.parts = replace(bank.aio.parts, scaler=Scaler(RuleChooser()))


def bank_of(memory: Memory, /) -> lessonbank.ReasoningBank:
    """The bank that a memory is, or that chooses for it.

    Raises:
        UsageError: there is none.
    """
    if isinstance(memory, Chooser):
        return memory.chooser
    if isinstance(memory, BankMemory):
        return memory.bank
    raise UsageError("this memory keeps no bank that could choose or judge")

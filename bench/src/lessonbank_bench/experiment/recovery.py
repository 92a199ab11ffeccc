"""Brings memories back to where a killed run left them, with the proof that they are the same."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.contracts.records.ids import digest
from lessonbank.errors import Conflict
from lessonbank_bench.arms import Memory

from .checks import recalled
from .guards import guarded
from .records import AttemptRow, Experiment, without_codes
from .remembering import MemoryPerTask
from .schedule import Slot, learns
from .several_runs import Task, recorded


def rebuild(
    experiment: Experiment, slots: Sequence[Slot], rows: Sequence[AttemptRow], memories: dict[str, Memory]
) -> None:
    """Ask and tell the memories again what they were asked and told.

    Raises:
        Conflict: one gives another text than it gave then.
    """
    fit(slots, rows)
    for slot, row in zip(slots, rows, strict=False):
        memory = memories[slot.arm.name]
        if isinstance(memory, MemoryPerTask):  # nothing of a task before is in it
            continue
        if row.runs:
            text, failure = guarded("recall", lambda m=memory, s=slot, r=row: _again(experiment, s, r, m))
        else:
            text, failure = guarded("recall", lambda m=memory, s=slot: recalled(m, s.job.goal))
        told = row.error is None or row.error.stage != "recall"
        if told and (failure is not None or digest(without_codes(text or "")) != row.same_digest):
            raise Conflict(
                f"the memory of arm {slot.arm.name!r}, seed {slot.seed}, gives another text for task {slot.place} than "
                "it gave before: it cannot be rebuilt, so begin anew in another folder"
            )
        if row.run is not None and learns(experiment, row.phase):
            guarded("learn", lambda m=memory, r=row.run, t=row.told: m.learn(r, success=t))


def _again(experiment: Experiment, slot: Slot, row: AttemptRow, memory: Memory) -> str:
    """What an agent would be shown in the several runs of a row, learned from again."""
    task = Task(
        slot,
        memory,
        recorded(row.runs),
        judged=experiment.judged,
        learns=learns(experiment, row.phase),
        has_model=bool(experiment.model),
        live=False,
    )
    return task.play().text


def fit(slots: Sequence[Slot], rows: Sequence[AttemptRow]) -> None:
    """Raises:
    Conflict: the rows are not of this schedule.
    """
    for slot, row in zip(slots, rows, strict=False):
        if slot.key != row.key or slot.job.id != row.task_id or slot.job.goal != row.task:
            raise Conflict(f"the attempts do not follow the experiment's schedule from {row.key!r} on: begin anew")

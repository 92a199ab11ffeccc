"""Reads what a caller hands in as runs of one task: a trajectory, its messages, or several of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

from anyio import to_thread

from lessonbank._base.checks import is_instance
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Trajectory
from lessonbank.contracts.records.runs import without_submission
from lessonbank.errors import UsageError

from . import retitle, trajectory_from


async def run_from(source: object, /, *, task: str | None, asked: str | None = None) -> Trajectory:
    """One run: a trajectory, or its messages, which are read in a thread.

    `task` renames it; `asked` (a receipt's task) is only for messages, which do not say theirs. Raises FormatError,
    UsageError.
    """
    if is_instance(source, Trajectory):
        return without_submission(retitle(source, task))
    return await to_thread.run_sync(partial(trajectory_from, source, task=asked if task is None else task))


async def runs_from(source: object, /, *, task: str | None, asked: str | None = None) -> list[Trajectory]:
    """`source` as trajectories of one task: one trajectory or message list, or a list of those; see `run_from`.

    Raises:
        UsageError: an empty list, or runs of different tasks.
        FormatError: messages in no known shape.
    """
    entries: Sequence[object] = [source]
    listed = cast("Sequence[object]", source) if is_instance(source, (list, tuple)) else ()
    if listed and all(issubclass(type(entry), Trajectory | list | tuple) for entry in listed):
        entries = listed  # a list of messages is one run
    runs = [await run_from(entry, task=task, asked=asked) for entry in entries]
    if len(tasks := {run.task for run in runs}) != 1:
        raise UsageError(
            f"learn takes runs of one task at a time, and at least one run; got {plural(len(tasks), 'task')}"
        )
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("the same trajectory was handed in twice: give every run its own id")
    return runs

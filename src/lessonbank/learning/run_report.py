"""What a caller reports to `learn`: runs, what is known of their outcome, the recall they used, and metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from lessonbank._base.aio import run_in_thread
from lessonbank._base.checks import is_instance, kind, shown
from lessonbank._base.plural import counted
from lessonbank.contracts.records import Outcome, Recall, Submission, Trajectory, Verdict
from lessonbank.errors import UsageError
from lessonbank.text.messages import first_request, trajectory_from

from .judging import graded_notes, truth_verdict

Verdicts: TypeAlias = Mapping[str, Verdict | None]
"""Ground truth by trajectory id; `None` where the caller gave none."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """Runs of one task, as their caller reports them."""

    runs: Sequence[Trajectory]
    receipt: Recall | None
    """What the runs were shown, and settle."""
    truths: Verdicts
    notes: tuple[str, ...] = ()
    """What the caller should know of the report."""


async def run_from(source: object, /, *, task: str | None) -> Trajectory:
    """One run: a trajectory, or its messages. Messages are read in a thread. Raises FormatError, UsageError."""
    run = await run_in_thread(partial(trajectory_from, source, task=task), brief=is_instance(source, Trajectory))
    return without_submission(run)


async def runs_from(source: object, /, *, task: str | None, asked: str | None = None) -> list[Trajectory]:
    """`source` as trajectories of one task: one trajectory or message list, or a list of those.

    `task` renames every run; `asked` (a receipt's task) is only for messages, which do not say theirs.

    Raises:
        UsageError: an empty list, or runs of different tasks.
        FormatError: messages in no known shape.
    """
    entries: Sequence[object] = [source]
    listed = cast("Sequence[object]", source) if is_instance(source, (list, tuple)) else ()
    if listed and all(issubclass(type(one), Trajectory | list | tuple) for one in listed):
        entries = listed  # a list of messages is one run
    named = asked if task is None else task
    runs = [await run_from(one, task=task if is_instance(one, Trajectory) else named) for one in entries]
    if len(tasks := {run.task for run in runs}) != 1:
        raise UsageError(
            f"learn takes runs of one task at a time, and at least one run; got {counted(len(tasks), 'task')}"
        )
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("the same trajectory was handed in twice: give every run its own id")
    return runs


def truths_of(
    runs: Sequence[Trajectory],
    /,
    *,
    outcome: Outcome | Sequence[Outcome] | None,
    reward: float | Sequence[float] | None,
    success_at: float,
) -> tuple[dict[str, Verdict | None], tuple[str, ...]]:
    """Ground truth by trajectory id, where the caller gave any, and a note on graded rewards that decided alone.

    Raises:
        UsageError: not as many values as runs, no outcome of this package, or a reward that contradicts it.
    """
    told, alone = dict[str, Verdict | None](), list[float]()
    each = zip(runs, _each(outcome, len(runs), "outcome"), _each(reward, len(runs), "reward"), strict=True)
    for run, ended, earned in each:
        told[run.id] = truth = truth_verdict(outcome=ended, reward=earned, success_at=success_at)
        if truth and truth.reward is not None and (ended is None or (is_instance(ended, str) and ended == "unknown")):
            alone.append(truth.reward)
    return told, graded_notes(alone, success_at=success_at) if alone else ()


def _each(value: object, count: int, name: str, /) -> list[Any]:
    """One value per run: a single one stands for all, a sequence must have as many as there are runs."""
    if value is None or is_instance(value, (str, Verdict)) or not is_instance(value, Iterable):
        return [value] * count
    try:
        several = list(cast("Iterable[Any]", value))
    except Exception as error:
        raise UsageError(f"{name}= could not be read: {kind(error)}; got {shown(cast('object', value))}") from error
    if len(several) != count:
        raise UsageError(
            f"{name} has {counted(len(several), 'value')} for {counted(count, 'run')}: give one, or one for each run"
        )
    return several


def request_of(run: Trajectory, /) -> str:
    """What the user asked for first, as the messages of a run say it; empty where they do not."""
    opening = run.steps[0] if run.steps and not run.steps[0].action.text else None
    said = [one.text for one in opening.observations if one.source == "user"] if opening else []
    return (first_request(said) or "") if len(said) > 1 else "".join(said)


def without_submission(run: Trajectory, /) -> Trajectory:
    """`run` as its caller made it. What the bank notes of a run that waits is nobody else's to say, or to read."""
    return run.model_copy(update={"submission": None}) if run.submission else run


def submission_of(run: Trajectory, /) -> Submission:
    """What the bank noted of a run when it was handed in; empty where it noted nothing."""
    return run.submission or Submission()


def submitted_outcome(run: Trajectory, /) -> tuple[Any, Any]:
    """How a kept run ended, as it was said when it was handed in: an outcome or a verdict, and a reward."""
    said = submission_of(run)
    return (said.verdict, None) if said.verdict else (said.outcome, said.reward)

"""Pure steps of `learn`: what was handed in, what is kept of it, and how a receipt is closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from .errors import ExtractionError, ModelError, UsageError
from .judging import truth_verdict
from .messages import trajectory_from
from .types import (
    Add,
    Attempt,
    AttemptRef,
    Change,
    Experience,
    Extraction,
    MemoryItem,
    Merge,
    Outcome,
    Recall,
    Replace,
    Settlement,
    Trajectory,
    Usage,
    Verdict,
)


def runs_from(source: object, /, *, task: str | None) -> list[Trajectory]:
    """`source` as trajectories of one task: one trajectory or message list, or a list of those.

    Raises:
        UsageError: an empty list, or runs of different tasks.
        FormatError: messages in no known shape.
    """
    several = _several(source)
    runs = [trajectory_from(one, task=task) for one in (several if several is not None else [source])]
    tasks = {run.task for run in runs}
    if len(tasks) != 1:
        raise UsageError(f"learn takes runs of one task at a time, and at least one run; got {len(tasks)} tasks")
    if len({run.id for run in runs}) < len(runs):
        raise UsageError("the same trajectory was handed in twice: give every run its own id")
    return runs


def _several(source: object) -> list[object] | None:
    if not isinstance(source, list | tuple) or not source:
        return None
    entries = cast("Sequence[object]", source)
    if all(isinstance(entry, Trajectory | list | tuple) for entry in entries):
        return list(entries)
    return None


def truths_of(
    runs: Sequence[Trajectory],
    /,
    *,
    outcome: Outcome | Sequence[Outcome] | None,
    reward: float | Sequence[float] | None,
) -> dict[str, Verdict | None]:
    """Ground truth by trajectory id, where the caller gave any.

    Raises:
        UsageError: not as many values as runs, no outcome of this package, or a reward that contradicts it.
    """
    outcomes, rewards = _each(outcome, len(runs), "outcome"), _each(reward, len(runs), "reward")
    return {
        run.id: truth_verdict(outcome=outcome, reward=reward)
        for run, outcome, reward in zip(runs, outcomes, rewards, strict=True)
    }


def nothing_drawn(error: ExtractionError | ModelError, /) -> Extraction:
    """The place of an extraction that failed: no items, what it cost, and why."""
    usage = (error.usage if isinstance(error, ExtractionError) else None) or Usage()
    return Extraction(usage=usage, notes=(f"no lesson was drawn, the run is kept for another try: {error}",))


def changed(changes: Sequence[Change], /) -> list[Experience]:
    """The experiences that changes bring in."""
    return [c.experience for c in changes if isinstance(c, Add | Replace | Merge)]


def new_items(changes: Sequence[Change], extraction: Extraction, /) -> tuple[MemoryItem, ...]:
    """What of `extraction` the consolidator let in, and what it wrote itself."""
    earlier = {item.id for c in changes if isinstance(c, Replace) for item in c.experience.items}
    earlier -= {item.id for item in extraction.items}
    return tuple(i for e in changed(changes) for i in e.items if i.id not in earlier)


def _each(value: object, count: int, name: str, /) -> list[Any]:
    """One value per run: a single one stands for all, a sequence must have as many as there are runs."""
    if value is None or isinstance(value, str | int | float):
        return [value] * count
    several = list(cast("Sequence[Any]", value))
    if len(several) != count:
        raise UsageError(f"{name} has {len(several)} values for {count} runs: give one, or one for each run")
    return several


def experience_of(
    attempts: Sequence[Attempt],
    extraction: Extraction,
    /,
    *,
    scope: str,
    pending: bool,
    earlier: Experience | None,
) -> Experience:
    """The experience these attempts make, under its earlier id when they were tried before."""
    refs = tuple(
        AttemptRef(trajectory_id=a.trajectory.id, verdict=a.verdict, n_steps=len(a.trajectory.steps)) for a in attempts
    )
    new = Experience(
        scope=scope,
        task=attempts[0].trajectory.task,
        items=extraction.items,
        attempts=refs,
        metadata={"pending": True} if pending else {},
    )
    if earlier is None:
        return new
    again = {ref.trajectory_id for ref in refs}
    others = tuple(ref for ref in earlier.attempts if ref.trajectory_id not in again)
    return new.model_copy(
        update={
            "id": earlier.id,
            "created_at": earlier.created_at,
            "attempts": (*others, *refs),
            "items": (*earlier.items, *extraction.items),
        }
    )


def replacing(earlier: Experience, later: Experience, /) -> tuple[Change, ...]:
    """What another try changes: nothing, when it is as undecided as the one before."""
    undecided = all(ref.verdict.outcome == "unknown" for ref in (*earlier.attempts, *later.attempts))
    if undecided and earlier.items == later.items and len(earlier.attempts) == len(later.attempts):
        return ()
    return (Replace(experience=later, reason="judged or extracted again"),)


def settlement_of(recall: Recall, experience: Experience, attempts: Sequence[Attempt], /) -> Settlement:
    """How the task of `recall` ended. Of several runs under one recall: the share that succeeded, by majority."""
    decided = [a for a in attempts if a.verdict.outcome != "unknown"]
    share = sum(a.verdict.outcome == "success" for a in decided) / len(decided) if decided else None
    outcome: Outcome = "unknown" if share is None else "success" if share > 0.5 else "failure"
    first = (decided or attempts)[0].verdict
    return Settlement(
        recall_id=recall.id,
        scope=recall.scope,
        experience_id=experience.id,
        trajectory_ids=tuple(a.trajectory.id for a in attempts),
        outcome=outcome,
        reward=first.reward if len(attempts) == 1 else share,
        confidence=min((a.verdict.confidence for a in decided), default=0.0),
        source=first.source,
        steps=sum(len(a.trajectory.steps) for a in attempts),
        usage=sum((a.trajectory.usage for a in attempts), Usage()),
    )

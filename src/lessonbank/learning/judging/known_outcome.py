"""What is known about a run without asking anybody: the outcome its caller saw, the reward, the crash."""

from __future__ import annotations

import math

from lessonbank.errors import UsageError
from lessonbank.guard import one_line
from lessonbank.types import Outcome, Trajectory, Verdict

CRASH_CONFIDENCE = 0.9
"""A crashed run may have done its task before it stopped; most have not."""


def truth_verdict(
    *, outcome: Outcome | bool | None = None, reward: float | None = None, success_at: float = 1.0
) -> Verdict | None:
    """The caller's own verdict, or `None` where the caller gave none (an outcome of `unknown` is none either).

    A reward of at least `success_at` is a success, any other a failure.

    Raises:
        UsageError: an outcome that is none, a reward that is no number, or the two contradict each other.
    """
    stated = _stated(outcome)
    if reward is None:
        return Verdict(outcome=stated, source="ground_truth") if stated else None
    reward = _number(reward)
    measured = _measured(reward, success_at)
    if stated and stated != measured:
        raise UsageError(
            f"outcome={stated!r} contradicts reward={reward}, which is a {measured} (success starts at {success_at}): "
            "give one of the two, or another success_at."
        )
    return Verdict(outcome=measured, source="ground_truth", reward=reward)


def error_verdict(trajectory: Trajectory, /) -> Verdict | None:
    """A failure where something stopped the run, else `None`."""
    if not (trajectory.error and trajectory.error.strip()):
        return None
    reason = f"The run was stopped: {one_line(trajectory.error[:2000])[:300]}"
    return Verdict(outcome="failure", confidence=CRASH_CONFIDENCE, reason=reason, source="framework_error")


def _stated(outcome: Outcome | bool | None, /) -> Outcome | None:
    if isinstance(outcome, bool):
        return "success" if outcome else "failure"
    if outcome is None or outcome in ("success", "failure"):
        return outcome
    if outcome == "unknown":
        return None
    raise UsageError(f"outcome={outcome!r} is none: say 'success', 'failure', 'unknown', True or False.")


def _number(reward: object, /) -> float:
    """A plain float: rewards often come as a number type of numpy or torch."""
    try:
        if not isinstance(reward, str):
            return float(reward)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    raise UsageError(f"reward={reward!r:.80} is no number: give one as in reward=1.0, or one for each run.")


def _measured(reward: float, success_at: float, /) -> Outcome:
    if not math.isfinite(reward):
        raise UsageError(f"reward={reward!r} is no finite number: leave it out if it is not known.")
    return "success" if reward >= success_at else "failure"

"""What is known about a run without asking anybody: the outcome its caller saw, the reward, the crash."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import cast

from lessonbank._base.checks import a_number, is_instance, short_repr
from lessonbank.contracts.records import Outcome, Trajectory, Verdict
from lessonbank.errors import UsageError
from lessonbank.guard import one_line

CRASH_CONFIDENCE = 0.9
"""A crashed run may have done its task before it stopped; most have not."""
SUCCESS_AT = 1.0
"""The reward from which a run counts as a success, unless the caller says otherwise."""
_SHOWN = 5
"""Rewards that a note names."""
_ROUNDING = 1e-9
"""Ten rewards of 0.1 add up to a little less than 1."""


def truth_verdict(
    *, outcome: Outcome | bool | Verdict | None = None, reward: float | None = None, success_at: float = SUCCESS_AT
) -> Verdict | None:
    """The caller's own verdict, or `None` where the caller gave none (an outcome of `unknown` is none either).

    A verdict, such as a person's, stands as it is. A reward of at least `success_at` is a success, any other a failure.

    Raises:
        UsageError: an outcome that is none, a reward that is no number, or the two contradict each other.
    """
    if is_instance(outcome, Verdict):
        return outcome
    stated = _stated(outcome)
    if reward is None:
        return Verdict(outcome=stated, source="ground_truth") if stated else None
    reward = _number(reward)
    measured = outcome_of(reward, success_at=success_at)
    if stated and stated != measured:
        raise UsageError(
            f"outcome={stated!r} contradicts reward={reward}, which is a {measured} (success starts at {success_at}): "
            "give one of the two, or another success_at."
        )
    return Verdict(outcome=measured, source="ground_truth", reward=reward)


def outcome_of(reward: float, /, *, success_at: float = SUCCESS_AT) -> Outcome:
    """What a finite reward is taken for: a success from `success_at` on, else a failure."""
    return "success" if reward >= success_at - _ROUNDING else "failure"


def checked_threshold(success_at: object, /) -> float:
    """`success_at` as a float.

    Raises:
        UsageError: it is no finite number.
    """
    return a_number(success_at, "success_at=", "is the reward from which a run is a success, a finite number")


def graded_notes(rewards: Iterable[float], /, *, success_at: float = SUCCESS_AT) -> tuple[str, ...]:
    """One sentence that says what graded rewards (neither 0 nor 1) were taken for; none where there are no such."""
    graded = sorted({reward for reward in rewards if min(abs(reward), abs(reward - 1.0)) > _ROUNDING})
    if not graded:
        return ()
    explanation = " and ".join(filter(None, (_explain_rewards(graded, outcome, success_at) for outcome in _PLURAL)))
    return (f"{explanation}: success starts at {success_at:g}, and success_at= changes that",)


_PLURAL: dict[Outcome, str] = {"failure": "failures", "success": "successes"}


def _explain_rewards(graded: list[float], outcome: Outcome, success_at: float) -> str:
    """Such as "the rewards 0.3 and 0.9 were taken for failures"; empty where no reward was taken for `outcome`."""
    of_kind = [f"{reward:.6g}" for reward in graded if outcome_of(reward, success_at=success_at) == outcome]
    if len(of_kind) < 2:
        return f"the reward {of_kind[0]} was taken for a {outcome}" if of_kind else ""
    shown = ", ".join(of_kind[:_SHOWN]) + (" and others" if len(of_kind) > _SHOWN else "")
    return f"the rewards {shown} were taken for {_PLURAL[outcome]}"


def error_verdict(trajectory: Trajectory, /) -> Verdict | None:
    """A failure where something stopped the run, else `None`."""
    if not (trajectory.error and trajectory.error.strip()):
        return None
    reason = f"The run was stopped: {one_line(trajectory.error[:2000])[:300]}"
    return Verdict(outcome="failure", confidence=CRASH_CONFIDENCE, reason=reason, source="framework_error")


def _stated(outcome: Outcome | bool | None, /) -> Outcome | None:
    if outcome is None:
        return None
    if is_instance(outcome, str) and (word := str.__str__(outcome)) in ("success", "failure", "unknown"):
        return None if word == "unknown" else cast("Outcome", word)
    if is_instance(outcome, bool):
        return "success" if outcome else "failure"
    raise UsageError(
        f"outcome={short_repr(outcome)} is not an outcome: use 'success', 'failure', 'unknown', True or False"
    )


def _number(reward: object, /) -> float:
    """A plain float: rewards often come as a number type of numpy or torch."""
    try:
        value = None if is_instance(reward, str) else float(cast("float", reward))
    except Exception:  # noqa: BLE001 - whatever a number of somebody's own raises
        value = None
    if value is None:
        raise UsageError(f"reward={short_repr(reward)} is not a number: give one as in reward=1.0, or one for each run")
    if not math.isfinite(value):
        raise UsageError(f"reward={short_repr(reward)} is not a finite number: leave it out if it is not known")
    return value

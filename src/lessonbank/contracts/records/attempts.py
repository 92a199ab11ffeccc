"""What an experience says of the runs it was learned from: every store and its callers read it alike."""

from __future__ import annotations

from .lessons import Experience
from .runs import Outcome


def attempts_of(experience: Experience, /) -> list[tuple[str, bool, Outcome]]:
    """Id of each run, whether this experience leaves it pending, and the outcome of its first attempt.

    It is pending without a verdict, or where the whole experience is.
    """
    found: dict[str, tuple[bool, Outcome]] = {}
    for attempt in experience.attempts:
        outcome = attempt.verdict.outcome
        waiting, first = found.get(attempt.trajectory_id, (experience.pending, outcome))
        found[attempt.trajectory_id] = waiting or outcome == "unknown", first
    return [(id, *told) for id, told in found.items()]

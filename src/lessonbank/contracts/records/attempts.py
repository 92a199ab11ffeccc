"""Reads which runs an experience was learned from: every store and its callers read it alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .lessons import Experience, Lesson
from .runs import Outcome, Run


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


def used_by_agents(runs: Iterable[Run], lessons: Iterable[Lesson], /) -> Mapping[str, Sequence[str]]:
    """What agents judged by, drew lessons by and ran on: each brings its own settings, and these records say which."""
    runs = list(runs)
    found = {
        "judged by": {
            verdict.model or verdict.source.replace("_", " ")
            for verdict in (run.verdict for run in runs)
            if verdict.model or verdict.outcome != "unknown" or verdict.source != "judge"  # else there was no judge
        },
        "lessons drawn by": {one.provenance.model or one.provenance.method for one in lessons},
        "models of the agents": {str(run.metadata["model"]) for run in runs if run.metadata.get("model")},
    }
    return {name: sorted(told) for name, told in found.items() if told}

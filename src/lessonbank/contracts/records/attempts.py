"""Reads which runs an experience was learned from: every store and its callers read it alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .lessons import Experience, Lesson
from .runs import Outcome, Run


def attempts_of(experience: Experience, /) -> list[tuple[str, bool, Outcome]]:
    """Id of each run, whether this experience leaves it pending, and the outcome of its first attempt.

    It is pending without a verdict, unless that is final, or where the whole experience is.
    """
    states: dict[str, tuple[bool, Outcome]] = {}
    for attempt in experience.attempts:
        outcome = attempt.verdict.outcome
        waiting, first = states.get(attempt.trajectory_id, (experience.pending, outcome))
        states[attempt.trajectory_id] = waiting or (outcome == "unknown" and not attempt.verdict.final), first
    return [(id, *state) for id, state in states.items()]


def used_by_agents(runs: Iterable[Run], lessons: Iterable[Lesson], /) -> Mapping[str, Sequence[str]]:
    """What agents judged by, drew lessons by and ran on: each brings its own settings, and these records say which."""
    runs = list(runs)
    agents = {
        "judged by": {
            verdict.model or verdict.source.replace("_", " ")
            for verdict in (run.verdict for run in runs)
            if verdict.model or verdict.outcome != "unknown" or verdict.source != "judge"  # else there was no judge
        },
        "lessons drawn by": {lesson.provenance.model or lesson.provenance.method for lesson in lessons},
        "models of the agents": {str(run.metadata["model"]) for run in runs if run.metadata.get("model")},
    }
    return {name: sorted(models) for name, models in agents.items() if models}

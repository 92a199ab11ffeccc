"""Finds in its runs what a lesson rests on: the steps that it names, or how the run ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.records import Lesson, Run, Step

_NAMED: Final = re.compile(r"(?:run\s+(\d{1,3})\D{1,5})?steps?\s+(\d{1,5})", re.IGNORECASE)
_LAST: Final = 2
"""Steps that are shown where a lesson names none: how the run ended."""
_MOST: Final = 4


@dataclass(frozen=True, slots=True)
class DecidingStep:
    """A step of a run, with its number there."""

    run_id: str
    number: int
    step: Step
    is_named: bool
    """Whether the lesson names it, or it is just among the last."""


def named_steps(lesson: Lesson, /) -> Mapping[str, frozenset[int]]:
    """The numbers of the steps that support a lesson, by the id of the run."""
    runs = lesson.provenance.trajectory_ids
    numbers: dict[str, set[int]] = {}
    for text in lesson.provenance.evidence:
        for run, step in _NAMED.findall(text):
            place = int(run or 1) - 1
            if 0 <= place < len(runs):
                numbers.setdefault(runs[place], set()).add(int(step))
    return {id: frozenset(steps) for id, steps in numbers.items()}


def deciding_steps(lesson: Lesson, runs: Iterable[Run], /) -> Sequence[DecidingStep]:
    """What a person should read before deciding on a lesson: a few steps, those that it names first."""
    named = named_steps(lesson)
    evidence, last = list[DecidingStep](), list[DecidingStep]()
    for run in runs:
        steps, id = run.trajectory.steps, run.trajectory.id
        wanted = named.get(id, frozenset())
        evidence += [DecidingStep(id, n, step, is_named=True) for n, step in enumerate(steps, 1) if n in wanted]
        first = max(len(steps) - _LAST, 0)
        last += [
            DecidingStep(id, n, step, is_named=False)
            for n, step in enumerate(steps[first:], first + 1)
            if n not in wanted
        ]
    return (evidence or last)[:_MOST]

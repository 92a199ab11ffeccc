"""Draws what the prompt of a later session is given: what got past a failing command, from its commands alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lessonbank.contracts.records import Extraction, Lesson, Run, Trajectory
from lessonbank.importers import failures_in
from lessonbank.text.shell_commands import REFUSED

_MOST: Final = 3
"""Lessons of one session."""


class SessionExtractor:
    """Draws lessons from commands whose results say themselves whether they failed. It may return nothing.

    Which files were read and edited is of one task, and so is an order in which nothing failed.
    """

    asks_model = False

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        drawn = [
            lesson
            for attempt in attempts
            if attempt.verdict.outcome != "unknown"
            for lesson in _lessons(attempt.trajectory)
        ]
        lessons = {(lesson.title, lesson.content): lesson for lesson in drawn}
        notes = () if lessons else ("nothing was extracted: no command failed that then went through by another one",)
        return Extraction(lessons=tuple(lessons.values())[:_MOST], notes=notes)


def _lessons(run: Trajectory) -> Iterator[Lesson]:
    seen = [
        observation
        for step in run.steps
        for observation in step.observations
        if observation.call_id and not REFUSED.match(observation.text)
    ]
    codes = {
        observation.call_id or "": int(observation.is_error)
        for observation in seen
        if observation.is_error or observation.is_success
    }
    for failure in failures_in(run, codes):
        if failure.cure:
            yield failure.lesson(run.id).model_copy(update={"place": None})

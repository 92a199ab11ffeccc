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
        drawn = [lesson for a in attempts if a.verdict.outcome != "unknown" for lesson in _lessons(a.trajectory)]
        lessons = {(lesson.title, lesson.content): lesson for lesson in drawn}
        notes = () if lessons else ("nothing was extracted: no command failed that then went through by another one",)
        return Extraction(lessons=tuple(lessons.values())[:_MOST], notes=notes)


def _lessons(run: Trajectory) -> Iterator[Lesson]:
    results = [
        seen for step in run.steps for seen in step.observations if seen.call_id and not REFUSED.match(seen.text)
    ]
    codes = {seen.call_id or "": int(seen.is_error) for seen in results if seen.is_error or seen.is_success}
    for failure in failures_in(run, codes):
        if failure.cure:
            yield failure.lesson(run.id).model_copy(update={"place": None})

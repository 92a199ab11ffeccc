"""The way into a bank: removes secrets before anything else reads a text, and rejects bad lessons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from anyio import to_thread

from lessonbank.arguments import check_data
from lessonbank.protocols import Admission, Redactor
from lessonbank.types import Experience, Extraction, Run, Trajectory
from lessonbank.types.runs import data_of, is_brief

from .gate import LessonGate, appraised, in_form
from .redact import Redacting, checked, redacted, redacted_experience

T = TypeVar("T")
_QUICK = 4096
"""Characters that the built-in redactor reads faster than a thread starts."""
_SHOWN = 16_384


@dataclass(frozen=True, slots=True)
class IntakeFilter:
    """The only way into a bank, for every task, run, lesson and experience."""

    redactor: Redactor | None = None
    admission: Admission | None = None

    async def task(self, task: str, /) -> str:
        """Redact a task in the same way as the runs of that task."""
        if self.redactor is None or (isinstance(self.redactor, Redacting) and len(task) <= _QUICK):
            return _task(task, self.redactor)
        return await to_thread.run_sync(_task, task, self.redactor)

    async def runs(self, runs: Iterable[Trajectory], /) -> list[Trajectory]:
        """Redact runs before they are kept, judged and learned from."""
        every = list(runs)
        for run in every:
            check_data(data_of(run), "a run")
        if (
            isinstance(self.redactor, Redacting)
            and all(is_brief(run, most=_QUICK) for run in every[:2])
            and len(every) < 3
        ):
            return [redacted(run, self.redactor) for run in every]
        return await _each(every, redacted, self.redactor)

    async def attempts(self, attempts: Sequence[Run], /) -> list[Run]:
        """Redact the runs of attempts."""
        runs = await self.runs(attempt.trajectory for attempt in attempts)
        return [Run(trajectory=run, verdict=a.verdict) for run, a in zip(runs, attempts, strict=True)]

    async def lessons(self, drawn: Extraction, attempts: Sequence[Run], /, *, shown: str = "") -> Extraction:
        """Reject lessons that are not lessons. `shown` is the text that memory showed before the attempts."""
        if self.admission is None:
            return drawn
        if isinstance(self.admission, LessonGate) and len(shown) <= _SHOWN and _small(drawn, attempts):
            return self.admission(drawn, attempts, shown=[shown] if shown else [])
        return await to_thread.run_sync(partial(self.admission, drawn, attempts, shown=[shown] if shown else []))

    async def experience(self, experience: Experience, /) -> Experience:
        """Redact an experience that somebody wrote, and trust it no more than one that was learned."""
        check_data([experience.metadata], "an experience")
        known = (await _each([experience], redacted_experience, self.redactor))[0]
        if self.admission is None:
            return known
        return known.model_copy(update={"lessons": tuple(appraised(in_form(lesson)) for lesson in known.lessons)})


def _small(drawn: Extraction, attempts: Sequence[Run]) -> bool:
    """Whether the gate takes less time than the start of a thread."""
    text = sum(len(lesson.text) for lesson in drawn.lessons)
    return len(attempts) == 1 and text <= _QUICK and is_brief(attempts[0].trajectory, most=_QUICK)


def _task(task: str, redactor: Redactor | None) -> str:
    return task if redactor is None else checked(redactor(task)).strip() or "[removed]"


async def _each(things: Iterable[T], through: Callable[[T, Redactor], T], redactor: Redactor | None) -> list[T]:
    """Redact in a thread, because a run can be long and a custom redactor slow."""
    if redactor is None:
        return list(things)
    return [await to_thread.run_sync(through, thing, redactor) for thing in things]

"""The way into a bank: removes secrets from what agents, people and models wrote, and rejects bad lessons."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Final, TypeVar, cast

from anyio import to_thread

from lessonbank._base.checks import check_data, is_instance, kind
from lessonbank.contracts.ports import Admission, Redactor
from lessonbank.contracts.records import Add, Change, Experience, Extraction, Json, Record, Run, Trajectory, Verdict
from lessonbank.contracts.records.runs import data_of, is_brief
from lessonbank.errors import UsageError

from .gate import LessonGate, appraised, in_form
from .redact import Redacting, redacted, redacted_together, through
from .wording import SAME_WORDS

R = TypeVar("R", bound=Record)
_QUICK = 4096
"""Characters that the built-in redactor reads faster than a thread starts. One of the caller's own can be slow."""
_WEIGHED = 1_024
"""Characters of lessons that the gate weighs in less than a millisecond."""
_SHOWN = 16_384
_REPEATED = {("", name) for name in ("title", "evidence", "why", "lesson", "near", "is_general")} | {
    ("why", SAME_WORDS)
}
"""The names under which an experience keeps what it taught again, and why it mostly does."""
_NONE: Final[Mapping[str, Json]] = {}
_ID = re.compile("[0-9a-f]{32}")
"""An id of our own, which holds nothing to redact."""
_NEAR = {"lessons": {"__all__": {"near_duplicate_of"}}}
"""What may differ of a lesson: an id."""


@dataclass(frozen=True, slots=True)
class IntakeFilter:
    """The only way into a bank, for every task, run, lesson and experience, and for every reply of a model."""

    redactor: Redactor | None = None
    admission: Admission | None = None
    check: Callable[[Extraction], Awaitable[Extraction]] | None = None
    """Asks a model about the lessons of a run that the built-in gate leaves in doubt."""

    @property
    def is_own(self) -> bool:
        """Whether it calls nothing of the caller's, and asks no model."""
        is_own = isinstance(self.redactor, Redacting | None) and isinstance(self.admission, LessonGate | None)
        return is_own and self.check is None

    async def task(self, task: str, /) -> str:
        """Redact a task in the same way as the runs of that task."""
        if self.redactor is None:
            return task
        if isinstance(self.redactor, Redacting) and len(task) <= _QUICK:
            return _task(task, self.redactor)
        return await to_thread.run_sync(_task, task, self.redactor)

    async def runs(self, runs: Iterable[Trajectory], beside: Mapping[str, Json] = _NONE, /) -> list[Trajectory]:
        """Redact runs before they are kept, judged and learned from; `beside` are metadata beside their own."""
        every = list(runs)
        is_quick = isinstance(self.redactor, Redacting | None) and len(every) < 3 and all(map(is_brief, every))
        return self.clean(every, beside) if is_quick else await to_thread.run_sync(self.clean, every, beside)

    def clean(self, runs: Sequence[Trajectory], beside: Mapping[str, Json], /) -> list[Trajectory]:
        """What `runs` does, here and now."""
        for run in runs:
            check_data(data_of(run), "a run")
        clean = runs if self.redactor is None else redacted_together(runs, self.redactor)
        return [run.model_copy(update={"metadata": {**run.metadata, **beside}}) if beside else run for run in clean]

    async def attempts(self, attempts: Sequence[Run], /) -> list[Run]:
        """Redact the runs of attempts, and the verdicts on them with the placeholders of the runs."""
        if self.redactor is None:
            return [Run(trajectory=attempt.trajectory, verdict=attempt.verdict) for attempt in attempts]
        for attempt in attempts:
            check_data(data_of(attempt.trajectory), "a run")
        records = [record for attempt in attempts for record in (attempt.trajectory, attempt.verdict)]
        known = await to_thread.run_sync(redacted_together, records, self.redactor)
        runs, verdicts = cast("list[Trajectory]", known[::2]), cast("list[Verdict]", known[1::2])
        return [Run(trajectory=run, verdict=verdict) for run, verdict in zip(runs, verdicts, strict=True)]

    async def reply(self, reply: R, /) -> R:
        """Redact what a model wrote: a verdict, lessons, a change. It may join what stood apart in the run."""
        if self.redactor is None or (isinstance(reply, Verdict) and not reply.reason):
            return reply
        is_quick = isinstance(self.redactor, Redacting) and len(str(reply.model_dump())) <= 2 * _QUICK
        clean = partial(redacted_together, (reply,), self.redactor)
        return (clean() if is_quick else await to_thread.run_sync(clean))[0]

    async def sentence(self, text: str, /) -> str:
        """Redact one sentence of a model, such as its reason, or of an error that quotes it."""
        return await self.task(text) if text.strip() else text

    async def changes(self, changes: Sequence[Change], /, *, given: Experience) -> tuple[Change, ...]:
        """Redact what a consolidator decided about `given`, which is redacted already."""
        return tuple([c if await self._is_known(c, given) else await self.reply(c) for c in changes])

    async def _is_known(self, change: Change, given: Experience) -> bool:
        """Whether `change` adds what was given, in part, with reasons and ids that hold nothing to redact."""
        if not isinstance(change, Add):
            return False
        if change.experience is given:
            return True
        try:
            other = {name for name, value in change.experience if value is not getattr(given, name, None)}
            new = _values_of(change.experience, other) - _values_of(given, other) - _REPEATED
        except ValueError:  # a consolidator of the caller's put something into it that is no data
            return False
        if not {name for name, _ in new} <= {"", "why"}:
            return False
        texts = [text for _, text in sorted(new) if not _ID.fullmatch(text)]
        if not texts:
            return True
        if isinstance(self.redactor, Redacting) and sum(map(len, texts)) <= _QUICK:
            fields = [("", text.strip()) for text in texts]  # read as one: an id and a reason of our own hold nothing
            if [text for _, text in fields] == texts and self.redactor.for_run().finds_nothing(fields):
                return True
        return all([await self.sentence(text) == text for text in texts])

    async def lessons(self, drawn: Extraction, attempts: Sequence[Run], /, *, shown: Sequence[str]) -> Extraction:
        """Redact drawn lessons, and reject what is none. `shown` are the texts that memory showed before."""
        drawn = await self.reply(drawn)
        if self.admission is not None:
            is_built_in = isinstance(self.admission, LessonGate)
            text, is_short = sum([len(lesson.text) for lesson in drawn.lessons]), sum(map(len, shown)) <= _SHOWN
            is_quick = is_built_in and is_short and text <= _QUICK and len(attempts) == 1
            is_quick = is_quick and is_brief(attempts[0].trajectory)
            admit = partial(self.admission, drawn, attempts, shown=shown)
            drawn = admit() if is_quick else await to_thread.run_sync(admit)
            if not is_built_in and not is_instance(cast("object", drawn), Extraction):
                raise UsageError(f"admission= takes a gate that returns Extraction; this one gave {kind(drawn)}")
        return await self.check(drawn) if self.check and attempts else drawn

    async def experience(self, experience: Experience, /) -> Experience:
        """Redact an experience that somebody wrote, and trust it no more than one that was learned."""
        check_data([experience.metadata], "an experience")
        known = experience
        if self.redactor is not None:
            known = await to_thread.run_sync(redacted, experience, self.redactor)
        if self.admission is None:
            return known
        is_quick = sum(len(lesson.text) for lesson in known.lessons) <= _WEIGHED
        return _appraised(known) if is_quick else await to_thread.run_sync(_appraised, known)


def _values_of(experience: Experience, fields: set[str]) -> set[tuple[str, str]]:
    """Every name, text and number in some fields of an experience, with the name that leads to it."""
    values = set[tuple[str, str]]()
    dumped = experience.model_dump(mode="json", include=fields, exclude=_NEAR, warnings=False)
    waiting: list[tuple[str, Json]] = [("", dumped)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            values.update(zip(repeat(""), value, strict=False))
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(name, part) for part in value]
        elif value is not None and not isinstance(value, bool):
            values.add((name, str(value)))
    return values


def _appraised(experience: Experience) -> Experience:
    return experience.model_copy(update={"lessons": tuple(appraised(in_form(each)) for each in experience.lessons)})


def _task(task: str, redactor: Redactor) -> str:
    return through(redactor, task).strip() or "[removed]"

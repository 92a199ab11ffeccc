"""Lists of what a scope in memory holds, newest first, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from lessonbank.stores._listing import (
    Asked,
    no_such,
    recall_texts,
    run_of,
    run_texts,
    state_of,
    tags,
)
from lessonbank.stores._records import encodable, microseconds
from lessonbank.types import (
    Experience,
    Json,
    Kind,
    Lesson,
    LessonState,
    Outcome,
    Recall,
    Run,
    RunStatus,
    Trajectory,
)

from ._scope import Scope


class _Named(Protocol):
    @property
    def id(self) -> str: ...


N = TypeVar("N", bound=_Named)


def _fits(asked: Asked, metadata: Mapping[str, Json], at: datetime | None) -> bool:
    """Whether a record has what is asked for, its words aside."""
    if asked.before is not None and at is not None and microseconds(at) >= microseconds(asked.before):
        return False
    return not asked.metadata or tags(asked.metadata) <= tags(metadata)


def following(records: Sequence[N], after: str | None, /, *, kind: str) -> Sequence[N]:
    """The records behind the one of that id. Raises NotFound."""
    if after is None:
        return records
    for place, record in enumerate(records, 1):
        if record.id == encodable(after):
            return records[place:]
    raise no_such(kind, after)


def lessons(
    here: Scope, asked: Asked, /, *, states: Sequence[LessonState], kind: Kind | None, writer: str | None
) -> list[Lesson]:
    """See `Store.list_lessons`."""
    owners = {lesson.id: experience for experience, lesson in _lessons(here)}

    def matches(lesson: Lesson) -> bool:
        wanted = (
            state_of(lesson) in states and kind in (None, lesson.kind) and writer in (None, lesson.provenance.writer)
        )
        return wanted and _fits(asked, owners[lesson.id].metadata, None)

    found = following([lesson for _, lesson in _lessons(here)], asked.after, kind="lesson")
    return asked.first(filter(matches, found), lambda lesson: (lesson.text,))


def _lessons(here: Scope) -> Iterator[tuple[Experience, Lesson]]:
    placed = [(place, e, lesson) for e in here.experiences.values() for place, lesson in enumerate(e.lessons)]
    placed.sort(key=lambda p: (microseconds(p[2].created_at), here.numbers[p[1].id], p[0]), reverse=True)
    return ((experience, lesson) for _, experience, lesson in placed)


def runs(here: Scope, asked: Asked, /, *, outcome: Outcome | None, status: RunStatus | None) -> list[Run]:
    """See `Store.list_runs`."""

    def matches(kept: Trajectory) -> bool:
        told = run(here, kept)
        wanted = outcome in (None, told.verdict.outcome) and status in (None, told.status)
        return wanted and _fits(asked, kept.metadata, here.kept_at[kept.id])

    newest = sorted(here.trajectories.values(), key=lambda kept: here.kept_at[kept.id])[::-1]
    found = filter(matches, following(newest, asked.after, kind="run"))
    return [run(here, kept) for kept in asked.first(found, run_texts)]


def run(here: Scope, kept: Trajectory, /) -> Run:
    """A kept run as it is listed."""
    return run_of(kept, here.holding([kept.id]), pending=here.waits(kept.id))


def recalls(here: Scope, asked: Asked, /, *, lesson: str | None, settled: bool | None) -> list[Recall]:
    """See `Store.list_recalls`."""
    known = None if lesson is None else encodable(lesson)

    def matches(recall: Recall) -> bool:
        if settled is not None and settled != (recall.id in here.settlements):
            return False
        if known is not None and not any(c.shown and c.lesson_id == known for c in recall.candidates):
            return False
        return _fits(asked, recall.metadata, recall.created_at)

    newest = sorted(here.recalls.values(), key=lambda recall: microseconds(recall.created_at))[::-1]
    return asked.first(filter(matches, following(newest, asked.after, kind="recall")), recall_texts)

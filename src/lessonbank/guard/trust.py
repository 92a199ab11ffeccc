"""Decides which lessons may be shown, by who wrote them and which runs support them, not by what they say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lessonbank.config import TrustPolicy as TrustPolicy
from lessonbank.errors import UsageError
from lessonbank.types import Experience, Lesson, TrustState

IMPORTED: Final = "imported"
"""The metadata key of an imported experience."""
MERGE: Final = "merge"
"""The method of a merged lesson. Its writer is that of its sources, or `several`."""
SHOWN: Final[dict[TrustPolicy, frozenset[TrustState]]] = {
    "open": frozenset({"probation", "active"}),
    "corroborated": frozenset({"active"}),
    "witnessed": frozenset({"active"}),
    "reviewed": frozenset({"active"}),
}
POLICIES: Final = tuple(SHOWN)


def check_person(by: object, /, *, call: str, of: str) -> None:
    """Check that a person is named.

    Raises:
        UsageError: `by` is no name.
    """
    if not isinstance(by, str) or not str.__str__(by).strip():
        raise UsageError(f"{call} takes the name of the person who is responsible for {of}")


def showable(experience: Experience, states: Iterable[TrustState], /) -> Experience:
    """Leave only the active lessons whose trust state is one of `states`."""
    lessons = tuple(lesson for lesson in experience.active_lessons if lesson.state in states)
    return experience if len(lessons) == len(experience.lessons) else experience.model_copy(update={"lessons": lessons})


def independent(one: tuple[Lesson, Experience], other: tuple[Lesson, Experience], /, *, policy: TrustPolicy) -> bool:
    """Whether two lessons come from independent runs: no run and no task in common.

    With `witnessed`, the writers must differ as well. Merged and imported lessons never count, because an imported
    file can name any run and any writer.
    """
    first, second = one[0].provenance, other[0].provenance
    if MERGE in (first.method, second.method) or IMPORTED in one[1].metadata or IMPORTED in other[1].metadata:
        return False
    if not first.trajectory_ids or not second.trajectory_ids:
        return False
    if not set(first.trajectory_ids).isdisjoint(second.trajectory_ids) or _task(one[1]) == _task(other[1]):
        return False
    return policy == "corroborated" or first.writer != second.writer


def _task(experience: Experience) -> str:
    return " ".join(experience.task.casefold().split())


def evidence(*lessons: Lesson) -> tuple[str, ...]:
    """The ids of the runs that support a lesson."""
    return tuple(dict.fromkeys(id for lesson in lessons for id in lesson.provenance.trajectory_ids))

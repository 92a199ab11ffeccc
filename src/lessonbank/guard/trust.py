"""Decides which lessons may be shown, by who wrote them and which runs support them, not by what they say."""

from __future__ import annotations

from typing import Final, get_args

from lessonbank.contracts.records import Experience, Lesson
from lessonbank.contracts.records.lessons import EXTRACTIVE
from lessonbank.contracts.settings import TrustPolicy as TrustPolicy

from .hazards import OUTPUT, RESULT, is_hazard
from .identity import is_separate_writer

MERGE: Final = "merge"
"""The method of a merged lesson. Its writer is that of its sources, or `several`."""
POLICIES: Final[tuple[TrustPolicy, ...]] = get_args(TrustPolicy)
LEDGER_TRUSTS: Final[frozenset[TrustPolicy]] = frozenset({"open", "corroborated"})
"""Policies under which measured evidence makes a lesson active. The other one asks for a person."""


_QUOTE: Final = ' ("'
"""Stands in a lesson by rules before what a tool printed."""


def showable(experience: Experience, policy: TrustPolicy, /, *, own_of: str = "") -> Experience:
    """Leave only the lessons that `policy` shows, and with an identity also those that `is_own` says are its own."""
    lessons = tuple(
        lesson
        for lesson in experience.active_lessons
        if _is_shown(lesson, policy) or (own_of and is_own(lesson, experience, own_of))
    )
    return experience if len(lessons) == len(experience.lessons) else experience.model_copy(update={"lessons": lessons})


def _is_shown(lesson: Lesson, policy: TrustPolicy) -> bool:
    if policy == "reviewed":
        return lesson.state == "active" and lesson.approved
    return policy == "open" or lesson.state == "active"


def is_own(lesson: Lesson, experience: Experience, identity: str, /) -> bool:
    """Whether runs of `identity` taught a lesson in words that neither another person nor a tool nor a page wrote.

    Rules that quote nothing write an agent's own commands: those that weaken a check or destroy wait all the same, and
    those that one run does not show, for a second one: then `experience` repeats it. A model may repeat what it read:
    one has to have checked its lesson.
    """
    source = lesson.provenance
    if experience.imported or source.identity != identity or not source.trajectory_ids or lesson.is_doubted:
        return False
    if source.method == EXTRACTIVE:
        is_once = len(source.trajectory_ids) == 1 and lesson.id not in experience.repeats
        if is_once and lesson.rests_on in (OUTPUT, RESULT):
            return False
        return _QUOTE not in lesson.content and not is_hazard(f"{lesson.title}\n{lesson.content}")
    return source.method == "llm" and not lesson.risk


def independent(pair: tuple[Lesson, Experience], other: tuple[Lesson, Experience], /) -> bool:
    """Whether two lessons come from independent runs: no run and no task in common.

    A writer with a key speaks for no lesson of its own: one alone could twist what others taught. Merged and imported
    lessons never count, because an imported file can name any run and any writer.
    """
    first, second = pair[0].provenance, other[0].provenance
    if MERGE in (first.method, second.method) or pair[1].imported or other[1].imported:
        return False
    if not first.trajectory_ids or not second.trajectory_ids:
        return False
    if not set(first.trajectory_ids).isdisjoint(second.trajectory_ids) or _task(pair[1]) == _task(other[1]):
        return False
    return _writer(first.identity) != _writer(second.identity) or not is_separate_writer(first.identity)


def _writer(identity: str) -> str:
    """Whoever has a key now may have been known by a name to an earlier version."""
    return identity.removeprefix("key:").removeprefix("name:")


def _task(experience: Experience) -> str:
    return " ".join(experience.task.casefold().split())


def evidence(*lessons: Lesson) -> tuple[str, ...]:
    """The ids of the runs that support a lesson."""
    return tuple(dict.fromkeys(id for lesson in lessons for id in lesson.provenance.trajectory_ids))

"""Says which lessons of a repository wait for a person, and are shown to no agent before."""

from __future__ import annotations

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Lesson
from lessonbank.guard.identity import of_process
from lessonbank.guard.trust import is_own


def is_shown(bank: ReasoningBank, lesson: Lesson, /, *, own: bool) -> bool:
    """Whether agents are shown a lesson; with `own` also a new one that only one's own runs taught."""
    if lesson.state != "probation":
        return lesson.state == "active"
    return own and is_own(lesson, bank.lessons.experience(lesson.id), of_process())


def waiting(bank: ReasoningBank, /, *, own: bool, most: int) -> int:
    """How many lessons wait; of those that are new and those in quarantine `most` each, at most."""
    held = bank.lessons.list(state="quarantined", limit=most)
    new = bank.lessons.list(state="probation", limit=most)
    return len(held) + sum(not is_shown(bank, lesson, own=own) for lesson in new)

"""What a page says of a lesson that the bank does not hold: a rollback took it back, or it was erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from lessonbank._base.aio import get_or_none
from lessonbank.contracts.records import Lesson

from .journal import Line

if TYPE_CHECKING:
    from .visit import Visit

TAKEN_BACK: Final = "a lesson that a rollback took back"
"""The history still tells it: what is erased leaves no entry that names it."""
ERASED: Final = "a lesson that was erased"


async def why_absent(visit: Visit, ids: Sequence[str], /) -> dict[str, str]:
    """By id: why the bank does not hold a lesson. In a large scope only that it does not: that takes long to find."""
    if visit.is_large:
        return dict.fromkeys(ids, "a lesson that was erased or that a rollback took back")
    return {id: TAKEN_BACK if await visit.bank.history.list(lesson=id, limit=1) else ERASED for id in ids}


async def title_in(visit: Visit, line: Line, /) -> tuple[str, bool]:
    """What a line of the journal calls its first lesson, and whether the bank holds that."""
    if not line.lessons:
        return "", False
    held: Lesson | None = await get_or_none(visit.bank.lessons.get(line.lessons[0]))
    if held:
        return held.title, True
    brought = line.entry.entry.brings
    then = next((lesson.title for lesson in brought.lessons if lesson.id == line.lessons[0]), "") if brought else ""
    return f"{then} (a rollback took it back)" if then else TAKEN_BACK, False

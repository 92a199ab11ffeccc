"""Lets the tasks that find a lesson find what was added to it, too."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank._base.aio import get_or_none
from lessonbank.contracts.records import Duplicate, Lesson, Replace
from lessonbank.contracts.store_calls import experience_of_lesson
from lessonbank.errors import LessonbankError
from lessonbank.guard.quote import quoted

from .scoped_bank import ScopedBank, log

_WHY = "it adds to a lesson of this task"


async def link_additions(bank: ScopedBank, lessons: Sequence[Lesson], /) -> tuple[str, ...]:
    """Name each addition among `lessons` where its lesson is held; a note where that fails: the run was learned."""
    notes: tuple[str, ...] = ()
    for lesson in lessons:
        if lesson.relation and lesson.relation.kind == "adds":
            try:
                notes += await _stand(bank, lesson, lesson.relation.lesson_ids[0])
            except LessonbankError as error:
                notes += (f"an addition is found by its own task alone: {quoted(error)}",)
                log.warning("%s", notes[-1])
    return notes


async def _stand(bank: ScopedBank, addition: Lesson, base: str) -> tuple[str, ...]:
    owner = await get_or_none(experience_of_lesson(bank.store, base, scope=bank.scope))
    if owner is None or addition.id in (*owner.repeats, *(lesson.id for lesson in owner.lessons)):
        return ()
    duplicate = Duplicate(title=addition.title, why=_WHY, is_general=True)
    now = owner.model_copy(update={"repeats": {**owner.repeats, addition.id: (duplicate,)}})
    vectors, notes = await bank.index([now])
    await bank.apply(Replace(experience=now, reason=_WHY), vectors=vectors, if_unchanged=[owner])
    return notes

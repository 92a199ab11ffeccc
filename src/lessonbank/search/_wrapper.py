"""What wrappers of a retriever share: they leave the space and new vectors to the one inside, and change matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.ports import Retriever, Vectors
from lessonbank.contracts.records import Experience, Lesson, Match

SLACK: Final = 8
"""How many experiences more than wanted are asked for at once, since mostly few are left out."""
GROWTH: Final = 4
"""How many times more are asked for when those were too few."""


def ask_next(asked: int, /, *, got: int, count: int, limit: int) -> int | None:
    """How many to ask for next; `None` when there are enough, or the last answer held all there are."""
    return None if count >= limit or got < asked else asked * GROWTH


@dataclass(frozen=True, slots=True)
class RetrieverWrapper:
    """Indexes as `inner` does."""

    inner: Retriever

    @property
    def space(self) -> str | None:
        """The inner retriever's space."""
        return self.inner.space

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """The inner retriever's vectors."""
        return await self.inner.index(experiences)

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Let the inner retriever catch up."""
        return await self.inner.catch_up(scope=scope, most=most)


def lessons_of(match: Match, /) -> tuple[Lesson, ...]:
    """The lesson that a match names, or every lesson of its experience; a retired one never."""
    lessons, lesson_id = match.experience.active_lessons, match.lesson_id
    return lessons if lesson_id is None else tuple([lesson for lesson in lessons if lesson.id == lesson_id])


def with_lessons(match: Match, lessons: Sequence[Lesson], /) -> Match:
    """`match` with these lessons in its experience."""
    experience = match.experience.model_copy(update={"lessons": tuple(lessons)})
    return match.model_copy(update={"experience": experience})

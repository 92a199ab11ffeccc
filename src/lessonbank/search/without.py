"""Leaves out what is named, as if it were not in the bank, and fills the places that it would have taken."""

from __future__ import annotations

from dataclasses import dataclass

from lessonbank.contracts.records import Found, Match

from ._wrapper import Around, lessons_of, with_lessons
from .leave_out import search_on


@dataclass(frozen=True, slots=True)
class Without(Around):
    """Leaves out lessons and experiences with these ids, and asks on until enough are left or there are no more."""

    ids: frozenset[str]

    @property
    def name(self) -> str:
        """The inner name."""
        return self.inner.name

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds besides."""
        found, kept = await search_on(self.inner, task, self._left, scope=scope, limit=limit)
        return found.model_copy(update={"matches": kept})

    def _left(self, match: Match) -> Match | None:
        if match.experience.id in self.ids:
            return None
        lessons = lessons_of(match)
        left = tuple(one for one in lessons if one.id not in self.ids)
        if len(left) == len(lessons):
            return match
        return with_lessons(match, left) if left else None

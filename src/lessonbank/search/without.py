"""Leaves out what is named, as if it were not in the bank, and fills the places that it would have taken."""

from __future__ import annotations

from dataclasses import dataclass

from lessonbank.contracts.records import Found, Match

from ._wrapper import SLACK, RetrieverWrapper, ask_next, lessons_of, with_lessons


@dataclass(frozen=True, slots=True)
class Without(RetrieverWrapper):
    """Leaves out lessons and experiences with these ids, and asks on until enough are left or there are no more."""

    ids: frozenset[str]

    @property
    def name(self) -> str:
        """The inner name."""
        return self.inner.name

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds besides."""
        asked: int | None = limit + SLACK
        retrieval, left = Found(), list[Match]()
        while asked is not None:
            retrieval = await self.inner(task, scope=scope, limit=asked)
            left = [rest for match in retrieval.matches if (rest := self._left(match))]
            asked = ask_next(asked, got=len(retrieval.matches), count=len(left), limit=limit)
        return retrieval.model_copy(update={"matches": tuple(left[:limit])})

    def _left(self, match: Match) -> Match | None:
        if match.experience.id in self.ids:
            return None
        lessons = lessons_of(match)
        left = tuple(lesson for lesson in lessons if lesson.id not in self.ids)
        if len(left) == len(lessons):
            return match
        return with_lessons(match, left) if left else None

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
        found, left = Found(), list[Match]()
        while asked is not None:
            found = await self.inner(task, scope=scope, limit=asked)
            left = [one for match in found.matches if (one := self._left(match))]
            asked = ask_next(asked, got=len(found.matches), kept=len(left), limit=limit)
        return found.model_copy(update={"matches": tuple(left[:limit])})

    def _left(self, match: Match) -> Match | None:
        if match.experience.id in self.ids:
            return None
        lessons = lessons_of(match)
        left = tuple(one for one in lessons if one.id not in self.ids)
        if len(left) == len(lessons):
            return match
        return with_lessons(match, left) if left else None

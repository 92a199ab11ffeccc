"""Shows lessons of one kind alone, and fills the places that others would have taken."""

from __future__ import annotations

from dataclasses import dataclass

from lessonbank.contracts.records import Found, Kind, Match

from ._wrapper import Around, lessons_of, with_lessons
from .leave_out import search_on


@dataclass(frozen=True, slots=True)
class OfKind(Around):
    """Leaves out lessons of another kind, and asks on until enough experiences have one or there are no more."""

    kind: Kind

    @property
    def name(self) -> str:
        """The inner name and the kind."""
        return f"{self.inner.name}+{self.kind}"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds of this kind; a reason where that is nothing of something."""
        found, kept = await search_on(self.inner, task, self._of, scope=scope, limit=limit)
        if kept or not found.matches:
            return found.model_copy(update={"matches": kept})
        return Found(notes=found.notes, empty=f"past tasks found: {len(found.matches)}, none taught a {self.kind}")

    def _of(self, match: Match) -> Match | None:
        lessons = tuple(one for one in lessons_of(match) if one.kind == self.kind)
        if not lessons or lessons == match.experience.lessons:
            return match if lessons else None
        return with_lessons(match, lessons)

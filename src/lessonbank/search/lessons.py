"""Search the lessons themselves, whatever the tasks were that they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.ports import Vectors
from lessonbank.contracts.records import Experience, Found, Match
from lessonbank.errors import ModelError, SpaceMismatch

from ._catch_up import VectorSearch

SUFFIX: Final = "#lessons"
"""What makes an embedder's space one of lessons: vectors of tasks and of lessons never meet."""


@dataclass(frozen=True, slots=True)
class LessonRetriever(VectorSearch):
    """By the cosine between the task and the text of each lesson: its title, description and content.

    A match is one lesson, which its `lesson_id` names; its experience is the whole one, and two lessons of one
    experience are two matches. `limit` counts lessons. The paper searches tasks (section A.2), as `DenseRetriever`
    does.

    When the embedder fails, tasks are searched by words, and the lessons of what is found count in their order.
    """

    name: str = "lesson/dense"
    of_lessons = True

    @property
    def space(self) -> str:
        """The embedder's space, for lessons."""
        return f"{self.embedder.space}{SUFFIX}"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """The `limit` active lessons that are closest to `task`."""
        try:
            matches, notes = await self.nearest(task, scope=scope, limit=limit)
        except (ModelError, SpaceMismatch) as error:
            near = await self.store.search(task, scope=scope, limit=limit)
            why = "the embedder failed: " if isinstance(error, ModelError) else ""
            note = f"searched by the words of the tasks only, because {why}{error}"
            return Found(matches=_lessons_of(near)[:limit], notes=(note,))
        return Found(matches=tuple(matches), notes=notes)

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """One vector per active lesson, of its text."""
        lessons = [lesson for experience in experiences for lesson in experience.active_lessons]
        if not lessons:
            return {}
        rows = await self.embedder.embed([lesson.text for lesson in lessons], role="document")
        return {lesson.id: rows[i] for i, lesson in enumerate(lessons)}


def _lessons_of(matches: Sequence[Match]) -> tuple[Match, ...]:
    named: dict[str, Match] = {}
    for match in matches:
        for lesson in match.experience.active_lessons:
            named.setdefault(lesson.id, match.model_copy(update={"lesson_id": lesson.id}))
    return tuple(named.values())

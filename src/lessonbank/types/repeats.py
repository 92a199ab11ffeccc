"""What an experience taught that the bank held already: it names the lesson, and holds no copy of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from .lessons import Experience, Lesson
from .runs import Json

REPEATS: Final = "repeats"
"""The key of an experience's metadata that keeps {lesson id: [{"title", "evidence", "why"}]} of what came again."""


def repeats_of(experience: Experience, /) -> Mapping[str, Json]:
    """What came again, by the id of the lesson that is held elsewhere."""
    kept = experience.metadata.get(REPEATS)
    return kept if isinstance(kept, dict) else {}


def with_repeats(experience: Experience, repeats: Mapping[str, Json], /) -> Experience:
    """`experience` with these repeats and no others."""
    metadata = {name: value for name, value in experience.metadata.items() if name != REPEATS}
    told = metadata | ({REPEATS: dict(repeats)} if repeats else {})
    return experience.model_copy(update={"metadata": told})


def without_repeats_of(experience: Experience, lessons: Collection[str], /) -> Experience:
    """`experience` that no longer names these lessons as taught again."""
    repeats = repeats_of(experience)
    left = {id: told for id, told in repeats.items() if id not in lessons}
    return experience if len(left) == len(repeats) else with_repeats(experience, left)


def shown_with(experience: Experience, lessons: Mapping[str, Lesson], /) -> Experience:
    """`experience` as a search gives it: behind its own lessons, those of `lessons` (by id) that it taught again."""
    own = {lesson.id for lesson in experience.lessons}
    again = tuple(lessons[id] for id in sorted(repeats_of(experience)) if id in lessons and id not in own)
    return experience.model_copy(update={"lessons": (*experience.lessons, *again)}) if again else experience

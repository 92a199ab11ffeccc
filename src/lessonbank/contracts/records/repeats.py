"""What an experience taught that the bank held already: it names the lesson, and holds no copy of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pydantic import ValidationError

from .lessons import Experience, Lesson
from .record import Moment, Record
from .runs import Json, RunRef

REPEATS: Final = "repeats"
"""The key of an experience's metadata that keeps {lesson id: [{"title", "evidence", "why"}]} of what came again. Where
it came in other words, `lesson` has it whole."""
NOT_RECOGNISED: Final = "not_recognised"
"""The key under which {lesson id: {"with", "why"}} says which lessons were kept because a model could not answer."""


class Repeat(Record):
    """One time a lesson came again: where, from which runs, and in which words."""

    experience_id: str
    task: str
    at: Moment
    runs: tuple[RunRef, ...]
    """The runs of that experience, with how they ended."""
    why: str
    """Why it was taken for the same."""
    lesson: Lesson | None = None
    """What came again, where its words were others. `lessons.split` makes it a lesson of its own."""


def repeats_in(experience: Experience, lesson_id: str, /) -> Iterator[Repeat]:
    """Each time that `experience` taught this lesson again. What cannot be read counts, without its words."""
    entries = repeats_of(experience).get(lesson_id)
    for told in entries if isinstance(entries, list) else ():
        entry = told if isinstance(told, dict) else {}
        yield Repeat(
            experience_id=experience.id,
            task=experience.task,
            at=experience.created_at,
            runs=experience.attempts,
            why=str(entry.get("why", "")),
            lesson=lesson_again(entry),
        )


def split_off(experience: Experience, lesson_id: str, /) -> tuple[Experience, tuple[Lesson, ...]]:
    """What `experience` taught again in other words, as lessons, and `experience` without these repeats."""
    entries = repeats_of(experience).get(lesson_id)
    entries = entries if isinstance(entries, list) else []
    lessons = [lesson_again(entry) for entry in entries]
    left: list[Json] = [entry for entry, lesson in zip(entries, lessons, strict=True) if lesson is None]
    others = {id: told for id, told in repeats_of(experience).items() if id != lesson_id}
    apart = with_repeats(experience, others | ({lesson_id: left} if left else {}))
    return apart, tuple(lesson for lesson in lessons if lesson is not None)


def lesson_again(entry: Json, /) -> Lesson | None:
    """What came again, where its words were others. It is trusted no more than a new lesson."""
    try:
        lesson = Lesson.model_validate(entry.get("lesson") if isinstance(entry, dict) else None)
    except ValidationError:
        return None
    # An imported file can say anything, but no lesson begins trusted.
    state = "quarantined" if lesson.state == "quarantined" else "probation"
    return lesson.model_copy(update={"state": state, "approved": False, "retired": False})


def repeats_of(experience: Experience, /) -> Mapping[str, Json]:
    """What came again, by the id of the lesson that is held elsewhere."""
    return mapping_at(experience, REPEATS)


def mapping_at(experience: Experience, key: str, /) -> Mapping[str, Json]:
    """The mapping under a key of an experience's metadata; empty where there is none."""
    kept = experience.metadata.get(key)
    return kept if isinstance(kept, dict) else {}


def taught_again(lesson: Lesson, why: str, /, *, words: bool) -> Json:
    """What is kept of a lesson that is left out: its words too, where they are others (`words`)."""
    told: dict[str, Json] = {"title": lesson.title, "evidence": [*lesson.provenance.evidence], "why": why}
    if words:
        told["lesson"] = lesson.model_dump(mode="json")
    return told


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

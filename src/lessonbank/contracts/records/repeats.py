"""What an experience taught that the bank held already: it names the lesson, and holds no copy of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from .lessons import Duplicate, Experience, Lesson
from .record import Moment, Record
from .runs import RunRef


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
    """Each time that `experience` taught this lesson again."""
    for duplicate in taught_in(experience, lesson_id):
        yield Repeat(
            experience_id=experience.id,
            task=experience.task,
            at=experience.created_at,
            runs=experience.attempts,
            why=duplicate.why,
            lesson=lesson_again(duplicate),
        )


def taught_in(experience: Experience, lesson_id: str, /) -> Sequence[Duplicate]:
    """What `experience` taught of this lesson; nothing where it is a general one that is only found here too."""
    return [duplicate for duplicate in experience.repeats.get(lesson_id, ()) if not duplicate.is_general]


def split_off(experience: Experience, lesson_id: str, /) -> tuple[Experience, tuple[Lesson, ...]]:
    """What `experience` taught again in other words, as lessons, and `experience` without these repeats."""
    entries = experience.repeats.get(lesson_id, ())
    left = tuple(duplicate for duplicate in entries if duplicate.lesson is None)
    others = {id: duplicates for id, duplicates in experience.repeats.items() if id != lesson_id}
    apart = experience.model_copy(update={"repeats": others | ({lesson_id: left} if left else {})})
    return apart, tuple(lesson for lesson in map(lesson_again, entries) if lesson is not None)


def lesson_again(duplicate: Duplicate, /) -> Lesson | None:
    """What came again, where its words were others. It is trusted no more than a new lesson."""
    if duplicate.lesson is None:
        return None
    # An imported file can say anything, but no lesson begins trusted.
    state = "quarantined" if duplicate.lesson.state == "quarantined" else "probation"
    return duplicate.lesson.model_copy(update={"state": state, "approved": False, "retired": False})


def taught_again(lesson: Lesson, why: str, /, *, words: bool) -> Duplicate:
    """What is kept of a lesson that is left out: its words too, where they are others (`words`)."""
    variant = lesson if words else None
    return Duplicate(title=lesson.title, evidence=lesson.provenance.evidence, why=why, lesson=variant)


def with_repeats(
    before: Mapping[str, tuple[Duplicate, ...]], more: Mapping[str, tuple[Duplicate, ...]], /
) -> dict[str, tuple[Duplicate, ...]]:
    """What was taught again before, and more: of one lesson both."""
    return {**before, **{id: (*before.get(id, ()), *duplicates) for id, duplicates in more.items()}}


def without_repeats_of(experience: Experience, lessons: Collection[str], /) -> Experience:
    """`experience` that no longer names these lessons as taught again."""
    left = {id: duplicates for id, duplicates in experience.repeats.items() if id not in lessons}
    return experience if len(left) == len(experience.repeats) else experience.model_copy(update={"repeats": left})


def shown_with(experience: Experience, lessons: Mapping[str, Lesson], /) -> Experience:
    """`experience` as a search gives it: behind its own lessons, those of `lessons` (by id) that it taught again."""
    own = {lesson.id for lesson in experience.lessons}
    again = tuple(lessons[id] for id in sorted(experience.repeats) if id in lessons and id not in own)
    return experience.model_copy(update={"lessons": (*experience.lessons, *again)}) if again else experience

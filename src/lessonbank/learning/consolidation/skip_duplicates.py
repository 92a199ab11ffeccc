"""Leave out lessons that the bank holds already, and remember that they came again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessonbank.protocols import Retriever
from lessonbank.types import Add, Change, Experience, Json, Lesson
from lessonbank.types.repeats import repeats_of, with_repeats

from .duplicates import compare


@dataclass(frozen=True, slots=True)
class SkipDuplicates:
    """Keep the experience, but leave out lessons that are the same as an active lesson of the nearest experiences.

    `duplicates.compare` says what is the same: no model is asked, and nothing but form may differ. The experience's
    metadata names the lessons that were confirmed: `{"repeats": {lesson id: [{"title", "evidence", "why"}]}}`.
    """

    retriever: Retriever
    among: int = 10
    """How many of the nearest experiences are compared."""

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """One `Add`, with the lessons that say something new."""
        sifted = sift(new.lessons, await held(self.retriever, new, among=self.among))
        return (Add(experience=sifted.of(new)),)


@dataclass(frozen=True, slots=True)
class Sifted:
    """Lessons that are new, and what the others repeat (lesson id to what came again)."""

    kept: tuple[Lesson, ...]
    repeats: dict[str, Json]

    def of(self, new: Experience, /) -> Experience:
        """`new` with the kept lessons, and the repeats in its metadata."""
        left = new.model_copy(update={"lessons": self.kept})
        return with_repeats(left, {**repeats_of(new), **self.repeats}) if self.repeats else left


async def held(retriever: Retriever, new: Experience, /, *, among: int) -> dict[str, tuple[Lesson, Experience]]:
    """The active lessons of the `among` experiences nearest to the task of `new`, each with its experience, by id."""
    near = await retriever(new.task, scope=new.scope, limit=among)
    found = ((lesson, match.experience) for match in near.matches for lesson in match.experience.active_lessons)
    known: dict[str, tuple[Lesson, Experience]] = {}
    for lesson, experience in found:
        # An experience that only taught it again is not the one that holds it.
        if lesson.id not in known or lesson.id not in repeats_of(experience):
            known[lesson.id] = lesson, experience
    return known


def sift(lessons: Sequence[Lesson], held: dict[str, tuple[Lesson, Experience]], /) -> Sifted:
    """`lessons` without those that are the same as a held one, or as one before them."""
    known = [lesson for lesson, _ in held.values()]
    kept: list[Lesson] = []
    repeats: dict[str, list[Json]] = {}
    for lesson in lessons:
        found = next(((k, like) for k in (*known, *kept) if (like := compare(lesson, k)).level == "same"), None)
        if found is None:
            kept.append(lesson)
            continue
        again: Json = {"title": lesson.title, "evidence": list(lesson.provenance.evidence), "why": found[1].reason}
        repeats.setdefault(found[0].id, []).append(again)
    return Sifted(tuple(kept), dict(repeats))

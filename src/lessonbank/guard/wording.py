"""When two lessons say the same in the same words: evidence counts for a lesson, and copies would split it."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from lessonbank.contracts.records import Duplicate, Experience, Lesson
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.records.repeats import taught_again

from ._characters import plain

_ENDS: Final = " .,;:!?…。！？；，、\"'`*_"
"""What a writer may put before or behind a sentence without saying anything else."""


def wording_of(lesson: Lesson, /) -> str:
    """The name of the words of a lesson. Lessons with one name differ in nothing that a reader would act upon.

    Only title and content count. Case, blanks, line breaks, signs that nobody sees, forms of one letter (Unicode's
    NFKC) and punctuation at both ends do not.
    """
    return digest(f"{_canonical(lesson.title)}\n{_canonical(lesson.content)}")[:32]


def said_once(experience: Experience, held: dict[str, str], /) -> Experience:
    """`experience` without the lessons whose wording is `held` (wording to lesson id), which it names as taught again.

    What it keeps is held from then on: a lesson that comes twice in one experience is kept once.
    """
    kept: list[Lesson] = []
    again: dict[str, tuple[Duplicate, ...]] = {}
    for lesson in experience.lessons:
        if (known := held.setdefault(wording_of(lesson), lesson.id)) == lesson.id:
            kept.append(lesson)
            continue
        again[known] = (*again.get(known, ()), taught_again(lesson, "the same words", words=False))
    if not again:
        return experience
    return experience.model_copy(update={"lessons": tuple(kept), "repeats": experience.repeats | again})


@lru_cache(maxsize=64)  # of one lesson it is asked at each step of a commit
def _canonical(text: str) -> str:
    return " ".join(plain(unicodedata.normalize("NFKC", plain(text))).casefold().split()).strip(_ENDS)

"""When two lessons say the same in the same words: evidence counts for a lesson, and copies would split it."""

from __future__ import annotations

import unicodedata
from typing import Final

from lessonbank.types import Lesson
from lessonbank.types.ids import digest

from ._characters import plain

_ENDS: Final = " .,;:!?…。！？；，、\"'`*_"
"""What a writer may put before or behind a sentence without saying anything else."""


def wording_of(lesson: Lesson, /) -> str:
    """The name of the words of a lesson. Lessons with one name differ in nothing that a reader would act upon.

    Only title and content count. Case, blanks, line breaks, signs that nobody sees, forms of one letter (Unicode's
    NFKC) and punctuation at both ends do not.
    """
    return digest(f"{_canonical(lesson.title)}\n{_canonical(lesson.content)}")[:32]


def _canonical(text: str) -> str:
    return " ".join(plain(unicodedata.normalize("NFKC", plain(text))).casefold().split()).strip(_ENDS)

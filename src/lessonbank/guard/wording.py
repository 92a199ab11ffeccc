"""When two lessons say the same in the same words: evidence counts for a lesson, and copies would split it."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

from lessonbank.contracts.records import EXTRACTIVE, Duplicate, Experience, Lesson
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.records.repeats import taught_again, with_repeats

from ._characters import plain

_ENDS: Final = " .,;:!?…。！？；，、\"'`*_"
"""What a writer may put before or behind a sentence without saying anything else."""
_SOURCE: Final = re.compile(r"<(?:chosen )?([^<>]+?)(?: from [^<>]+)?>")
_SEEN: Final = re.compile(r' \("[^"]*"\)| \(what was seen in brackets\)')
_STEP: Final = re.compile(r"[;:] step \d+: ")
_LOOKED_UP: Final = re.compile(
    r"`(?:get|list|search|find|read|view|show|look|check|query|fetch|count|describe)(?![a-z])\w*\("
)
_WORKED: Final = "This order worked"
SAME_WORDS: Final = "the same words"
"""Why a lesson that comes again in its own words is left out."""


def wording_of(lesson: Lesson, /) -> str:
    """The name of the words of a lesson. Lessons with one name differ in nothing that a reader would act upon.

    Only title and content count. Case, blanks, line breaks, signs that nobody sees, forms of one letter (Unicode's
    NFKC) and punctuation at both ends do not.
    """
    return _name_of(lesson.title, lesson.content)


def without_sources(text: str, /) -> str:
    """`text` whose slots do not say where their values came from: `<order id>` for `<order id from the request>`."""
    return _SOURCE.sub(r"<\1>", text)


def fact_of(lesson: Lesson, /) -> str:
    """The words of what a lesson says to do. Of one that rules drew from a run these are title and moves: what was
    looked up and seen on the way that worked, and where the values of a call came from, make no other fact."""
    if lesson.provenance.method != EXTRACTIVE:
        return lesson.wording
    moves = without_sources(moves_of(lesson))
    if lesson.content.startswith(_WORKED):
        moves = "; ".join([step for step in _STEP.split(moves) if not _LOOKED_UP.match(step)])
    return f"{lesson.title}\n{moves}".casefold().rstrip(" .")


def moves_of(lesson: Lesson, /) -> str:
    """The content of a lesson that rules drew, without what was seen on the way where that worked."""
    return _SEEN.sub("", lesson.content) if lesson.content.startswith(_WORKED) else lesson.content


def said_once(experience: Experience, held: dict[str, str], /) -> Experience:
    """`experience` without the lessons whose wording is `held` (wording to lesson id), which it names as taught again.

    What it keeps is held from then on: a lesson that comes twice in one experience is kept once.
    """
    lessons: list[Lesson] = []
    again: dict[str, tuple[Duplicate, ...]] = {}
    for lesson in experience.lessons:
        if (known := held.setdefault(wording_of(lesson), lesson.id)) == lesson.id:
            lessons.append(lesson)
            continue
        again[known] = (*again.get(known, ()), taught_again(lesson, SAME_WORDS, words=False))
    if not again:
        return experience
    repeats = with_repeats(experience.repeats, again) if experience.repeats else again
    return experience.model_copy(update={"lessons": tuple(lessons), "repeats": repeats})


@lru_cache(maxsize=64)  # of one lesson it is asked at each step of a commit
def _name_of(title: str, content: str) -> str:
    return digest(f"{_canonical(title)}\n{_canonical(content)}")[:32]


def _canonical(text: str) -> str:
    return " ".join(plain(unicodedata.normalize("NFKC", plain(text))).casefold().split()).strip(_ENDS)

"""Holds what a lesson claims in fields to its own words, so that whoever checks the words has checked the fields."""

from __future__ import annotations

import re
from typing import Final

from lessonbank.contracts.records import AppliesTo, Choice, Lesson
from lessonbank.guard.sanitise import canonical_line

from ._empty import STOP, stem

OPTIONS: Final = 12
"""Options of a choice that are kept, of each kind."""
_OPTION: Final = 60
_NAME: Final = 80
_WORD = re.compile(r"\w+")
_GENERAL: Final = (
    "field value column row line message reply result output error page form step tool call command test log"
)
"""What a field or message is called that the lesson names."""


def claimed(lesson: Lesson, /) -> Lesson:
    """`lesson`, whose fields of this kind say nothing that its title, description and content do not say."""
    if lesson.applies_to is None and lesson.choice is None and not lesson.rests_on:
        return lesson
    text = lesson.text
    fields = {"applies_to": _reach(lesson.applies_to, text), "choice": _choice(lesson.choice, text)}
    return lesson.model_copy(update={**fields, "rests_on": _ground(lesson.rests_on, text)})


def _ground(ground: str, text: str) -> str:
    """The field or message that a lesson rests on; empty where the lesson does not name it."""
    line = canonical_line(ground, limit=_NAME)[:_NAME]
    return line if line and _stems(line) - _stems(_GENERAL) <= _stems(text) else ""


def _reach(applies_to: AppliesTo | None, text: str) -> AppliesTo | None:
    if applies_to is None or not applies_to.name:
        return applies_to
    name = canonical_line(applies_to.name, limit=_NAME)[:_NAME]
    return applies_to.model_copy(update={"name": name if _stands_in(name, text) else ""})


def _choice(choice: Choice | None, text: str) -> Choice | None:
    """`None` where the lesson does not speak of the choice, or of no option that was ruled out or confirmed."""
    if choice is None:
        return None
    about, stems = canonical_line(choice.about, limit=_NAME)[:_NAME], _stems(text)
    if not about or not _stems(about) <= stems:
        return None
    confirmed = _options(choice.confirmed, text)
    excluded = tuple(option for option in _options(choice.excluded, text) if option not in confirmed)
    left = tuple(option for option in _options(choice.open, text) if option not in (*confirmed, *excluded))
    if not (excluded or confirmed):
        return None
    return Choice(about=about, excluded=excluded, open=left, confirmed=confirmed)


def _options(options: tuple[str, ...], text: str) -> tuple[str, ...]:
    names = (canonical_line(option, limit=_OPTION) for option in options[:OPTIONS])
    return tuple(dict.fromkeys(name for name in names if len(name) <= _OPTION and _stands_in(name, text)))


def _stands_in(name: str, text: str) -> bool:
    """Whether `name` stands in `text` between two edges of words, whatever its case."""
    folded = " ".join(name.casefold().split())
    line = " ".join(text.casefold().split())
    return bool(folded) and re.search(rf"(?<!\w){re.escape(folded)}(?!\w)", line) is not None


def _stems(text: str) -> set[str]:
    return {stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP}

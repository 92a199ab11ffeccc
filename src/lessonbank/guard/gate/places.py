"""Knows the place that a lesson holds in from a person: its name may stay, where a person's may not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from lessonbank.types import Lesson

_READ: Final = 20_000
_STAND_IN: Final = "this-place"
_TITLED: Final = r"[^\W\d_a-z][\w-]*"


def place_of(lesson: Lesson, tasks: Sequence[str], /) -> str:
    """The name of the repository, site or organisation that the lesson says it holds in; empty where there is none.

    A task must speak of it as one works *in* it: "In Orchard Pricing, set …", "In Marlow's Orchard Pricing, set …".
    Nobody says so of a person; what belongs to one ("in Jane Roe's account") is no place by that name.
    """
    told = lesson.applies_to
    if told is None or told.reach not in ("place", "organisation") or not told.name:
        return ""
    name = re.escape(told.name)
    pattern = re.compile(
        rf"\b[Ii]n (?:the \w+ )?(?:{_TITLED}['’]s )?{name}(?!['’]|\w)|\b[Ii]n {name}['’]s {_TITLED} {_TITLED}"
    )
    return told.name if any(pattern.search(task[:_READ]) for task in tasks) else ""


def beside(name: str, text: str, made: Callable[[str], str], /) -> str:
    """What `made` makes of `text` when `name` is nobody's."""
    return made(text.replace(name, _STAND_IN)).replace(_STAND_IN, name) if name else made(text)


def without(name: str, text: str, /) -> str:
    """`text` in which `name` is nobody's."""
    return text.replace(name, _STAND_IN) if name else text

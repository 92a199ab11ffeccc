"""How a sentence names a record: with a part of its id that commands accept."""

from __future__ import annotations

from typing import Final

SHOWN: Final = 8
"""Characters of an id in a sentence or a table; fields have all of it."""
LEAST: Final = 4
"""Characters that name a record."""


def short(id: str, /) -> str:
    """The end of an id: ids begin with the time, so those of one minute begin alike."""
    return id[-SHOWN:]


def nameless(title: str, id: str, /) -> str:
    """What stands for the title of a lesson that is erased, or whose title nobody can read."""
    return f"{'lesson' if title else 'an erased lesson,'} {short(id)}"

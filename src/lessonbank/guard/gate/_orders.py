"""Finds text in a lesson that imitates a turn of a chat, a marker or a call of a tool."""

from __future__ import annotations

import re

from ._phrases import any_of
from ._skeleton import views

_READ = 20_000
"""Characters of a lesson that are read."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_OPENED = re.compile(r"(?:^|(?<=[\s(:]))[\"'“‘«](?=\S|$)")
_CLOSED = re.compile(r"(?<=\S)[\"'”’»](?=[\s.,;:!?)]|$)")


def imitates_a_turn(text: str, /, *, quoting: bool = True) -> bool:
    """Whether `text` looks like a turn of a chat, a marker or a call. With `quoting`, what is in quotes does not."""
    return any(
        not (quoting and _is_quoted(view, found.start()))
        for view in views(text[:_READ])
        for found in any_of("turns").finditer(view)
    )


def _is_quoted(text: str, start: int) -> bool:
    """Whether a quote or code is open before `start`."""
    before = _SENTENCE.split(text[max(0, start - 200) : start])[-1]
    opened = len(_OPENED.findall(before)) > len(_CLOSED.findall(before))
    return before.count("`") % 2 == 1 or (opened and text[start : start + 1] not in "{[")

"""Titles in a list, cut so that those that begin alike can be told apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Final

_LEAST: Final = 24
"""Characters that are kept before and behind a place that was cut out."""
_COMPARED: Final = 2_000
"""Characters of each text that are looked at."""


def apart(texts: Iterable[str], most: int, /) -> Sequence[str]:
    """Each text on one line, in about `most` characters.

    One that begins like another is cut in the middle and not at the end: the words in which they differ are there.
    """
    every = [" ".join(text[:_COMPARED].split()) for text in texts]
    order = sorted(range(len(every)), key=lambda at: every[at])
    lines = list(every)
    for place, at in enumerate(order):
        beside = [every[order[other]] for other in (place - 1, place + 1) if 0 <= other < len(order)]
        shared = max((_shared(every[at], text) for text in beside if text != every[at]), default=0)
        lines[at] = _cut(every[at], most, shared)
    return lines


def _shared(text: str, other: str) -> int:
    """With how many same characters both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


def _cut(text: str, most: int, shared: int) -> str:
    """`shared`: so many characters another text begins with, too."""
    if len(text) <= most:
        return text
    if shared <= most - _LEAST or shared >= len(text):
        return f"{text[:most].rstrip()} …"
    word = text.rfind(" ", 0, shared) + 1
    begin = max(most // 3, _LEAST)
    start = max(min(word if shared - word < most // 3 else shared, len(text) - most + begin), begin)
    end = start + most - begin
    return f"{text[:begin].rstrip()} … {text[start:end].strip()}{' …' if end < len(text) else ''}"

"""Cuts a long text where no secret is cut in two: Python runs no other thread while a pattern reads a text."""

from __future__ import annotations

import re
from collections.abc import Iterator

_SIZE = 32_768
_FURTHER = 16_384
"""Characters in which a good place to cut is looked for."""
_OVERLAP = 4_096
"""Characters of the next portion that are read as well: no secret without line breaks is longer."""
_NO_BODY = r"(?![\s>|#*+\"']{0,40}+[A-Za-z0-9+/=]{16})"
"""Not before a line of a private key or of something encoded."""
_GOOD = tuple(re.compile(blank + _NO_BODY) for blank in (r"\n", r"\s"))
_ANY = re.compile(r"[^A-Za-z0-9_+/=-]")


def portions(text: str, first: int, last: int, /) -> Iterator[tuple[int, int]]:
    """Where the portions of `text` from `first` to `last` begin and end. What begins in one ends in it."""
    while last - first > _SIZE + _FURTHER:
        cut = _cut(text, first + _SIZE, last)
        yield first, _cut(text, min(cut + _OVERLAP, last), last)
        first = cut
    if first < last:
        yield first, last


def _cut(text: str, at: int, last: int) -> int:
    for place in _GOOD:
        if match := place.search(text, at, min(at + _FURTHER, last)):
            return match.start()
    match = _ANY.search(text, at, last)
    return match.start() if match else last

"""The records of redaction: the part of a text that must go, and what detectors read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple, TypeAlias

PLACEHOLDER = re.compile(r"\[([a-z](?:[a-z-]| (?=[a-z])){1,23}) (\d{1,6})\]")
"""What stands where something was: what it was, and which one."""


class Span(NamedTuple):
    """A part of a text that must go."""

    start: int
    end: int
    kind: str
    """What it is, in a word or two: it stands in the placeholder."""
    value: str
    """What it says: the same value gets the same number, however it was written."""
    typed: bool = True
    """Whether its form alone gives it away; else what stands beside it does."""


LONG = 12
"""Characters without a blank among them below which a word is neither a key nor something encoded."""
_BRIEF = 4096
"""Characters of a text above which some word is nearly always long."""


class Page:
    """A text and what all detectors need of it, computed once."""

    __slots__ = ("long", "low", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.low = text.replace("\u0130", "I").lower()
        """The same in lower case, with the same places: the one letter that would grow is exchanged first."""
        self.long = [w for w in text.split() if len(w) >= LONG] if len(text) <= _BRIEF else None
        """The words of 12 characters or more. `None` if the text is too long to look."""


Detector: TypeAlias = Callable[[Page], Iterable[Span]]


@cache
def compiled(source: str, /) -> re.Pattern[str]:
    """`source` as a pattern, made when it is first needed: most texts need few of them."""
    return re.compile(source)


def merged(spans: Iterable[Span], /) -> list[Span]:
    """`spans` in order, with those that overlap as one: the one whose form is known gives it its name."""
    whole: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end)):
        if whole and span.start < whole[-1].end:
            whole[-1] = _joined(whole[-1], span)
        else:
            whole.append(span)
    return whole


def _joined(first: Span, second: Span) -> Span:
    named = second if second.typed and not first.typed else first
    return named._replace(start=first.start, end=max(first.end, second.end))


def positions(page: Page, words: Sequence[str], /) -> list[int]:
    """Where one of `words` (in small letters) begins, in order."""
    found: list[int] = []
    for word in words:
        at = page.low.find(word)
        while at >= 0:
            found.append(at)
            at = page.low.find(word, at + len(word))
    return sorted(set(found))

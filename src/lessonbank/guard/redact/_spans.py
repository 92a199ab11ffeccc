"""The records of redaction: the part of a text that must go, and what detectors read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
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


_WORD = 12
"""Characters of the shortest word that is a key or something encoded."""
_KEY = 15
"""Characters of the shortest key, or of its longest part if blanks stand in it."""


class Page:
    """A text and what all detectors need of it, computed once."""

    __slots__ = ("keys", "long", "low", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.low = text.replace("\u0130", "I").lower()
        """The same in lower case, with the same places: the one letter that would grow is exchanged first."""
        self.long = [word for word in text.split() if len(word) >= _WORD]
        """The long words, in order."""
        self.keys = "\n".join(word for word in self.long if len(word) >= _KEY)
        """The words that may be keys: what is not among them need not be looked for in the text."""


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


def places(text: str, word: str, /) -> Iterator[int]:
    """Where `word` begins in `text`."""
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def positions(page: Page, words: Sequence[str], /) -> list[int]:
    """Where one of `words` (in small letters) begins, in order."""
    return sorted({at for word in words for at in places(page.low, word)})

"""The records of redaction: the part of a text that must go, and what detectors read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

PLACEHOLDER = re.compile(r"\[([a-z](?:[a-z-]| (?=[a-z])){1,23}) (\d{1,6})\]")
"""The text in the place of a secret: the kind of secret, and a number for each one."""


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


_KEY = 12
"""Characters of the shortest word that is a key or something encoded."""
_SHAPES = bytes.maketrans(b"0123456789 \t", b"0000000000--")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")


class Page:
    """A text and what all detectors need of it, computed once.

    A text says most of its words again and again, so what is looked for is looked for among its different words first.
    """

    __slots__ = ("every", "keys", "low", "low_words", "shape", "text", "words")

    def __init__(self, text: str) -> None:
        self.text = text
        self.low = text.replace("\u0130", "I").lower()  # the one letter that would grow is exchanged first
        """The same in lower case, with the same places."""
        self.every = text.split()
        """The words of the text, in order."""
        different = set(self.every)
        self.words = f" {' '.join(different)} "
        """The different words of the text, between blanks."""
        self.low_words = f" {' '.join(set(self.low.split()))} "
        """The same in lower case."""
        self.keys = f" {' '.join([word for word in different if len(word) >= _KEY])} "
        """Those that may be keys or encoded."""
        digits = text if text.isascii() else _OTHER_DIGIT.sub("0", text)
        self.shape = digits.encode("ascii", "replace").translate(_SHAPES)
        """The text with `0` for each digit and `-` for each blank."""


class Detector(NamedTuple):
    """What finds one kind of secret or of personal data, and what a page must hold for it to find anything."""

    find: Callable[[Page], Iterable[Span]]
    read: Literal["words", "low_words", "shape"] = "words"
    """The reading of the page in which one of the signs stands then."""
    signs: Sequence[str] | Sequence[bytes] = ("",)


def found_on(page: Page, detectors: Iterable[Detector], /) -> list[Span]:
    """What detectors find. Most pages lack the signs of most kinds, and those are not looked for."""
    return [
        span
        for find, read, signs in detectors
        if any(map(getattr(page, read).__contains__, signs))
        for span in find(page)
    ]


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
    """Where one of `words` (in small letters, without blanks) begins, in order."""
    return sorted({at for word in words if word in page.low_words for at in places(page.low, word)})

"""Finds a number that was recognised once in its other forms: other gaps, brackets, the country code, or none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ._spans import Span

LEAST = 9
"""Digits of the shortest number that is looked for: a shorter one may be a count or an id."""
_GAP = r"[ \t\u00a0().,/\u2010-\u2013-]"
_DIGITS = re.compile(r"\d+")
_LIKELY = re.compile(rf"\d(?:{_GAP}{{0,3}}\d){{{LEAST - 1},}}+")
_WORD = re.compile(r"\w")
_GOES_ON = re.compile(r"\w|\.\d")
_PARTS = 19


def telephone(digits: str, /) -> str:
    """A telephone number as it is compared: without the sign of a foreign call, and without North America's code."""
    digits = digits.removeprefix("00")
    return digits[1:] if len(digits) == 11 and digits[0] == "1" else digits


def known_numbers(text: str, known: Mapping[str, str], /) -> Iterator[Span]:
    """Where one of the `known` numbers (its digits, and its kind) stands, in any form. Linear in the text."""
    longest = max(map(len, known)) + 3
    for likely in _LIKELY.finditer(text):
        parts = [part.span() for part in _DIGITS.finditer(text, *likely.span())]
        at = 0
        while at < len(parts):
            match = _from(text, parts[at : at + _PARTS], known, longest)
            if match:
                yield match[0]
            at += match[1] if match else 1


def _from(
    text: str, parts: Sequence[tuple[int, int]], known: Mapping[str, str], longest: int
) -> tuple[Span, int] | None:
    """The number that begins with the first part, and of how many parts it is."""
    digits = ""
    start = parts[0][0]
    if start and (_WORD.match(text, start - 1) or (text[start - 1] == "." and text[max(0, start - 2)].isdigit())):
        return None
    for count, (first, end) in enumerate(parts, 1):
        digits += text[first:end]
        if len(digits) > longest:
            return None
        value = digits if digits in known else telephone(digits)
        if value in known and not _GOES_ON.match(text, end):
            return Span(_opening(text, start, end), end, known[value], value), count
    return None


def _opening(text: str, start: int, end: int) -> int:
    """Where it begins with its sign and its bracket; a bracket that closes behind it does not belong to it."""
    while start and text[start - 1] in ("+(" if ")" in text[start:end] else "+"):
        start -= 1
    return start

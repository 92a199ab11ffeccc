"""Tells whether a lesson was learned, or only read in what memory itself had shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ._empty import STOP, stem

_BLOCK = re.compile(r"<<<\s?lessons ([0-9a-f]{8})>>>\n(.{1,60000}?)\n<<<\s?end lessons \1>>>", re.DOTALL)
_FRONT = re.compile(r"^[0-9a-f]{8}\| ?", re.MULTILINE)
_NUMBER = re.compile(r"^\[\d+\] (?:strategy: |guardrail: )?", re.MULTILINE)
_MARKED = re.compile(r"<<<\s?(?:end )?lessons [0-9a-f]{8}>>>|^[ \t]*[0-9a-f]{8}\| ", re.MULTILINE)
"""Our own block, marked by its code: nobody else writes so."""
_WORD = re.compile(r"\w+")
_DENSE = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_PART = re.compile(r"(?<=[.!?;。！？])\s+|\n+|(?<=[。！？])|, and ")
# A name, a number, code, a label: one of them changes what a sentence says.
_PRECISE = re.compile(
    r"`[^`\n]{1,80}`|(?<!\w)\w+(?:[_./:=#@-]\w+)+|\b\w*\d\w*\b|(?<=[\w,;:)] )[\"'“(]?[A-Z][a-z]+\b|\b[A-Z]{2,}\b"
)
_SIGNS = " `'\"()[]{}.,:;“”"
_LEAST = 4
_SHINGLE = 3
_STEM = 4
"""Letters of a word that are compared: given and gives, promise and promising are one."""
_SAME_RUNS = 0.5
"""Share of a lesson's runs of three words that a shown lesson has: above it, the lesson was copied."""
_SAME_WORDS = 0.65
"""Share of its words: above it, it was reworded or put together from what was shown."""


def lessons_in(texts: Iterable[str], /) -> list[str]:
    """The lessons of the blocks that stand in `texts`, each by itself, without the code before their lines."""
    found = (block[2] for text in texts if "lessons " in text for block in _BLOCK.finditer(text[:400_000]))
    split = (_NUMBER.split(_FRONT.sub("", block)) for block in found)
    return [lesson for lessons in split for lesson in lessons if len(lesson.strip(" ~\n")) > _LEAST]


def is_echo(title: str, content: str, shown: Sequence[str], /) -> bool:
    """Whether a lesson says what one of the lessons of `shown` says, or part by part what several of them say.

    What has a name, a number, a label or code that the shown lesson has not says something new: words of a small world
    come again and again, and it is which of them belong together that is learned.
    """
    if _MARKED.search(content):
        return True
    told = [_Told.of(one) for one in shown if one]
    whole = f"{title}\n{content}"
    if not told or len(_read(content)) < _LEAST:
        return False
    if any(one.says(content) and not _specific(whole) - one.specific for one in told):
        return True
    parts = [part for part in _PART.split(content) if len(set(_read(part)) - STOP) >= _LEAST]
    return bool(parts) and all(any(one.says(part) for one in told) for part in parts) and not _joins(whole, told)


def _joins(whole: str, told: Sequence[_Told]) -> bool:
    """Whether a lesson brings together what no shown lesson has together: that is new, whatever its words."""
    specific = _specific(whole)
    return bool(specific) and not any(specific <= one.specific for one in told)


@dataclass(frozen=True, slots=True)
class _Told:
    words: frozenset[str]
    runs: frozenset[tuple[str, ...]]
    specific: frozenset[str]

    @classmethod
    def of(cls, text: str, /) -> _Told:
        read = _read(text)
        return cls(frozenset(read), frozenset(_runs(read)), frozenset(_specific(text)))

    def says(self, part: str, /) -> bool:
        if _specific(part) - self.specific:
            return False
        read = _read(part)
        own, runs = set(read) - STOP, _runs(read)
        if runs and len(runs & self.runs) >= _SAME_RUNS * len(runs):
            return True
        return len(own) >= _LEAST and len(own & self.words) >= _SAME_WORDS * len(own)


def _specific(text: str) -> set[str]:
    """What of a text changes its meaning by one word: numbers, code, labels, names with signs in them."""
    return {stem(word.casefold().strip(_SIGNS)) for word in _PRECISE.findall(text[:20_000])} - {""}


def _read(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(text[:20_000].casefold()):
        words += list(word) if _DENSE.search(word) else [stem(word)[:_STEM]]
    return words


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[i:] for i in range(_SHINGLE)), strict=False))

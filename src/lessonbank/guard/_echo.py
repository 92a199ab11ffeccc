"""Tells whether a lesson was learned, or only read in what memory itself had shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ._empty import STOP, stem

_BLOCK = re.compile(r"<<<\s?lessons ([0-9a-f]{8})>>>\n(.{1,60000}?)\n<<<\s?end lessons \1>>>", re.DOTALL)
_FRONT = re.compile(r"^[0-9a-f]{8}\| ?", re.MULTILINE)
_WORD = re.compile(r"\w+")
_DENSE = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MARKED = re.compile(r"<<<\s?(?:end )?lessons [0-9a-f]{8}>>>|^[ \t]*[0-9a-f]{8}\| ", re.MULTILINE)
"""Our own block, marked by its code: nobody else writes so."""
_PART = re.compile(r"(?<=[.!?;。！？])\s+|\n+|(?<=[。！？])|, and ")
_PRECISE = re.compile(r"`[^`\n]{1,80}`|(?<!\w)\w+(?:[_./:=#@-]\w+)+|\b\w*\d\w*\b")
_SIGNS = " `'\"()[]{}.,:;"
_LEAST = 4
_SHINGLE = 3
_STEM = 4
"""Letters of a word that are compared: given and gives, promise and promising are one."""
_SAME_RUNS = 0.5
"""Share of a lesson's runs of three words that a shown text has: above it, the lesson was copied."""
_SAME_WORDS = 0.65
"""Share of its words: above it, it was reworded or put together from what was shown."""


def blocks(texts: Iterable[str], /) -> list[str]:
    """The blocks of lessons that stand in `texts`, without the code before their lines."""
    return [
        _FRONT.sub("", found[2]) for text in texts if "lessons " in text for found in _BLOCK.finditer(text[:400_000])
    ]


def is_echo(text: str, shown: Sequence[str], /) -> bool:
    """Whether every part of `text` says what one of the texts of `shown` says, in its words.

    A part with a name, a number or code that the shown text has not says something new.
    """
    told = [(set(words := _read(one)), _runs(words), _specific(one)) for one in shown if one]
    if not told or len(_read(text)) < _LEAST:
        return bool(_MARKED.search(text))
    parts = [part for part in _PART.split(text) if len(set(_read(part)) - STOP) >= _LEAST]
    whole = any(_said(text, *one) for one in told)
    each = bool(parts) and all(any(_said(part, *one) for one in told) for part in parts)
    return whole or each or bool(_MARKED.search(text))


def _said(part: str, words: set[str], runs: set[tuple[str, ...]], specific: set[str]) -> bool:
    if _specific(part) - specific:
        return False
    read = _read(part)
    own, own_runs = set(read) - STOP, _runs(read)
    if own_runs and len(own_runs & runs) >= _SAME_RUNS * len(own_runs):
        return True
    return len(own) >= _LEAST and len(own & words) >= _SAME_WORDS * len(own)


def _specific(text: str) -> set[str]:
    """What of a text changes its meaning by one word: numbers, code, names with signs in them."""
    return {word.casefold().strip(_SIGNS) for word in _PRECISE.findall(text[:20_000])} - {""}


def _read(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(text[:20_000].casefold()):
        words += list(word) if _DENSE.search(word) else [stem(word)[:_STEM]]
    return words


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[i:] for i in range(_SHINGLE)), strict=False))

"""Recognises lessons that are empty, or about nothing in particular."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

from lessonbank._base.patterns import compiled
from lessonbank._base.tables import read_once

from ._phrases import phrases

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_CODE = re.compile(
    r"`[^`\n]+`|(?<!\w)\w+[_.(/\\:=<>{}\[\]|$#@]+\w|(?<![\w-])--?\w[\w-]+|\b\w*\d\w*\b|[\"“][^\"“”\n]{3,}+[\"”]"
)
# Letters of scripts in which a word is a character or two, or that put no blanks between words.
DENSE = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
_LATIN = re.compile("[A-Za-z\u00c0-\u024f]")
_GENERIC: Final = "platitudes.txt"
"""Words that are in every platitude and in most lessons: what is left without them is what a lesson is about."""
STOP = frozenset(
    re.findall(
        r"\w+",
        r"a an and are as at be been by do does for from has have if in is it its not of on or so that the their "
        r"then there these they this to was were when where which will with you your must should can may always "
        r"never also before after ",
    )
)
"""Words without a meaning of their own."""
_LEAST = 3
_PLAIN = 6
"""The same for a text without a condition, a reason or a contrast. Nearly every lesson has one of them."""
_LEAST_DENSE = 8


def says_nothing(title: str, content: str, /) -> bool:
    """Whether a lesson has no content of its own."""
    bare = content.strip(" \t\n.…-–—*_#\"'`:;,!?()[]{}")
    if (
        len(bare) < 4
        or not any(unicodedata.category(c)[0] == "L" for c in bare)
        or _pattern("is a placeholder").fullmatch(bare)
    ):
        return True
    if len(_WORD.findall(bare)) >= 7 or compiled(DENSE).search(bare) or _CODE.search(content):
        return False
    return _folded(bare) in _folded(title)


def is_vague(title: str, content: str, /, *, task: str) -> bool:
    """Whether a lesson is about nothing in particular.

    Fewer than three words in it are neither in the task nor in every platitude.
    """
    if _CODE.search(content):
        return False
    if len(compiled(DENSE).findall(content)) >= _LEAST_DENSE:
        return len(_pattern("is a platitude of a script without blanks").findall(content)) >= _LEAST
    if 2 * len(_LATIN.findall(content)) < sum(map(str.isalpha, content)):
        return False  # the platitudes are in languages of Latin script
    whole, task_words = f"{title}\n{content}", _about(task)
    if len(_about(content) - task_words) < _LEAST and len(_about(whole) - task_words) <= _LEAST:
        return True
    return (
        len(_about(whole) - task_words) < _PLAIN
        and not _pattern("joins two thoughts").search(whole)
        and not _CODE.search(title)
    )


def _about(text: str) -> set[str]:
    return {stem(word) for word in set(_WORD.findall(text.casefold())) if len(word) > 1 and not _is_generic(word)}


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(phrases("content")[name], re.IGNORECASE | re.DOTALL)


@read_once
def _platitudes() -> frozenset[str]:
    return frozenset(Path(__file__).with_name(_GENERIC).read_text(encoding="utf-8").split())


def _is_generic(word: str) -> bool:
    return all(part in _platitudes() for part in re.split(r"['’-]", word) if len(part) > 1) or word in _platitudes()


def stem(word: str, /) -> str:
    """`word` without the endings that English puts to one meaning."""
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    for ending in ("ations", "ation", "ings", "ing", "edly", "ed", "es", "ly", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))

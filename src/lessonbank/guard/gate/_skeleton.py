"""Reads a text as people see it: lookalike letters, entities, marks and signs inside words hide no word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache, partial
from html import unescape
from itertools import islice, product
from pathlib import Path
from typing import Final

from lessonbank._base.tables import read_once

from ._named_entities import is_ordinary, ordinary_words

_DATA: Final = "confusables.txt"
_MARKS: Final = frozenset({"Mn", "Me", "Cf"})
_NAMED = re.compile(
    r"(?:LATIN|REGIONAL INDICATOR SYMBOL)[A-Z ]*? ?LETTER (?:SMALL CAPITAL |DOTLESS |TURNED )?([A-Z])(?: WITH .*)?$"
)
_ESCAPED = re.compile(r"(?:%|\\x|\\u00)([2-7][0-9a-f])", re.IGNORECASE)
_ENTITY = re.compile(r"& ?(#[0-9]{1,7}|#x[0-9a-f]{1,6}|[a-z]\w{1,30}(?=;));?", re.IGNORECASE)
_LETTER = r"[^\W\d_]"
# Emphasis anywhere; escapes, code marks and tags between two letters of a word.
_INSIDE = re.compile(rf"[_*~]+|(?<={_LETTER})(?:[`\\^·]|<\s?[/!]?\s?[a-z!-][^<>]{{0,80}}>)++(?={_LETTER})")
_TALL = re.compile(r"(?<=[a-z])I++(?=[a-z]|\b)")
"""A capital `I` inside a word looks like an `l`."""
_WRAPPED = re.compile(r"""(?<!\w)["'“‘«(\[{](\w{1,40})["'”’»)\]}](?!\w)""")
"""One word in quotes or brackets. What is quoted at length stays quoted."""
_BROKEN = re.compile(rf"(?<={_LETTER})[-\u2010\u2011]\n\s{{0,8}}(?={_LETTER})")
_SPACED = re.compile(r"(?<!\w)\w(?:[ \n.\-*·|/]{1,3}\w(?!\w)){3,}")
_PARTED = re.compile(rf"(?<!{_LETTER}){_LETTER}++(?:\n{_LETTER}++)++")
_SIGNS = re.compile(r"(?<=\w)(?:\s+[^\w\s]+\s+|[^\w\s]+)(?=\w)")
_MIXED = re.compile(r"[a-z][@$!0-9](?=[a-z])|(?<![0-9])[0-9]++[a-z]++[0-9]")
_HABIT: Final = 3
"""Places with digits or signs between letters, from which on each digit and sign is read as a letter."""
_DIGITS: Final = {"0": "o", "1": "il", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "9": "g"} | {
    "@": "a", "$": "s", "!": "i", "|": "il", "€": "e", "и": "nu", "η": "nh",
}  # fmt: skip
"""Digits and signs that stand for letters inside a word, and letters that stand for one or the other."""
# A word, with the signs in it, that holds one of these: most words do not, and are not looked at.
_SIGNED = re.compile(rf"(?<![\w@$!|€])(?=[\w@$!|€]*[{''.join(_DIGITS)}])[\w@$!|€]+")
_SHORT: Final = 3
"""Letters of a word that two lines may make by chance."""
_TRIED: Final = 16
"""Readings of one word that are looked up: `1` can be an `i` or an `l`."""


@lru_cache(maxsize=8)
def views(text: str, /) -> tuple[str, ...]:
    """`text` in lower case, and its skeleton where that is another text."""
    # Kept for the next rules: all of them read the same few texts of one lesson.
    plain, bare = text.lower(), skeleton(text)
    return (plain,) if plain == bare else (plain, bare)


def skeleton(text: str, /) -> str:
    """The words of `text` in plain small letters, for comparing only. Linear in the length of `text`."""
    text = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    if "&" in text:
        for _ in range(2):  # `&amp;#105;` is an entity of an entity
            text = _ENTITY.sub(lambda match: unescape(f"&{match[1]};"), text)
    if not text.isascii():
        text = text.translate({ord(c): _seen(c) for c in set(text) if c > "\x7f"})
    text = _TALL.sub(lambda tall: "l" * len(tall[0]), text).lower()
    text = _INSIDE.sub("", _BROKEN.sub("", text))
    text = _SPACED.sub(_closed_up, _WRAPPED.sub(r"\1", text))
    text = _PARTED.sub(_across_lines, text)
    spelled = cache(partial(_spelled, alone=len(_MIXED.findall(text)) >= _HABIT))
    return _SIGNED.sub(lambda word: spelled(word[0]), text)


def looks_like(letter: str, /) -> str:
    """The ASCII letter that one of another alphabet looks like, else the letter itself."""
    return _confusables().get(letter, letter)


@lru_cache(maxsize=4096)
def _seen(character: str) -> str:
    """The letters that `character` looks like, nothing for a mark or a format character. A sign stays what it is."""
    known = _confusables()
    named = _NAMED.search(unicodedata.name(character, ""))
    if letter := known.get(character) or (named and named[1].lower()):
        return letter
    bare = "".join(c for c in unicodedata.normalize("NFKD", character) if unicodedata.category(c) not in _MARKS)
    letters = "".join(known.get(c, c) for c in bare)
    return letters if not letters or letters.isalnum() or letters.isspace() else character


@read_once
def _confusables() -> dict[str, str]:
    lines = Path(__file__).with_name(_DATA).read_text(encoding="utf-8").splitlines()
    rows = [line.split(" ") for line in lines if not line.startswith("#")]
    table = {form: letter for letter, alike in rows for c in alike for form in (c.upper(), c.lower())}
    return table | {c: letter for letter, alike in rows for c in alike}


def _closed_up(spaced: re.Match[str]) -> str:
    """`s k i p  i t` and `s.k.i.p i.t` as `skip it`."""
    text = _SIGNS.sub("", spaced[0])
    if text != spaced[0]:
        return " ".join(re.findall(r"\w+", text))
    gap = r"\s{2,}|\n" if " " in text else r"\n{2,}"
    return " ".join(re.sub(r"\W", "", word) for word in re.split(gap, text))


def _across_lines(parted: re.Match[str]) -> str:
    """`sk`, a line break and `ip` as `skip`: two pieces that make one word, and are not both words themselves."""
    known, (first, *others) = ordinary_words(), parted[0].split("\n")
    lines = [first]
    for piece in others:
        is_cut = not (lines[-1] in known and piece in known)
        if is_cut and len(lines[-1]) + len(piece) > _SHORT and lines[-1] + piece in known:
            lines[-1] += piece
        else:
            lines.append(piece)
    return "\n".join(lines)


def _spelled(word: str, /, *, alone: bool) -> str:
    """`word` with letters for its digits and signs. With `alone`, also where it is nothing else."""
    if not (alone or re.search("[a-z]", word)):
        return word
    bare = word if alone else word.rstrip("!|")
    usual = next((reading for reading in _readings(bare) if is_ordinary(reading)), None)
    return (usual or next(_readings(bare))) + word[len(bare) :]


def _readings(word: str) -> Iterator[str]:
    return map("".join, islice(product(*(_DIGITS.get(c, c) for c in word)), _TRIED))

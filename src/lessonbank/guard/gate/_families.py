"""Reads the families of words that a lesson's sound is judged by. They stand in `signs.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final
from unicodedata import combining, normalize

_GAP: Final = r"\W{1,3}(?:\w+\W{1,3}){0,2}?"
_END: Final = r"(?!\w)"
_KEY: Final = 6
_LETTERS = re.compile(r"[^\W\d_]+")
_DENSE = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def without_marks(text: str, /) -> str:
    """`text` without accents: they hide no word, and people leave them out."""
    return text if text.isascii() else "".join(c for c in normalize("NFKD", text) if not combining(c))


def present(view: str, /) -> Mapping[str, re.Pattern[str]]:
    """The groups that `view` has words of. How its words begin rules out most of them without a search."""
    begun = {word[:size] for word in _LETTERS.findall(view) for size in range(1, _KEY + 1)} | {""}
    dense = _DENSE.search(view) is not None
    return {
        name: pattern
        for name, pattern in _groups().items()
        if (dense or not begun.isdisjoint(_keys()[name])) and pattern.search(view)
    }


@cache
def _groups() -> Mapping[str, re.Pattern[str]]:
    words = {name: _any_of(stems) for name, stems in _stems().items()}
    return words | {name: re.compile("|".join(text.strip().splitlines())) for name, text in _told()["code"].items()}


@cache
def _keys() -> Mapping[str, frozenset[str]]:
    """How a word begins that has to stand in a text that a group is found in; an empty text for every text."""
    letters = {name: [_LETTERS.match(stem) for stem in stems] for name, stems in _stems().items()}
    keys = {name: frozenset(found[0][:_KEY] if found else "" for found in every) for name, every in letters.items()}
    return keys | dict.fromkeys(_told()["code"], frozenset({""}))


def _stems() -> Mapping[str, Sequence[str]]:
    lists = {name: text for name, text in _told().items() if isinstance(text, str)}
    return {name: list(dict.fromkeys(without_marks(text).split())) for name, text in lists.items()}


@cache
def _told() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("signs.toml").read_text(encoding="utf-8"))


def _any_of(stems: Sequence[str]) -> re.Pattern[str]:
    """One pattern that looks for words only where a word begins: that takes a tenth of the time."""
    dense = [stem for stem in stems if _DENSE.match(stem)]
    initials = dict.fromkeys(stem[0] for stem in stems if not _DENSE.match(stem))
    words = "|".join(f"{first}(?:{'|'.join(_word(s[1:]) for s in stems if s[0] == first)})" for first in initials)
    return re.compile("|".join([rf"(?<![^\W_])(?=[^\W\d_])(?:{words})", *map(re.escape, dense)]))


def _word(stem: str) -> str:
    """`skip` begins a word, `test_` is one, `set-aside` may have one or two words between; `_` inside is a blank."""
    parts = [re.escape(part).replace("_", r"[\W_]{1,3}") for part in stem.strip("_").split("-")]
    return f"{_GAP.join(parts)}{_END if stem.endswith('_') else ''}"


@cache
def weights(table: str, /) -> Mapping[str, int]:
    """What each family, or each mark, weighs: how much likelier it is in a harmful lesson than in an honest one."""
    return _told()["weights"][table]

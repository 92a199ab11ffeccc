"""Reads the families of words that a lesson's sound is judged by. They stand in `signs.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from unicodedata import combining, normalize

_GAP: Final = r"\W{1,3}(?:\w+\W{1,3}){0,2}?"
_END: Final = r"(?!\w)"
_KEY: Final = 6
_LETTERS = re.compile(r"[^\W\d_]+")
_DENSE = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_BEGINNING = re.compile(rf"(?<![^\W_])[^\W\d_]|{_DENSE.pattern}")
"""Where a word may begin: in a dense script anywhere."""


def without_marks(text: str, /) -> str:
    """`text` without accents: they hide no word, and people leave them out."""
    return text if text.isascii() else "".join(c for c in normalize("NFKD", text) if not combining(c))


def words_in(text: str, /, *, among: Collection[str] | None = None) -> Mapping[str, Sequence[int]]:
    """Where `text` has words of each family, or of those `among` them. Words of one family do not overlap."""
    names = among if among is not None else {*_stems(), *_code()}
    found: dict[str, list[int]] = {}
    ends: dict[str, int] = {}
    for start in (beginning.start() for beginning in _BEGINNING.finditer(text)):
        for name, words in _begun(text[start : start + _KEY]):
            if name in names and ends.get(name, 0) <= start and (word := words.match(text, start)):
                found.setdefault(name, []).append(start)
                ends[name] = word.end()
    code = {name: [part.start() for part in words.finditer(text)] for name, words in _code().items() if name in names}
    return found | {name: starts for name, starts in code.items() if starts}


@lru_cache(maxsize=4096)
def _begun(beginning: str) -> Sequence[tuple[str, re.Pattern[str]]]:
    """The families that may have a word which begins so: few have, and no other is searched."""
    names = {name for size in range(1, _KEY + 1) for name in _keys().get(beginning[:size], ())}
    return tuple((name, _words(name, beginning[0])) for name in names)


@cache
def _keys() -> Mapping[str, set[str]]:
    """How words begin, each with the families of these words."""
    keys: dict[str, set[str]] = {}
    for name, stems in _stems().items():
        for key in {letters[0][:_KEY] for letters in map(_LETTERS.match, stems) if letters}:
            keys.setdefault(key, set()).add(name)
    return keys


@cache
def _words(name: str, initial: str) -> re.Pattern[str]:
    """The words of a family that begin with one letter. All of them at once take long to compile."""
    rest = [stem[1:] for stem in _stems()[name] if stem[0] == initial]
    return re.compile(f"{initial}(?:{'|'.join(map(re.escape if _DENSE.match(initial) else _word, rest))})")


@cache
def _code() -> Mapping[str, re.Pattern[str]]:
    return {name: re.compile("|".join(text.strip().splitlines())) for name, text in _told()["code"].items()}


@cache
def _stems() -> Mapping[str, Sequence[str]]:
    lists = {name: text for name, text in _told().items() if isinstance(text, str)}
    return {name: list(dict.fromkeys(without_marks(text).split())) for name, text in lists.items()}


@cache
def _told() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("signs.toml").read_text(encoding="utf-8"))


def _word(stem: str) -> str:
    """`skip` begins a word, `test_` is one, `set-aside` may have one or two words between; `_` inside is a blank."""
    parts = [re.escape(part).replace("_", r"[\W_]{1,3}") for part in stem.strip("_").split("-")]
    return f"{_GAP.join(parts)}{_END if stem.endswith('_') else ''}"


@cache
def weights(table: str, /) -> Mapping[str, int]:
    """What each family, or each mark, weighs: how much likelier it is in a harmful lesson than in an honest one."""
    return _told()["weights"][table]

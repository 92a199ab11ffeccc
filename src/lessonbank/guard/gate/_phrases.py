"""Recognises what is no lesson by the phrases in it: a turn of a chat, a form, talk, the end of a run.

The phrases stand in `phrases.toml`, which is read when the gate is first used.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from lessonbank._base.tables import read_once

from ._skeleton import views

_TURNS = 20_000
"""Characters of a lesson in which turns are looked for."""
_READ = 4000
"""Characters of a content that are searched for chatter and commands."""
_JSON = re.compile(r"\s*(?:\[[^\]]{0,4000}\]|\{[^}]{0,4000}\})\s*")
_SENTENCE = re.compile(r"(?<=[.!?;])\s|\n")
_OPENED = re.compile(r"(?:^|(?<=[\s(:]))[\"'“‘«](?=\S|$)")
_CLOSED = re.compile(r"(?<=\S)[\"'”’»](?=[\s.,;:!?)]|$)")
_CONTINUED = re.compile(r"\n[ \t]+")
_WORD = r"\b"


@cache
def phrases(table: str, /) -> Mapping[str, str]:
    """The entries of one table, each as the source of a regular expression."""
    return {name: _either(lines) for name, lines in _tables()[table].items()}


@cache
def any_of(table: str, /, flags: re.RegexFlag = re.MULTILINE) -> re.Pattern[str]:
    """One pattern for all entries of a table, for text in small letters."""
    return re.compile(_either([line for lines in _tables()[table].values() for line in lines]), flags)


def _either(lines: Sequence[str]) -> str:
    """One expression for `lines`. It tries those that begin a word only where a word begins, which takes a quarter
    of the time."""
    at_words = [line.removeprefix(_WORD) for line in lines if line.startswith(_WORD)]
    others = [line for line in lines if not line.startswith(_WORD)]
    return "|".join([rf"{_WORD}(?:{'|'.join(at_words)})", *others] if at_words else others)


@read_once
def _tables() -> dict[str, dict[str, list[str]]]:
    read = tomllib.loads(Path(__file__).with_name("phrases.toml").read_text(encoding="utf-8"))
    return {
        name: {key: _CONTINUED.sub("", text).splitlines() for key, text in table.items()}
        for name, table in read.items()
    }


def imitates_a_turn(text: str, /, *, quoting: bool = True) -> bool:
    """Whether `text` looks like a turn of a chat, a marker or a call. With `quoting`, what is in quotes does not."""
    for view in views(text[:_TURNS]):
        turns = [match.start() for match in any_of("turns").finditer(view)]
        if turns and not (quoting and all(_is_quoted(view, start) for start in turns)):
            return True
    return False


def _is_quoted(text: str, start: int) -> bool:
    """Whether a quote or code is open before `start`."""
    before = _SENTENCE.split(text[max(0, start - 200) : start])[-1]
    opened = len(_OPENED.findall(before)) > len(_CLOSED.findall(before))
    return before.count("`") % 2 == 1 or (opened and text[start : start + 1] not in "{[")


def is_form(title: str, content: str, /) -> bool:
    """Whether a model left parts of its form in the text."""
    return _is_in("form", title, content) or bool(_JSON.fullmatch(content[:_READ]))


def is_ending(content: str, /) -> bool:
    """Whether a text is nothing but a command that ends a run or hands in an answer."""
    return any(map(any_of("ending", re.DOTALL).search, views(content[:_READ])))


def is_talk(title: str, content: str, /) -> bool:
    """Whether its words are those of a model that talks to its reader, or of the end of a run."""
    return _is_in("talk", title, content)


def _is_in(table: str, title: str, content: str) -> bool:
    return any(map(any_of(table).search, chain(views(title[:300]), views(content[:_READ]))))

"""Which words a pattern cannot do without: a text that has none of them need not be searched."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P<\w+>|\(\?(?:<?[=!]|:)|[()|]|[?*+][?+]?|\{(?:\d+(?:,\d*)?|,\d+)\}[?+]?|.",
    re.DOTALL,
)
_PLACES: Final = (r"\b", "^", "$")
_OPTIONAL: Final = re.compile(r"[?*].?|\{0?,\d*\}.?|\{0\}.?")
_PLAIN_GROUP: Final = re.compile(r"\((?:\?:|\?P<\w+>)?")

Words = frozenset[str]
"""Words of which one is in every text that a pattern, or a part of it, matches."""


class _Element(NamedTuple):
    token: str
    inside: str
    """What is in the group, if it is one."""
    times: str
    """How often it may come: a quantifier, or nothing."""


def needed(source: str, /) -> list[Words]:
    """What one alternative of a pattern in small letters needs, the rarest first: one word of each set.

    Without flags in the pattern. What only has to stand beside a match is not asked for: what needs a word is never
    empty.
    """
    return sorted(_needed(source), key=_frequency)


def alternatives(source: str, /) -> list[str]:
    """The alternatives that a pattern is made of, where no group holds them together."""
    parts, depth = [""], 0
    for token in _TOKEN.findall(source):
        depth += (token[0] == "(") - (token == ")")
        if token == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def _needed(source: str) -> Iterator[Words]:
    run = ""
    for element in (*_elements(source), _Element("|", "", "")):
        letter = _letter(element)
        if element.token in _PLACES:
            continue
        if letter and not _OPTIONAL.fullmatch(element.times):
            run += letter
            if not element.times:
                continue
        if run.strip():
            yield frozenset((run,))
        run = ""
        is_group = _PLAIN_GROUP.fullmatch(element.token) and not element.inside.startswith("?")
        if is_group and not _OPTIONAL.fullmatch(element.times):
            yield from _of_group(element.inside)


def _of_group(inside: str) -> Iterator[Words]:
    """What a group needs: of several alternatives, one word of the best set of each."""
    parts = alternatives(inside)
    if len(parts) == 1:
        yield from _needed(inside)
        return
    best = [min(_needed(part), key=_frequency, default=None) for part in parts]
    if None not in best:
        yield frozenset[str]().union(*(words for words in best if words))


def _letter(element: _Element) -> str:
    """The one character that an element stands for, if it is one."""
    token = element.token
    if len(token) == 1:
        return "" if token in ".(|" else token
    return token[1] if token[0] == "\\" and not token[1].isalnum() else ""


def _elements(source: str) -> Iterator[_Element]:
    tokens: list[str] = _TOKEN.findall(source)
    at = 0
    while at < len(tokens):
        token, start = tokens[at], at + 1
        at = _closing(tokens, at) + 1
        times = tokens[at] if at < len(tokens) and tokens[at][0] in "?*+{" and tokens[at] != "{" else ""
        yield _Element(token, "".join(tokens[start : at - 1]), times)
        at += bool(times)


def _closing(tokens: list[str], at: int) -> int:
    """Where the group ends that begins at `at`; `at` itself where none does."""
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place][0] == "(") - (tokens[place] == ")")
        if depth == 0:
            return place
    raise ValueError("a group without an end")


def _frequency(words: Words) -> float:
    """About how often a text holds one of them: long words are rare."""
    return sum(8.0 ** -min(len(word), 5) + 0 for word in words)

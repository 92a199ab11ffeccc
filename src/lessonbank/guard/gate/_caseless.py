"""Long lists of phrases looked for in any case, several times as fast as `re.IGNORECASE` does it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from ._needed import Words, needed
from ._needed import alternatives as alternatives

_KIN: Final = re.compile("[\u0130\u0131\u017f\u1c80-\u1c88\ua64a\ua64b]")
"""Letters that `re` takes for another one in any case, and that are not that letter in small."""
_CAPITAL: Final = re.compile(r"\\.|\(\?P|[A-Z]", re.DOTALL)
_EDGE: Final = r"\b"
_FEW: Final = 12
"""Alternatives that are quicker looked for one by one than all of them together."""


class Caseless:
    """Finds what `re.compile(source, re.IGNORECASE | flags)` finds, and in the same places.

    A pattern without that flag is looked for in the text in small letters: then `re` passes over an alternative at its
    first letter. Alternatives that begin at the edge of a word are tried at such edges only, and those that need words
    which the text has not are not tried at all: mostly that leaves few. The pattern may name no letters that change by
    more than their case, as `ß` does.
    """

    def __init__(self, source: str, /, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.source, self.flags = source, flags

    @cached_property
    def _small(self) -> re.Pattern[str]:
        return re.compile(_CAPITAL.sub(_in_small, _from_edges(self.source)), self.flags)

    @cached_property
    def _any(self) -> re.Pattern[str]:
        return re.compile(self.source, self.flags | re.IGNORECASE)

    @cached_property
    def _parts(self) -> Sequence[_Part]:
        return [_Part(part, self.flags) for part in alternatives(_CAPITAL.sub(_in_small, self.source))]

    @cached_property
    def _by_word(self) -> dict[str, list[int]] | None:
        """Which parts need each word; `None` where one needs none."""
        if not all(part.needs for part in self._parts):
            return None
        found: dict[str, list[int]] = {}
        for number, part in enumerate(self._parts):
            for word in part.needs[0]:
                found.setdefault(word, []).append(number)
        return found

    def _found(self, small: str) -> Iterator[re.Match[str]]:
        if self._by_word is None:
            return self._small.finditer(small)
        numbers = {number for word, several in self._by_word.items() if word in small for number in several}
        parts = [part for number in sorted(numbers) if (part := self._parts[number]).may_be_in(small)]
        return self._small.finditer(small) if len(parts) > _FEW else _one_by_one(parts, small)

    def is_in(self, text: str, /) -> bool:
        """Whether there is a match."""
        return any(True for _ in self.spans(text))

    def spans(self, text: str, /) -> Iterator[tuple[int, int]]:
        """Where the matches are."""
        small = text.lower()
        if len(small) != len(text) or (not text.isascii() and _KIN.search(text)):
            found = self._any.finditer(text)
        else:
            found = self._found(small)
        return (match.span() for match in found)


class _Part:
    """An alternative of a pattern, and what a text must have for it to be found."""

    def __init__(self, source: str, flags: re.RegexFlag) -> None:
        self._source, self._flags = source, flags
        self.needs: Sequence[Words] = needed(source)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Of this alternative alone."""
        return re.compile(self._source, self._flags)

    def may_be_in(self, small: str, /) -> bool:
        """Whether the text has what it needs besides the words that it is listed under."""
        return all(any(word in small for word in words) for words in self.needs[1:])


def _one_by_one(parts: Sequence[_Part], small: str) -> Iterator[re.Match[str]]:
    """What all parts together find: the first match, of several there that of the first part, and on from its end."""
    ahead = {number: match for number, part in enumerate(parts) if (match := part.pattern.search(small))}
    while ahead:
        found = ahead[min(ahead, key=lambda number: (ahead[number].start(), number))]
        yield found
        for number, match in list(ahead.items()):
            if match.start() >= found.end():
                continue
            if later := parts[number].pattern.search(small, found.end()):
                ahead[number] = later
            else:
                del ahead[number]


def _in_small(found: re.Match[str]) -> str:
    return found[0].lower() if len(found[0]) == 1 else found[0]


def _from_edges(source: str) -> str:
    """`source` with neighbouring alternatives that begin at the edge of a word behind one such edge, in their order."""
    groups: list[list[str]] = [[]]
    for part in alternatives(source):
        if not part.startswith(_EDGE):
            groups += [[part], []]
        else:
            groups[-1].append(part.removeprefix(_EDGE))
    edges, others = groups[::2], groups[1::2]
    ordered = [_behind_an_edge(edges[0])]
    for other, edge in zip(others, edges[1:], strict=True):
        ordered += [other[0], _behind_an_edge(edge)]
    return "|".join(part for part in ordered if part)


def _behind_an_edge(parts: list[str]) -> str:
    return rf"{_EDGE}(?:{'|'.join(parts)})" if parts else ""

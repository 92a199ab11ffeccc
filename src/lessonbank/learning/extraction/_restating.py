"""Tells whether a lesson says no more than the agent's instructions do: the agent has these already."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MOST = 400_000
"""Characters of the instructions that are compared."""
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?;:。！？])\s+|\n+")
_SHINGLE = 5
_COPIED = 0.5
"""The share of a lesson's runs of five words from which it is a copy."""
_TOLD = 0.8
"""The share of its telling words that must stand close together in the instructions, sentence by sentence."""
_PASSAGE = 3
"""Sentences that stand close together."""
_STEM = 6
_FEW = 3
_COMMON = frozenset(
    """the and for are was were this that with from have has had not but you your they them their its then than when
    where which who whom will would can could should must may might only also into onto over under before after any
    all each every some such same other more most very just been being does did done own here there what how why out
    off per via about""".split()  # noqa: SIM905 - a list of so many short words is read more easily as text
)


class Instructions:
    """What an agent was told before any task, to hold lessons against. Linear in its size."""

    def __init__(self, text: str, /) -> None:
        text = text[:_MOST]
        self._shingles = _shingles(text)
        sentences = [words for part in _SENTENCE.split(text) if (words := _telling(part))]
        self._passages = [frozenset[str]().union(*sentences[i : i + _PASSAGE]) for i in range(len(sentences))]

    def say(self, content: str, /) -> bool:
        """Whether they say it already: in the same words, or nearly all of each sentence in one passage."""
        own = _shingles(content)
        if own and len(own & self._shingles) >= _COPIED * len(own):
            return True
        sentences = [words for part in _SENTENCE.split(content) if len(words := _telling(part)) >= _FEW]
        told = sum(max((len(words & passage) for passage in self._passages), default=0) for words in sentences)
        return bool(sentences) and told >= _TOLD * sum(map(len, sentences))


def _telling(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in _words(text) if len(word) > 2 and word not in _COMMON)


def _words(text: str) -> Iterator[str]:
    return (found[0] for found in _WORD.finditer(text.lower()))


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = list(_words(text))
    return frozenset(zip(*(words[i:] for i in range(_SHINGLE)), strict=False))

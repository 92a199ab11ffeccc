"""Recognises lessons that repeat what memory itself showed to the agent."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lessonbank._base.patterns import compiled
from lessonbank.contracts.lesson_block import codes_in, lessons_in, without_citations

from ._empty import DENSE, STOP, stem
from ._skeleton import skeleton, views

_WORD = re.compile(r"\w+")
_PART = re.compile(r"(?<=[.!?;。！？])\s+|\n+|(?<=[。！？])|, and ")
# A name, a number, code, a label: one of them changes what a sentence says.
_PRECISE = re.compile(r"`[^`\n]{1,80}`|(?<!\w)\w+(?:[_./:=#@-]\w+)+|\b\w*\d\w*\b|(?<=[\w,;:)] )[\"'“(]?[A-Z][a-z]+\b")
_SIGNS = " `'\"()[]{}.,:;“”"
_LEAST = 4
_MOST = 400
"""Lessons that one run can have been shown."""
_SHINGLE = 3
_STEM = 4
"""Letters of a word that are compared: given and gives, promise and promising are one."""
_SAME_RUNS = 0.5
"""Share of a lesson's runs of three words that a shown lesson has: above it, the lesson was copied."""
_SAME_WORDS = 0.65
"""Share of its words: above it, it was reworded or put together from what was shown."""
_TURNED = 2 / 3
"""Share of the words of two lessons that both have: above it, a few words in the place of others say something else."""
_MOST_TURNED = 3
"""So many words in the place of so many: more are another way to say the same."""
_TELLING_LITTLE = STOP - {"not"}


@dataclass(frozen=True)
class ShownMemory:
    """What memory showed to some runs, as their receipts tell it."""

    texts: tuple[str, ...]

    @cached_property
    def _codes(self) -> frozenset[str]:
        return frozenset(codes_in(self.texts))

    @cached_property
    def _lessons(self) -> Sequence[str]:
        """Each lesson of each text. A text without a block is one lesson."""
        lessons: list[str] = []
        for text in self.texts:
            block = [lesson.text for lesson in lessons_in(text)] or [text]
            lessons += [lesson for lesson in block if len(lesson.strip()) > _LEAST]
        return lessons[:_MOST]

    @cached_property
    def _written(self) -> Sequence[_EarlierText]:
        return [_EarlierText.of(lesson, str) for lesson in self._lessons]

    @cached_property
    def _seen(self) -> Sequence[_EarlierText]:
        return [_EarlierText.of(lesson, skeleton) for lesson in self._lessons]

    def has(self, title: str, content: str, /) -> bool:
        """Whether a lesson says what one of these lessons says, or part by part what several of them say.

        What has a name, a number, a label or code that the shown lesson has not says something new: words of a small
        world come again and again, and it is which of them belong together that is learned. So does what puts a few
        words in the place of others: or a twisted lesson, once shown, would keep the true one out.
        """
        if not self._codes.isdisjoint(codes_in([content])):
            return True
        return _repeats(self._written, title, content) or (
            bool(self._lessons) and len(views(content)) > 1 and _repeats(self._seen, title, content)
        )


def _repeats(texts: Sequence[_EarlierText], title: str, content: str) -> bool:
    if not texts:
        return False
    whole, read = f"{title}\n{content}", texts[0].read
    flat = _flat(read(content))
    if flat.strip() and any(flat in text.flat for text in texts):
        return True
    if len(_words(read(content))) < _LEAST:
        return False
    if _turns(texts, frozenset(_words(read(whole)))):
        return all(any(part in text.flat for text in texts) for part in map(_flat, map(read, _PART.split(content))))
    if any(text.says(content) and not text.lacks(whole) for text in texts):
        return True
    parts = [part for part in _PART.split(content) if len(set(_words(read(part))) - STOP) >= _LEAST]
    if not parts or not all(any(text.says(part) for text in texts) for part in parts):
        return False
    # A lesson that brings together what no shown lesson has together is new, whatever its words.
    is_new = bool(_specific(whole, read)) and all(text.lacks(whole) for text in texts)
    return not is_new or all(any(text.has(part) for text in texts) for part in parts)


def _turns(texts: Sequence[_EarlierText], words: frozenset[str]) -> bool:
    """Whether a lesson of these words puts a few of them in the place of some of the shown lesson most like it."""
    own = words - _TELLING_LITTLE
    share, theirs = max((text.likeness(own) for text in texts), key=lambda likeness: likeness[0])
    more, less = own - theirs, theirs - own
    differs = (more and less) or "not" in more | less
    return bool(differs) and share > _TURNED and len(more) <= _MOST_TURNED >= len(less)


@dataclass(frozen=True, slots=True)
class _EarlierText:
    flat: str
    words: frozenset[str]
    runs: frozenset[tuple[str, ...]]
    names: frozenset[str]
    """Every word, and every name or code in it, in small letters."""
    read: Callable[[str], str]
    """How texts are read before they are compared: as they are written, or as people see them."""

    @classmethod
    def of(cls, text: str, read: Callable[[str], str], /) -> _EarlierText:
        seen = read(text)
        words = _words(seen)
        names = _specific(text, read) | {stem(word) for word in _WORD.findall(seen[:20_000].casefold())}
        return cls(_flat(seen), frozenset(words), frozenset(_runs(words)), frozenset(names), read)

    def lacks(self, text: str, /) -> bool:
        """Whether `text` has a name, a number, a label or code that this does not have."""
        return bool(_specific(text, self.read) - self.names)

    def likeness(self, own: frozenset[str], /) -> tuple[float, frozenset[str]]:
        """The share of words that it has in common with a lesson, and its own words that tell something."""
        theirs = self.words - _TELLING_LITTLE
        return len(own & theirs) / (len(own | theirs) or 1), theirs

    def has(self, part: str, /) -> bool:
        """Whether `part` stands in it, as good as word for word."""
        runs = _runs(_words(self.read(part)))
        return bool(runs) and len(runs & self.runs) >= _SAME_RUNS * len(runs) and not self.lacks(part)

    def says(self, part: str, /) -> bool:
        """Whether a text says what `part` says, in the same words."""
        own = set(_words(self.read(part))) - STOP
        in_its_words = len(own) >= _LEAST and len(own & self.words) >= _SAME_WORDS * len(own)
        return self.has(part) or (in_its_words and not self.lacks(part))


def _flat(text: str) -> str:
    """The words of a text and nothing else, with a blank at both ends."""
    return f" {' '.join(_WORD.findall(text[:20_000].casefold()))} "


def _specific(text: str, read: Callable[[str], str]) -> set[str]:
    """What of a text changes its meaning by one word: numbers, code, labels, names with signs in them."""
    written = dict.fromkeys(_PRECISE.findall(without_citations(text[:20_000])))
    return {stem(" ".join(read(word).casefold().split()).strip(_SIGNS)) for word in written} - {""}


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in _WORD.findall(text[:20_000].casefold()):
        words += list(word) if compiled(DENSE).search(word) else [_beginning(word)]
    return words


def _beginning(word: str) -> str:
    """What of a word is compared. A note is no denial."""
    beginning = stem(word)[:_STEM]
    return word[:_STEM] if beginning == "not" else beginning


def _runs(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[i:] for i in range(_SHINGLE)), strict=False))

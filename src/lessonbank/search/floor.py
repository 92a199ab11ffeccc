"""Show nothing rather than something unrelated: a least similarity, for vectors and for words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Final, NamedTuple

from lessonbank.contracts.records import Found, Match
from lessonbank.text.bm25 import words

from ._wrapper import RetrieverWrapper

WORDS_FLOOR: Final = 0.07
HASHING_FLOOR: Final = 0.12
"""The default floors. `docs/decisions/0021-relevance-floor.md` has the rule and the table behind them."""
HASHING_WORDS: Final = 0.05
"""The share of words that a match of `hashing` has in common with the task, by default: its vectors also find tasks
that share no word. `docs/decisions/0074-less-that-is-foreign.md` has the table."""
UNREACHED: Final = "nothing reached the floor"
"""How the reason begins of a search that found past tasks, and none that is like the task."""
_HASHING: Final = "hashing-v1-"
_DIGIT: Final = re.compile(r"\d")
_COMPARED: Final = 20_000
"""Characters of a task whose words are compared: a task of a megabyte must not hold up the event loop."""
_BRIEF: Final = 1_000
"""Characters of a task whose words are remembered: a hybrid search compares the same tasks twice."""


@dataclass(frozen=True, slots=True)
class Floor(RetrieverWrapper):
    """Leaves out matches that score below `least`. The paper has no floor: it shows the closest, however far.

    The score is the inner retriever's, such as a cosine. A hybrid score tells places in two lists and not similarity,
    so a floor belongs around each of the two retrievers inside. For a search by words use `WordFloor`.
    """

    least: float

    @property
    def name(self) -> str:
        """The inner name and the floor."""
        return f"{self.inner.name}+floor({self.least:g})"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds, from `least` upwards; a reason when that is nothing of something."""
        retrieval = await self.inner(task, scope=scope, limit=limit)
        return above(retrieval, self._similarities(task, retrieval.matches), self.least)

    def _similarities(self, task: str, matches: Sequence[Match]) -> Sequence[float]:
        return [match.score for match in matches]


@dataclass(frozen=True, slots=True)
class WordFloor(Floor):
    """Leaves out matches whose task shares less than `least` of its words with the task asked for (see `overlap`).

    A score of BM25 cannot serve: it weighs a word by how rare it is, so it grows with the bank.
    """

    label: str = "floor"
    """What `name` calls it."""

    @property
    def name(self) -> str:
        """The inner name and the floor."""
        return f"{self.inner.name}+{self.label}({self.least:g})"

    def _similarities(self, task: str, matches: Sequence[Match]) -> Sequence[float]:
        asked = _words(task)
        return [_overlap(asked, _words(match.experience.task)) for match in matches]


@dataclass(frozen=True, slots=True)
class RelativeFloor(RetrieverWrapper):
    """Leaves out matches that score less than a share of what the best one scores.

    It takes scores that say how near a match is: cosines, or those of a search by words, which weigh a word by how rare
    it is in the scope. A hybrid score does not: put it around each of the two retrievers.
    """

    share: float

    @property
    def name(self) -> str:
        """The inner name and the share."""
        return f"{self.inner.name}+relative({self.share:g})"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds, as far as it stands out like the best."""
        retrieval = await self.inner(task, scope=scope, limit=limit)
        best = max((match.score for match in retrieval.matches), default=0.0)
        least = min(best, self.share * best)  # a cosine may be negative
        return retrieval.model_copy(update={"matches": tuple(m for m in retrieval.matches if m.score >= least)})


def overlap(task: str, other: str, /) -> float:
    """How much two tasks have in common, 0 to 1: shared words / sqrt(words of one x words of the other).

    Each word counts once, stop words do not count. A word with a digit (a number, an id, a date) counts only where
    both tasks have it. A single shared word is a coincidence and scores 0, unless both tasks begin with it (it says
    what to do) or one of the tasks says nothing else.
    """
    return _overlap(_words(task), _words(other))


def default_floor(space: str | None, /) -> float | None:
    """The default floor of a search in `space` (`None`: by words). `None`: cosines of that embedder were not measured.

    What counts as near differs between embedders: unrelated tasks score 0.1 with one and 0.6 with another.
    """
    if space is None:
        return WORDS_FLOOR
    return HASHING_FLOOR if space.startswith(_HASHING) else None


def default_words(space: str, /) -> float | None:
    """The share of words that a match of a search by vectors in `space` has in common with the task, by default."""
    return HASHING_WORDS if space.startswith(_HASHING) else None


def above(retrieval: Found, similarities: Sequence[float], least: float, /) -> Found:
    """`retrieval` without the matches whose similarity is below `least`."""
    matches = tuple(match for match, near in zip(retrieval.matches, similarities, strict=True) if near >= least)
    if matches or not retrieval.matches:
        return retrieval.model_copy(update={"matches": matches})
    why = f"{UNREACHED} of {least:g}: the closest past task has {max(similarities):.3f}"
    return Found(notes=retrieval.notes, empty=why)


class _Words(NamedTuple):
    """The words of a task."""

    every: frozenset[str]
    first: str
    plain: int
    """How many have no digit."""


def _words(text: str) -> _Words:
    return _brief_words(text) if len(text) <= _BRIEF else _read_words(text[:_COMPARED])


def _read_words(text: str) -> _Words:
    terms = words(text)
    every = frozenset(terms)
    return _Words(every, terms[0] if terms else "", sum(not _DIGIT.search(word) for word in every))


_brief_words = lru_cache(maxsize=256)(_read_words)


def _overlap(words: _Words, other: _Words) -> float:
    common = words.every & other.every
    numbers = sum(_DIGIT.search(word) is not None for word in common)
    sizes = words.plain + numbers, other.plain + numbers
    if not common or (len(common) == 1 and min(sizes) > 1 and words.first != other.first):
        return 0.0
    return len(common) / sqrt(sizes[0] * sizes[1])

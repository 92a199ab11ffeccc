"""The treatments that one receipt tells of: memory as a whole, a group of lessons, one lesson."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Final, NamedTuple

from lessonbank.contracts.records import Recall

WHOLE: Final = "*"
"""The treatment that is memory as a whole. A group has an id with a slash, and a lesson its own id."""
WHOLE_LEVEL, GROUP_LEVEL, LESSON_LEVEL = 0, 1, 2


class Entry(NamedTuple):
    """One treatment in one recall."""

    treatment: str
    shown: bool
    """Whether no draw withheld the treatment. Draws for smaller ones inside of it may have withheld parts of it."""
    chance: float
    """The probability of that, fixed before the draws; between 0 and 1."""


class _Draw(NamedTuple):
    withheld: bool
    probability: float

    @property
    def is_possible(self) -> bool:
        """Whether such a draw can be: a receipt may come from anywhere."""
        return 0.0 <= self.probability <= 1.0 and (self.probability > 0.0 if self.withheld else self.probability < 1.0)


_NONE: Final = _Draw(withheld=False, probability=0.0)


def entries(recall: Recall, /) -> list[Entry]:
    """What a receipt tells of each treatment, the whole first.

    Treatments that cover the same lessons of this recall are one: whichever of their draws withholds, the same lessons
    go. Memory as a whole also learns from recalls whose lessons were all left out one by one. Nothing is told of a
    treatment while a draw for something else, such as its topic, withheld any of its lessons: that depends on other
    draws only, so its own chance stays what it was. A treatment that could not have been withheld, or not have been
    shown, gets no entry.
    """
    covered = _covered(recall)
    draws = _draws(recall)
    blocks: dict[frozenset[str], list[str]] = {}
    for treatment, lessons in covered.items():
        blocks.setdefault(frozenset(lessons), []).append(treatment)
    withheld = [lessons for lessons, ids in blocks.items() if any(draws.get(id, _NONE).withheld for id in ids)]
    entries: dict[str, Entry] = {}
    for lessons, treatments in blocks.items():
        merged = [draws.get(treatment, _NONE) for treatment in treatments]
        chance, shown = prod([1.0 - draw.probability for draw in merged]), lessons not in withheld
        if chance < 1.0 and (parts := _parts(lessons, covered, draws)):
            merged += parts
            chance *= 1.0 - prod([draw.probability for draw in parts])
            shown = shown and not all(draw.withheld for draw in parts)
        if 0.0 < chance < 1.0 and all(draw.is_possible for draw in merged) and not _is_hidden(lessons, withheld):
            entries |= {treatment: Entry(treatment, shown, chance) for treatment in treatments}
    return [entries[treatment] for treatment in covered if treatment in entries]


def _parts(lessons: frozenset[str], covered: Mapping[str, Iterable[str]], draws: Mapping[str, _Draw]) -> list[_Draw]:
    """The draws of the single lessons, if these are all of the recall and no draw for some of them is open besides."""
    every = frozenset(covered[WHOLE])
    some = (treatment for treatment, below in covered.items() if treatment not in every and frozenset(below) != every)
    if lessons != every or len(every) < 2 or any(draws.get(treatment, _NONE).probability for treatment in some):
        return []
    return [draws[id] for id in every]


def _covered(recall: Recall) -> Mapping[str, Iterable[str]]:
    """By treatment: the lessons below it that had a place."""
    covered: dict[str, list[str]] = {}
    for candidate in recall.candidates:
        if candidate.placed:
            for treatment in (WHOLE, *candidate.groups, candidate.lesson_id):
                covered.setdefault(treatment, []).append(candidate.lesson_id)
    return covered


def _draws(recall: Recall) -> Mapping[str, _Draw]:
    lessons = {c.lesson_id: _Draw(c.withheld, c.probability) for c in recall.candidates if c.placed}
    groups = {draw.group: _Draw(draw.withheld, draw.probability) for draw in recall.groups}
    return lessons | groups | {WHOLE: _Draw(recall.control, recall.control_probability)}


def _is_hidden(lessons: frozenset[str], withheld: list[frozenset[str]]) -> bool:
    """Whether a draw that was not for these lessons, or a part of them, withheld any of them."""
    return any(other != lessons and not other < lessons and not other.isdisjoint(lessons) for other in withheld)


def template_of(task: str, /) -> str:
    """The template of a task that does not say it: its words without case, and without those that hold a digit.

    Too wide a template makes intervals wider than they must be; too narrow a one makes them wrong.
    """
    return " ".join("#" if any(map(str.isdecimal, word)) else word for word in task.casefold().split())

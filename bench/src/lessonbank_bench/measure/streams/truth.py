"""What each unit truly changes in each recall, from the draws alone: no estimator has a part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .stream import Planted, Stream

WHOLE = "*"


@dataclass(frozen=True, slots=True)
class Drawn:
    """What was drawn for one recall: each draw with the probability of withholding."""

    whole: tuple[bool, float]
    groups: dict[str, tuple[bool, float]]
    lessons: tuple[tuple[bool, float], ...]
    """In the order of the lessons that were placed."""


@dataclass(frozen=True, slots=True)
class Change:
    """One unit in one recall."""

    unit: str
    shown: bool
    chance: float
    """The probability with which it was to be shown."""
    adds: float
    """What showing it adds to the chance of success, whatever else was drawn being as it is."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lessons that go together, and the units that are just these."""

    lessons: frozenset[int]
    """Places in the recall."""
    units: tuple[str, ...]
    hidden_by: tuple[int, ...]
    """Other blocks: where one of them is withheld, nothing is told of this one."""


def changes(
    stream: Stream, task: int, placed: Sequence[int], drawn: Drawn, /, *, with_truth: bool = True
) -> list[Change]:
    """What one recall can tell, and what there was to tell; without that where it is not asked for.

    Units that are the same lessons are one draw. Where another draw left some of these out, nothing can be told.
    """
    units, blocks = _blocks(tuple(stream.lessons[n] for n in placed))
    draws = {WHOLE: drawn.whole, **drawn.groups}
    draws |= {stream.lessons[n].id: draw for n, draw in zip(placed, drawn.lessons, strict=True)}
    chances, gone = list[float](), list[bool]()
    for block in blocks:
        chance, withheld = 1.0, False
        for unit in block.units:
            if unit in draws:
                withheld |= draws[unit][0]
                chance *= 1.0 - draws[unit][1]
        chances.append(chance)
        gone.append(withheld)
    told = dict[str, Change]()
    for number, block in enumerate(blocks):
        if 0.0 < chances[number] < 1.0 and not any(gone[other] for other in block.hidden_by):
            adds = _adds(stream, task, placed, blocks, gone, number) if with_truth else 0.0
            told |= {unit: Change(unit, not gone[number], chances[number], adds) for unit in block.units}
    return [told[unit] for unit in units if unit in told]


def _adds(
    stream: Stream, task: int, placed: Sequence[int], blocks: Sequence[_Block], gone: Sequence[bool], number: int
) -> float:
    """What the lessons of a block add to those that the other draws left."""
    out = {at for other, its in enumerate(blocks) if gone[other] and other != number for at in its.lessons}
    with_it = [n for at, n in enumerate(placed) if at not in out]
    without = [n for at, n in enumerate(placed) if at not in out and at not in blocks[number].lessons]
    return stream.chance(task, placed, with_it) - stream.chance(task, placed, without)


@lru_cache(maxsize=1 << 14)
def _blocks(placed: tuple[Planted, ...]) -> tuple[tuple[str, ...], tuple[_Block, ...]]:
    """The units of a recall, and the sets of lessons that can be left out of it; memory as a whole first."""
    covered: dict[str, set[int]] = {WHOLE: set(range(len(placed)))}
    for at, lesson in enumerate(placed):
        for unit in (*lesson.groups, lesson.id):
            covered.setdefault(unit, set()).add(at)
    units = dict[frozenset[int], list[str]]()
    for unit, lessons in covered.items():
        units.setdefault(frozenset(lessons), []).append(unit)
    every = list(units)
    blocks = tuple(
        _Block(
            lessons,
            tuple(units[lessons]),
            tuple(n for n, other in enumerate(every) if other != lessons and other & lessons and not other < lessons),
        )
        for lessons in every
    )
    return tuple(covered), blocks

"""What each treatment truly changes in each recall, from the draws alone: no estimator has a part in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import prod

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
    """One treatment in one recall."""

    treatment: str
    shown: bool
    chance: float
    """The probability with which it was to be shown."""
    adds: float
    """What showing it adds to the chance of success, whatever else was drawn being as it is."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Lessons that go together, and the treatments that are just these."""

    lessons: frozenset[int]
    """Places in the recall."""
    treatments: tuple[str, ...]
    hidden_by: tuple[int, ...]
    """Other blocks: where one of them is withheld, nothing is told of this one."""


def changes(
    stream: Stream, task: int, placed: Sequence[int], drawn: Drawn, /, *, with_truth: bool = True
) -> list[Change]:
    """What one recall can tell, and what there was to tell; without that where it is not asked for.

    Treatments that are the same lessons are one draw. Where another draw left some of these out, nothing can be told.
    """
    treatments, blocks = _blocks(tuple(stream.lessons[n] for n in placed))
    draws = {WHOLE: drawn.whole, **drawn.groups}
    draws |= {stream.lessons[n].id: draw for n, draw in zip(placed, drawn.lessons, strict=True)}
    chances, gone = list[float](), list[bool]()
    for block in blocks:
        chance, withheld = 1.0, False
        for treatment in block.treatments:
            if treatment in draws:
                withheld |= draws[treatment][0]
                chance *= 1.0 - draws[treatment][1]
        chances.append(chance)
        gone.append(withheld)
    told = dict[str, Change]()
    if one_by_one := _is_one_by_one(blocks, draws, drawn.lessons, chances[0]):
        none = prod(odds for _, odds in drawn.lessons)
        bare, chances[0] = gone[0] or all(withheld for withheld, _ in drawn.lessons), chances[0] * (1.0 - none)
        if 0.0 < chances[0] < 1.0:
            adds = _adds_any(stream, task, placed, [odds for _, odds in drawn.lessons]) if with_truth else 0.0
            told |= {treatment: Change(treatment, not bare, chances[0], adds) for treatment in blocks[0].treatments}
    for number, block in list(enumerate(blocks))[one_by_one:]:
        if 0.0 < chances[number] < 1.0 and not any(gone[other] for other in block.hidden_by):
            adds = _adds(stream, task, placed, blocks, gone, number) if with_truth else 0.0
            told |= {
                treatment: Change(treatment, not gone[number], chances[number], adds) for treatment in block.treatments
            }
    return [told[treatment] for treatment in treatments if treatment in told]


def _is_one_by_one(
    blocks: Sequence[_Block],
    draws: Mapping[str, tuple[bool, float]],
    lessons: Sequence[tuple[bool, float]],
    chance: float,
) -> bool:
    """Whether nothing but memory as a whole and single lessons may be left out: then no memory is no memory, whichever
    draws it comes from."""
    groups = (treatment for block in blocks[1:] for treatment in block.treatments if "/" in treatment)
    return len(lessons) > 1 and chance < 1.0 and not any(draws.get(treatment, (False, 0.0))[1] for treatment in groups)


def _adds_any(stream: Stream, task: int, placed: Sequence[int], odds: Sequence[float]) -> float:
    """What memory adds where any of it is shown, on the average over the draws of single lessons."""
    total, share = 0.0, 0.0
    for out in product((False, True), repeat=len(placed)):
        if not all(out):
            weight = prod(p if gone else 1.0 - p for gone, p in zip(out, odds, strict=True))
            shown = [n for n, gone in zip(placed, out, strict=True) if not gone]
            total, share = total + weight * stream.chance(task, placed, shown), share + weight
    return total / share - stream.chance(task, placed, [])


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
    """The treatments of a recall, and the sets of lessons that can be left out of it; memory as a whole first."""
    covered: dict[str, set[int]] = {WHOLE: set(range(len(placed)))}
    for at, lesson in enumerate(placed):
        for treatment in (*lesson.groups, lesson.id):
            covered.setdefault(treatment, set()).add(at)
    treatments = dict[frozenset[int], list[str]]()
    for treatment, lessons in covered.items():
        treatments.setdefault(frozenset(lessons), []).append(treatment)
    every = list(treatments)
    blocks = tuple(
        _Block(
            lessons,
            tuple(treatments[lessons]),
            tuple(n for n, other in enumerate(every) if other != lessons and other & lessons and not other < lessons),
        )
        for lessons in every
    )
    return tuple(covered), blocks

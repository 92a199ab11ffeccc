"""Lessons that are found together: whether each does its own part, they say the same, or they only help together.

A draw for memory as a whole, or for a group, withholds several lessons at once. Where the same lessons are found again
and again, its effect can be compared with the sum of their single effects in the same recalls, each times the chance
that the lesson was shown. It is larger where one lesson stands in for the other (three that say the same: each alone 0,
together +20), and smaller where one does nothing without the other.

Each score over its e (1 - e), and over the chance that its draw was looked at, has the effect as its mean. So the
difference of the two sides is a bounded score like any other, with evidence that holds however often one looks (see
`_bets`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal, Protocol

import numpy as np

from ._bets import Scores, log_total, tally, wealth
from .episodes import Flags, Floats, Ints

LIKELY: Final = float(np.log(40.0))
"""The log of the evidence from which on it is told, as likely."""
_MOST: Final = 6
"""Lessons that are compared together."""
_LEAST: Final = 40
"""Recalls of a set from which on it is looked at."""
_ODDS: Final = 0.05
"""The least chance, of being shown and of being withheld, of draws that are compared."""
_HALF: Final = 0.5
_WHOLE: Final = 0


class DrawColumns(Protocol):
    """What recalls tell of units, ordered by row: see `units.entries`."""

    @property
    def row(self) -> Ints: ...
    @property
    def unit(self) -> Ints: ...
    @property
    def shown(self) -> Flags: ...
    @property
    def chance(self) -> Floats: ...


class PlaceColumns(Protocol):
    """Which lessons had a place in which recall, ordered by row."""

    @property
    def row(self) -> Ints: ...
    @property
    def unit(self) -> Ints: ...


@dataclass(frozen=True, slots=True)
class Together:
    """Lessons that were often found together."""

    lessons: tuple[int, ...]
    recalls: int
    joint: float
    """What showing all of them changes, against none."""
    alone: tuple[float, ...]
    """What showing each changes while the others are mostly there."""
    log_same: float
    """The log of the evidence that together they do more than the sum: they say the same."""
    log_need: float
    """The same, that they do less than the sum: they need each other."""

    @property
    def says(self) -> Literal["same", "need each other", ""]:
        """What is likely of them; empty where nothing is."""
        if max(self.log_same, self.log_need) < LIKELY:
            return ""
        return "same" if self.log_same >= self.log_need else "need each other"


@dataclass(slots=True)
class _Set:
    """What was seen of one set of lessons."""

    difference: list[float] = field(default_factory=list[float])
    joint: list[float] = field(default_factory=list[float])
    alone: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    widest: float = 0.0


def together(
    draws: DrawColumns, placed: PlaceColumns, parents: Sequence[Sequence[int]], residual: Floats, /
) -> tuple[Together, ...]:
    """The sets of two to six lessons that were found together often enough, the clearest first.

    Args:
        draws: of all units.
        placed: of all recalls, those without memory too.
        parents: by unit: the groups of a lesson, the widest first.
        residual: by recall, the outcome less its guess, in [-1, 1]; nan where it does not count.
    """
    found: dict[tuple[int, ...], _Set] = {}
    told, units = dict[int, dict[int, tuple[bool, float]]](), dict[int, list[int]]()
    columns = (draws.row.tolist(), draws.unit.tolist(), draws.shown.tolist(), draws.chance.tolist())
    for row, unit, shown, chance in zip(*columns, strict=True):
        told.setdefault(row, {})[unit] = shown, chance
    for row, unit in zip(placed.row.tolist(), placed.unit.tolist(), strict=True):
        units.setdefault(row, []).append(unit)
    for row, lessons in units.items():
        if len(lessons) > 1 and row in told and not np.isnan(residual[row]):
            _see(found, _blocks(lessons, parents), told[row], float(residual[row]))
    known = [_told(lessons, seen) for lessons, seen in found.items() if len(seen.joint) >= _LEAST]
    return tuple(sorted(known, key=lambda one: -max(one.log_same, one.log_need)))


def _blocks(lessons: Sequence[int], parents: Sequence[Sequence[int]]) -> Mapping[frozenset[int], int]:
    """The sets of lessons that one draw withholds in this recall, and one unit that covers each."""
    covered: dict[int, set[int]] = {}
    for lesson in lessons:
        for unit in (_WHOLE, *parents[lesson], lesson):
            covered.setdefault(unit, set()).add(lesson)
    return {frozenset(own): unit for unit, own in covered.items()}


def _see(
    found: dict[tuple[int, ...], _Set],
    blocks: Mapping[frozenset[int], int],
    entries: Mapping[int, tuple[bool, float]],
    residual: float,
) -> None:
    """Take in what one recall tells of each of its sets."""
    for block, unit in blocks.items():
        if not 2 <= len(block) <= _MOST or unit not in entries or not _open(entries[unit][1]):
            continue
        seen = found.setdefault(tuple(sorted(block)), _Set())
        shown, chance = entries[unit]
        joint = _effect(shown, chance, residual)
        alone = {lesson: _alone(lesson, block, blocks, entries, residual) for lesson in block}
        widest = 1 / min(chance, 1 - chance) + sum(max(1.0, odds) for _, _, odds in alone.values()) / chance
        seen.widest = max(seen.widest, widest)
        seen.joint.append(joint)
        seen.difference.append(joint - sum(part for _, part, _ in alone.values()) / chance)
        for lesson, (value, _, _) in alone.items():
            seen.alone.setdefault(lesson, []).append(value / chance)


def _alone(
    lesson: int,
    block: frozenset[int],
    blocks: Mapping[frozenset[int], int],
    entries: Mapping[int, tuple[bool, float]],
    residual: float,
) -> tuple[float, float, float]:
    """What a recall tells of one lesson of a set: its effect, its part of the joint effect, its odds of being shown.

    Nothing where its own draw was not looked at, because a draw for something larger withheld it.
    """
    own = min((other for other in blocks if lesson in other), key=len)
    between = [blocks[other] for other in blocks if own < other < block]
    if blocks[own] not in entries or not _open(entries[blocks[own]][1]):
        return 0.0, 0.0, 0.0
    shown, chance = entries[blocks[own]]
    looked = prod(entries[unit][1] for unit in between if unit in entries)
    effect = _effect(shown, chance, residual)
    return effect / looked, effect * chance, chance / (1 - chance)


def _effect(shown: bool, chance: float, residual: float) -> float:
    return (shown - chance) * residual / (chance * (1 - chance))


def _open(chance: float) -> bool:
    return _ODDS <= chance <= 1 - _ODDS


def _told(lessons: tuple[int, ...], seen: _Set) -> Together:
    size = len(seen.joint)
    scale = 1 / ((1 + len(lessons) / _HALF) / _ODDS)
    bound = np.full(size, min(seen.widest * scale, 1.0))
    score = np.clip(np.array(seen.difference) * scale, -1.0, 1.0)
    won = wealth(tally(Scores(score, np.full(size, scale), -bound, bound, np.zeros(size, np.int64), 1)))
    return Together(
        lessons=lessons,
        recalls=size,
        joint=float(np.mean(seen.joint)),
        alone=tuple(float(np.mean(seen.alone[lesson])) for lesson in lessons),
        log_same=float(log_total(won.up)[0]),
        log_need=float(log_total(won.down)[0]),
    )

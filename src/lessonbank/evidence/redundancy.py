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

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal, Protocol, TypeAlias

import numpy as np

from ._bets import Scores, log_total, tally, wealth
from .episodes import Flags, Floats, Ints
from .review import LIKELY

_MOST: Final = 6
"""Lessons that are compared together."""
_LEAST: Final = 40
"""Recalls of a set from which on it is looked at."""
_ODDS: Final = 0.05
"""The least chance, of being shown and of being withheld, of draws that are compared."""
_HALF: Final = 0.5
_WHOLE: Final = 0


class UnitColumns(Protocol):
    """What recalls tell of units, ordered by row: see `Draws` and `Placed`."""

    @property
    def row(self) -> Ints: ...
    @property
    def unit(self) -> Ints: ...
    @property
    def shown(self) -> Flags: ...
    @property
    def chance(self) -> Floats: ...


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
    """What was seen of one set of lessons: a column for each pattern of recalls that it was found in."""

    difference: list[Floats] = field(default_factory=list[Floats])
    joint: list[Floats] = field(default_factory=list[Floats])
    alone: dict[int, list[Floats]] = field(default_factory=dict[int, list[Floats]])
    widest: float = 0.0


_Entries: TypeAlias = Mapping[int, tuple[Flags, Floats]]
"""By unit: whether it was shown, and its chance; nan in recalls that say nothing of it."""


def together(
    draws: UnitColumns, placed: UnitColumns, parents: Sequence[Sequence[int]], residual: Floats, /
) -> tuple[Together, ...]:
    """The sets of two to six lessons that were found together often enough, the clearest first.

    Args:
        draws: of all units.
        placed: of all recalls, those without memory too.
        parents: by unit: the groups of a lesson, the widest first.
        residual: by recall, the outcome less its guess, in [-1, 1]; nan where it does not count.
    """
    told = np.zeros(len(residual), np.bool_)
    told[draws.row] = True
    patterns = _patterns(placed, told & ~np.isnan(residual), parents)
    blocks = [_blocks(lessons, parents) for lessons, _ in patterns]
    times = Counter[frozenset[int]]()
    for (_, rows), own in zip(patterns, blocks, strict=True):
        times.update(dict.fromkeys(own, len(rows)))
    found: dict[tuple[int, ...], _Set] = {}
    for (_, rows), own in zip(patterns, blocks, strict=True):
        often = [block for block in own if 2 <= len(block) <= _MOST and times[block] >= _LEAST]
        if often:
            entries = _entries(draws, rows)
            for block in often:
                _see(found, block, own, entries, residual[rows])
    known = [_told(lessons, seen) for lessons, seen in found.items() if sum(map(len, seen.joint)) >= _LEAST]
    return tuple(sorted(known, key=lambda one: -max(one.log_same, one.log_need)))


def _patterns(
    placed: UnitColumns, counted: Flags, parents: Sequence[Sequence[int]]
) -> list[tuple[tuple[int, ...], Ints]]:
    """Two lessons or more that were all that a recall found, and the recalls that found just them.

    Most recalls of a large bank find what hardly another finds. Without groups, no part of that is looked at either.
    """
    kept = np.flatnonzero(counted[placed.row])
    order = kept[np.lexsort((placed.unit[kept], placed.row[kept]))]
    row, unit = placed.row[order], placed.unit[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    size = np.diff(first, append=len(row))
    grouped = np.array([bool(own) for own in parents])
    found = list[tuple[tuple[int, ...], Ints]]()
    for many in np.unique(size[size > 1]):
        start = first[size == many]
        lessons = unit[start[:, None] + np.arange(many)]
        name = np.zeros(len(start), np.int64)
        for column in lessons.T:
            name = np.unique(name * len(parents) + column, return_inverse=True)[1]
        by_name, times = np.argsort(name, kind="stable"), np.bincount(name)
        ends = np.cumsum(times)
        for number in np.flatnonzero((times >= _LEAST) | grouped[lessons[by_name[ends - 1]]].any(axis=1)):
            same = by_name[ends[number] - times[number] : ends[number]]
            found.append((tuple(lessons[same[0]].tolist()), row[start[same]]))
    return found


def _blocks(lessons: Sequence[int], parents: Sequence[Sequence[int]]) -> Mapping[frozenset[int], int]:
    """The sets of lessons that one draw withholds in this recall, and one unit that covers each."""
    covered: dict[int, set[int]] = {}
    for lesson in lessons:
        for unit in (_WHOLE, *parents[lesson], lesson):
            covered.setdefault(unit, set()).add(lesson)
    return {frozenset(own): unit for unit, own in covered.items()}


def _entries(draws: UnitColumns, rows: Ints) -> _Entries:
    """What the draws say of some recalls, which are ordered."""
    start: Ints = np.searchsorted(draws.row, rows, side="left")
    many: Ints = np.searchsorted(draws.row, rows, side="right") - start
    place = np.repeat(np.arange(len(rows)), many)
    at = np.arange(len(place)) + np.repeat(start - np.cumsum(many) + many, many)
    units = draws.unit[at]
    told: dict[int, tuple[Flags, Floats]] = {}
    for unit in np.unique(units):
        own = units == unit
        shown, chance = np.zeros(len(rows), np.bool_), np.full(len(rows), np.nan)
        shown[place[own]], chance[place[own]] = draws.shown[at[own]], draws.chance[at[own]]
        told[int(unit)] = shown, chance
    return told


def _see(
    found: dict[tuple[int, ...], _Set],
    block: frozenset[int],
    blocks: Mapping[frozenset[int], int],
    entries: _Entries,
    residual: Floats,
) -> None:
    """Take in what the recalls of one pattern tell of one of its sets."""
    shown, chance = entries.get(blocks[block], (np.zeros(0, np.bool_), np.zeros(0)))
    use = _open(chance)
    if not use.any():
        return
    joint, chance = _effect(shown, chance, residual)[use], chance[use]
    alone = {lesson: [told[use] for told in _alone(lesson, block, blocks, entries, residual)] for lesson in block}
    widest = 1 / np.minimum(chance, 1 - chance) + sum(np.maximum(1.0, odds) for _, _, odds in alone.values()) / chance
    seen = found.setdefault(tuple(sorted(block)), _Set())
    seen.widest = max(seen.widest, float(widest.max()))
    seen.joint.append(joint)
    seen.difference.append(joint - sum(part for _, part, _ in alone.values()) / chance)
    for lesson, (value, _, _) in alone.items():
        seen.alone.setdefault(lesson, []).append(value / chance)


def _alone(
    lesson: int, block: frozenset[int], blocks: Mapping[frozenset[int], int], entries: _Entries, residual: Floats
) -> tuple[Floats, Floats, Floats]:
    """What recalls tell of one lesson of a set: its effect, its part of the joint effect, its odds of being shown.

    Nothing where its own draw was not looked at, because a draw for something larger withheld it.
    """
    nothing = np.zeros(len(residual))
    own = min((other for other in blocks if lesson in other), key=len)
    if blocks[own] not in entries:
        return nothing, nothing, nothing
    shown, chance = entries[blocks[own]]
    between = [entries[unit][1] for other, unit in blocks.items() if own < other < block and unit in entries]
    looked = prod((np.where(np.isnan(odds), 1.0, odds) for odds in between), start=np.ones(len(residual)))
    effect, use = _effect(shown, chance, residual), _open(chance)
    with np.errstate(divide="ignore"):
        told = effect / looked, effect * chance, chance / (1 - chance)
    return np.where(use, told[0], 0.0), np.where(use, told[1], 0.0), np.where(use, told[2], 0.0)


def _effect(shown: Flags, chance: Floats, residual: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return (shown - chance) * residual / (chance * (1 - chance))


def _open(chance: Floats) -> Flags:
    return (chance >= _ODDS) & (chance <= 1 - _ODDS)


def _told(lessons: tuple[int, ...], seen: _Set) -> Together:
    joint, difference = np.concatenate(seen.joint), np.concatenate(seen.difference)
    size = len(joint)
    scale = 1 / ((1 + len(lessons) / _HALF) / _ODDS)
    bound = np.full(size, min(seen.widest * scale, 1.0))
    score = np.clip(difference * scale, -1.0, 1.0)
    won = wealth(tally(Scores(score, np.full(size, scale), -bound, bound, np.zeros(size, np.int64), 1)))
    return Together(
        lessons=lessons,
        recalls=size,
        joint=float(np.mean(joint)),
        alone=tuple(float(np.mean(np.concatenate(seen.alone[lesson]))) for lesson in lessons),
        log_same=float(log_total(won.up)[0]),
        log_need=float(log_total(won.down)[0]),
    )

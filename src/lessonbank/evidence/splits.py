"""Whether an effect differs between tasks, so that "no evidence" can become "+20 here, -20 there".

A part is the tasks of one template, or of one topic. The test bets, for each part, that its effect is above that of all
other tasks and theirs below, or the reverse. Under any one effect that all tasks share, such a bet never grows in
expectation (see `_bets`), so the least of its wealth over all effects that could be shared is evidence against every
one of them. The mean over the parts, with weights fixed when a part comes up, is evidence that some part differs. Like
everything here it holds however often one looks, and for the average effect so far where effects drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from lessonbank.guard.sanitise import one_line

from ._bets import LOG_PRIOR, STAKES, Scores, Wealth, log_total, tally, wealth
from .episodes import Episodes, Flags, Floats, Ints
from .lift import Estimate, Part, Split
from .review import Review
from .sequences import bounds

ALPHA: Final = 0.005
"""The chance that a bank ever says that some effect differs between tasks where none does."""
LEAST: Final = 20
"""Draws of a unit in a part from which on the part is looked at."""
_MOST: Final = 12
"""Parts of a unit that are looked at: those that came up first."""
_PARTS: Final = 2.0
_UNITS: Final = 20.0
_ROUNDS: Final = 48
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_TOLD: Final = "template "


@dataclass(frozen=True, slots=True)
class PartEffect:
    """The effect of one unit on the tasks of one part."""

    part: int
    value: float
    low: float
    high: float
    """Between what the effect lies, however often one looks."""
    draws: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What the evidence says of a unit's effects on different tasks."""

    unit: int
    log_e: float
    """The log of the evidence against one effect for all tasks."""
    differs: bool
    """Whether it is enough, so that at most `ALPHA` of banks without any difference ever say so."""
    parts: tuple[PartEffect, ...]
    """By how far each is from the others, the farthest first."""


def by_template(episodes: Episodes, found: Review, /) -> dict[int, Split]:
    """By unit: its effects by task template, where two of these or more can be compared."""
    scores = found.scores
    told = differences(scores, episodes.cluster[scores.row])
    return {one.unit: _split(one, episodes.clusters, found.basis) for one in told}


def _split(found: Difference, names: Sequence[str], basis: str) -> Split:
    parts = tuple(
        Part(
            name=one_line(names[part.part].removeprefix(_TOLD), limit=80) if names else str(part.part),
            success=Estimate(value=part.value, always_low=part.low, always_high=part.high, basis=basis),
            recalls=part.draws,
        )
        for part in found.parts
    )
    evidence = float(np.exp(np.clip(found.log_e, 0.0, 700.0)))
    return Split(parts=parts, evidence=evidence, differs=found.differs and basis != "judge")


def differences(scores: Scores, part: Ints, /, *, alpha: float = ALPHA, level: float = 0.95) -> tuple[Difference, ...]:
    """Every unit with two parts or more that can be compared, in the order in which this became so.

    Args:
        scores: of all units, in the order in which outcomes became known.
        part: (len(scores),): which tasks each is of; below 0 for none.
        alpha: shared by all units that ever come up.
        level: of the intervals.
    """
    scores = replace(scores, bold=np.empty(0, np.bool_))  # a part and the rest have to be bet on alike
    cell, of_cell = _cells(scores, part)
    if not len(of_cell):
        return ()
    mine = replace(scores.where(cell >= 0), group=cell[cell >= 0], groups=len(of_cell))
    own_tally = tally(mine)
    each, whole = wealth(own_tally), wealth(tally(scores))
    logs = _against_the_rest(each, whole, of_cell[:, 0])
    low, high = bounds(own_tally, level=level)
    value = np.bincount(mine.group, mine.score, len(of_cell)) / each.scale
    counts = np.bincount(mine.group, minlength=len(of_cell))
    found = list[Difference]()
    for turn, unit in enumerate(dict.fromkeys(of_cell[:, 0].tolist())):
        own = np.flatnonzero(of_cell[:, 0] == unit)
        log_e = float(log_total(logs[own] + _log_weights(len(own), _PARTS)))
        threshold = -math.log(alpha) - float(_log_weights(turn + 1, _UNITS)[turn])
        parts = [
            PartEffect(int(of_cell[n, 1]), float(value[n]), float(low[n]), float(high[n]), int(counts[n]))
            for n in own[np.argsort(-logs[own], kind="stable")]
        ]
        found.append(Difference(unit, log_e, log_e >= threshold, tuple(parts)))
    return tuple(found)


def _cells(scores: Scores, part: Ints) -> tuple[Ints, Ints]:
    """By score: the number of its unit and part, -1 where these are not looked at; and (cells, 2): unit and part.

    Cells are in the order in which their units, and within these their parts, came up.
    """
    inside = np.flatnonzero(part >= 0)
    parts = int(part.max(initial=0)) + 1
    both, number = np.unique(scores.group[inside] * parts + part[inside], return_inverse=True)
    names = np.column_stack(np.divmod(both, parts))
    order = np.argsort(number, kind="stable")
    counts = np.bincount(number, minlength=len(names))
    starts = np.cumsum(counts) - counts
    large = np.flatnonzero(counts >= LEAST)
    reached = inside[order[starts[large] + LEAST - 1]] if len(large) else large
    taken = _taken(names[large], reached)
    cell, known = np.full(len(scores), -1), np.full(len(names), -1)
    known[large[taken]] = np.arange(len(taken))
    cell[inside] = known[number]
    return cell, names[large[taken]]


def _taken(names: Ints, reached: Ints) -> list[int]:
    """Which parts are looked at: those of units with two or more, by when the unit had its second."""
    by_unit: dict[int, list[int]] = {}
    for n in np.argsort(reached, kind="stable").tolist():
        by_unit.setdefault(int(names[n, 0]), []).append(n)
    units = sorted((own for own in by_unit.values() if len(own) > 1), key=lambda own: int(reached[own[1]]))
    return [n for own in units for n in own[:_MOST]]


def _log_weights(count: int, spread: float) -> Floats:
    """Weights that are known when the n-th comes up, whatever number will follow; all of them sum to 1."""
    n = np.arange(count)
    return np.log(spread) - np.log(n + spread) - np.log(n + spread + 1)


def _against_the_rest(each: Wealth, whole: Wealth, unit: Ints) -> Floats:
    """(cells,): the log of the evidence that a part's effect is another one than that of the unit's other tasks."""
    with np.errstate(invalid="ignore"):
        rest_up, rest_down = (
            np.where(_finite(all_[unit], own), all_[unit] - own + LOG_PRIOR, -np.inf)
            for all_, own in ((whole.up, each.up), (whole.down, each.down))
        )
    rest = np.maximum(whole.scale[unit] - each.scale, 0.0)

    def log_at(effect: Floats) -> Floats:
        own_shift, rest_shift = (STAKES * (scale * effect)[:, None] for scale in (each.scale, rest))
        above = log_total(each.up - own_shift) + log_total(rest_down + rest_shift)
        below = log_total(each.down + own_shift) + log_total(rest_up - rest_shift)
        return np.logaddexp(above, below) - math.log(2)

    low, high = np.full(len(unit), -1.0), np.full(len(unit), 1.0)
    for _ in range(_ROUNDS):  # it is convex in the effect: golden sections close in on its least value
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        falls = log_at(left) > log_at(right)
        low, high = np.where(falls, left, low), np.where(falls, high, right)
    return log_at((low + high) / 2)


def _finite(one: Floats, other: Floats) -> Flags:
    return np.isfinite(one) & np.isfinite(other)

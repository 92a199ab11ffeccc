"""Grades memory as a whole, each group and each lesson by the evidence: what harms is taken back because of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from lessonbank.guard.identity import is_separate_writer

from ._e_process import STARTS, gains_by_cell, restarted
from .confidence_sequences import (
    Basis,
    Outcomes,
    Scores,
    bounds,
    log_e,
    missing_scores,
    outcomes_each_way,
    scores,
)
from .effects import Standing
from .episodes import LESSON_LEVEL, Episodes, Flags, Floats, Ints
from .estimates import Effects, Pooled, effects, pooled

ALPHA: Final = 0.05
"""The share of banks that ever print a false "helps" or "harms", at most."""
_SHARES: Final = (0.3, 0.2, 0.5)
"""Of it for memory as a whole, for groups, for lessons."""
_SLOW: Final = 10.0
LIKELY: Final = math.log(40.0)
"""From what evidence on memory as a whole or a group likely helps, or harms: a logarithm."""
_LESSON_LIKELY: Final = math.log(80.0)
"""The same for a lesson. So at most one in a hundred lessons without effect gets the word (by simulation)."""
_LATE: Final = 300
"""The last draws of a treatment, by which its effect is expected to be what it is."""
_GRADES: Final[tuple[Standing, ...]] = ("harms", "likely harms", "no evidence yet", "likely helps", "helps")
_LIARS: Final = 10
"""One in so many keys may lie, as often as they like, without leading to a wrong action."""


@dataclass(frozen=True, slots=True)
class Review:
    """By treatment, in the order of `Episodes.treatments`."""

    standing: tuple[Standing, ...]
    basis: Basis
    """What the outcomes are. By `judge` alone, nothing is done."""
    effects: Effects
    low: Floats
    high: Floats
    """Between what each effect lies, however often one looks."""
    expected: Pooled
    log_help: Floats
    log_harm: Floats
    """Evidence against 'does not help' and 'does not harm', without the writers who say most: logarithms."""
    begun: Floats
    """Since when it harms, where it did not from the first, in seconds since 1970; else `nan`."""
    differs: Flags
    """Whether outcomes go missing more often on one side, and nothing is shown."""
    scores: Scores
    """Of what has an outcome."""
    outcomes: Outcomes

    @property
    def acts(self) -> bool:
        """Whether anything may follow: opinions alone are never enough."""
        return self.basis != "judge"

    def is_shown(self, treatment: int, standing: Standing, /) -> bool:
        """Whether this is shown of a treatment, by the truth."""
        return self.acts and self.standing[treatment] == standing


def review(episodes: Episodes, /, *, level: float = 0.95, leave_out: int = 0) -> Review:
    """What is known of each treatment. Two grades: "likely" (see `likely_from`), and shown.

    Shown means that no more than `ALPHA` of all banks ever print one that is wrong, however many lessons come: it is
    divided among the levels, and inside of a level each treatment has a share of it that is fixed when it arrives; all
    shares together are 1, though there is no last treatment. Harm is looked for from many starts on, so that one that
    turns is found. With `leave_out`, verdicts hold without any so many of the keys that told outcomes.
    """
    ways = outcomes_each_way(episodes)
    every, *filled = (scores(episodes, way) for way in ways)
    won = gains_by_cell(every, *filled, by_writer=leave_out > 0)
    log_help = log_e(won, helps=True, leave_out=leave_out)
    log_harm, start = restarted(won, leave_out=leave_out)
    likely, least = likely_from(episodes), shown_from(episodes)
    start = np.where((log_harm >= likely) & (log_harm > log_help), start, 0)
    is_present = every.rank >= STARTS[start][every.group] if start.any() else np.ones(len(every), np.bool_)
    present = every.where(is_present & (every.weight > 0))
    counts = np.bincount(present.group, minlength=present.groups)
    late = present.where(present.rank >= (counts - _LATE)[present.group])
    low, high = bounds(won, level=level, start=start)
    made = effects(present, episodes, level=level)
    made = replace(made, estimate=np.clip(made.estimate, low, high))
    grade = _graded(log_help, log_harm, likely, least, made)
    return Review(
        standing=tuple(_GRADES[int(number) + 2] for number in grade),
        basis=ways[0].basis,
        effects=made,
        low=low,
        high=high,
        expected=pooled(effects(late, episodes, level=level), episodes.level, episodes.parents),
        log_help=log_help,
        log_harm=log_harm,
        begun=_begun(episodes, present, start),
        differs=missing_differs(episodes) & (grade == 0),
        scores=present,
        outcomes=ways[0],
    )


def _graded(log_help: Floats, log_harm: Floats, likely: Floats, least: Floats, made: Effects) -> Ints:
    """-2 to 2 by treatment. Where both sides say something, the later one, which is harm."""
    helps = (log_help >= likely).astype(np.int64) + (log_help >= least)
    harms = (log_harm >= likely).astype(np.int64) + (log_harm >= least)
    grade = np.where(harms > 0, -harms, helps)
    return np.where(np.isfinite(made.estimate), grade, 0)


def likely_from(episodes: Episodes, /) -> Floats:
    """By treatment: the log of the e-value, in one direction, from which on it likely helps, or harms."""
    return np.where(episodes.level == LESSON_LEVEL, _LESSON_LIKELY, LIKELY)


def shown_from(episodes: Episodes, /) -> Floats:
    """By treatment: the log of the e-value, in one direction, from which on it counts as shown."""
    turn = episodes.turn.astype(float)
    weight = np.where(episodes.level == 0, 1.0, _SLOW / ((turn + _SLOW) * (turn + _SLOW + 1.0)))
    return np.log(2.0 / (ALPHA * np.array(_SHARES)[episodes.level] * weight))


def missing_differs(episodes: Episodes, /) -> Flags:
    """By treatment: whether an outcome goes missing likelier on one side.

    Where its group or memory as a whole has no verdict, a lesson needs as little evidence of it as memory as a whole:
    else it would get a verdict before. One bank in twenty says so by mistake.
    """
    if not episodes.missing.any():
        return np.zeros(len(episodes.treatments), np.bool_)
    won = gains_by_cell(missing_scores(episodes), by_start=False)
    log, least = np.maximum(log_e(won, helps=True), log_e(won, helps=False)), shown_from(episodes)
    differs = log >= least
    within = np.array([differs[[0, *parents]].any() for parents in episodes.parents], np.bool_)
    return differs | (within & (log >= least[0]))


def left_out(episodes: Episodes, /) -> int:
    """How many keys may lie without leading to an action: each single one, and any tenth of all, where those that told
    one outcome only count twice (as many are still to come: Good 1953); none if the bank's own process alone tells."""
    who, counts = np.unique(episodes.writer[episodes.known], return_counts=True)
    if len(who) < 2 and not any(is_separate_writer(episodes.writers[int(n)]) for n in who if episodes.writers):
        return 0
    return -(-(len(counts) + int((counts == 1).sum())) // _LIARS)


def _begun(episodes: Episodes, present: Scores, start: Ints) -> Floats:
    begun, turned = np.full(len(episodes.treatments), np.nan), np.flatnonzero(start > 0)
    begun[turned] = [episodes.at[present.row[present.group == treatment][0]] for treatment in turned]
    return begun

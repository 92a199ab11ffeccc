"""What a simulated bank sees of its episodes, as columns; and the same as the ledger's own columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lessonbank.evidence import episodes as ledger

Floats = NDArray[np.float64]
Ints = NDArray[np.integer[Any]]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Which lesson had a place in which recall, and what was drawn for it. One row per pair, ordered by `row`."""

    row: Ints
    """The row of the recall in `Episodes`."""
    lesson: Ints
    """The lesson, as a position in `Episodes.lessons`."""
    withheld: Flags
    """What the lesson's own draw said. In a control recall nothing was shown whatever it said."""
    probability: Floats
    """The probability of withholding it, fixed before the draw. Zero: nothing was drawn."""
    cited: Flags

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True)
class Episodes:
    """One row per recall that had something to show, in the order in which their outcomes became known.

    `nan` stands for unknown everywhere. Recalls without an outcome come last.
    """

    outcome: Floats
    true: Flags
    """Whether `outcome` is the truth rather than a judge's opinion."""
    judged: Floats
    confidence: Floats
    judge: Ints
    control: Flags
    """Whether the whole recall was withheld."""
    control_probability: Floats
    cluster: Ints
    steps: Floats
    tokens: Floats
    cost: Floats
    seconds: Floats
    at: Floats
    pairs: Pairs
    lessons: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.outcome)

    @property
    def known(self) -> Flags:
        """Which rows have an outcome."""
        return ~np.isnan(self.outcome)

    def as_evidence(self) -> ledger.Episodes:
        """The same for the ledger: memory as a whole is treatment 0, and the lessons follow.

        A lesson that was found alone is all of memory in that recall: both draws are one, for both.
        """
        pairs, size = self.pairs, len(self.lessons)
        treatment, alone = pairs.lesson + 1, np.bincount(pairs.row, minlength=len(self))[pairs.row] == 1
        off, odds = self.control[pairs.row], self.control_probability[pairs.row]
        chance = (1.0 - pairs.probability) * np.where(alone, 1.0 - odds, 1.0)
        shown = ~pairs.withheld & ~off
        whole = 1.0 - self.control_probability
        some = np.flatnonzero(alone)
        whole[pairs.row[some]] = chance[some]
        bare = self.control.copy()
        bare[pairs.row[some]] = ~shown[some]
        row = np.concatenate([np.arange(len(self)), pairs.row])
        columns = (
            row,
            np.concatenate([np.zeros(len(self), np.int64), treatment]),
            np.concatenate([~bare, shown]),
            np.concatenate([whole, chance]),
        )
        told = np.concatenate([np.ones(len(self), bool), alone | ~off])
        never, one = np.zeros(len(self), bool), np.zeros(len(self), np.int64)
        kept = np.flatnonzero(told & (columns[3] > 0) & (columns[3] < 1))
        kept = kept[np.argsort(row[kept], kind="stable")]
        return ledger.Episodes(
            outcome=self.outcome,
            true=self.true,
            cluster=self.cluster,
            steps=self.steps,
            tokens=self.tokens,
            cost=self.cost,
            seconds=self.seconds,
            draws=ledger.Draws(*(column[kept] for column in columns)),
            placed=ledger.Placed(pairs.row, treatment, shown),
            treatments=("*", *self.lessons),
            level=np.array([ledger.WHOLE_LEVEL, *[ledger.LESSON_LEVEL] * size]),
            turn=np.concatenate([[0], _order_of_arrival(pairs.lesson, size)]),
            parents=((),) * (size + 1),
            broke=never,
            at=self.at,
            writer=one,
            writers=(),
            judged=np.full(len(self), np.nan),
            audit_odds=np.full(len(self), np.nan),
            audited=never,
            another_task=0,
            waiting=never,
            model=one - 1,
            models=(),
            again=never,
        )


def _order_of_arrival(lesson: Ints, size: int) -> Ints:
    """By lesson: how many came before it."""
    first = np.full(size, len(lesson))
    np.minimum.at(first, lesson, np.arange(len(lesson)))
    return np.argsort(np.argsort(first, kind="stable"))

"""Which runs a person was asked to label, with which odds, and which of them still wait: what a random check rests on.

A judge's opinions are put right by the truth of some runs. That is only right if chance chose these runs, and nobody
who knew how they ended. An audit is one line of the journal: a seed, and the odds of every run of its pool, which is
every recall whose outcome rested on a judge's word alone by then. Each has a coin of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from lessonbank.contracts.records import Audit, Settlement
from lessonbank.contracts.records.ids import new_id

from .episodes import Flags, Floats
from .policy import uniform


class _AuditDraw(NamedTuple):
    odds: float
    pool: frozenset[str]
    drawn: frozenset[str]
    """Which recalls of the pool it drew."""


@dataclass(slots=True)
class Audits:
    """The audits of one scope."""

    _judged: dict[str, None] = field(default_factory=dict[str, None])
    """Recalls whose outcome rests on a judge's word, in the order in which it was told."""
    _labelled: set[str] = field(default_factory=set[str])
    _gone: set[str] = field(default_factory=set[str])
    """Recalls whose runs were erased because of their age: nobody can label these any more."""
    _made: list[_AuditDraw] = field(default_factory=list[_AuditDraw])

    def settle(self, settlement: Settlement, /) -> None:
        """Take in how a recall that counts was settled."""
        id, decided = settlement.recall_id, settlement.outcome != "unknown"
        if settlement.source != "judge":
            self._labelled.add(id)
        if decided and settlement.trajectory_ids and id not in self._labelled and id not in self._gone:
            self._judged[id] = None
        else:
            self._judged.pop(id, None)

    def forget(self, recall_ids: Iterable[str], /) -> None:
        """The runs of these recalls were erased."""
        for id in recall_ids:
            self._gone.add(id)
            self._judged.pop(id, None)

    def plan(self, count: int, /, *, by: str, reason: str = "") -> Audit | None:
        """An audit that draws about `count` recalls; `None` where there is none to draw from."""
        if not self._judged:
            return None
        return Audit(seed=new_id(), odds=min(1.0, count / len(self._judged)), by=by, reason=reason)

    def make(self, audit: Audit, /) -> None:
        """Take in an audit.

        Its pool is what there is to draw from now, and what the pools before it had: the odds of a recall may not
        depend on whether it was drawn or labelled before.
        """
        pool = frozenset(self._judged).union(*(made.pool for made in self._made[-1:])) - self._gone
        drawn = frozenset(id for id in pool if uniform(audit.seed, id) < audit.odds)
        self._made.append(_AuditDraw(audit.odds, pool, drawn))

    @property
    def waiting(self) -> tuple[str, ...]:
        """Recalls that were drawn and have no label yet, the oldest first."""
        drawn = {id for made in self._made for id in made.drawn}
        return tuple(id for id in self._judged if id in drawn)

    def by_row(self, recall_ids: Sequence[str], /) -> tuple[Floats, Flags]:
        """(n,), (n,): the odds with which each recall was drawn by any audit, and whether it was.

        The odds are `nan` where no audit says anything. An audit counts up to the last recall that it drew and that has
        its label, before the first one that waits for it: whoever stops labelling there may know why.
        """
        missed, audited = np.ones(len(recall_ids)), np.zeros((2, len(recall_ids)), np.bool_)
        for made in self._made:
            rows = self._counting(made, recall_ids)
            missed[rows] *= 1.0 - made.odds
            audited[0, rows] = True
            audited[1, [row for row in rows if recall_ids[row] in made.drawn]] = True
        return np.where(audited[0], 1.0 - missed, np.nan), audited[1]

    def _counting(self, made: _AuditDraw, recall_ids: Sequence[str]) -> list[int]:
        """The rows of an audit's pool that its labels tell about."""
        rows = list[int]()
        for row, id in enumerate(recall_ids):
            if id in made.drawn and id not in self._labelled:
                if id not in self._gone:
                    while rows and recall_ids[rows[-1]] not in made.drawn:
                        rows.pop()
                    break
            elif id in made.pool:
                rows.append(row)
        return rows

"""Receipts and settlements become columns: each as it arrives, so that nothing is read twice."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final

import numpy as np

from lessonbank.guard.identity import one_of_many
from lessonbank.types import Recall, Settlement
from lessonbank.types.timeline import reached

from .audits import Audits
from .doubts import superseded
from .episodes import Episodes, Flags, Floats, Ints, Pairs

_NAN: Final = float("nan")
_NEVER: Final = 1 << 62
_OUTCOMES: Final = {"success": 1.0, "failure": 0.0}
_UNTOLD: Final = -1
_UNCOUNTED: Final = -2
FREE: Final = 20
TWICE: Final = 2
"""Of one writer so many outcomes count in a day, or twice as many as the others told in one of their days, on average.
The bank's own process counts always while it is alone."""


def doubles() -> array[float]:
    """An empty column of numbers."""
    return array("d")


def wholes() -> array[int]:
    """An empty column of whole numbers."""
    return array("q")


@dataclass(slots=True)
class Numbers:
    """Names as numbers, in the order in which they came."""

    names: list[str] = field(default_factory=list[str])
    _known: dict[str, int] = field(default_factory=dict[str, int])

    def of(self, name: str, /) -> int:
        """Its number; a new one for a new name."""
        number = self._known.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


def template_of(task: str, /) -> str:
    """The template of a task that does not say it: its words without case, and without those that hold a digit.

    Too wide a template makes intervals wider than they must be; too narrow a one makes them wrong.
    """
    return " ".join("#" if any(map(str.isdecimal, word)) else word for word in task.casefold().split())


@dataclass(slots=True)
class Shares:
    """How many outcomes of each writer count, day by day, so that none counts for many.

    Whether an outcome counts is known before it is told, so it cannot depend on the outcome or its draw.
    """

    uncounted: int = 0
    _counted: Counter[str] = field(default_factory=Counter[str])
    _days: Counter[str] = field(default_factory=Counter[str])
    _today: dict[str, tuple[date, int]] = field(default_factory=dict[str, tuple[date, int]])

    def takes(self, writer: str, day: date, /) -> bool:
        """Whether one more outcome of `writer` counts."""
        at, told = self._today.get(writer, (None, 0))
        told = told if at == day else 0
        if told >= self._most(writer):
            self.uncounted += 1
            return False
        self._days[writer] += not told
        self._counted[writer] += 1
        self._today[writer] = day, told + 1
        return True

    def _most(self, writer: str) -> float:
        days = self._days.total() - self._days[writer]
        others = self._counted.total() - self._counted[writer]
        if not days:
            return FREE if one_of_many(writer) else math.inf
        return max(FREE, TWICE * others / days)


@dataclass(slots=True)
class Columns:
    """What is known so far of the recalls of one scope that had something to show."""

    lessons: Numbers = field(default_factory=Numbers)
    judges: Numbers = field(default_factory=Numbers)
    writers: Numbers = field(default_factory=Numbers)
    shares: Shares = field(default_factory=Shares)
    audits: Audits = field(default_factory=Audits)
    _clusters: Numbers = field(default_factory=Numbers)
    _rows: dict[str, int] = field(default_factory=dict[str, int])
    _bare: set[str] = field(default_factory=set[str])
    imported: set[str] = field(default_factory=set[str])
    """Ids of imported receipts: they are no evidence here, and neither is what settles them."""
    _numbers: dict[str, array[float]] = field(default_factory=dict[str, "array[float]"])
    _first: array[int] = field(default_factory=wholes)
    """The change by which each row's outcome became known first."""
    _cluster: array[int] = field(default_factory=wholes)
    _task: array[int] = field(default_factory=wholes)
    """By row: a number that equal tasks share."""
    _astray: set[str] = field(default_factory=set[str])
    """Ids of receipts that a run of another task settled."""
    _judge: array[int] = field(default_factory=wholes)
    _writer: array[int] = field(default_factory=wholes)
    """Who told each row's outcome: -1 while it is unknown, -2 where it does not count."""
    _pair_row: array[int] = field(default_factory=wholes)
    _pair_lesson: array[int] = field(default_factory=wholes)
    _pair_withheld: array[int] = field(default_factory=wholes)
    _pair_odds: array[float] = field(default_factory=doubles)
    _pair_cited: array[int] = field(default_factory=wholes)
    _pairs_from: array[int] = field(default_factory=wholes)

    _NAMES: Final = (
        "outcome", "true", "judged", "confidence", "control", "odds", "steps", "tokens", "cost", "seconds", "at",
    )  # fmt: skip

    def __post_init__(self) -> None:
        """Empty columns."""
        self._numbers = {name: doubles() for name in self._NAMES}

    def __len__(self) -> int:
        return len(self._cluster)

    def knows(self, recall_id: str, /) -> bool:
        """Whether a receipt was taken in, had nothing to show, or was imported."""
        return recall_id in self._rows or recall_id in self._bare or recall_id in self.imported

    def receipt(self, recall: Recall, /) -> None:
        """Take in a receipt that was made here, if it had anything to show. A known one is passed over."""
        if recall.imported:
            self.imported.add(recall.id)
            return
        placed = [c for c in recall.candidates if c.placed]
        if not placed:
            self._bare.add(recall.id)
        if not placed or recall.id in self._rows:
            return
        row = self._rows[recall.id] = len(self)
        odds = _probability(recall.control_probability)
        told = {"control": float(recall.control), "odds": odds, "true": 0.0}
        told["at"] = recall.created_at.timestamp()
        for name, column in self._numbers.items():
            column.append(told.get(name, _NAN))
        self._first.append(_NEVER)
        self._task.append(hash(recall.task))
        self._judge.append(-1)
        self._writer.append(_UNTOLD)
        self._cluster.append(self._clusters.of(template_of(recall.task)))
        self._pairs_from.append(len(self._pair_row))
        for candidate in placed:
            self._pair_row.append(row)
            self._pair_lesson.append(self.lessons.of(candidate.lesson_id))
            self._pair_withheld.append(int(candidate.withheld))
            self._pair_odds.append(_probability(candidate.probability))
            self._pair_cited.append(0)

    def settle(self, settlement: Settlement, sequence: int, /, *, at: datetime | None = None) -> None:
        """Take in what became of a recall. A later settlement goes before an earlier one; what a judge said stays.

        `at`: when the bank was told, by its own clock.
        """
        row = self._rows.get(settlement.recall_id)
        if row is None:
            return
        self.audits.settle(settlement)
        if settlement.another_task:
            self._astray.add(settlement.recall_id)
        outcome, opinion = _outcome(settlement), settlement.source == "judge"
        told = _told(settlement, outcome)
        if opinion and self._numbers["true"][row] and not math.isnan(self._numbers["outcome"][row]):
            told = {name: told[name] for name in ("judged", "confidence") if name in told}  # the truth stays
        for name, value in told.items():
            self._numbers[name][row] = value
        if not math.isnan(outcome):
            self._first[row] = min(self._first[row], sequence)
            if "outcome" in told:
                self._tell(row, settlement, at)
        if opinion and not math.isnan(outcome):
            self._judge[row] = self.judges.of(settlement.judge or "judge")
        if settlement.template is not None:
            self._cluster[row] = self._clusters.of(f"template {settlement.template}")
        self._cite(row, settlement.cited)

    def forget(self, before: datetime, /) -> None:
        """The runs of recalls that are older were erased; their outcomes still count."""
        at = self._numbers["at"]
        self.audits.forget(id for id, row in self._rows.items() if at[row] < before.timestamp())

    def _tell(self, row: int, settlement: Settlement, at: datetime | None) -> None:
        """Note who told a row's outcome. A correction by the same writer takes nothing more of its share."""
        writer = self.writers.of(settlement.identity)
        if self._writer[row] != writer:
            counts = self.shares.takes(settlement.identity, (at or settlement.at).date())
            self._writer[row] = writer if counts else _UNCOUNTED

    def _cite(self, row: int, cited: Sequence[str]) -> None:
        named = {self.lessons.of(id) for id in cited}
        place = self._pairs_from[row]
        while place < len(self._pair_row) and self._pair_row[place] == row:
            self._pair_cited[place] = int(self._pair_lesson[place] in named)
            place += 1

    def episodes(
        self,
        successors: Mapping[str, Sequence[str]] | None = None,
        /,
        *,
        since: Mapping[str, datetime] | None = None,
    ) -> Episodes:
        """The columns as they are now, in the order in which outcomes became known.

        What was shown of a merged lesson's sources counts for it: `successors` maps lesson ids to those that stand for
        them. `since` maps edited lessons to the time of their last edit: what was shown before is not theirs. Copies:
        nothing that is added later changes them.
        """
        unknown = np.isnan(np.array(self._numbers["outcome"], dtype=float))
        first = np.where(unknown, _NEVER, _wholes(self._first))
        writer = _wholes(self._writer)
        order = np.argsort(first, kind="stable")
        order = order[writer[order] != _UNCOUNTED]
        place = np.full(len(writer), -1)
        place[order] = np.arange(len(order))
        ids = np.array(list(self._rows), dtype=object)
        audit_odds, audited = self.audits.by_row(ids[order].tolist())
        number: Callable[[str], Floats] = lambda name: np.array(self._numbers[name], dtype=float)[order]  # noqa: E731
        return Episodes(
            outcome=number("outcome"),
            true=number("true") > 0.5,
            judged=number("judged"),
            confidence=number("confidence"),
            judge=_wholes(self._judge)[order],
            control=number("control") > 0.5,
            control_probability=number("odds"),
            cluster=_wholes(self._cluster)[order],
            steps=number("steps"),
            tokens=number("tokens"),
            cost=number("cost"),
            seconds=number("seconds"),
            pairs=self._pairs(place, self._standing_for(successors or {}), since or {}),
            lessons=tuple(self.lessons.names),
            judges=tuple(self.judges.names),
            at=number("at"),
            writer=writer[order],
            writers=tuple(self.writers.names),
            uncounted=self.shares.uncounted,
            superseded=superseded(_wholes(self._task), np.array(self._numbers["at"], dtype=float), ~unknown),
            another_task=len(self._astray),
            audit_odds=audit_odds,
            audited=audited,
        )

    def _standing_for(self, successors: Mapping[str, Sequence[str]]) -> Ints:
        """By lesson: the number of the lesson that stands for it now."""
        heirs_of = {id: reached(successors, id) for id in list(self.lessons.names) if id in successors}
        last = {id: heirs[-1] for id, heirs in heirs_of.items() if heirs}
        heirs = {id: self.lessons.of(heir) for id, heir in last.items()}
        return np.array([heirs.get(id, number) for number, id in enumerate(self.lessons.names)], dtype=np.int64)

    def _pairs(self, place: Ints, heir: Ints, since: Mapping[str, datetime]) -> Pairs:
        row, lesson = place[_wholes(self._pair_row)], heir[_wholes(self._pair_lesson)]
        key = row * max(len(heir), 1) + lesson
        _, at = np.unique(key, return_index=True)
        at = at[row[at] >= 0]
        if since:
            at = at[self._in_present_words(heir, since)[at]]
        return Pairs(
            row=row[at],
            lesson=lesson[at],
            withheld=_wholes(self._pair_withheld)[at] > 0,
            probability=np.array(self._pair_odds, dtype=float)[at],
            cited=_wholes(self._pair_cited)[at] > 0,
        )

    def _in_present_words(self, heir: Ints, since: Mapping[str, datetime]) -> Flags:
        """By pair: whether the recall came after the last edit of its lesson, and of the one that stands for it."""
        edited = np.array([since[id].timestamp() if id in since else -np.inf for id in self.lessons.names], dtype=float)
        lesson, made = _wholes(self._pair_lesson), np.array(self._numbers["at"], dtype=float)[_wholes(self._pair_row)]
        return (made > edited[lesson]) & (made > edited[heir[lesson]])


def _probability(told: float) -> float:
    """What a receipt says; for what is no probability, 0: nothing can be learned from such a draw."""
    return told if 0.0 <= told <= 1.0 else 0.0


def _wholes(column: array[int]) -> Ints:
    return np.array(column, dtype=np.int64)


def _outcome(settlement: Settlement) -> float:
    """1, 0 or a share of successes; `nan` for unknown."""
    if settlement.outcome == "unknown":
        return _NAN
    share = settlement.reward if _runs(settlement) > 1 else None
    return share if share is not None and 0.0 <= share <= 1.0 else _OUTCOMES[settlement.outcome]


def _runs(settlement: Settlement) -> int:
    """How many runs it speaks of: a purge may have taken the ids of some."""
    return max(settlement.runs, len(settlement.trajectory_ids), 1)


def _told(settlement: Settlement, outcome: float) -> dict[str, float]:
    """What a settlement says, by column."""
    usage, runs = settlement.usage, _runs(settlement)
    tokens = usage.input_tokens + usage.output_tokens
    told = {
        "outcome": outcome,
        "true": float(settlement.source != "judge"),
        "steps": settlement.steps / runs,
        "tokens": tokens / runs if tokens else _NAN,
        "cost": _NAN if usage.cost is None else usage.cost / runs,
        "seconds": _NAN if settlement.seconds is None else settlement.seconds / runs,
    }
    if settlement.source == "judge" and not math.isnan(outcome):
        told |= {"judged": outcome, "confidence": settlement.confidence}
    return told

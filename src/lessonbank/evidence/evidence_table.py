"""The table of evidence: receipts and settlements become columns, each as it arrives, so that nothing is read twice."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np

from lessonbank.contracts.records import Recall, Settlement

from .audits import Audits
from .episodes import GROUP_LEVEL, LESSON_LEVEL, WHOLE_LEVEL, Draws, Episodes, Flags, Ints, Placed
from .groups import AGAIN
from .treatments import WHOLE, entries, template_of

_NAN: Final = float("nan")
WINDOW: Final = 20
"""A recall is waited for until so many later ones have an outcome; after that its own counts as missing. The number is
the same for recalls with memory and without, and it is fixed before there is any outcome."""
_NUMBERS: Final = ("outcome", "judged", "steps", "tokens", "cost", "seconds")
_UNTOLD: Final = dict.fromkeys(_NUMBERS, _NAN) | {"true": 0.0, "broke": 0.0, "model": -1.0, "writer": -1.0}
"""What a row says before its outcome is known, by column."""


class Numbers(dict[str, int]):
    """Names as numbers, in the order in which they came."""

    def __missing__(self, name: str, /) -> int:
        self[name] = number = len(self)
        return number


class EvidenceTable:
    """What is known so far of the recalls of one scope that had something to show."""

    def __init__(self) -> None:
        self.treatments = Numbers({WHOLE: 0})
        self.writers, self._models, self._clusters = Numbers(), Numbers(), Numbers()
        self.audits = Audits()
        self.imported = set[str]()
        """Ids of imported receipts: they are no evidence here, and neither is what settles them."""
        self._rows = dict[str, int]()
        self.bare, self._astray = set[str](), set[str]()
        """Ids of receipts that had nothing to show, and of those that a run of another task settled."""
        self._parents = dict[int, tuple[int, ...]]()
        self._told = {name: array("d") for name in (*_UNTOLD, "again", "at", "cluster")}
        self._drawn, self._placed = (tuple(array("d") for _ in range(count)) for count in (4, 3))
        """Row, treatment, shown, chance: see `treatments.entries`; row, lesson, shown."""

    def __len__(self) -> int:
        return len(self._rows)

    def knows(self, recall_id: str, /) -> bool:
        """Whether a receipt was taken in, had nothing to show, or was imported."""
        return recall_id in self._rows or recall_id in self.bare or recall_id in self.imported

    def receipt(self, recall: Recall, /) -> None:
        """Take in a receipt that was made here, if it had anything to show. A known one is passed over."""
        if recall.imported:
            self.imported.add(recall.id)
        elif not any(c.placed for c in recall.candidates):
            self.bare.add(recall.id)
        elif recall.id not in self._rows:
            self._take(recall)

    def _take(self, recall: Recall) -> None:
        row = self._rows[recall.id] = len(self)
        cluster = self._clusters[template_of(recall.task)]
        values: dict[str, float] = {"at": recall.created_at.timestamp(), "cluster": cluster}
        is_first = recall.step is None  # what was shown later is measured as one, beside what the run began with
        values["again"] = not is_first
        for name, value in (_UNTOLD | values).items():
            self._told[name].append(value)
        for candidate in recall.candidates:
            if candidate.placed and is_first:
                lesson = self.treatments[candidate.lesson_id]
                self._parents[lesson] = tuple(self.treatments[group] for group in candidate.groups)
                for column, value in zip(self._placed, (row, lesson, candidate.offered), strict=True):
                    column.append(value)
        for entry in entries(recall):
            if is_first or entry.treatment.startswith(AGAIN):
                drawn = (row, self.treatments[entry.treatment], entry.shown, entry.chance)
                for column, value in zip(self._drawn, drawn, strict=True):
                    column.append(value)

    def last_found(self) -> dict[str, float]:
        """By lesson: when a recall found it last, in seconds since 1970."""
        last, (row, lesson, *_) = np.full(len(self.treatments), -np.inf), self._placed
        if len(row):
            at = np.array(self._told["at"])[np.array(row).astype(np.int64)]
            np.maximum.at(last, np.array(lesson).astype(np.int64), at)
        return {id: at for id, at in zip(self.treatments, last.tolist(), strict=True) if math.isfinite(at)}

    def groups_of(self, lesson_ids: Iterable[str], /) -> set[str]:
        """The groups that lessons were in when they were recalled last."""
        names, lessons = list(self.treatments), [self.treatments[id] for id in lesson_ids if id in self.treatments]
        return {names[group] for lesson in lessons for group in self._parents.get(lesson, ())}

    def settle(self, settlement: Settlement, /) -> None:
        """Take in what became of a recall. A later settlement goes before an earlier one; what a judge said stays."""
        row = self._rows.get(settlement.recall_id)
        if row is None:
            return
        if not self._told["again"][row]:  # of a run one recall is audited: the first
            self.audits.settle(settlement)
        (self._astray.add if settlement.another_task else self._astray.discard)(settlement.recall_id)
        values, is_known = _columns_of(settlement), not math.isnan(self._told["outcome"][row])
        if settlement.source == "judge" and is_known and self._told["true"][row]:
            values = {name: value for name, value in values.items() if name == "judged"}  # the truth stays
        elif not math.isnan(values["outcome"]):
            values["writer"] = self.writers[settlement.identity]
        if settlement.template is not None:
            values["cluster"] = self._clusters[f"template {settlement.template}"]
        if settlement.agent:
            values["model"] = self._models[settlement.agent]
        for name, value in values.items():
            self._told[name][row] = value

    def forget(self, before: datetime, /) -> None:
        """The runs of recalls that are older were erased; their outcomes still count."""
        at = self._told["at"]
        self.audits.forget(id for id, row in self._rows.items() if at[row] < before.timestamp())

    def episodes(self, *, since: Mapping[str, datetime] | None = None) -> Episodes:
        """The columns as they are now, in the order in which recalls were made. Copies: nothing changes them later.

        `since` maps treatments to the time their evidence starts, such as the last edit of a lesson.
        """
        values = {name: np.array(column) for name, column in self._told.items()}
        order = np.argsort(values["at"], kind="stable")
        place = np.empty(len(self), np.int64)
        place[order] = np.arange(len(order))
        ids = list(self._rows)
        audit_odds, audited = self.audits.by_row([ids[int(row)] for row in order])
        values = {name: column[order] for name, column in values.items()}
        whole = {name: values.pop(name).astype(np.int64) for name in ("cluster", "writer", "model")}
        flags = {name: values.pop(name) > 0.5 for name in ("true", "broke", "again")}
        at, known = values["at"], ~np.isnan(values["outcome"])
        begun = np.array([since[id].timestamp() if since and id in since else -np.inf for id in self.treatments])
        row, treatment, shown, chance = _in_order(self._drawn, place)
        waiting = rows_that_wait(known, np.bincount(row, minlength=len(known)) > 0)
        where, lesson, offered = _in_order(self._placed, place)
        current_draws, current_places = at[row] > begun[treatment], at[where] > begun[lesson]
        columns: dict[str, Any] = values | whole | flags
        level = np.array([LESSON_LEVEL if "/" not in id else GROUP_LEVEL for id in self.treatments])
        level[0] = WHOLE_LEVEL
        return Episodes(
            **columns,
            draws=Draws(row[current_draws], treatment[current_draws], shown[current_draws] > 0, chance[current_draws]),
            placed=Placed(where[current_places], lesson[current_places], offered[current_places] > 0),
            treatments=tuple(self.treatments),
            level=level,
            turn=_turns(level, treatment, current_draws),
            parents=tuple(self._parents.get(n, ()) for n in range(len(level))),
            writers=tuple(self.writers),
            another_task=len(self._astray),
            audit_odds=audit_odds,
            audited=audited,
            waiting=waiting,
            models=tuple(self._models),
        )


def _turns(level: Ints, treatment: Ints, present: Flags) -> Ints:
    """By treatment: the place of its arrival, which is its first draw, among those of its level.

    A place is taken for good. A treatment whose evidence started again has taken two.
    """
    turn = np.zeros(len(level), np.int64)
    earlier, now = np.full((2, len(level)), len(treatment))
    for first, side in ((earlier, ~present), (now, present)):
        at = np.flatnonzero(side)[::-1]
        first[treatment[at]] = at
    for tier in (GROUP_LEVEL, LESSON_LEVEL):
        own = np.flatnonzero(level == tier)
        arrivals = np.sort(np.concatenate([earlier[own], now[own]]))
        turn[own] = np.searchsorted(arrivals, now[own])
    return turn


def rows_that_wait(known: Flags, drawn: Flags, /) -> Flags:
    """Which rows are not scored yet: the first open one with fewer than `WINDOW` later outcomes, and all after it.

    Scores are looked at in the order of recalls, and only up to there. So what is early and what is late decides how
    far one looks, and not what one sees. A row in which nothing was `drawn` has no score, so none waits for its
    outcome; whether it is one was fixed before any outcome.
    """
    later = np.cumsum(known[::-1])[::-1]
    waiting = ~known & (later < WINDOW)
    held_up = np.flatnonzero(waiting & drawn)
    waiting[held_up[0] if len(held_up) else len(known) :] = True
    return waiting


def _in_order(columns: tuple[array[float], ...], place: Ints) -> tuple[Any, ...]:
    """The columns with rows numbered as in `place`, in that order."""
    row, treatment, *rest = (np.array(column) for column in columns)
    row = place[row.astype(np.int64)]
    order = np.argsort(row, kind="stable")
    return row[order], treatment[order].astype(np.int64), *(column[order] for column in rest)


def _columns_of(settlement: Settlement) -> dict[str, float]:
    """What a settlement says, by column. Its outcome is the reward where there is one from 0 to 1, else 1 or 0."""
    usage, reward = settlement.usage, settlement.reward
    runs = max(settlement.runs, len(settlement.trajectory_ids), 1)  # a purge may have taken the ids of some
    tokens, outcome = usage.input_tokens + usage.output_tokens, float(settlement.outcome == "success")
    if settlement.outcome == "unknown":
        outcome = _NAN
    elif reward is not None and 0.0 <= reward <= 1.0:
        outcome = reward
    judged = {"judged": outcome} if settlement.source == "judge" and not math.isnan(outcome) else {}
    return judged | {
        "outcome": outcome,
        "true": float(settlement.source != "judge"),
        "broke": float(settlement.source == "framework_error"),
        "steps": settlement.steps / runs,
        "tokens": tokens / runs if tokens else _NAN,
        "cost": _NAN if usage.cost is None else usage.cost / runs,
        "seconds": _NAN if settlement.seconds is None else settlement.seconds / runs,
    }

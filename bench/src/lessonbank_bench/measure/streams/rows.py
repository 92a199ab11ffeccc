"""Recalls become columns: by way of receipts, as in a bank, or straight, which takes a third of the time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import numpy as np

from lessonbank.evidence.episodes import GROUP_LEVEL, LESSON_LEVEL, WHOLE_LEVEL, Draws, Episodes, Placed
from lessonbank.evidence.evidence_table import EvidenceTable, rows_that_wait

from .playing import BEGAN, TRUTH, Come, receipt, settlement
from .stream import Flags, Ints, Stream
from .truth import WHOLE, Change

_NAN = float("nan")


class Receipts:
    """As a bank does it: a receipt and its settlements, one after another."""

    def __init__(self) -> None:
        self._columns, self._told, self._since = EvidenceTable(), 0, dict[str, datetime]()

    def add(self, come: Come, _changes: Sequence[Change], /) -> None:
        """Take in one recall."""
        self._columns.receipt(receipt(come))
        for source, success in come.said:
            self._told += 1
            self._columns.settle(settlement(come, source, success))

    def episodes(self) -> Episodes:
        """All so far."""
        return self._columns.episodes(since=self._since)

    def restart(self, treatments: Iterable[str], task: int, /) -> None:
        """What is known of these treatments starts again after a task."""
        self._since |= dict.fromkeys(treatments, BEGAN + timedelta(minutes=task))


class Straight:
    """The same columns, from what the simulator knows anyway. One writer tells everything, and nothing is edited."""

    def __init__(self, stream: Stream, /) -> None:
        tasks, places = len(stream), len(stream) * stream.shown
        entries = len(stream) * (1 + stream.shown * (1 + max(len(lesson.groups) for lesson in stream.lessons)))
        self._rows, self._draws, self._places = 0, 0, 0
        self._known = np.full(tasks, _NAN)
        self._true = np.zeros(tasks, bool)
        self._task = np.zeros(tasks, np.int64)
        self._row, self._treatment = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
        self._shown, self._chance = np.zeros(entries, bool), np.zeros(entries)
        self._place_row, self._place_treatment = np.zeros(places, np.int64), np.zeros(places, np.int64)
        self._place_shown = np.zeros(places, bool)
        self._template, self._seconds = stream.template, BEGAN.timestamp() + 60.0 * np.arange(tasks)
        self._number, self._level = {WHOLE: 0}, [WHOLE_LEVEL]
        self._parents = dict[int, tuple[int, ...]]()
        self._begun = dict[int, float]()

    def add(self, come: Come, changes: Sequence[Change], /) -> None:
        """Take in one recall."""
        row = self._rows
        for n in come.placed:
            lesson = come.stream.lessons[n]
            treatment = self._treatment_of(lesson.id, LESSON_LEVEL)
            if treatment not in self._parents:
                self._parents[treatment] = tuple(self._treatment_of(group, GROUP_LEVEL) for group in lesson.groups)
            place = self._places
            self._place_row[place], self._place_treatment[place] = row, treatment
            self._place_shown[place] = n in come.shown
            self._places += 1
        for change in changes:
            at, treatment = self._draws, self._number[change.treatment]
            self._row[at], self._treatment[at] = row, treatment
            self._shown[at], self._chance[at] = change.shown, change.chance
            self._draws += 1
        self._task[row] = come.task
        for source, success in come.said:
            self._known[row] = success
            self._true[row] = source == TRUTH
        self._rows += 1

    def restart(self, treatments: Iterable[str], task: int, /) -> None:
        """What is known of these treatments starts again after a task."""
        self._begun |= dict.fromkeys([self._number[treatment] for treatment in treatments], float(self._seconds[task]))

    def _treatment_of(self, name: str, level: int) -> int:
        number = self._number.setdefault(name, len(self._number))
        if number == len(self._level):
            self._level.append(level)
        return number

    def episodes(self) -> Episodes:
        """All so far."""
        n, d, p = self._rows, self._draws, self._places
        outcome, task = self._known[:n], self._task[:n]
        seconds, begun = self._seconds[task], np.full(len(self._number), -np.inf)
        begun[list(self._begun)] = list(self._begun.values())
        drawn = (self._row[:d], self._treatment[:d], self._shown[:d], self._chance[:d])
        placed = (self._place_row[:p], self._place_treatment[:p], self._place_shown[:p])
        kept, found = (seconds[told[0]] > begun[told[1]] for told in (drawn, placed))
        level = np.array(self._level)
        none, never, one, treatments = np.full(n, _NAN), np.zeros(n, bool), np.zeros(n, np.int64), tuple(self._number)
        return Episodes(
            outcome=outcome,
            true=self._true[:n],
            cluster=self._template[task],
            steps=none,
            tokens=none,
            cost=none,
            seconds=none,
            draws=Draws(*(column[kept] for column in drawn)),
            placed=_places(*(column[found] for column in placed)),
            treatments=treatments,
            level=level,
            turn=_turns(level, drawn[1], kept),
            parents=tuple(self._parents.get(treatment, ()) for treatment in range(len(treatments))),
            broke=never,
            at=seconds,
            writer=one,
            writers=(),
            judged=none,
            audit_odds=none,
            audited=never,
            another_task=0,
            model=one - 1,
            models=(),
            again=never,
            waiting=rows_that_wait(~np.isnan(outcome), np.bincount(drawn[0], minlength=n) > 0),
        )


def _places(row: Ints, treatment: Ints, shown: Flags) -> Placed:
    return Placed(row, treatment, shown)


def _turns(level: Ints, treatment: Ints, kept: Flags) -> Ints:
    """By treatment: how many of its level came before it; one that started again came twice."""
    turn, none = np.zeros(len(level), np.int64), len(treatment)
    firsts = np.full((2, len(level)), none)
    for row, side in enumerate((~kept, kept)):
        at = np.flatnonzero(side)[::-1]
        firsts[row, treatment[at]] = at
    for one in (GROUP_LEVEL, LESSON_LEVEL):
        own = np.flatnonzero(level == one)
        turn[own] = np.searchsorted(np.sort(firsts[:, own], axis=None), firsts[1, own])
    return turn

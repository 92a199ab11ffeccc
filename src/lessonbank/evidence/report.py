"""Columns become the report that people read: what memory changed, overall, group by group and lesson by lesson."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lessonbank.contracts.records import Lesson
from lessonbank.guard.trust import MERGE

from .confidence_sequences import truths_of
from .effects import (
    Effect,
    Estimate,
    GroupLift,
    LessonLift,
    MeasuringCost,
    Point,
    Standing,
    Tally,
    TreatmentLift,
)
from .episodes import GROUP_LEVEL, LESSON_LEVEL, Episodes, Flags, Floats, Ints, Placed
from .estimates import cost_effect, sides
from .groups import AGAIN
from .lift import Lift
from .notes import notes
from .review import Review, review

_POINTS = 60
_RUNNING = ("steps", "tokens", "cost", "seconds")
_DECISION = ("success", "standing")
_RANK: dict[Standing, int] = {"harms": 0, "likely harms": 1, "helps": 2, "likely helps": 3, "no evidence yet": 4}


def report(
    episodes: Episodes,
    /,
    *,
    scope: str,
    lessons: Mapping[str, Lesson] | None = None,
    names: Mapping[str, str] | None = None,
    level: float = 0.95,
    proposed: Collection[str] = (),
) -> Lift:
    """The report of one scope. `lessons`: what is known of them besides, by id. `names`: of groups, by id.

    `level`: of the intervals. `proposed`: the lessons that a person is asked to retire or to approve.
    """
    findings = review(episodes, level=level)
    has_outcome = ~np.isnan(episodes.outcome)
    counts = _Counts(episodes, findings)
    whole = counts.fields_of(0)
    series = _series(episodes, findings)
    missing = counts.missing()
    running: dict[str, Any] = {name: _running(episodes, getattr(episodes, name), level) for name in _RUNNING}
    return Lift(
        scope=scope,
        level=level,
        recalls=int((~episodes.again).sum()),
        settled=int((has_outcome & ~episodes.again).sum()),
        controls=int((has_outcome & episodes.without).sum()),
        truths=truths_of(episodes),
        opinions=int((episodes.known & ~episodes.true).sum()),
        missing_with=missing[0],
        missing_without=missing[1],
        missing_differs=bool(findings.differs[0]),
        first=_first(episodes),
        success_with=series[-1].with_memory if series else None,
        success_without=series[-1].without if series else None,
        **_tallies(episodes, by_draws=whole["success"].value is not None),
        **{name: whole[name] for name in Effect.model_fields},
        **running,
        groups=_groups(counts, names or {}),
        lessons=_lessons(counts, lessons or {}, proposed),
        measuring=_cost(episodes, findings),
        series=series,
        notes=notes(episodes, findings),
    )


class _Counts:
    """What is counted and known of each treatment, for the report."""

    def __init__(self, episodes: Episodes, review: Review) -> None:
        self.of, self.review = episodes, review
        draws, placed, known, waiting = episodes.draws, episodes.placed, episodes.known, episodes.waiting
        is_lesson = episodes.level == LESSON_LEVEL
        self.withheld = self._count(draws, known[draws.row] & ~draws.shown)
        shown = (self._count(each, known[each.row] & each.shown) for each in (placed, draws))
        waits = (self._count(each, waiting[each.row]) for each in (placed, draws))
        self.shown, self.waiting = np.where(is_lesson, *shown), np.where(is_lesson, *waits)
        self.found_in = np.bincount(placed.treatment, minlength=len(is_lesson))

    def _count(self, drawn: Placed, rows: Flags) -> Ints:
        return np.bincount(drawn.treatment[rows], minlength=len(self.of.treatments))

    def missing(self) -> tuple[float | None, float | None]:
        """The shares without an outcome, of the recalls in which draws showed memory, and did not."""
        draws = self.of.draws
        own = np.flatnonzero(draws.treatment == 0)
        lost, shown = np.isnan(self.of.outcome)[draws.row[own]], draws.shown[own]
        return _mean(lost, shown), _mean(lost, ~shown)

    def fields_of(self, treatment: int) -> dict[str, Any]:
        """The fields of a `TreatmentLift`."""
        review, begun = self.review, self.review.begun[treatment]
        return {
            "shown": int(self.shown[treatment]),
            "withheld": int(self.withheld[treatment]),
            "success": self._estimate(treatment),
            "standing": review.standing[treatment],
            "since": None if math.isnan(begun) else datetime.fromtimestamp(begun, UTC),
            "waiting": int(self.waiting[treatment]),
        }

    def _estimate(self, treatment: int) -> Estimate:
        effects, review = self.review.effects, self.review
        value = effects.estimate[treatment]
        if not math.isfinite(value):
            return Estimate(basis=review.basis)
        low, high = _finite(effects.low[treatment]), _finite(effects.high[treatment])
        # Few outcomes with rare draws can carry an end past what a rate can change, or past the value itself.
        return Estimate(
            value=float(value),
            low=None if low is None else max(min(low, float(value)), -1.0),
            high=None if high is None else min(max(high, float(value)), 1.0),
            always_low=float(review.low[treatment]),
            always_high=float(review.high[treatment]),
            basis=review.basis,
        )


def _groups(counts: _Counts, names: Mapping[str, str]) -> tuple[GroupLift, ...]:
    ids, members = counts.of.treatments, np.zeros(len(counts.of.treatments), np.int64)
    for lesson, parents in enumerate(counts.of.parents):
        if counts.found_in[lesson]:
            members[list(parents)] += 1
    made = [
        GroupLift(group=(id := ids[n]), name=names.get(id, ""), lessons=int(members[n]), **counts.fields_of(int(n)))
        for n in np.flatnonzero(counts.of.level == GROUP_LEVEL)
        if members[n] or ids[n].startswith(AGAIN)
    ]
    return tuple(sorted(made, key=lambda group: (*_order(group), group.group)))


def _lessons(counts: _Counts, lessons: Mapping[str, Lesson], proposed: Collection[str]) -> tuple[LessonLift, ...]:
    there = np.flatnonzero((counts.of.level == LESSON_LEVEL) & (counts.found_in > 0))
    parts = _parts(lessons)
    made = [_lesson(counts, int(n), lessons.get(counts.of.treatments[n]), proposed, parts) for n in there]
    if len(made) == 1 and made[0].standing not in ("helps", "harms"):  # it is all of memory, and has one decision
        whole = counts.fields_of(0)
        made = [made[0].model_copy(update={name: whole[name] for name in _DECISION})]
    return tuple(sorted(made, key=lambda lesson: (*_order(lesson), lesson.lesson_id)))


def _parts(lessons: Mapping[str, Lesson]) -> Mapping[str, str]:
    """Of retired lessons that were merged: the one that has their words now, through every merge."""
    made = {
        id: lesson.provenance.source_lesson_ids for id, lesson in lessons.items() if lesson.provenance.method == MERGE
    }
    parts = dict[str, str]()
    for id in (id for id in made if not lessons[id].retired):
        left = [*made[id]]
        while left:
            if (source := left.pop()) not in parts:
                parts[source] = id
                left += made.get(source, ())
    return {source: id for source, id in parts.items() if source in lessons and lessons[source].retired}


def _lesson(
    counts: _Counts, treatment: int, lesson: Lesson | None, proposed: Collection[str], parts: Mapping[str, str]
) -> LessonLift:
    id, known = counts.of.treatments[treatment], dict[str, Any]()
    if lesson:
        known = {
            name: getattr(lesson, name) for name in ("title", "description", "content", "kind", "retired", "asleep")
        }
        known |= {"quarantined": lesson.state == "quarantined", "run_ids": lesson.provenance.trajectory_ids}
    return LessonLift(
        lesson_id=id,
        groups=tuple(counts.of.treatments[n] for n in counts.of.parents[treatment]),
        proposed=id in proposed,
        part_of=parts.get(id),
        **known,
        **counts.fields_of(treatment),
    )


def _first(episodes: Episodes) -> datetime | None:
    """When the first recall was made whose outcome counts for memory as a whole."""
    draws = episodes.draws
    row = draws.row[(draws.treatment == 0) & episodes.known[draws.row]]
    return datetime.fromtimestamp(float(episodes.at[row].min()), UTC) if len(row) else None


def _order(lift: TreatmentLift) -> tuple[int, int]:
    return _RANK[lift.standing], -lift.shown - lift.withheld


def _running(episodes: Episodes, values: Floats, level: float) -> Estimate:
    numbers = values[episodes.known & ~np.isnan(values)]
    if not len(numbers) or not np.ptp(numbers):
        return Estimate()  # each run takes one step: a change of 0 would look like knowledge
    effect = cost_effect(episodes, values, level=level)
    return Estimate(value=_finite(effect.estimate[0]), low=_finite(effect.low[0]), high=_finite(effect.high[0]))


def _cost(episodes: Episodes, review: Review) -> MeasuringCost:
    """What withholding cost: of each treatment that a draw left out what is to be expected of it."""
    draws = episodes.draws
    held = ~draws.shown
    expected = np.where(np.isfinite(review.effects.estimate), review.expected.mean, 0.0)
    level = episodes.level[draws.treatment]
    widest = np.full(len(episodes), LESSON_LEVEL)
    np.minimum.at(widest, draws.row[held], level[held])
    counted = held & (level == widest[draws.row])
    low, high = np.minimum(review.low, expected), np.maximum(review.high, expected)
    row, treatment = draws.row[counted], draws.treatment[counted]
    # A task that lacks several lessons can lose no more than its own success.
    sums = [np.bincount(row, weights=column[treatment], minlength=len(episodes)) for column in (expected, low, high)]
    given_up, least, most = (float(np.clip(losses, -1.0, 1.0).sum()) for losses in sums)
    without, less = episodes.without, np.zeros(len(episodes), np.bool_)
    less[episodes.placed.row[~episodes.placed.shown]] = True
    return MeasuringCost(
        given_up=given_up,
        given_up_low=least,
        given_up_high=most,
        tasks_without=int(without.sum()),
        tasks_with_less=int((less & ~without).sum()),
    )


def _tallies(episodes: Episodes, /, *, by_draws: bool) -> dict[str, Tally]:
    """How many tasks succeeded with memory and without; `by_draws`: those of the effect, else all that are known."""
    draws, counted = episodes.draws, episodes.known
    if by_draws:
        counted = np.zeros(len(episodes), np.bool_)
        counted[draws.row[draws.treatment == 0]] = True
        counted &= episodes.known
    sides = {"with_memory": counted & ~episodes.without, "without": counted & episodes.without}
    return {
        name: Tally(successes=round(float(episodes.outcome[own].sum()), 6), tasks=int(own.sum()))
        for name, own in sides.items()
    }


def _series(episodes: Episodes, review: Review) -> tuple[Point, ...]:
    """Some sixty moments, evenly spread over the settled recalls."""
    known = np.flatnonzero(episodes.known & ~episodes.again)
    if not len(known):
        return ()
    at = np.unique(np.linspace(1, len(known), min(_POINTS, len(known))).astype(np.int64))
    own = review.scores.group == 0
    whole, between = review.scores.where(own), np.tile([[-1.0], [1.0]], len(at))
    between[:, -1] = review.low[0], review.high[0]
    counts = np.searchsorted(whole.row, known[at - 1], side="right")
    weighted = sides(whole, review.effects.counts[own], episodes.outcome, review.outcomes, between, at=counts)
    outcome, control = episodes.outcome[known], episodes.without[known]
    plain = (_so_far(outcome, use, at) for use in (~control, control))
    with_memory, without = (np.where(np.isnan(w), p, w) for w, p in zip(weighted, plain, strict=True))
    moments = zip(at.tolist(), with_memory.tolist(), without.tolist(), strict=True)
    return tuple(Point(recalls=n, with_memory=_finite(w), without=_finite(o)) for n, w, o in moments)


def _so_far(outcome: Floats, use: Flags, at: Ints) -> Floats:
    counts, sums = np.cumsum(use)[at - 1], np.cumsum(np.where(use, outcome, 0.0))[at - 1]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _mean(values: Floats | Flags, rows: Flags) -> float | None:
    return float(values[rows].mean()) if rows.any() else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

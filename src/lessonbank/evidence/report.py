"""Columns become the report that people read: what memory changed, overall, group by group and lesson by lesson."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np

from lessonbank.contracts.records import Lesson
from lessonbank.guard.sanitise import one_line
from lessonbank.guard.trust import MERGE

from .confidence_sequences import path, truths_of
from .effects import Effect, Estimate, GroupLift, JudgeReport, LessonLift, Point, Standing, TreatmentLift
from .episodes import GROUP_LEVEL, LESSON_LEVEL, Episodes, Flags, Floats, Ints
from .estimates import cost_effect, sides
from .groups import AGAIN
from .lift import Lift
from .measuring_cost import MeasuringCost
from .notes import notes
from .review import Review, review
from .shares import Tally

_POINTS = 60
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
    """The report of one scope.

    Args:
        episodes: what happened.
        scope: its name.
        lessons: what is known of them besides, by id.
        names: of groups, by id.
        level: of the intervals.
        proposed: the lessons that a person is asked to retire or to approve.
    """
    findings = review(episodes, level=level)
    has_outcome = ~np.isnan(episodes.outcome)
    counts = _Counts(episodes, findings)
    whole = counts.fields_of(0)
    series = _series(episodes, findings, level)
    missing = counts.missing(0, shown=True), counts.missing(0, shown=False)
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
        steps=_running(episodes, episodes.steps, level),
        tokens=_running(episodes, episodes.tokens, level),
        cost=_running(episodes, episodes.cost, level),
        seconds=_running(episodes, episodes.seconds, level),
        groups=_groups(counts, names or {}),
        lessons=_lessons(counts, lessons or {}, proposed),
        judges=judge_reports(episodes),
        measuring=_cost(episodes, findings),
        series=series,
        notes=notes(episodes, findings, _titles(episodes, lessons or {}, names or {})),
    )


def _titles(episodes: Episodes, lessons: Mapping[str, Lesson], names: Mapping[str, str]) -> list[str]:
    """By treatment: what a sentence calls it."""
    named = {**names, **{id: lesson.title for id, lesson in lessons.items()}}
    return ["memory", *(repr(one_line(named.get(id) or id, limit=60)) for id in episodes.treatments[1:])]


class _Counts:
    """What is counted and known of each treatment, for the report."""

    def __init__(self, episodes: Episodes, review: Review) -> None:
        self.of, self.review = episodes, review
        draws, placed, size = episodes.draws, episodes.placed, len(episodes.treatments)
        known = episodes.known[draws.row]
        self.withheld = _count_by_treatment(draws.treatment, known & ~draws.shown, size)
        shown = _count_by_treatment(draws.treatment, known & draws.shown, size)
        placed_shown = _count_by_treatment(placed.treatment, placed.shown & episodes.known[placed.row], size)
        self.shown = np.where(episodes.level == LESSON_LEVEL, placed_shown, shown)
        self.found_in = np.bincount(placed.treatment, minlength=size)
        waits, lessons = episodes.waiting, episodes.level == LESSON_LEVEL
        found_in = (
            _count_by_treatment(placed.treatment, waits[placed.row], size),
            _count_by_treatment(draws.treatment, waits[draws.row], size),
        )
        self.waiting = np.where(lessons, *found_in)

    def missing(self, treatment: int, *, shown: bool) -> float | None:
        """The share without an outcome, of the recalls in which a draw showed the treatment, or did not."""
        return _finite(self._missing[treatment, int(shown)])

    @cached_property
    def _missing(self) -> Floats:
        """(treatments, 2): that share where it was left out, and where it was shown; `nan` where it never was."""
        draws, size = self.of.draws, 2 * len(self.of.treatments)
        side = 2 * draws.treatment + draws.shown
        drawn, missing = (
            np.bincount(each, minlength=size) for each in (side, side[np.isnan(self.of.outcome)[draws.row]])
        )
        return np.divide(missing, drawn, out=np.full(size, np.nan), where=drawn > 0).reshape(-1, 2)

    def fields_of(self, treatment: int) -> dict[str, Any]:
        """The fields of a `TreatmentLift`."""
        review, differs = self.review, bool(self.review.differs[treatment])
        begun = review.begun[treatment]
        return {
            "shown": int(self.shown[treatment]),
            "withheld": int(self.withheld[treatment]),
            "success": self._estimate(treatment),
            "standing": review.standing[treatment],
            "since": None if math.isnan(begun) else datetime.fromtimestamp(begun, UTC),
            "waiting": int(self.waiting[treatment]),
            "missing_shown": self.missing(treatment, shown=True) if differs else None,
            "missing_withheld": self.missing(treatment, shown=False) if differs else None,
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


def _count_by_treatment(treatment: Ints, rows: Flags, size: int) -> Ints:
    return np.bincount(treatment[rows], minlength=size)


def _running(episodes: Episodes, values: Floats, level: float) -> Estimate:
    effect = cost_effect(episodes, values, level=level)
    if not math.isfinite(effect.estimate[0]) or not _varies(values[episodes.known]):
        return Estimate()
    return Estimate(
        value=float(effect.estimate[0]),
        low=_finite(effect.low[0]),
        high=_finite(effect.high[0]),
    )


def _varies(values: Floats) -> bool:
    """Whether runs differ at all: if each takes one step, a change of 0 from 0 to 0 would look like knowledge."""
    numbers = values[~np.isnan(values)]
    return len(numbers) > 0 and bool((numbers != numbers[0]).any())


def _cost(episodes: Episodes, review: Review) -> MeasuringCost:
    """What withholding cost: of each treatment that a draw left out what is to be expected of it."""
    draws = episodes.draws
    if not len(episodes):
        return MeasuringCost()
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
    return MeasuringCost(given_up=given_up, given_up_low=least, given_up_high=most, **_left_out(episodes))


def _left_out(episodes: Episodes) -> dict[str, int]:
    """How many tasks a draw left without any lesson, and how many without some."""
    without = episodes.without
    counts = np.bincount(episodes.placed.row[~episodes.placed.shown], minlength=len(episodes))
    return {"tasks_without": int(without.sum()), "tasks_with_less": int(((counts > 0) & ~without).sum())}


def _tallies(episodes: Episodes, /, *, by_draws: bool) -> dict[str, Tally]:
    """How many tasks succeeded with memory and without; `by_draws`: those of the effect, else all that are known."""
    draws, row, shown = episodes.draws, np.arange(len(episodes)), ~episodes.without
    if by_draws:
        whole = draws.treatment == 0
        row, shown = draws.row[whole], draws.shown[whole]
    known = episodes.known[row]
    rows = {"with_memory": row[known & shown], "without": row[known & ~shown]}
    sums = {name: round(float(episodes.outcome[own].sum()), 6) for name, own in rows.items()}
    return {name: Tally(successes=sums[name], tasks=len(own)) for name, own in rows.items()}


def _series(episodes: Episodes, review: Review, level: float) -> tuple[Point, ...]:
    """Some sixty moments, evenly spread over the settled recalls."""
    known = np.flatnonzero(episodes.known & ~episodes.again)
    if not len(known):
        return ()
    at = np.unique(np.linspace(1, len(known), min(_POINTS, len(known))).astype(np.int64))
    whole = review.scores.of(0)
    counts = np.searchsorted(whole.row, known[at - 1], side="right")
    ways = [way.of(0) for way in review.every]
    if len(whole):
        ways = [way.where(way.row >= whole.row[0]) for way in ways]
    seen = np.searchsorted(ways[0].row, known[at - 1], side="right")
    low, high = path(*ways, level=level, at=seen)
    low[-1], high[-1] = review.low[0], review.high[0]
    with_memory, without, lift = sides(
        whole,
        review.effects.counts[review.scores.group == 0],
        episodes.outcome,
        review.outcomes,
        np.array([low, high]),
        at=counts,
    )
    outcome, control = episodes.outcome[known], episodes.without[known]
    with_memory = np.where(np.isnan(lift), _so_far(outcome, ~control, at), with_memory)
    without = np.where(np.isnan(lift), _so_far(outcome, control, at), without)
    return tuple(
        Point(
            recalls=int(n),
            with_memory=_finite(a),
            without=_finite(b),
            lift=_finite(c),
            low=float(lo),
            high=float(hi),
        )
        for n, a, b, c, lo, hi in zip(at, with_memory, without, lift, low, high, strict=True)
    )


def _so_far(outcome: Floats, use: Flags, at: Ints) -> Floats:
    counts, sums = np.cumsum(use)[at - 1], np.cumsum(np.where(use, outcome, 0.0))[at - 1]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def judge_reports(episodes: Episodes, /) -> tuple[JudgeReport, ...]:
    """Every judge that was asked, against the truth where it is known."""
    made = list[JudgeReport]()
    for number, name in enumerate(episodes.judges):
        asked = episodes.judge == number
        both = asked & episodes.true & episodes.known & ~np.isnan(episodes.judged)
        agreement = _mean((episodes.outcome > 0.5) == (episodes.judged > 0.5), both)
        if asked.any():
            checked = int(both.sum())
            made.append(JudgeReport(judge=name, asked=int(asked.sum()), checked=checked, agreement=agreement))
    return tuple(made)


def _mean(values: Floats | Flags, rows: Flags) -> float | None:
    return float(values[rows].mean()) if rows.any() else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None

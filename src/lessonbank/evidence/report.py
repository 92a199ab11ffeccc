"""Columns become the report that people read: what memory changed, overall, by group and by lesson.

Its notes say on what it rests, what is missing, and what there is to say beyond single effects.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Lesson
from lessonbank.guard.quote import quoted
from lessonbank.guard.trust import MERGE

from ._e_process import gains_by_cell
from .confidence_sequences import Scores, bounds, truths_of
from .effects import (
    Estimate,
    GroupLift,
    LessonLift,
    MeasuringCost,
    Point,
    Standing,
    points,
)
from .episodes import GROUP_LEVEL, LESSON_LEVEL, Episodes, Flags, Floats, Ints, Placed
from .estimates import cost_effect, sides
from .evidence_table import WINDOW
from .groups import AGAIN
from .lift import NOT_COUNTED, Lift
from .review import Review, left_out, review

_POINTS = 60
_RUNNING = ("steps", "tokens", "cost", "seconds")
_DECISION = ("success", "standing")
_KNOWN_OF_LESSONS = ("title", "description", "content", "kind", "retired", "asleep")
_SHOWN = 3
"""Models that a sentence names."""
_KNOWN = 20
"""Draws, or outcomes, below which nothing is said of a model, or of outcomes that are all the same."""
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
    rows, series = _rows(episodes, findings), _series(episodes, findings)
    found_in = np.bincount(episodes.placed.treatment, minlength=len(rows))
    running: dict[str, Any] = {name: _running(episodes, getattr(episodes, name), level) for name in _RUNNING}
    return Lift(
        scope=scope,
        level=level,
        **_overall(episodes, findings),
        success_with=series[-1].with_memory if series else None,
        success_without=series[-1].without if series else None,
        **rows[0],
        **running,
        groups=_groups(episodes, rows, found_in, names or {}),
        lessons=_lessons(episodes, rows, found_in, lessons or {}, proposed),
        measuring=_cost(episodes, findings),
        series=series,
        notes=_notes(episodes, findings),
    )


def _overall(episodes: Episodes, review: Review) -> dict[str, Any]:
    """What is counted of all recalls together."""
    draws, known = episodes.draws, episodes.known
    is_settled, whole = ~np.isnan(episodes.outcome), draws.treatment == 0
    row, shown = draws.row[whole], draws.shown[whole]
    return {
        "recalls": int((~episodes.again).sum()),
        "settled": int((is_settled & ~episodes.again).sum()),
        "controls": int((is_settled & episodes.without).sum()),
        "truths": truths_of(episodes),
        "opinions": int((known & ~episodes.true).sum()),
        "missing_with": _mean(~is_settled[row], shown),
        "missing_without": _mean(~is_settled[row], ~shown),
        "missing_differs": bool(review.differs[0]),
    }


def _rows(episodes: Episodes, review: Review) -> list[dict[str, Any]]:
    """By treatment: the fields of an `Effect`."""
    draws, placed, known = episodes.draws, episodes.placed, episodes.known
    is_lesson = episodes.level == LESSON_LEVEL

    def count(drawn: Placed, rows: Flags) -> Ints:
        return np.bincount(drawn.treatment[rows], minlength=len(is_lesson))

    columns = (
        np.where(is_lesson, *(count(each, known[each.row] & each.shown) for each in (placed, draws))),
        count(draws, known[draws.row] & ~draws.shown),
        review.begun,
    )
    return [
        {
            "shown": shown,
            "withheld": withheld,
            "since": None if math.isnan(begun) else datetime.fromtimestamp(begun, UTC),
            "success": _estimate(review, treatment),
            "standing": review.standing[treatment],
        }
        for treatment, (shown, withheld, begun) in enumerate(zip(*map(np.ndarray.tolist, columns), strict=True))
    ]


def _estimate(review: Review, treatment: int) -> Estimate:
    effects = review.effects
    value, low, high = (float(column[treatment]) for column in (effects.estimate, effects.low, effects.high))
    if not math.isfinite(value):
        return Estimate(basis=review.basis)
    # Few outcomes with rare draws can carry an end past what a rate can change, or past the value itself.
    return Estimate(
        value=value,
        low=max(min(low, value), -1.0) if math.isfinite(low) else None,
        high=min(max(high, value), 1.0) if math.isfinite(high) else None,
        always_low=float(review.low[treatment]),
        always_high=float(review.high[treatment]),
        basis=review.basis,
    )


def _groups(
    episodes: Episodes, rows: Sequence[dict[str, Any]], found_in: Ints, names: Mapping[str, str]
) -> tuple[GroupLift, ...]:
    members = Counter(group for lesson in np.flatnonzero(found_in).tolist() for group in episodes.parents[lesson])
    made = [
        GroupLift(group=id, name=names.get(id, ""), lessons=members[n], **rows[n])
        for n, id in enumerate(episodes.treatments)
        if episodes.level[n] == GROUP_LEVEL and (members[n] or id.startswith(AGAIN))
    ]
    return tuple(sorted(made, key=lambda group: (*_order(group), group.group)))


def _lessons(
    episodes: Episodes,
    rows: Sequence[dict[str, Any]],
    found_in: Ints,
    lessons: Mapping[str, Lesson],
    proposed: Collection[str],
) -> tuple[LessonLift, ...]:
    parts, made = _parts(lessons), list[LessonLift]()
    for n in np.flatnonzero((episodes.level == LESSON_LEVEL) & (found_in > 0)).tolist():
        id, known = episodes.treatments[n], dict[str, Any]()
        if lesson := lessons.get(id):
            known = {name: getattr(lesson, name) for name in _KNOWN_OF_LESSONS}
            known |= {"quarantined": lesson.state == "quarantined", "run_ids": lesson.provenance.trajectory_ids}
        groups = tuple(episodes.treatments[group] for group in episodes.parents[n])
        known |= {"groups": groups, "proposed": id in proposed, "part_of": parts.get(id)}
        made.append(LessonLift(lesson_id=id, **known, **rows[n]))
    if len(made) == 1 and made[0].standing not in ("helps", "harms"):  # it is all of memory, and has one decision
        made = [made[0].model_copy(update={name: rows[0][name] for name in _DECISION})]
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


def _order(lift: LessonLift | GroupLift) -> tuple[int, int]:
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


def _notes(episodes: Episodes, review: Review, /) -> tuple[str, ...]:
    """What a reader must know besides the answer, one sentence each."""
    return (
        *_opinions(episodes, review),
        *_witnesses(episodes),
        *_models(episodes, review),
        *_waiting(episodes),
        *_alike(episodes),
    )


def _opinions(episodes: Episodes, review: Review) -> Iterator[str]:
    judged = int((episodes.known & ~episodes.true).sum())
    if judged and review.acts:
        truth, opinions = plural(int((review.outcomes.weight > 0).sum()), "outcome"), plural(judged, "is", "are")
        yield f"verdicts rest on {truth} whose truth was told or drawn for; {opinions} only a judge's opinion"
    if len(episodes) and not (episodes.draws.treatment == 0).any():
        yield "no recall was ever withheld whole, so nothing is known of memory as a whole (holdout=…)"


def _witnesses(episodes: Episodes) -> Iterator[str]:
    """On whose word all this rests."""
    writers = np.unique(episodes.writer[episodes.known])
    if len(writers) > 1:
        yield (
            f"outcomes come from {plural(len(writers), 'key')}: a lesson is retired automatically only if it harms "
            f"without those of any {left_out(episodes)} of them, and what helps waits for a person, as a proposal"
        )
    elif left_out(episodes):
        who = episodes.writers[int(writers[0])]
        yield f"all outcomes come from {who}, so all that follows waits for a person, as a proposal"


def _models(episodes: Episodes, review: Review) -> Iterator[str]:
    """The models on which the agent ran: the numbers pool them all, so a reader must know what each of them says."""
    whole = review.scores.where(review.scores.group == 0)
    model = episodes.model[whole.row]
    often = np.flatnonzero(np.bincount(model[model >= 0]) >= _KNOWN)
    if len(often) < 2:
        return
    last = np.flatnonzero(episodes.model == (newest := int(episodes.model[episodes.model >= 0][-1])))[0]
    others = (episodes.model >= 0) & (episodes.model != newest)
    for_good = newest in often and not others[last:].any()
    each = ", ".join(
        f"{_of_model(whole.where(model == n))} with {quoted(name)} ({int((model == n).sum()):,} tasks)"
        for n, name in enumerate(episodes.models)
        if n in often[:_SHOWN]
    )
    to = f"{quoted(episodes.models[newest])} on {datetime.fromtimestamp(float(episodes.at[last]), UTC):%Y-%m-%d}"
    what = f"changed to the model {to}" if for_good else "runs on several models"
    yield f"the agent {what}: every number here pools all models. Memory as a whole: {each}"


def _of_model(scores: Scores) -> str:
    low, high = bounds(gains_by_cell(scores))
    value = float(np.clip(scores.score.sum() / scores.scale.sum(), low[0], high[0]))
    return points(Estimate(value=value, always_low=float(low[0]), always_high=float(high[0])))


def _waiting(episodes: Episodes) -> Iterator[str]:
    """Outcomes that are known and not counted yet, and those that were joined with the wrong recalls."""
    if count := int((episodes.waiting & ~np.isnan(episodes.outcome)).sum()):
        yield (
            f"{plural(count, 'outcome does', 'outcomes do')} {NOT_COUNTED}. Recalls count "
            f"in their order, and each is waited for until {WINDOW} later ones have an outcome"
        )
    if others := episodes.another_task:
        elsewhere = plural(others, "recall was settled by a run", "recalls were settled by runs")
        than = "it was" if others == 1 else "they were"
        yield (
            f"another task: {elsewhere} of another task than {than} made for; "
            "hand each run to learn with the recall that it used"
        )


def _alike(episodes: Episodes) -> Iterator[str]:
    """Outcomes that are all the same: no effect can show, and something may be wrong with what is told."""
    outcomes = episodes.outcome[episodes.known]
    if len(outcomes) < _KNOWN or float(np.ptp(outcomes)) > 0.0:
        return
    words = {0.0: "outcomes are failures", 1.0: "outcomes are successes"}
    what = words.get(float(outcomes[0]), f"rewards are {outcomes[0]:g}")
    yield f"all {len(outcomes):,} {what}, so nothing can be compared: check what outcome= or reward= is told"

"""Columns become the report that people read: what memory changed, overall and lesson by lesson."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from lessonbank.types import Lesson

from .calibration import believable, calibrations, checked, label_power, share
from .columns import FREE, TWICE
from .doubts import doubts
from .episodes import Episodes, Flags, Floats, Ints
from .estimates import Effects, Pooled, cost_effect, lesson_effects, more_needed, overall_effect, pooled
from .lift import Estimate, LessonLift, Lift, MeasuringCost, Point, Standing
from .review import left_out
from .sequences import Scores, bounds, lesson_scores, log_e, overall_scores, path

_POINTS = 60
_MOST = 1e6


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything that is computed of one set of episodes."""

    whole: Effects
    each: Effects
    expected: Pooled
    whole_always: tuple[Floats, Floats]
    each_always: tuple[Floats, Floats]
    log_harm: Floats
    log_help: Floats
    overall: Scores
    believed: Episodes
    """What the sequences are of: without the opinions of a judge that is measured to say nothing."""
    factor: float
    """By how much the outcomes, as they are labelled, move when the truth does: 1 where all of it is told."""


def evidence_of(episodes: Episodes, /, *, level: float = 0.95) -> Evidence:
    """Estimates and sequences, of lessons and of memory as a whole."""
    believed = believable(episodes)
    scores, overall = lesson_scores(believed), overall_scores(believed)
    each = lesson_effects(episodes, level=level)
    return Evidence(
        whole=overall_effect(episodes, level=level),
        each=each,
        expected=pooled(each),
        whole_always=bounds(overall, level=level),
        each_always=bounds(scores, level=level),
        log_harm=log_e(scores, helps=False),
        log_help=log_e(scores, helps=True),
        overall=overall,
        believed=believed,
        factor=label_power(believed),
    )


def report(
    episodes: Episodes,
    /,
    *,
    scope: str,
    lessons: Mapping[str, Lesson] | None = None,
    level: float = 0.95,
    proposed: Collection[str] = (),
) -> Lift:
    """The report of one scope. `lessons`: what is known of them besides, by id. `proposed`: those to be retired."""
    found = evidence_of(episodes, level=level)
    known, control = episodes.known, episodes.control
    overall = _estimate(found.whole, found.whole_always, 0, found.factor)
    more = more_needed(found.whole)[0]
    standing = "no evidence yet" if overall.value is None else _standing(found.whole_always, 0)
    return Lift(
        scope=scope,
        level=level,
        recalls=len(episodes),
        settled=int(known.sum()),
        controls=int((known & control).sum()),
        writers=len(np.unique(episodes.told_by[known])),
        uncounted=episodes.uncounted,
        missing_with=share(~known, ~control & _could_be(episodes)),
        missing_without=share(~known, control),
        success_with=_mean(episodes.outcome, known & ~control),
        success_without=_mean(episodes.outcome, known & control),
        success=overall,
        standing=standing,
        more=_whole_number(more) if standing == "no evidence yet" else None,
        steps=_running(episodes, episodes.steps, level),
        tokens=_running(episodes, episodes.tokens, level),
        cost=_running(episodes, episodes.cost, level),
        seconds=_running(episodes, episodes.seconds, level),
        lessons=tuple(
            one.model_copy(update={"proposed": True}) if one.lesson_id in proposed else one
            for one in _lessons(episodes, found, lessons or {})
        ),
        judges=calibrations(episodes),
        measuring=_cost(episodes, found),
        series=_series(found.believed, found.overall, level),
        notes=_notes(episodes, found),
    )


def _estimate(effects: Effects, always: tuple[Floats, Floats], place: int, factor: float) -> Estimate:
    value, low, high = effects.estimate[place], effects.low[place], effects.high[place]
    if not math.isfinite(value):
        return Estimate(basis=effects.basis)
    lowest, highest = _widened(always[0][place], always[1][place], factor)
    return Estimate(
        value=float(value),
        low=_finite(low),
        high=_finite(high),
        always_low=lowest,
        always_high=highest,
        basis=effects.basis,
    )


def _widened(low: float, high: float, factor: float) -> tuple[float, float]:
    """Bounds of an effect on labels, some of them opinions, as bounds of the effect on the truth, which moves more."""
    return max(float(low / factor if low < 0 else low), -1.0), min(float(high / factor if high > 0 else high), 1.0)


def _standing(always: tuple[Floats, Floats], place: int) -> Standing:
    if always[0][place] > 0:
        return "helps"
    return "harms" if always[1][place] < 0 else "no evidence yet"


def _running(episodes: Episodes, values: Floats, level: float) -> Estimate:
    effect = cost_effect(episodes, values, level=level)
    if not math.isfinite(effect.estimate[0]):
        return Estimate()
    return Estimate(
        value=float(effect.estimate[0]),
        low=_finite(effect.low[0]),
        high=_finite(effect.high[0]),
        note="the interval is for one look",
    )


def _lessons(episodes: Episodes, found: Evidence, lessons: Mapping[str, Lesson]) -> tuple[LessonLift, ...]:
    pairs = episodes.pairs
    size = len(episodes.lessons)
    seen = np.bincount(pairs.lesson, minlength=size) > 0
    cited = np.bincount(pairs.lesson[pairs.cited], minlength=size)
    more = more_needed(found.each)
    counts = [_times(episodes, drawn, size) for drawn in (~pairs.withheld, pairs.withheld)]
    made = [
        _lesson(episodes, found, lessons, int(n), (int(counts[0][n]), int(counts[1][n]), int(cited[n])), more[n])
        for n in np.flatnonzero(seen)
    ]
    rank = {"harms": 0, "helps": 1, "no evidence yet": 2}
    return tuple(
        sorted(made, key=lambda lesson: (rank[lesson.standing], -lesson.shown - lesson.withheld, lesson.lesson_id))
    )


def _lesson(
    episodes: Episodes,
    found: Evidence,
    lessons: Mapping[str, Lesson],
    place: int,
    counts: tuple[int, int, int],
    more: float,
) -> LessonLift:
    id = episodes.lessons[place]
    lesson, (shown, withheld, cited) = lessons.get(id), counts
    success = _estimate(found.each, found.each_always, place, found.factor)
    standing = "no evidence yet" if success.value is None else _standing(found.each_always, place)
    return LessonLift(
        lesson_id=id,
        title=lesson.title if lesson else "",
        kind=lesson.kind if lesson else None,
        shown=shown,
        withheld=withheld,
        cited=cited,
        success=success,
        expected=None if success.value is None else float(found.expected.mean[place]),
        evidence=_evidence(max(found.log_harm[place], found.log_help[place])),
        standing=standing,
        more=_whole_number(more) if standing == "no evidence yet" else None,
        retired=bool(lesson and lesson.retired),
        quarantined=bool(lesson and lesson.state == "quarantined"),
    )


def _times(episodes: Episodes, drawn: Flags, lessons: int) -> Ints:
    """By lesson: the recalls with a known outcome and with memory in which the draw was this one."""
    pairs = episodes.pairs
    return np.bincount(pairs.lesson[drawn & (episodes.known & ~episodes.control)[pairs.row]], minlength=lessons)


def _cost(episodes: Episodes, found: Evidence) -> MeasuringCost:
    """What withholding cost: of each lesson what is to be expected of it, of whole recalls the lift of memory."""
    pairs, on = episodes.pairs, ~episodes.control
    if not len(episodes):
        return MeasuringCost()
    held = pairs.withheld & on[pairs.row]
    by_lesson = float(np.nan_to_num(found.expected.mean)[pairs.lesson[held]].sum())
    lift = found.whole.estimate[0]
    whole = float(lift) * int(episodes.control.sum()) if math.isfinite(lift) else 0.0
    shares = len(pairs)
    rate = (int(held.sum()) + int(episodes.control[pairs.row].sum())) / shares if shares else None
    return MeasuringCost(
        given_up=by_lesson + whole,
        per_hundred=100 * (by_lesson + whole) / len(episodes),
        rate=rate,
        recommended=_recommended(int(episodes.known.sum())),
    )


def _recommended(settled: int) -> float | None:
    """The rate r for which r(1 - r) n reaches what shows ten points with a power of 80 % at a success rate of half."""
    if settled < 20:
        return None
    needed = 0.25 * (2.8 / 0.1) ** 2 / settled
    if needed >= 0.25:
        return None
    return round(max(0.02, 0.5 - math.sqrt(0.25 - needed)), 3)


def _series(episodes: Episodes, overall: Scores, level: float) -> tuple[Point, ...]:
    """Some sixty moments, evenly spread over the settled recalls."""
    known = np.flatnonzero(episodes.known)
    if not len(known):
        return ()
    at = np.unique(np.linspace(1, len(known), min(_POINTS, len(known))).astype(np.int64))
    outcome, control = episodes.outcome[known], episodes.control[known]
    with_memory = _so_far(outcome, ~control, at)
    without = _so_far(outcome, control, at)
    chance = 1.0 - episodes.control_probability[known]
    drawn = (chance > 0) & (chance < 1)
    low, high = path(overall, level=level, at=np.cumsum(drawn.astype(np.int64))[at - 1])
    pairs = episodes.pairs
    first = np.full(len(episodes.lessons), len(episodes) + 1)
    np.minimum.at(first, pairs.lesson, pairs.row + 1)
    grown = np.searchsorted(np.sort(first), known[at - 1] + 1, side="right")
    return tuple(
        Point(
            recalls=int(n),
            with_memory=_finite(a),
            without=_finite(b),
            lift=_finite(a - b),
            low=float(lo),
            high=float(hi),
            lessons=int(k),
        )
        for n, a, b, lo, hi, k in zip(at, with_memory, without, low, high, grown, strict=True)
    )


def _so_far(outcome: Floats, use: Flags, at: Ints) -> Floats:
    counts, sums = np.cumsum(use)[at - 1], np.cumsum(np.where(use, outcome, 0.0))[at - 1]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _notes(episodes: Episodes, found: Evidence) -> tuple[str, ...]:
    notes: list[str] = []
    judged = int((episodes.known & ~episodes.true).sum())
    if judged and found.whole.basis == "judge":
        notes.append(
            f"{judged} outcomes are a judge's opinion and none was checked: intervals allow for a judge as weak as "
            "being right three times in four, and are wrong for a weaker one. Telling the truth of some runs "
            "(outcome=…) makes them narrower."
        )
    elif judged:
        notes.append(
            f"{judged} outcomes are a judge's opinion, put right by {int(checked(episodes).sum())} of which the truth "
            "was told as well. That holds if those are a random part."
        )
    if len(episodes) and not np.any(episodes.control_probability > 0):
        notes.append("no recall was ever withheld whole, so nothing is known of memory as a whole (holdout=…)")
    notes += [*_witnesses(episodes), *_missing(episodes), *_scattered(episodes), *doubts(episodes)]
    return tuple(notes)


def _witnesses(episodes: Episodes) -> list[str]:
    """On whose word all this rests."""
    told, most = np.unique(episodes.told_by[episodes.known]), left_out(episodes)
    notes = list[str]()
    if len(told) == 1 and episodes.writers and not most:
        notes.append(
            f"all outcomes come from one writer ({episodes.writers[told[0]] or 'unknown'}): nobody contradicts it"
        )
    elif most:
        notes.append(
            f"outcomes come from {len(told)} {'writers' if len(told) > 1 else 'writer'}: a lesson is retired, trusted "
            f"or preferred only if that is right without any {most} of them"
        )
    if episodes.uncounted:
        notes.append(
            f"{episodes.uncounted} outcomes do not count: of one writer {FREE} a day do, or {TWICE} times as many as "
            "the others tell in a day on average"
        )
    return notes


def _scattered(episodes: Episodes) -> list[str]:
    """Where lessons are many and each is found for hardly a task, no amount of tasks will tell of any of them."""
    found = np.bincount(episodes.pairs.lesson, minlength=len(episodes.lessons))
    if len(episodes) < 100 or len(found) < 20 or float(np.median(found[found > 0])) >= 10:
        return []
    return [
        f"half of the {int((found > 0).sum())} lessons were found for fewer than ten tasks: single effects need fewer "
        'lessons, each found more often (consolidation="recognise" or "merge_similar", more general lessons)'
    ]


def _could_be(episodes: Episodes) -> Flags:
    """The recalls that might have been withheld whole: only with these can the withheld be compared."""
    return episodes.control_probability > 0


def _missing(episodes: Episodes) -> list[str]:
    """Outcomes that are missing more often on one side than chance explains make a difference by themselves."""
    arms = (~episodes.control & _could_be(episodes), episodes.control)
    shares = [(share(~episodes.known, arm), int(arm.sum())) for arm in arms]
    (with_memory, n), (without, m) = shares
    if with_memory is None or without is None:
        return []
    mean = (with_memory * n + without * m) / (n + m)
    if abs(with_memory - without) <= 3 * math.sqrt(max(mean * (1 - mean), 1e-9) * (1 / n + 1 / m)):
        return []
    return [
        f"outcomes are missing for {with_memory:.0%} of recalls with memory and {without:.0%} without: what is missing "
        "may differ, so trust the lift only as far as you know why"
    ]


def _mean(values: Floats, rows: Flags) -> float | None:
    return float(values[rows].mean()) if rows.any() else None


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _whole_number(value: float) -> int | None:
    return math.ceil(value) if math.isfinite(value) and value < _MOST else None


def _evidence(log: float) -> float:
    return float(math.exp(min(max(float(log), 0.0), 700.0)))

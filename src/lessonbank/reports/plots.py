"""Pictures of a lift: what tasks became with memory and without, the lift so far, each lesson, how the bank grew."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lessonbank.evidence.lift import Estimate, LessonLift, Lift, Point, Standing, said_of
from lessonbank.guard.sanitise import canonical_line

from .svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    Spot,
    axes,
    band,
    curve,
    dot,
    fitted,
    line,
    picture,
    shape,
    ticks,
    words,
)

_ALONG = "outcomes known"
_ROW, _FOOT, _SIDE = 44.0, 46.0, 14.0
_LETTER = 8.4
"""Units a letter takes where it is largest, on a phone."""
_READ = 300
"""Characters of a title that are looked at."""
_NARROWEST = 0.1
"""Ten points above and below: a scale of less would make much of noise."""
_CLASS: dict[Standing, str] = {"helps": "helps", "harms": "harms", "no evidence yet": "open"}
SIGN: dict[Standing, str] = {"helps": "▲", "harms": "▼", "no evidence yet": "●"}


def success(series: Sequence[Point], /) -> str:
    """The rate of success so far, with memory and without."""
    x, y = _across(series), Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    with_memory, without = (_last([p.with_memory for p in series]), _last([p.without for p in series]))
    marks = [
        *axes(x, y, lambda value: f"{value:.0%}", _ALONG),
        curve("without", [_spot(x, y, p.recalls, p.without) for p in series]),
        curve("with", [_spot(x, y, p.recalls, p.with_memory) for p in series]),
        *_key("with", f"with memory {_percent(with_memory)}", LEFT),
        *_key("without", f"without {_percent(without)}", LEFT + 220),
    ]
    told = f"After {series[-1].recalls} outcomes: with memory {_percent(with_memory)}, without {_percent(without)}."
    return _plot("success", "Share of tasks that succeeded, so far", told, marks)


def gain(series: Sequence[Point], /) -> str:
    """The lift so far, with the band that is right however often one looks, and a line where nothing changes."""
    x, y = _across(series), Scale(*_shown(series), HEIGHT - BOTTOM, TOP)
    usable = [p if _finite(p.low) is not None and _finite(p.high) is not None else None for p in series]
    high = [_spot(x, y, p.recalls, p.high) if p else None for p in usable]
    low = [_spot(x, y, p.recalls, p.low) if p else None for p in usable]
    marks = [
        band("band", high, low),
        *axes(x, y, _in_points, _ALONG),
        line("zero", (LEFT, y(0.0)), (WIDTH - RIGHT, y(0.0))),
        curve("edge", high),
        curve("edge", low),
        curve("with", [_spot(x, y, p.recalls, p.lift) for p in series]),
        *_key("with", "the lift so far", LEFT),
        *_key("edge", "its band", LEFT + 160),
        *_key("zero", "no change", LEFT + 280),
    ]
    last = series[-1]
    told = f"After {last.recalls} outcomes the lift is {_change(last.lift)}, the band {_change(last.low)} to "
    return _plot("gain", "Points of success that memory adds, so far", f"{told}{_change(last.high)}.", marks)


def growth(series: Sequence[Point], /) -> str:
    """How many lessons had been found for a task by then."""
    most = max(point.lessons for point in series)
    x, y = _across(series), Scale(0.0, max(most, 1), HEIGHT - BOTTOM, TOP)
    tops = [(x(p.recalls), y(p.lessons)) for p in series]
    marks = [
        band("area", tops, [(at, y(0.0)) for at, _ in tops]),
        *axes(x, y, lambda value: f"{value:.0f}", _ALONG, least=1.0),
        curve("with", tops),
        *_key("with", f"lessons found so far: {series[-1].lessons}", LEFT),
    ]
    told = f"After {series[-1].recalls} outcomes {series[-1].lessons} lessons had been found for a task."
    return _plot("growth", "Lessons found for a task, so far", told, marks)


def forest(lift: Lift, /, *, most: int = 50, rows: int = 10) -> tuple[str, ...]:
    """The effects of the first `most` lessons with their two intervals: pictures of `rows` each, all of one scale."""
    lessons = lift.lessons[: max(most, 0)]
    low, high = _reach(lessons)
    starts = range(0, len(lessons), rows)
    return tuple(_panel(lessons[at : at + rows], at, Scale(low, high, _SIDE + 8, WIDTH - _SIDE - 8)) for at in starts)


def _panel(lessons: Sequence[LessonLift], start: int, x: Scale) -> str:
    height = _ROW * len(lessons) + _FOOT
    foot = height - _FOOT + 4
    marks = [line("scale", (x(tick), 4), (x(tick), foot)) for tick in ticks(x.low, x.high)]
    marks += [words(_in_points(t), (x(t), foot + 17), anchor="middle") for t in ticks(x.low, x.high)]
    marks.append(line("zero", (x(0.0), 4), (x(0.0), foot)))
    marks.append(words("points of success", (WIDTH / 2, height - 6), name="label soft", anchor="middle"))
    for place, lesson in enumerate(lessons):
        marks += _row(lesson, start + place + 1, 4 + _ROW * place, x)
    first, last = start + 1, start + len(lessons)
    told = f"Lessons {first} to {last} of the table, each with its effect on success and two intervals around it."
    return picture(f"lessons-{first}", size=(WIDTH, height), title=f"Lessons {first} to {last}", told=told, marks=marks)


def _row(lesson: LessonLift, number: int, top: float, x: Scale) -> list[str]:
    name, said = _CLASS[lesson.standing], said_of(lesson.model_copy(update={"more": None}))
    room = int((WIDTH - 2 * _SIDE) / _LETTER - len(said) - 3)
    title = fitted(f"{number}. {named(lesson)}", cells=room)
    right = words(f"{SIGN[lesson.standing]} {said}", (WIDTH - _SIDE, top + 15), name=f"name {name}", anchor="end")
    return [words(title, (_SIDE, top + 15), name="name"), right, *_interval(lesson, name, top + 29, x)]


def named(lesson: LessonLift, /) -> str:
    """A lesson's title, inert; its id where nothing of the title can be read."""
    return canonical_line(lesson.title, limit=_READ) or canonical_line(lesson.lesson_id, limit=_READ)


def _interval(lesson: LessonLift, name: str, y: float, x: Scale) -> list[str]:
    effect = lesson.success
    value, low, high = _finite(effect.value), _finite(effect.low), _finite(effect.high)
    always_low, always_high = _finite(effect.always_low), _finite(effect.always_high)
    if value is None:
        near = min(max(x(0.0), 80.0), WIDTH - 80.0)
        return [words("too few to say", (near, y + 5), name="name soft", anchor="middle")]
    marks: list[str] = []
    if always_low is not None and always_high is not None:
        marks.append(line(f"thin {name}", (x(always_low), y), (x(always_high), y)))
    if low is not None and high is not None:
        marks.append(line(f"thick {name}", (x(low), y), (x(high), y)))
    return [*marks, _mark(lesson.standing, (x(value), y))]


def _mark(standing: Standing, at: Spot) -> str:
    x, y = at
    if standing == "no evidence yet":
        return dot("mark open", at, 5)
    way = 1 if standing == "harms" else -1
    return shape(f"mark {_CLASS[standing]}", [(x, y + 7 * way), (x - 6.5, y - 5 * way), (x + 6.5, y - 5 * way)])


def _reach(lessons: Sequence[LessonLift]) -> tuple[float, float]:
    """A scale that holds every effect and interval of a rate, and zero."""
    told = [_rate(value) for lesson in lessons for value in _values(lesson.success)]
    return min([-_NARROWEST, *told]), max([_NARROWEST, *told])


def _values(effect: Estimate) -> list[float]:
    named = (effect.value, effect.low, effect.high, effect.always_low, effect.always_high)
    return [value for value in map(_finite, named) if value is not None]


def _shown(series: Sequence[Point]) -> tuple[float, float]:
    """A scale for the lift that the first few outcomes, which say nearly nothing, do not blow up."""
    last = series[-1]
    ends = [_rate(v) for v in map(_finite, (last.low, last.high, last.lift)) if v is not None] or [-1.0, 1.0]
    later = [_rate(v) for p in series[len(series) // 4 :] if (v := _finite(p.lift)) is not None]
    low, high = min([-_NARROWEST, *ends, *later]), max([_NARROWEST, *ends, *later])
    room = (high - low) / 4
    return max(low - room, -1.0), min(high + room, 1.0)


def _across(series: Sequence[Point]) -> Scale:
    return Scale(0.0, max(series[-1].recalls, 1), LEFT, WIDTH - RIGHT)


def _key(name: str, text: str, at: float) -> list[str]:
    return [line(name, (at, 17), (at + 24, 17)), words(text, (at + 31, 22))]


def _plot(name: str, title: str, told: str, marks: Sequence[str]) -> str:
    return picture(name, size=(WIDTH, HEIGHT), title=title, told=told, marks=marks)


def _spot(x: Scale, y: Scale, at: float, value: float | None) -> Spot | None:
    held = _finite(value)
    return None if held is None else (x(at), y(held))


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if _finite(value) is not None), None)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _rate(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def _percent(value: float | None) -> str:
    return "not known" if value is None else f"{value:.0%}"


def _in_points(value: float) -> str:
    return f"{100 * value:+.0f}".replace("-", "\u2212") if round(100 * value) else "0"


def _change(value: float | None) -> str:
    return "not known" if value is None else f"{100 * value:+z.1f} points"

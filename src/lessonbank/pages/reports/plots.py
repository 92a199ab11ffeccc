"""Pictures of a lift: what tasks became with memory and without, the lift so far, each effect, how the bank grew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lessonbank._base.plural import plural
from lessonbank.evidence.effects import (
    LessonLift,
    Point,
    Standing,
    TreatmentLift,
    fits_anything,
    percent,
    said_of,
    says_nothing,
    standing_of,
)
from lessonbank.guard.sanitise import canonical_line

from .forest import SIGNS, Bar, Look, in_points
from .svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, Spot, axes, band, curve, line, picture, words


class _Span(NamedTuple):
    low: float
    high: float


_ALONG = "outcomes known"
_READ = 300
"""Characters of a title that are looked at."""
_NARROWEST = 0.1
"""Ten points above and below: a scale of less would make much of noise."""
LOOKS: dict[Standing, Look] = {
    "helps": "helps",
    "likely helps": "helps",
    "harms": "harms",
    "likely harms": "harms",
    "no evidence yet": "open",
}
SIGN: dict[Standing, str] = {
    **{standing: SIGNS[look] for standing, look in LOOKS.items()},
    "likely helps": "△",
    "likely harms": "▽",
}


def success(series: Sequence[Point], /) -> str:
    """The rate of success so far, with memory and without."""
    x, y = _across(series), Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    with_memory, without = (_last([p.with_memory for p in series]), _last([p.without for p in series]))
    marks = [
        *axes(x, y, lambda value: f"{value:.0%}", _ALONG),
        curve("without", [_spot(x, y, p.recalls, p.without) for p in series]),
        curve("with", [_spot(x, y, p.recalls, p.with_memory) for p in series]),
        *_key("with", f"with memory {percent(with_memory)}", LEFT),
        *_key("without", f"without {percent(without)}", LEFT + 220),
    ]
    description = f"with memory {percent(with_memory)}, without {percent(without)}"
    description = f"After {plural(series[-1].recalls, 'outcome')}: {description}."
    return _plot("success", "Share of tasks that succeeded, so far", description, marks)


def gain(series: Sequence[Point], /) -> str:
    """The lift so far, with the interval that is right however often one looks, and a line where nothing changes."""
    x, y = _across(series), Scale(*_scale_ends(series), HEIGHT - BOTTOM, TOP)
    usable = [p if _span(p.low, p.high) else None for p in series]
    high = [_spot(x, y, p.recalls, p.high) if p else None for p in usable]
    low = [_spot(x, y, p.recalls, p.low) if p else None for p in usable]
    marks = [
        band("band", high, low),
        *axes(x, y, in_points, _ALONG),
        line("zero", (LEFT, y(0.0)), (WIDTH - RIGHT, y(0.0))),
        curve("edge", high),
        curve("edge", low),
        curve("with", [_spot(x, y, p.recalls, p.lift) for p in series]),
        *_key("with", "the lift so far", LEFT),
        *_key("edge", "its interval", LEFT + 160),
        *_key("zero", "no change", LEFT + 280),
    ]
    last = series[-1]
    description = f"the lift is {_change(last.lift)}, {_band(last)}"
    description = f"After {plural(last.recalls, 'outcome')} {description}."
    return _plot("gain", "Points of success that memory adds, so far", description, marks)


def bar(lift: TreatmentLift, /) -> Bar:
    """The effect of a lesson or a group, with its two intervals."""
    effect = lift.success
    thick, thin = _span(effect.low, effect.high), _span(effect.always_low, effect.always_high)
    name = title_of(lift) if isinstance(lift, LessonLift) else ""
    sentence = said_of(lift) if isinstance(lift, LessonLift) else standing_of(lift)
    return Bar(name, sentence, None if says_nothing(lift) else _finite(effect.value), thick, thin, LOOKS[lift.standing])


def title_of(lesson: LessonLift, /) -> str:
    """A lesson's title, inert; its id where nothing of the title can be read."""
    return canonical_line(lesson.title, limit=_READ) or canonical_line(lesson.lesson_id, limit=_READ)


def _span(low: float | None, high: float | None) -> _Span | None:
    ends = _finite(low), _finite(high)
    if ends[0] is None or ends[1] is None or fits_anything(ends[0], ends[1]):
        return None
    return _Span(ends[0], ends[1])


def _scale_ends(series: Sequence[Point]) -> tuple[float, float]:
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


def _plot(name: str, title: str, description: str, marks: Sequence[str]) -> str:
    return picture(name, size=(WIDTH, HEIGHT), title=title, description=description, marks=marks)


def _spot(x: Scale, y: Scale, at: float, value: float | None) -> Spot | None:
    held = _finite(value)
    return None if held is None else (x(at), y(held))


def _last(values: Sequence[float | None]) -> float | None:
    return next((value for value in reversed(values) if _finite(value) is not None), None)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _rate(value: float) -> float:
    return min(max(value, -1.0), 1.0)


def _band(point: Point) -> str:
    return (
        f"the interval {_change(point.low)} to {_change(point.high)}"
        if _span(point.low, point.high)
        else "no interval yet"
    )


def _change(value: float | None) -> str:
    return "not known" if value is None else f"{100 * value:+z.1f} points"

"""Pictures of a lift: what tasks became with memory and without, and each effect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from lessonbank._base.ids import nameless
from lessonbank._base.plural import plural
from lessonbank.evidence.effects import (
    GroupLift,
    LessonLift,
    Point,
    Standing,
    fits_anything,
    percent,
    said_of,
    says_nothing,
    standing_of,
)
from lessonbank.guard.sanitise import canonical_line

from .forest import SIGNS, Bar, Look
from .svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale, Spot, axes, curve, line, picture, words


class _Span(NamedTuple):
    low: float
    high: float


_ALONG = "outcomes known"
_READ = 300
"""Characters of a title that are looked at."""
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


def bar(lift: LessonLift | GroupLift, /) -> Bar:
    """The effect of a lesson or a group, with its two intervals."""
    effect = lift.success
    thick, thin = _span(effect.low, effect.high), _span(effect.always_low, effect.always_high)
    name = title_of(lift) if isinstance(lift, LessonLift) else ""
    sentence = said_of(lift) if isinstance(lift, LessonLift) else standing_of(lift)
    return Bar(name, sentence, None if says_nothing(lift) else _finite(effect.value), thick, thin, LOOKS[lift.standing])


def title_of(lesson: LessonLift, /) -> str:
    """A lesson's title, inert, or what stands for it."""
    return canonical_line(lesson.title, limit=_READ) or canonical_line(nameless(lesson.title, lesson.lesson_id))


def _span(low: float | None, high: float | None) -> _Span | None:
    ends = _finite(low), _finite(high)
    if ends[0] is None or ends[1] is None or fits_anything(ends[0], ends[1]):
        return None
    return _Span(ends[0], ends[1])


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

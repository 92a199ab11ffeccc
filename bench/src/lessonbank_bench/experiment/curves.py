"""How a number came to be over the tasks of a stream, drawn: the mean so far over seeds, with its band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lessonbank.guard.sanitise import canonical_line
from lessonbank.pages.reports.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    axes,
    band,
    curve,
    fitted,
    line,
    picture,
    words,
)

from .distributions import Floats, student
from .records import AttemptRow

Ints = NDArray[np.int64]
_POINTS: Final = 120
"""Places of a curve: more cannot be seen."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A number of attempts that is drawn along the stream."""

    name: str
    told: str
    value: Callable[[AttemptRow], float | None]
    share: bool = False
    """A rate, from 0 to 1."""
    summed: bool = False
    """Drawn as a sum so far, not as a mean so far."""

    @property
    def within(self) -> tuple[float, float]:
        """What a mean of it can be."""
        return 0.0, 1.0 if self.share else np.inf


def made(row: AttemptRow, /) -> bool:
    """Whether the attempt itself came to an end, with an outcome or with one that is told later."""
    return row.success is not None or row.error is None


KINDS: Final = (
    Kind("success", "share of tasks done, so far", lambda row: _rate(row.success), share=True),
    Kind("steps", "steps for a task, so far", lambda row: float(row.steps) if made(row) else None),
    Kind("tokens", "tokens for a task, so far", lambda row: float(row.tokens) if made(row) else None),
    Kind("cost", "US dollars for a task, so far", lambda row: row.cost if made(row) else None),
    Kind("memory", "characters that memory said for a task, so far", lambda row: float(len(row.memory))),
    Kind("lessons", "lessons written so far, retired or not", lambda row: float(len(row.lessons)), summed=True),
)


def _rate(success: bool | None) -> float | None:
    return None if success is None else float(success)


def rows_of(kind: Kind, rows: Sequence[AttemptRow], /) -> Sequence[AttemptRow]:
    """What a number is drawn of: the tasks that are compared; what is summed, of the training too."""
    return rows if kind.summed else [row for row in rows if row.phase == "test"]


def told_of(kind: Kind, rows: Sequence[AttemptRow], /) -> bool:
    """Whether there is anything to draw: a rate, or a number that is not nothing throughout."""
    return any((value := kind.value(row)) is not None and (kind.share or value > 0) for row in rows)


@dataclass(frozen=True, slots=True)
class Course:
    """A mean so far, place by place."""

    places: Floats
    mean: Floats
    low: Floats
    high: Floats


def course(
    rows: Sequence[AttemptRow],
    value: Callable[[AttemptRow], float | None],
    /,
    *,
    level: float,
    summed: bool = False,
    within: tuple[float, float] | None = None,
) -> Course | None:
    """The mean of `value` up to each place (its sum, if `summed`), over seeds; the band is Student's, over seeds.

    The band ends at what a mean can be, which `within` says. `None` where there is no value. With one seed the band is
    the line.
    """
    full = _so_far(rows, value, summed=summed)
    known: Ints = np.flatnonzero((~np.isnan(full)).any(axis=0))
    if not len(known):
        return None
    spread_out = np.linspace(0.0, len(known) - 1.0, min(len(known), _POINTS))
    at: Ints = known[np.rint(spread_out).astype(np.int64)]
    full = np.take(full, at, axis=1)
    count = (~np.isnan(full)).sum(axis=0)
    mean = np.nansum(full, axis=0) / count
    left = np.where(np.isnan(full), 0.0, full - mean)
    error = np.sqrt((left**2).sum(axis=0) / np.maximum(count - 1, 1) / count)
    half = error * np.array([student(0.5 + level / 2, int(n) - 1) if n > 1 else 0.0 for n in count])
    least, most = within or (-np.inf, np.inf)
    low, high = np.maximum(mean - half, least), np.minimum(mean + half, most)
    return Course(at.astype(np.float64) + 1.0, mean, low, high)


def _so_far(rows: Sequence[AttemptRow], value: Callable[[AttemptRow], float | None], *, summed: bool) -> Floats:
    """(seeds, places): the mean or the sum so far; where a task has no value, what it was before.

    `nan` before a seed's first value and beyond its last attempt.
    """
    places = {place: n for n, place in enumerate(sorted({row.place for row in rows}))}
    seeds = {seed: n for n, seed in enumerate(dict.fromkeys(row.seed for row in rows))}
    full, known = np.full((len(seeds), len(places)), np.nan), np.zeros((2, len(seeds)))
    for row in sorted(rows, key=lambda row: row.place):
        seed = seeds[row.seed]
        if (found := value(row)) is not None:
            known[:, seed] += 1.0, found
        count, total = known[:, seed]
        if count:
            full[seed, places[row.place]] = total if summed else total / count
    return full


def drawn(
    name: str, title: str, arm: tuple[str, Course], baseline: tuple[str, Course] | None, /, *, share: bool
) -> str:
    """One arm with its band, and the baseline beside it. `share`: a rate, from 0 to 1."""
    label, one = arm
    y = _scale(one, baseline[1] if baseline else None, share=share)
    x = Scale(0.0, float(one.places[-1]), LEFT, WIDTH - RIGHT)
    across = [x(place) for place in one.places]
    marks = [
        band("band", list(zip(across, map(y, one.high), strict=True)), list(zip(across, map(y, one.low), strict=True))),
        *axes(x, y, partial(_number, share=share), "tasks of a seed"),
    ]
    told = f"{canonical_line(label, limit=80)}: {_number(float(one.mean[-1]), share=share)} after all tasks"
    if baseline is not None:
        other = baseline[1]
        marks.append(curve("without", [(x(p), y(v)) for p, v in zip(other.places, other.mean, strict=True)]))
        marks += _key("without", baseline[0], _number(float(other.mean[-1]), share=share), LEFT + 215)
        told += f", {canonical_line(baseline[0], limit=80)}: {_number(float(other.mean[-1]), share=share)}"
    marks.append(curve("with", list(zip(across, map(y, one.mean), strict=True))))
    wide = 21 if baseline else 46
    marks += _key("with", label, _number(float(one.mean[-1]), share=share), LEFT, cells=wide)
    return picture(name, size=(WIDTH, HEIGHT), title=title, description=f"{told}.", marks=marks)


def _scale(one: Course, other: Course | None, *, share: bool) -> Scale:
    if share:
        return Scale(0.0, 1.0, HEIGHT - BOTTOM, TOP)
    later = len(one.high) // 4
    top = max(float(one.high[later:].max()), float(other.mean.max()) if other else 0.0, 1e-9)
    return Scale(0.0, top * 1.1, HEIGHT - BOTTOM, TOP)


def _key(name: str, text: str, number: str, at: float, *, cells: int = 21) -> list[str]:
    told = f"{fitted(canonical_line(text), cells=cells - len(number) - 1)} {number}"
    return [line(name, (at, 17), (at + 24, 17)), words(told, (at + 31, 22))]


def _number(value: float, *, share: bool) -> str:
    if share:
        return f"{value:.0%}"
    if abs(value) >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"

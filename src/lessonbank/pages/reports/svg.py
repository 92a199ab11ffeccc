"""The few marks that a picture of numbers is made of, as SVG that needs no script and makes no request."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import east_asian_width

Spot = tuple[float, float]
WIDTH, HEIGHT = 480.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 38.0, 48.0
"""The size of a plot, and the room around what it draws."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a value lies in a picture; what is outside of the scale is drawn at its edge."""

    low: float
    high: float
    start: float
    """The coordinate of `low`."""
    stop: float
    """The coordinate of `high`."""

    def __call__(self, value: float) -> float:
        """The coordinate of a value."""
        held = min(max(value, self.low), self.high)
        return self.start + (held - self.low) / (self.high - self.low) * (self.stop - self.start)


def ticks(low: float, high: float, /, *, most: int = 6, least: float = 0.0) -> tuple[float, ...]:
    """At most `most` and one round values from `low` to `high`, zero among them where it lies between.

    `least`: the smallest step; 1 for what is counted.
    """
    rough = max((high - low) / most, least, 1e-9)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * k for k in (1, 2, 5, 10) if size * k >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(k * step for k in range(first, last + 1))


def picture(name: str, /, *, size: tuple[float, float], title: str, description: str, marks: Iterable[str]) -> str:
    """One SVG; `title` and `description` tell those who cannot see it what it shows. `name` is its own on the page."""
    width, height = size
    return (
        f'<svg viewBox="0 0 {_at(width)} {_at(height)}" role="img" aria-labelledby="{name}-title {name}-told">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-told">{escape(description)}</desc>'
        f"{''.join(marks)}</svg>"
    )


def line(name: str, a: Spot, b: Spot, /) -> str:
    """A straight line of a class of the page's style."""
    return f'<line class="{name}" x1="{_at(a[0])}" y1="{_at(a[1])}" x2="{_at(b[0])}" y2="{_at(b[1])}"/>'


def words(text: str, at: Spot, /, *, name: str = "label", anchor: str = "start") -> str:
    """A line of text that starts, has its middle or ends at a spot."""
    return f'<text class="{name}" x="{_at(at[0])}" y="{_at(at[1])}" text-anchor="{anchor}">{escape(text)}</text>'


def curve(name: str, spots: Sequence[Spot | None], /) -> str:
    """A line through spots, broken where one is missing; a spot between two gaps is a dot."""
    parts = [part if len(part) > 1 else [*part, *part] for part in _unbroken(spots)]
    return f'<path class="{name}" d="{"".join("M" + "L".join(map(_spot, part)) for part in parts)}"/>' if parts else ""


def band(name: str, upper: Sequence[Spot | None], lower: Sequence[Spot | None], /) -> str:
    """What lies between two curves that are missing at the same places."""
    pairs = zip(_unbroken(upper), _unbroken(lower), strict=True)
    outlines = ["M" + "L".join(map(_spot, [*high, *reversed(low)])) + "Z" for high, low in pairs]
    return f'<path class="{name}" d="{"".join(outlines)}"/>' if outlines else ""


def shape(name: str, spots: Sequence[Spot], /) -> str:
    """A closed figure with straight sides."""
    return f'<polygon class="{name}" points="{" ".join(map(_spot, spots))}"/>'


def dot(name: str, at: Spot, radius: float, /) -> str:
    """A filled circle."""
    return f'<circle class="{name}" cx="{_at(at[0])}" cy="{_at(at[1])}" r="{_at(radius)}"/>'


def fitted(text: str, /, *, cells: int) -> str:
    """`text`, cut off where it takes more room than `cells` narrow letters; the letters of East Asia take two."""
    room = cells
    for place, letter in enumerate(text):
        room -= 2 if east_asian_width(letter) in "WF" else 1
        if room < 0:
            return f"{text[: max(place - 1, 0)].rstrip()}…"
    return text


def _unbroken(spots: Sequence[Spot | None]) -> list[list[Spot]]:
    parts: list[list[Spot]] = [[]]
    for spot in spots:
        if spot is not None:
            parts[-1].append(spot)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _spot(at: Spot) -> str:
    return f"{_at(at[0])},{_at(at[1])}"


def _at(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def axes(x: Scale, y: Scale, form: Callable[[float], str], along: str, /, *, least: float = 0.0) -> list[str]:
    """Grid lines with what they stand for, and what is counted below. `least`: the smallest step of the grid."""
    marks: list[str] = []
    for value in ticks(y.low, y.high, most=7, least=least):
        marks.append(line("scale", (LEFT, y(value)), (WIDTH - RIGHT, y(value))))
        marks.append(words(form(value), (LEFT - 8, y(value) + 5), anchor="end"))
    for value in ticks(x.low, x.high, most=4, least=1.0):
        anchor = "end" if x(value) > WIDTH - 40 else "middle"
        marks.append(words(f"{value:,.0f}", (x(value), HEIGHT - BOTTOM + 19), anchor=anchor))
    marks.append(words(along, (LEFT, HEIGHT - 8), name="label soft"))
    return marks

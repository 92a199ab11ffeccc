"""Differences with their intervals, one below the other: what leaves the line of no difference can be seen at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from lessonbank.guard.sanitise import canonical_line

from .svg import WIDTH, Scale, band, dot, fitted, line, picture, shape, ticks, words

Look = Literal["helps", "harms", "open"]
_ROW, _FOOT, _SIDE = 44.0, 46.0, 14.0
_STRIP, _THIN = 360.0, 24.0
"""The size of a row that stands apart."""
_MARGIN = 22.0
"""Room at both ends of such a row for half of a scale's longest label, as a phone shows it."""
_SAID = 40
"""Letters of what is said of a row."""
_LETTER = 8.4
"""Units a letter takes where it is largest, on a phone."""
_NARROWEST = 0.1
"""Ten points to both sides: a scale of less would make much of noise."""
SIGNS: Final[dict[Look, str]] = {"helps": "▲", "harms": "▼", "open": "●"}


class Span(Protocol):
    """An interval."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: what it is, what is said of it, and a difference of rates."""

    label: str
    sentence: str
    value: float | None
    """`None`: too few tasks to say."""
    thick: Span | None
    thin: Span | None
    look: Look = "open"


def forest(
    name: str,
    bars: Sequence[Bar],
    /,
    *,
    title: str,
    description: str,
    floor: float | None = None,
    like: Sequence[Bar] = (),
) -> str:
    """One picture. `floor`: how far noise reaches from zero, as a grey band. `like`: bars that share its scale."""
    x = Scale(*_reach([*bars, *like], floor), _SIDE + 8, WIDTH - _SIDE - 8)
    height = _ROW * len(bars) + _FOOT
    foot = height - _FOOT + 4
    marks = [_floor(x, floor, foot)] if floor else []
    marks += [line("scale", (x(tick), 4), (x(tick), foot)) for tick in ticks(x.low, x.high)]
    marks += [words(in_points(tick), (x(tick), foot + 17), anchor="middle") for tick in ticks(x.low, x.high)]
    marks.append(line("zero", (x(0.0), 4), (x(0.0), foot)))
    marks.append(words("points of success", (WIDTH / 2, height - 6), name="label soft", anchor="middle"))
    for place, bar in enumerate(bars):
        marks += _row(bar, 4 + _ROW * place, x)
    return picture(name, size=(WIDTH, height), title=title, description=description, marks=marks)


class Forest:
    """Rows of one scale that stand apart on a page, each beside its own words."""

    def __init__(self, bars: Sequence[Bar], /) -> None:
        near = [Bar(bar.label, bar.sentence, bar.value, bar.thick, None, bar.look) for bar in bars]
        self._x = Scale(*_reach(near, None), _MARGIN, _STRIP - _MARGIN)

    def strip(self, bar: Bar, /) -> str:
        """One row without words: they stand beside it."""
        y = _THIN / 2
        scale = [line("scale", (self._x(tick), 0), (self._x(tick), _THIN)) for tick in self._ticks()]
        return _bare(_THIN, [*scale, line("zero", (self._x(0.0), 0), (self._x(0.0), _THIN)), *_spans(bar, y, self._x)])

    def ruler(self) -> str:
        """What the lines of the scale stand for."""
        marks = [words(in_points(tick), (self._x(tick), 15), anchor="middle") for tick in self._ticks()]
        return _bare(20.0, marks)

    def _ticks(self) -> Sequence[float]:
        return ticks(self._x.low, self._x.high, most=5)


def _bare(height: float, marks: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {_STRIP:.0f} {height:.0f}" aria-hidden="true">{"".join(marks)}</svg>'


def _floor(x: Scale, floor: float, foot: float) -> str:
    return band("floor", [(x(-floor), 4), (x(floor), 4)], [(x(-floor), foot), (x(floor), foot)])


def _row(bar: Bar, top: float, x: Scale) -> list[str]:
    sentence = fitted(canonical_line(f"{SIGNS[bar.look]} {bar.sentence}"), cells=_SAID)
    room = int((WIDTH - 2 * _SIDE) / _LETTER - len(sentence) - 2)
    marks = [
        words(fitted(canonical_line(bar.label), cells=room), (_SIDE, top + 15), name="name"),
        words(sentence, (WIDTH - _SIDE, top + 15), name=f"name {bar.look}", anchor="end"),
    ]
    y = top + 29
    if bar.value is None:
        near = min(max(x(0.0), 80.0), WIDTH - 80.0)
        return [*marks, words("too few to say", (near, y + 5), name="name soft", anchor="middle")]
    return [*marks, *_spans(bar, y, x)]


def _spans(bar: Bar, y: float, x: Scale) -> list[str]:
    """Draw a bar's intervals, and its value on them; nothing where that is not known."""
    if bar.value is None:
        return []
    spans = [(kind, span) for kind, span in (("thin", bar.thin), ("thick", bar.thick)) if span is not None]
    drawn = [line(f"{kind} {bar.look}", (x(span.low), y), (x(span.high), y)) for kind, span in spans]
    return [*drawn, _mark(bar.look, (x(bar.value), y))]


def _mark(look: Look, at: tuple[float, float]) -> str:
    x, y = at
    if look == "open":
        return dot("mark open", at, 5)
    way = 1 if look == "harms" else -1
    return shape(f"mark {look}", [(x, y + 7 * way), (x - 6.5, y - 5 * way), (x + 6.5, y - 5 * way)])


def _reach(bars: Sequence[Bar], floor: float | None) -> tuple[float, float]:
    spans = [span for bar in bars for span in (bar.thick, bar.thin) if span is not None]
    ends = [end for span in spans for end in (span.low, span.high)]
    ends += [bar.value for bar in bars if bar.value is not None]
    near = max(_NARROWEST, floor or 0.0)
    return max(min([-near, *ends]), -1.0), min(max([near, *ends]), 1.0)


def in_points(value: float, /) -> str:
    """A difference of rates in points of a hundred, with its sign."""
    return f"{100 * value:+.0f}".replace("-", "\u2212") if round(100 * value) else "0"

"""A page about a judge that opens offline: its figures, and how often it is right at each confidence."""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank.pages.reports.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    curve,
    dot,
    line,
    picture,
    words,
)
from lessonbank_bench.experiment.page import document, figure, paragraph, table

from .figures import Figures, Paired, calibration, calibration_error, figures
from .opinions import Opinion
from .words import compared, tokens

_LOW = 0.5
"""The lowest confidence and accuracy drawn: a verdict that is less sure is unknown."""


def page(name: str, opinions: Sequence[Opinion], /, *, against: tuple[str, Paired] | None = None) -> str:
    """One HTML file."""
    told = f"calibration error {calibration_error(opinions):.3f}; the line is a judge that is as right as it is sure"
    pairs = paragraph(compared(name, *against).replace("\n", "; ")) if against else ""
    return document(
        f"How good is this judge? {name}",
        (
            "<h1>How good is this judge?</h1>",
            paragraph(name, name="soft"),
            table("Verdicts against the truth", _COLUMNS, map(_cells, figures(opinions)), text=(0,)),
            figure(reliability(opinions), "How often it is right at each confidence", told),
            pairs,
        ),
    )


_COLUMNS = ("source", "decided", "right", '"success" right', '"failure" right', "right at ≥ 0.9", "tokens")


def _cells(row: Figures) -> tuple[str, ...]:
    return (
        row.source,
        f"{row.decided.count} of {row.decided.of}",
        str(row.right),
        str(row.said_success),
        str(row.said_failure),
        f"{row.sure.count} of {row.sure.of}",
        tokens(row),
    )


def reliability(opinions: Sequence[Opinion], /) -> str:
    """The reliability plot: each dot is a bin of verdicts with its interval (Wilson, 95 %)."""
    x, y = Scale(_LOW, 1.0, LEFT, WIDTH - RIGHT), Scale(_LOW, 1.0, HEIGHT - BOTTOM, TOP)
    marks: list[str] = []
    for value in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        marks.append(line("scale", (LEFT, y(value)), (WIDTH - RIGHT, y(value))))
        marks.append(words(f"{value:.0%}", (LEFT - 8, y(value) + 5), anchor="end"))
        marks.append(words(f"{value:.1f}", (x(value), HEIGHT - BOTTOM + 19), anchor="middle"))
    marks.append(words("confidence (share that is right, upwards)", (LEFT, HEIGHT - 8), name="label soft"))
    marks.append(curve("without", [(x(_LOW), y(_LOW)), (x(1.0), y(1.0))]))
    told: list[str] = []
    for one in calibration(opinions):
        between = one.right.interval
        if between is None:
            continue
        at = x(one.confidence)
        marks.append(line("with", (at, y(between.low)), (at, y(between.high))))
        marks.append(dot("with", (at, y(between.estimate)), 4.0))
        told.append(f"confidence {one.confidence:.2f}: {one.right.count} of {one.right.of} right")
    said = "; ".join(told) or "no verdict was decided"
    return picture("reliability", size=(WIDTH, HEIGHT), title="Reliability", description=f"{said}.", marks=marks)

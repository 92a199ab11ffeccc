"""The table that the report prints: a figure, its error, what it must reach, and what else the same data gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

MARK = "<!-- All below is written by `python -m lessonbank_bench.measure.ledger --page` with the name of this page. -->"

_HEAD = ("| claim | is | to reach | holds | beside it |", "|---|---:|---|---|---|")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One claim and the figure that was measured."""

    claim: str
    value: float
    on: str
    """What it was measured on, with the seeds."""
    error: float | None = None
    """Its standard error; `None` where it was not repeated."""
    least: float | None = None
    """What it must be at least."""
    most: float | None = None
    """What it may be at most. A row without either bound is told, and promises nothing."""
    unit: str = " %"
    beside: tuple[tuple[str, float], ...] = ()
    """What others make of the same data, or what bounds the figure."""

    @property
    def holds(self) -> bool:
        """Whether the figure, as it was measured, is within its bounds. No number (nothing measured) is not."""
        if self.bound == "told":
            return True
        low = self.least is None or self.value >= self.least
        return low and (self.most is None or self.value <= self.most) and self.value == self.value

    @property
    def bound(self) -> str:
        """The bound in words."""
        if self.least is not None and self.most is not None:
            return f"{self.least:g}–{self.most:g}{self.unit}"
        if self.least is not None:
            return f"≥ {self.least:g}{self.unit}"
        return "told" if self.most is None else f"≤ {self.most:g}{self.unit}"


def averaged(claim: str, values: ArrayLike, /, *, on: str, by: float = 100.0, **more: Any) -> Row:
    """The mean over replications, `by` times, with its standard error: the spread between replications over the root of
    their number."""
    told = np.asarray(values, float) * by
    error = float(told.std(ddof=1) / np.sqrt(len(told))) if len(told) > 1 else None
    return Row(claim=claim, value=float(told.mean()), error=error, on=on, **more)


def counted(claim: str, flags: ArrayLike, /, *, on: str, **more: Any) -> Row:
    """How often something happened in so many runs, in percent, with the error of a share: that of a share of
    (k + 1) / (n + 2), so that never having seen it is not taken for certainty."""
    told = np.asarray(flags, bool)
    n = len(told)
    share = (told.sum() + 1) / (n + 2)
    return Row(
        claim=claim, value=100 * float(told.mean()), error=100 * float(np.sqrt(share * (1 - share) / n)), on=on, **more
    )


def as_data(rows: Sequence[Row], /) -> list[dict[str, Any]]:
    """The rows for JSON."""
    return [{**asdict(row), "beside": dict(row.beside), "bound": row.bound, "holds": row.holds} for row in rows]


def as_lines(rows: Sequence[Row], /) -> list[str]:
    """The rows as tables of Markdown: one for each thing that rows were measured on, one after another."""
    lines: list[str] = []
    for on, group in groupby(rows, key=lambda row: row.on):
        lines += [
            "",
            f"Measured on {on}:",
            "",
            "| claim | is | to reach | holds | beside it |",
            "|---|---:|---|---|---|",
        ]
        world = ""
        for row in group:
            lines.append(_line(row, world))
            world = _world(row.claim) or world
    return lines[1:]


def _world(claim: str) -> str:
    """What a claim says before its colon, which the claims below it need not repeat."""
    return claim.rpartition(": ")[0]


def _line(row: Row, world: str) -> str:
    claim = f"… {row.claim.removeprefix(f'{world}: ')}" if world and _world(row.claim) == world else row.claim
    holds = "" if row.bound == "told" else "holds" if row.holds else "**misses**"
    error = "" if row.error is None else f" ± {_short(row.error)}"
    beside = ", ".join(f"{name} {_short(value)}{row.unit}" for name, value in row.beside)
    bound = "" if row.bound == "told" else row.bound
    return f"| {claim} | {_short(row.value)}{error}{row.unit} | {bound} | {holds} | {beside} |"


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def from_data(told: Sequence[dict[str, Any]], /) -> list[Row]:
    """The rows that `as_data` made."""
    names = [field.name for field in fields(Row)]
    return [
        Row(**{name: one[name] for name in names if name != "beside"}, beside=tuple(one["beside"].items()))
        for one in told
    ]


def summary(rows: Sequence[Row], /) -> list[str]:
    """The rows that must reach something; those of one kind and bound share a line: least, most, how many miss."""
    kinds: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.bound != "told":
            kinds.setdefault((row.claim.rpartition(": ")[2], row.bound), []).append(row)
    return [_kind(claim, bound, group) for (claim, bound), group in kinds.items()]


def _kind(claim: str, bound: str, rows: Sequence[Row]) -> str:
    values = sorted(row.value for row in rows)
    ends = dict.fromkeys(_short(value) for value in (values[0], values[-1]))
    missed = sum(not row.holds for row in rows)
    name = f"{claim} ({len(rows)} rows)" if len(rows) > 1 else rows[0].claim
    return f"* {name}: {' to '.join(ends)}{rows[0].unit}, aim {bound}{f' (**{missed} misses**)' if missed else ''}"


def on_page(page: str, rows: Sequence[Row], /) -> str:
    """A page with its list replaced: all that follows the mark."""
    text, mark, _ = page.partition(MARK)
    return f"{text}{mark}\n\n" + "\n".join(summary(rows)) + "\n"

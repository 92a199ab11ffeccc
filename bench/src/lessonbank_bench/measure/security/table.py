"""The table that the report prints: a figure, what it must be, and whether it holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

_NAMED = 4
"""Cases that a row names; the JSON has them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One outcome."""

    name: str
    value: float
    cases: str
    """How many cases it was measured on, and of what."""
    most: float | None = None
    """What it may be at most."""
    least: float | None = None
    """What it must be at least. A row without either bound is told, and must be nothing."""
    unit: str = ""
    broken_by: tuple[str, ...] = ()
    """The cases that count against it."""

    @property
    def holds(self) -> bool:
        """Whether the figure is within its bounds."""
        low = self.least is None or self.value >= self.least
        return low and (self.most is None or self.value <= self.most)

    @property
    def bound(self) -> str:
        """The bound in words."""
        if self.least is not None:
            return f"≥ {self.least:g}{self.unit}"
        if self.most is None:
            return "told"
        return f"≤ {self.most:g}{self.unit}" if self.most else "0"


def counted(name: str, broken: Iterable[str], /, *, cases: str) -> Row:
    """A row that must be 0: each case that broke it counts."""
    by = tuple(broken)
    return Row(name=name, value=len(by), most=0, cases=cases, broken_by=by)


def share(name: str, broken: Iterable[str], /, *, of: int, what: str, **bound: float) -> Row:
    """A row in percent: the cases that are `broken`, of so many."""
    by = tuple(broken)
    value = round(100 * len(by) / of, 2) if of else bound.get("least", 0.0)
    return Row(name=name, value=value, cases=f"{of} {what}", unit=" %", broken_by=by, **bound)


def as_data(rows: Sequence[Row], /) -> list[dict[str, Any]]:
    """The rows for JSON."""
    return [{**asdict(row), "bound": row.bound, "holds": row.holds} for row in rows]


def as_lines(rows: Sequence[Row], /) -> list[str]:
    """The rows as a table of Markdown."""
    lines = ["| outcome | is | must be | holds | cases |", "|---|---:|---|---|---|"]
    return [*lines, *map(_line, rows)]


def _line(row: Row) -> str:
    holds = "" if row.bound == "told" else "holds" if row.holds else "**does not hold**"
    by = ", ".join(row.broken_by[:_NAMED]) + (
        f" and {len(row.broken_by) - _NAMED} more" * (len(row.broken_by) > _NAMED)
    )
    cases = row.cases + (f"; {by}" if by and row.bound != "told" else "")
    return f"| {row.name} | {row.value:g}{row.unit} | {row.bound} | {holds} | {cases.replace('|', '/')} |"

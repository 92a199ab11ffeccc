"""One measured figure beside its raw operation and its target, and the table of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure must reach."""

    limit: float
    of: Literal["value", "ratio"] = "value"
    least: bool = False

    def met(self, figure: Figure) -> bool:
        """Whether `figure` reaches it."""
        seen = figure.value if self.of == "value" else figure.ratio
        return seen is not None and (seen >= self.limit if self.least else seen <= self.limit)

    def __str__(self) -> str:
        sign = "≥" if self.least else "≤"
        return f"{sign} {self.limit:,g}{'×' if self.of == 'ratio' else ''}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured value. `raw` is the same of the operation under it, in the same run; `ratio` is value / raw."""

    name: str
    lessons: int
    value: float
    unit: str
    cpu: float | None = None
    """The same in CPU time."""
    raw: float | None = None
    raw_cpu: float | None = None
    under: str = ""
    """What the raw operation is."""
    target: Target | None = None
    note: str = ""
    quiet: bool = True
    """Whether the machine was quiet enough for a miss to mean anything."""

    @property
    def ratio(self) -> float | None:
        """`value` / `raw`."""
        return self.value / self.raw if self.raw else None

    @property
    def cpu_ratio(self) -> float | None:
        """The same in CPU time, which a busy machine disturbs less."""
        return self.cpu / self.raw_cpu if self.cpu and self.raw_cpu else None

    @property
    def met(self) -> bool | None:
        """Whether the target is reached; `None` without one, or where a miss may be the machine's."""
        reached = self.target.met(self) if self.target else None
        return reached if reached or self.quiet else None

    def as_json(self) -> dict[str, Any]:
        """All of it as data."""
        made = {**asdict(self), "ratio": self.ratio, "cpu_ratio": self.cpu_ratio, "met": self.met}
        return {**made, "target": str(self.target) if self.target else None}


Missing = tuple[str, str]
"""A figure that could not be measured, and why."""
_HEAD = ("figure", "lessons", "value", "CPU", "raw", "ratio", "CPU ratio", "target", "met")


def table(figures: Sequence[Figure], missing: Sequence[Missing]) -> str:
    """The figures as lines of text, what they were compared with, and what is missing."""
    cells = [_HEAD, *(_cells(figure) for figure in figures)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEAD))]
    lines = [_line(row, widths) for row in cells]
    lines[1:1] = ["-" * len(lines[0])]
    unmet, met = (sum(figure.met is reached for figure in figures) for reached in (False, True))
    raw = dict.fromkeys(figure.under for figure in figures if figure.under)
    parts = {
        "raw operations": [f"{under}: {_names(figures, under)}" for under in raw],
        "remarks": [f"{figure.name} ({figure.lessons:,}): {figure.note}" for figure in figures if figure.note],
        "not measured": list(dict.fromkeys(f"{name}: {why}" for name, why in missing)),
    }
    for title, told in parts.items():
        lines += ["", title, *(f"  {line}" for line in told)] if told else []
    return "\n".join([*lines, "", f"{met} of {met + unmet} targets met"])


def _names(figures: Sequence[Figure], under: str) -> str:
    return "; ".join(dict.fromkeys(figure.name for figure in figures if figure.under == under))


def _cells(figure: Figure) -> tuple[str, ...]:
    met = {True: "yes", False: "NO", None: "?" if figure.target else ""}[figure.met]
    value = f"{_number(figure.value)} {figure.unit}".strip()
    ratios = ["" if ratio is None else f"{_number(ratio)}×" for ratio in (figure.ratio, figure.cpu_ratio)]
    target = str(figure.target or "")
    return (
        figure.name,
        f"{figure.lessons:,}",
        value,
        _number(figure.cpu),
        _number(figure.raw),
        *ratios,
        target,
        met,
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = row
    return "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(others, widths[1:], strict=True))]).rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"

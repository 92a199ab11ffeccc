"""The figures of a judge as text that fits a terminal, and as Markdown for a note."""

from __future__ import annotations

from collections.abc import Sequence

from .figures import WANTED, Bin, Figures, Paired, calibration, calibration_error, coverage, figures
from .opinions import Opinion

_COLUMNS = ("source", "decided", "right", '"success" right', '"failure" right', "right at >= 0.9", "tokens")
_WIDTH = 30


def table(opinions: Sequence[Opinion], /) -> str:
    """The figures of all runs and of each source, as a Markdown table."""
    rows = [_COLUMNS, tuple("---" for _ in _COLUMNS), *map(_cells, figures(opinions))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def _cells(row: Figures) -> tuple[str, ...]:
    return (
        row.source,
        f"{row.decided.count}/{row.decided.of}",
        str(row.right),
        str(row.said_success),
        str(row.said_failure),
        f"{row.sure.count}/{row.sure.of} (coverage {_part(row.covered.count, row.covered.of)})",
        tokens(row),
    )


def tokens(row: Figures, /) -> str:
    """What a verdict takes on average, and what all of them cost."""
    cached = f" ({row.cached_tokens:,.0f} cached)" if row.cached_tokens else ""
    spent = f"; {row.cost:,.2f} US dollars in all" if row.cost is not None else ""
    return f"{row.input_tokens:,.0f} in{cached}, {row.output_tokens:,.0f} out{spent}"


def _part(count: int, of: int) -> str:
    return f"{count / of:.2f}" if of else "-"


def reliability(opinions: Sequence[Opinion], /) -> str:
    """How often a verdict is right at each confidence: `#` is what is right, `|` is where the confidence is."""
    bins = calibration(opinions)
    lines = [_bar(one) for one in bins]
    wanted = [coverage(opinions, accuracy) for accuracy in WANTED]
    told = [
        f"{one.accuracy:.0%} right: "
        + (
            f"coverage {_part(one.covered.count, one.covered.of)}, from confidence {one.threshold:.2f} on"
            if one.threshold is not None
            else "at no confidence"
        )
        for one in wanted
    ]
    return "\n".join([*lines, f"calibration error {calibration_error(opinions):.3f}", *told])


def _bar(one: Bin) -> str:
    rate = one.right.count / one.right.of
    drawn = "#" * round(rate * _WIDTH)
    place = round(one.confidence * _WIDTH)
    line = drawn.ljust(_WIDTH + 1)
    return f"{one.low:.2f}-{one.high:.2f} {line[:place]}|{line[place + 1 :]} {one.right}"


def compared(first: str, second: str, found: Paired, /) -> str:
    """Two settings on the same runs, in sentences."""
    if not found.runs:
        return f"{first} and {second} have no run in common."
    return "\n".join(
        (
            f"{first} against {second}, {found.runs} runs in common:",
            f"right under both {found.both}, only under {first} {found.only_first}, "
            f"only under {second} {found.only_second}, under neither {found.neither}; McNemar p = {found.p:.3f}",
            f"of the {found.decided_by_both} that both decided: only {first} {found.only_first_decided}, "
            f"only {second} {found.only_second_decided}; p = {found.p_decided:.3f}",
            f"wrong at a confidence >= 0.9: {found.first_sure_wrong} against {found.second_sure_wrong}",
            f"input tokens of a verdict: {found.first_tokens:,.0f} against {found.second_tokens:,.0f}",
        )
    )

"""A learning curve in a terminal: rates as bars of text."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*#@"


def moving_rate(results: Sequence[bool], /, *, window: int = 10) -> list[float]:
    """The success rate over the last `window` tasks (fewer at the start), one value per task, from 0 to 1."""
    return [sum(results[max(0, n - window) : n]) / min(n, window) for n in range(1, len(results) + 1)]


def bars(rates: Sequence[float], /, *, height: int = 3, glyphs: str = BLOCKS) -> list[str]:
    """One column per rate (0 to 1), `height` rows, the top row first. A rate of 0 still leaves a mark."""
    full = len(glyphs) - 1
    levels = [max(1, round(rate * height * full)) for rate in rates]
    return [
        "".join(glyphs[min(full, max(0, level - row * full))] for level in levels) for row in reversed(range(height))
    ]


def thinned(rates: Sequence[float], /, *, columns: int) -> list[float]:
    """At most `columns` of the rates, evenly spaced, the last one kept."""
    if len(rates) <= columns:
        return list(rates)
    return [rates[round((i + 1) * len(rates) / columns) - 1] for i in range(columns)]

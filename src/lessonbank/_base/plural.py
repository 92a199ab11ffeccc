"""So that nothing says "1 runs": a number with the form of the noun that fits it."""

from __future__ import annotations


def plural(count: int, singular: str, many: str = "", /) -> str:
    """A number and its noun: `3 runs`, `1 run`.

    `many` is for what takes no s, or goes on: `plural(n, "run waits", "runs wait")`.
    """
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"

"""How much is sampled: the whole, or a share of it to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """Seeds and sizes of a report."""

    share: float = 1.0
    """Of the replications; 1 is what is published."""
    first: int = 0
    """The first seed: another one gives another sample of everything."""

    def seeds(self, wanted: int, /, *, least: int = 2) -> range:
        """So many seeds as the share gives."""
        return range(self.first, self.first + max(least, round(wanted * self.share)))

    def size(self, wanted: int, /, *, least: int = 1) -> int:
        """A size that shrinks with the root of the share: for parts whose cost is in one long run."""
        return max(least, round(wanted * min(1.0, self.share) ** 0.5))


def told(seeds: range, /) -> str:
    """Seeds in words."""
    return f"seeds {seeds.start}–{seeds.stop - 1}" if len(seeds) > 1 else f"seed {seeds.start}"

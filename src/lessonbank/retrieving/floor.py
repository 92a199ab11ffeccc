"""Show nothing rather than something unrelated: a least similarity."""

from __future__ import annotations

from dataclasses import dataclass

from lessonbank.types import Found

from ._wrapper import Around


@dataclass(frozen=True, slots=True)
class Floor(Around):
    """Leaves out matches that score below `least`. The paper has no floor: it shows the closest, however far.

    The score is the inner retriever's: a cosine, or a share of the query's own words. A hybrid score tells places in
    two lists and not similarity, so a floor belongs around each of the two retrievers inside.
    """

    least: float

    @property
    def name(self) -> str:
        """The inner name and the floor."""
        return f"{self.inner.name}+floor({self.least:g})"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What `inner` finds, from `least` upwards; a note when that is nothing of something."""
        return above(await self.inner(task, scope=scope, limit=limit), self.least)


def above(found: Found, least: float, /) -> Found:
    """`found` without the matches that score below `least`."""
    kept = tuple(match for match in found.matches if match.score >= least)
    if kept or not found.matches:
        return Found(matches=kept, notes=found.notes)
    best = max(match.score for match in found.matches)
    return Found(notes=(*found.notes, f"nothing reached the floor of {least:g}: the closest scored {best:.3f}"))

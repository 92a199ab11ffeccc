"""Say different things: of experiences that teach the same, show one (maximal marginal relevance)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.ports import Embedder
from lessonbank.contracts.records import Found, Match
from lessonbank.errors import ModelError

from ._wrapper import Around, lessons_of

POOL: Final = 20
"""Of how many experiences the different ones are picked, at least. Four times as many as wanted, if that is more."""

# Scripts written without blanks: each character is a word.
_CJK: Final = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD: Final = re.compile(f"[{_CJK}]|[^\\W{_CJK}]+")
Likeness = Sequence[Sequence[float]]
"""How alike each two experiences are, 1.0 for the same: shape (n, n)."""


@dataclass(frozen=True, slots=True)
class Diverse(Around):
    """Weighs how near a task is against how much its lessons repeat those chosen before (Carbonell and Goldstein 1998).

    Lessons are compared by their words, or with an `embedder` by their vectors (one call per retrieval; when it fails,
    by words, and a note says so). Scores stay those of the inner retriever, so they need not fall from match to match.
    """

    weight: float = 0.7
    """The share of relevance, MMR's lambda: at 1 the order is the inner retriever's."""
    embedder: Embedder | None = None

    @property
    def name(self) -> str:
        """The inner name and the weight."""
        return f"{self.inner.name}+diverse({self.weight:g}{', vectors' if self.embedder else ''})"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """`limit` matches out of those nearest, the nearest one first."""
        if limit == 1 or self.weight == 1.0:
            return await self.inner(task, scope=scope, limit=limit)
        found = await self.inner(task, scope=scope, limit=max(POOL, 4 * limit))
        likeness, notes = await self._likeness([taught(match) for match in found.matches])
        chosen = pick([match.score for match in found.matches], likeness, weight=self.weight, limit=limit)
        kept = tuple(found.matches[i] for i in chosen)
        return found.model_copy(update={"matches": kept, "notes": (*found.notes, *notes)})

    async def _likeness(self, texts: Sequence[str]) -> tuple[Likeness, tuple[str, ...]]:
        if self.embedder is None or not texts:
            return alike(texts), ()
        try:
            rows = await self.embedder.embed(texts, role="document")
        except ModelError as error:
            return alike(texts), (f"lessons compared by words only, because the embedder failed: {error}",)
        return (rows @ rows.T).tolist(), ()


def pick(scores: Sequence[float], likeness: Likeness, /, *, weight: float, limit: int) -> list[int]:
    """Positions of at most `limit` matches, by maximal marginal relevance.

    Each time the one is taken for which `weight` x score - (1 - `weight`) x likeness to the likest one taken is
    largest; of equals the earlier. A match counts as no more relevant than those ranked above it, so that an order
    which is not by score is respected too.
    """
    relevance = [min(scores[: i + 1]) for i in range(len(scores))]
    nearest = [0.0] * len(scores)
    left, chosen = list(range(len(scores))), list[int]()
    while left and len(chosen) < limit:
        best = max(left, key=lambda i: weight * relevance[i] - (1.0 - weight) * nearest[i])
        left.remove(best)
        chosen.append(best)
        nearest = [max(near, like) for near, like in zip(nearest, likeness[best], strict=True)]
    return chosen


def alike(texts: Sequence[str], /) -> list[list[float]]:
    """Shape (n, n): the words two texts share, as a share of all their words (Jaccard); 0 where neither has any."""
    words = [frozenset(_WORD.findall(text.casefold())) for text in texts]
    return [[len(a & b) / (len(a | b) or 1) for b in words] for a in words]


def taught(match: Match, /) -> str:
    """What a match would show: title and content of the lesson it names, or of all active lessons of its experience."""
    return "\n".join(f"{lesson.title}\n{lesson.content}" for lesson in lessons_of(match))

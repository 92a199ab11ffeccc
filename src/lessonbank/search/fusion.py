"""Search by words and by vectors at once: what both find near the top comes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from lessonbank._base.aio import gather
from lessonbank.contracts.ports import Retriever, Vectors
from lessonbank.contracts.records import Experience, Found, Match

RRF: Final = 60
"""The constant of reciprocal rank fusion, as its authors set it (Cormack, Clarke and Büttcher, SIGIR 2009).

A place is worth 1 / (RRF + place): the larger the constant, the less the very first places count.
"""
DEPTH: Final = 50
"""How many experiences each retriever is asked for, however few are wanted: a place below that counts for nothing."""


@dataclass(frozen=True, slots=True)
class HybridRetriever:
    """By reciprocal rank fusion of a retriever by vectors and one by words.

    A match's score says in which places it stood, as a share of standing first in both lists. It is no similarity:
    the first match of an unrelated task scores near 1 too. For a floor, wrap the two retrievers. It ranks experiences:
    a retriever of lessons gives each the place of its best lesson.
    """

    dense: Retriever
    lexical: Retriever
    constant: int = RRF
    depth: int = DEPTH

    @property
    def name(self) -> str:
        """Both names."""
        return f"experience/hybrid({_short(self.dense)}, {_short(self.lexical)})"

    @property
    def space(self) -> str | None:
        """The space of the retriever by vectors."""
        return self.dense.space

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """The `limit` experiences with the best places in both lists."""
        most = max(limit, self.depth)
        lists = await gather(partial(each, task, scope=scope, limit=most) for each in (self.dense, self.lexical))
        by_id = {match.experience.id: match.experience for retrieval in lists for match in retrieval.matches}
        ranked = fuse([[m.experience.id for m in retrieval.matches] for retrieval in lists], constant=self.constant)
        return Found(
            matches=tuple(Match(experience=by_id[id], score=score) for id, score in ranked[:limit]),
            notes=tuple(dict.fromkeys(note for retrieval in lists for note in retrieval.notes)),
            empty="" if ranked else "; ".join(dict.fromkeys(retrieval.empty for retrieval in lists if retrieval.empty)),
        )

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """The vectors of the retriever by vectors."""
        return await self.dense.index(experiences)

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Let the retriever by vectors catch up."""
        return await self.dense.catch_up(scope=scope, most=most)


def fuse(rankings: Sequence[Sequence[str]], /, *, constant: int = RRF) -> list[tuple[str, float]]:
    """Reciprocal rank fusion: every id of any ranking with its score, best first.

    Args:
        rankings: ids, best first. Only places count: whatever scores they came from may be on any scale.
        constant: see `RRF`; from 0.

    Returns:
        Scores in (0, 1], 1 for first in every ranking. Equal scores stand in the order of the rankings given.
    """
    first = len(rankings) / (constant + 1)
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, id in enumerate(dict.fromkeys(ranking), 1):
            scores[id] = scores.get(id, 0.0) + 1.0 / (constant + place)
    rounded = {id: min(round(score / first, 9), 1.0) for id, score in scores.items()}
    return sorted(rounded.items(), key=lambda pair: -pair[1])


def _short(retriever: Retriever) -> str:
    return retriever.name.removeprefix("experience/")

"""Search by the meaning of the tasks, as the paper does (section 3.2: cosine between task texts)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lessonbank.contracts.ports import Retriever, Vectors
from lessonbank.contracts.records import Experience, Found
from lessonbank.errors import ModelError, SpaceMismatch

from ._catch_up import CATCH_UP as CATCH_UP
from ._catch_up import VectorSearch
from .floor import above
from .lexical import LexicalRetriever


@dataclass(frozen=True, slots=True)
class DenseRetriever(VectorSearch):
    """By the cosine between task embeddings, as the paper does.

    When the embedder fails it answers by words and says so: a recall is late or lexical, never missing.
    """

    floor: float | None = None
    """Experiences below this cosine are left out. The paper has none."""
    words: Retriever | None = None
    """Who answers when the embedder fails: by default a search by words without a floor."""

    @property
    def name(self) -> str:
        """The way of searching, and the floor."""
        return "experience/dense" if self.floor is None else f"experience/dense+floor({self.floor:g})"

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """The `limit` experiences whose tasks are closest to `task`."""
        try:
            near, notes = await self.nearest(task, scope=scope, limit=limit)
        except (ModelError, SpaceMismatch) as error:
            retrieval = await (self.words or LexicalRetriever(self.store))(task, scope=scope, limit=limit)
            why = "the embedder failed: " if isinstance(error, ModelError) else ""
            note = f"searched by words only, because {why}{error}"
            return retrieval.model_copy(update={"notes": (*retrieval.notes, note)})
        retrieval = Found(matches=tuple(near), notes=notes)
        return retrieval if self.floor is None else above(retrieval, [match.score for match in near], self.floor)

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """One vector per experience, of its task."""
        if not experiences:
            return {}
        rows = await self.embedder.embed([e.task for e in experiences], role="document")
        return {experience.id: rows[i] for i, experience in enumerate(experiences)}

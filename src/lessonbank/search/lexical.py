"""Search by the words of the tasks: needs no model, and misses what is said in other words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lessonbank.contracts.ports import Store, Vectors
from lessonbank.contracts.records import Experience, Found

from .read_cache import by_words


@dataclass(frozen=True, slots=True)
class LexicalRetriever:
    """By the words of the tasks (BM25 inside the scope): needs no model."""

    store: Store
    name: str = "experience/lexical"
    space: str | None = None

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """The best `limit` experiences that share a word with `task`."""
        return Found(matches=tuple(await by_words(self.store, task, scope=scope, limit=limit)))

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """Nothing to index: the store keeps the words."""
        return {}

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Never behind."""
        return 0

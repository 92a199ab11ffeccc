"""What every wrapper of a retriever leaves to the one inside it: the space, and the vectors of new experiences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lessonbank.protocols import Retriever, Vectors
from lessonbank.types import Experience


@dataclass(frozen=True, slots=True)
class Around:
    """Indexes as `inner` does."""

    inner: Retriever

    @property
    def space(self) -> str | None:
        """The inner retriever's space."""
        return self.inner.space

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """The inner retriever's vectors."""
        return await self.inner.index(experiences)

    async def catch_up(self, *, scope: str, most: int) -> int:
        """Let the inner retriever catch up."""
        return await self.inner.catch_up(scope=scope, most=most)

"""Decide how a new experience changes the bank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .protocols import Retriever
from .types import Add, Change, Experience, MemoryItem


async def append(new: Experience, /) -> Sequence[Change]:
    """Keep everything, as the paper does (section 3.2: no pruning, merging or forgetting)."""
    return (Add(experience=new),)


@dataclass(frozen=True, slots=True)
class SkipDuplicates:
    """Keep the experience, but leave out items whose very words the nearest experiences hold already."""

    retriever: Retriever
    among: int = 10
    """How many of the nearest experiences are compared."""

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """One `Add`, with the items that say something new."""
        near = await self.retriever(new.task, scope=new.scope, limit=self.among)
        known = {item.wording for match in near.matches for item in match.experience.active_items}
        return (Add(experience=new.model_copy(update={"items": distinct(new.items, known)})),)


def distinct(items: Sequence[MemoryItem], known: set[str], /) -> tuple[MemoryItem, ...]:
    """The items whose wording is in neither `known` nor an earlier item."""
    seen = set(known)
    kept: list[MemoryItem] = []
    for item in items:
        if item.wording not in seen:
            kept.append(item)
            seen.add(item.wording)
    return tuple(kept)

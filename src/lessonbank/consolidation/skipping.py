"""Leave out lessons that the bank holds already, and remember that they came again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessonbank.protocols import Retriever
from lessonbank.types import Add, Change, Experience, Json, MemoryItem

from .duplicates import compare


@dataclass(frozen=True, slots=True)
class SkipDuplicates:
    """Keep the experience, but leave out items that are the same as an active item of the nearest experiences.

    What `same` means is `duplicates.compare`'s to say: no model is asked, and nothing but form may differ. The
    experience's metadata names the items that were confirmed: `{"repeats": {item id: [{"title", "evidence", "why"}]}}`.
    """

    retriever: Retriever
    among: int = 10
    """How many of the nearest experiences are compared."""

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """One `Add`, with the items that say something new."""
        sifted = sift(new.items, await held(self.retriever, new, among=self.among))
        return (Add(experience=sifted.of(new)),)


@dataclass(frozen=True, slots=True)
class Sifted:
    """Items that are new, and what the others repeat (item id to what came again)."""

    kept: tuple[MemoryItem, ...]
    repeats: dict[str, Json]

    def of(self, new: Experience, /) -> Experience:
        """`new` with the kept items, and the repeats in its metadata."""
        metadata = {**new.metadata, "repeats": self.repeats} if self.repeats else new.metadata
        return new.model_copy(update={"items": self.kept, "metadata": metadata})


async def held(retriever: Retriever, new: Experience, /, *, among: int) -> dict[str, tuple[MemoryItem, Experience]]:
    """The active items of the `among` experiences nearest to the task of `new`, with their experience, by item id."""
    near = await retriever(new.task, scope=new.scope, limit=among)
    return {item.id: (item, match.experience) for match in near.matches for item in match.experience.active_items}


def sift(items: Sequence[MemoryItem], held: dict[str, tuple[MemoryItem, Experience]], /) -> Sifted:
    """`items` without those that are the same as a held one, or as one before them."""
    known = [item for item, _ in held.values()]
    kept: list[MemoryItem] = []
    repeats: dict[str, list[Json]] = {}
    for item in items:
        found = next(((k, like) for k in (*known, *kept) if (like := compare(item, k)).level == "same"), None)
        if found is None:
            kept.append(item)
            continue
        again: Json = {"title": item.title, "evidence": list(item.provenance.evidence), "why": found[1].reason}
        repeats.setdefault(found[0].id, []).append(again)
    return Sifted(tuple(kept), dict(repeats))

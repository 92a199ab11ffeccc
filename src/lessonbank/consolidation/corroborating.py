"""Notices when a run teaches what another one taught: that, and no wording, is what makes a lesson trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessonbank.guard.trust import TrustPolicy, evidence, independent
from lessonbank.protocols import Consolidator, Decision, Retriever
from lessonbank.types import Add, Change, Experience, MemoryItem, Merge, Replace, Trust

from .deciding import spent
from .duplicates import compare
from .skipping import held


@dataclass(frozen=True, slots=True)
class Corroborating:
    """Around a consolidator: a lesson on probation and the same one from an independent run become active together.

    What `same` means is `duplicates.compare`'s to say. A lesson that memory had shown to the run is none of its own
    (the gate turns it away), so it cannot speak for itself. A quarantined lesson stays where it is.
    """

    inner: Consolidator
    retriever: Retriever
    """Finds the lessons of like tasks, whatever their trust."""
    policy: TrustPolicy
    among: int = 20
    """How many of the nearest experiences are looked through."""

    async def __call__(self, new: Experience, /) -> Decision:
        """The inner consolidator's changes, and one `Trust` for each lesson that is corroborated."""
        known = await held(self.retriever, new, among=self.among)
        decided = await self.inner(new)
        brought = [change.experience for change in decided if isinstance(change, Add | Replace | Merge)]
        kept = {item.id for experience in brought for item in experience.items}
        retired = {id for change in decided if isinstance(change, Merge) for id in change.source_item_ids}
        told = [t for item in new.items for t in self._corroborated(item, new, known, kept - retired, retired)]
        told += [_inherited(change) for change in decided if isinstance(change, Merge) and _all_active(change, known)]
        return Decision((*decided, *_once(told)), usage=spent(decided))

    def _corroborated(
        self,
        item: MemoryItem,
        new: Experience,
        known: dict[str, tuple[MemoryItem, Experience]],
        kept: set[str],
        retired: set[str],
    ) -> Sequence[Trust]:
        for other, owner in known.values():
            if compare(item, other).level == "same" and independent((item, new), (other, owner), policy=self.policy):
                both = [one.id for one in (item, other) if one.state == "probation" and one.id not in retired]
                ids = tuple(id for id in both if id == other.id or id in kept)
                return [_trust(id, (item, other)) for id in ids]
        return ()


def _trust(id: str, both: tuple[MemoryItem, MemoryItem]) -> Trust:
    return Trust(
        item_ids=(id,),
        state="active",
        by="corroboration",
        reason="an independent run taught the same",
        evidence=tuple(evidence(*both)),
    )


def _all_active(merge: Merge, known: dict[str, tuple[MemoryItem, Experience]]) -> bool:
    """Whether what was merged into had been trusted before."""
    sources = [known[id][0] for id in merge.source_item_ids if id in known]
    return bool(sources) and all(source.state == "active" for source in sources)


def _inherited(merge: Merge) -> Trust:
    return Trust(
        item_ids=tuple(item.id for item in merge.experience.items),
        state="active",
        by="corroboration",
        reason="merged from a lesson that was trusted",
        evidence=merge.source_item_ids,
    )


def _once(told: Sequence[Trust]) -> list[Change]:
    return list({change.item_ids: change for change in told}.values())

"""Bounds how fast and how far a scope grows, whatever its runs say: a flood of lessons is a fault or an attack."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from lessonbank.contracts.ports import Consolidator, Store
from lessonbank.contracts.records import Change, Experience, Rejected
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.settings import Caps as Caps
from lessonbank.contracts.store_calls import count_records
from lessonbank.guard.gate import MOST_REJECTED

from .append import asks_model

_SPAN: Final = timedelta(hours=1)
_OVER: Final = "the scope has taken in as many as it may"
DEFAULT_CAPS: Final = Caps()


@dataclass(frozen=True, slots=True)
class CappedConsolidator:
    """Around a consolidator: of a new experience, lessons beyond the caps are rejected, each with its reason.

    Exact within a process, where one decision follows the other; processes that decide at the same moment can exceed
    a cap by what each of them brings.
    """

    inner: Consolidator
    store: Store
    caps: Caps
    asks_model: bool = field(init=False)
    """Whether it may ask a model, be it an embedder."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "asks_model", asks_model(self.inner))

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """The inner consolidator's changes for what there is room for."""
        room = await self._room(new.scope) if new.lessons else len(new.lessons)
        lessons, over = new.lessons[:room], new.lessons[room:]
        if over:
            rejections = [
                Rejected(title=lesson.title, content=lesson.content, rule="cap", reason=_OVER) for lesson in over
            ]
            new = new.model_copy(update={"lessons": lessons, "rejected": (*new.rejected, *rejections)[-MOST_REJECTED:]})
        return await self.inner(new)

    async def _room(self, scope: str) -> int:
        room = 1 << 30
        if self.caps.scope is not None:
            counts = await count_records(self.store, scope=scope)
            room = min(room, self.caps.scope - (counts.lessons - counts.retired - counts.quarantined))
        if self.caps.hour is not None:
            lately = await self.store.count(scope=scope, since=now() - _SPAN, limit=self.caps.hour)
            room = min(room, self.caps.hour - lately[scope].lessons)
        return max(0, room)

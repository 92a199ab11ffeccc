"""Bounds how fast and how far a scope grows, whatever its runs say: a flood of lessons is a fault or an attack."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, cast

from lessonbank.contracts.ports import Consolidator, Store
from lessonbank.contracts.records import Add, Change, Experience, JournalEntry, Merge, Rejected
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.settings import Caps as Caps
from lessonbank.contracts.store_calls import count_records
from lessonbank.guard.gate import MOST_REJECTED

from .ask import asks_model

_SPAN: Final = timedelta(hours=1)
_ADDING: Final = ("add", "merge")
_OVER: Final = "the scope has taken in as many as it may"
DEFAULT_CAPS: Final = Caps()


@dataclass(slots=True)
class _Lately:
    """Lessons added to one scope in the last hour, as its journal tells, whoever added them."""

    read: int
    """The last entry that was looked at."""
    added: deque[tuple[datetime, int]] = field(default_factory=deque[tuple[datetime, int]])


@dataclass(frozen=True, slots=True)
class CappedConsolidator:
    """Around a consolidator: of a new experience, lessons beyond the caps are rejected, each with its reason.

    Exact within a process, where one decision follows the other; processes that decide at the same moment can exceed
    a cap by what each of them brings.
    """

    inner: Consolidator
    store: Store
    caps: Caps
    _seen: dict[str, _Lately] = field(default_factory=dict[str, _Lately])

    @property
    def asks_model(self) -> bool:
        """Whether it may ask a model, be it an embedder."""
        return asks_model(self.inner)

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """The inner consolidator's changes for what there is room for."""
        room = await self._room(new.scope) if new.lessons else len(new.lessons)
        kept, over = new.lessons[:room], new.lessons[room:]
        if over:
            told = [Rejected(title=one.title, content=one.content, rule="cap", reason=_OVER) for one in over]
            new = new.model_copy(update={"lessons": kept, "rejected": (*new.rejected, *told)[-MOST_REJECTED:]})
        return await self.inner(new)

    async def _room(self, scope: str) -> int:
        room = 1 << 30
        if self.caps.scope is not None:
            counts = await count_records(self.store, scope=scope)
            room = min(room, self.caps.scope - (counts.lessons - counts.retired - counts.quarantined))
        if self.caps.hour is not None:
            room = min(room, self.caps.hour - await self._lately(scope, self.caps.hour))
        return max(0, room)

    async def _lately(self, scope: str, most: int) -> int:
        """Lessons added in the last hour. What comes after `most` of them is not read: there is no room for more."""
        since = now() - _SPAN
        seen = self._seen.get(scope)
        if seen is None:
            seen = self._seen[scope] = _Lately(await _before(self.store, scope, since))
        while seen.added and seen.added[0][0] < since:
            seen.added.popleft()
        told = sum([count for _, count in seen.added])
        async with aclosing(_journal(self.store, scope, seen.read)) as journal:
            while told < most and (entry := await anext(journal, None)) is not None:
                seen.read = entry.sequence
                if isinstance(entry.entry, Add | Merge) and entry.at >= since:
                    seen.added.append((entry.at, count := len(entry.entry.experience.lessons)))
                    told += count
        return told


async def _before(store: Store, scope: str, moment: datetime) -> int:
    """A sequence, not much below the first entry after `moment`: found by halves, not by reading the journal."""
    low, step = 0, 1
    while (entry := await _first(store, scope, low + step)) is not None and entry.at < moment:
        low, step = low + step, step * 2
    while step > 1:
        step //= 2
        entry = await _first(store, scope, low + step)
        if entry is not None and entry.at < moment:
            low += step
    return low


async def _first(store: Store, scope: str, since: int) -> JournalEntry | None:
    async with aclosing(_journal(store, scope, since)) as journal:
        return await anext(journal, None)


def _journal(store: Store, scope: str, since: int) -> AsyncGenerator[JournalEntry]:
    return cast("AsyncGenerator[JournalEntry]", store.journal(scope=scope, since=since, kinds=_ADDING))

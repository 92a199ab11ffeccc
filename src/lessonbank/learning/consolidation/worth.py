"""What a lesson is worth keeping, when not all can be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Lesson
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.contracts.records.timeline import reached, successors
from lessonbank.contracts.store_calls import every_recall, get_setting
from lessonbank.evidence.review_snapshot import ReviewSnapshot


class Worth(Protocol):
    """Says how much each lesson is worth keeping, by lesson id; more is better, and of equals the older goes first."""

    async def __call__(self, lessons: Sequence[Lesson], /, *, scope: str) -> Mapping[str, float]: ...


async def by_age(lessons: Sequence[Lesson], /, *, scope: str) -> Mapping[str, float]:
    """All the same, so that the oldest go first."""
    return dict.fromkeys((lesson.id for lesson in lessons), 0.0)


@dataclass(frozen=True, slots=True)
class TimesShown:
    """The number of recalls a lesson was shown in: what is never shown goes first.

    A merged lesson stands for its sources, so recalls that showed one of them are its own; unmerging gives them back.
    Imported recalls do not count.
    """

    store: Store

    async def __call__(self, lessons: Sequence[Lesson], /, *, scope: str) -> Mapping[str, float]:
        """Reads every receipt of the scope, and its journal."""
        journal = self.store.journal(scope=scope, kinds=("merge", "restore", "rollback"))
        merged = successors([entry async for entry in journal])
        shown: Counter[str] = Counter()
        async for recall in every_recall(self.store, scope=scope):
            seen = {c.lesson_id for c in recall.candidates if c.shown and not recall.imported}
            shown.update(seen.union(*(reached(merged, id) for id in seen if id in merged)))
        return {lesson.id: float(shown[lesson.id]) for lesson in lessons}


@dataclass(frozen=True, slots=True)
class ByLift:
    """What showing a lesson is expected to change in the rate of success, as the ledger's last review says.

    Nothing is expected of what was never measured, so that what probably harms goes first and what helps stays. An
    expectation is no proof: what is retired for want of room may have been innocent, and can be restored.
    """

    store: Store

    async def __call__(self, lessons: Sequence[Lesson], /, *, scope: str) -> Mapping[str, float]:
        """Reads what was reviewed last: nothing is computed here."""
        units = ReviewSnapshot.of(await get_setting(self.store, REVIEW.of(scope))).units
        return {lesson.id: units[lesson.id].expected if lesson.id in units else 0.0 for lesson in lessons}

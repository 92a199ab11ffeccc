"""Keep a bank from growing without end: what is worth least is retired, never destroyed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lessonbank.contracts.ports import Consolidator, Decision, Store
from lessonbank.contracts.records import Add, Change, Experience, Lesson, Merge, Replace, Retire
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.store_calls import count_records
from lessonbank.errors import UsageError

from .ask import asks_model
from .retry import spent
from .worth import Worth, by_age


@dataclass(frozen=True, slots=True)
class Bounded:
    """Another consolidator, and then a `Retire` of what is beyond a number of lessons or an age.

    A lesson that this very experience brings is never retired, even where `most` is smaller than what it brings.
    Retired lessons stay in the bank and can be restored. With `older_than` every call reads the whole scope; with
    `most` alone only a call that exceeds it does.
    """

    inner: Consolidator
    store: Store
    most: int | None = None
    """How many active lessons a scope may hold."""
    older_than: timedelta | None = None
    """Lessons are retired at this age."""
    worth: Worth = by_age
    clock: Callable[[], datetime] = now

    def __post_init__(self) -> None:
        """Refuse bounds that are none: UsageError."""
        if self.most is None and self.older_than is None:
            raise UsageError("Bounded needs a bound: most=1000 lessons, or older_than=timedelta(days=365)")
        if (self.most is not None and self.most < 1) or (
            self.older_than is not None and self.older_than <= timedelta()
        ):
            raise UsageError("Bounded needs bounds above zero")

    @property
    def asks_model(self) -> bool:
        """Whether it may ask a model, be it an embedder."""
        return asks_model(self.inner)

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """The inner changes, and at most one `Retire` for age and one for number."""
        decided = await self.inner(new)
        return Decision((*decided, *await self._beyond(new, decided)), usage=spent(decided))

    async def _beyond(self, new: Experience, changes: Sequence[Change]) -> list[Change]:
        new_ones = [c.experience for c in changes if isinstance(c, Add | Replace | Merge)]
        brought = {lesson.id for one in new_ones for lesson in one.lessons if not lesson.retired}
        away = {id for c in changes if isinstance(c, Merge) for id in c.source_lesson_ids}
        away |= {id for c in changes if isinstance(c, Retire) for id in c.lesson_ids}
        if self.older_than is None and not await self._exceeds(new.scope, len(brought)):
            return []
        lessons = [
            lesson
            async for experience in self.store.scan(scope=new.scope)
            for lesson in experience.active_lessons
            if lesson.id not in away and lesson.id not in brought
        ]
        retired: list[Change] = []
        old = self._old(lessons)
        if old:
            retired.append(Retire(lesson_ids=_ids(old), reason=f"older than {self.older_than}"))
        gone = set(_ids(old))
        left = [lesson for lesson in lessons if lesson.id not in gone]
        extra = await self._extra(left, len(brought - away), scope=new.scope)
        if extra:
            retired.append(Retire(lesson_ids=_ids(extra), reason=f"beyond the {self.most} that are kept"))
        return retired

    async def _exceeds(self, scope: str, brought: int) -> bool:
        counts = await count_records(self.store, scope=scope)
        return self.most is not None and counts.lessons - counts.retired + brought > self.most

    def _old(self, lessons: Sequence[Lesson]) -> list[Lesson]:
        if self.older_than is None:
            return []
        cut = self.clock() - self.older_than
        return [lesson for lesson in lessons if lesson.created_at <= cut]

    async def _extra(self, lessons: Sequence[Lesson], brought: int, *, scope: str) -> list[Lesson]:
        beyond = 0 if self.most is None else min(len(lessons), len(lessons) + brought - self.most)
        if beyond <= 0:
            return []
        worth = await self.worth(lessons, scope=scope)
        return sorted(lessons, key=lambda lesson: (worth.get(lesson.id, 0.0), lesson.created_at, lesson.id))[:beyond]


def _ids(lessons: Sequence[Lesson]) -> tuple[str, ...]:
    return tuple(lesson.id for lesson in lessons)

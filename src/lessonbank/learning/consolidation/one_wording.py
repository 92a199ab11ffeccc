"""Keep each wording once, so that the evidence for a lesson is never split over copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessonbank.guard.wording import said_once, wording_of
from lessonbank.protocols import Consolidator, Decision, Store
from lessonbank.types import Add, Change, Experience, Lesson

from .retry import spent


@dataclass(frozen=True, slots=True)
class OneWording:
    """Around a consolidator: a new lesson with the words of one that the scope holds is left out of an `Add`.

    It does not matter whether the held one is shown, retired or quarantined: what was taken out does not come back as
    a copy. The experience's metadata names the lesson that was confirmed, as `SkipDuplicates` does. `wording_of` says
    which words are the same. The store refuses a copy that another process added meanwhile.
    """

    inner: Consolidator
    store: Store

    async def __call__(self, new: Experience, /) -> Decision:
        """The inner consolidator's changes without copies."""
        decided = await self.inner(new)
        return Decision([await self._without_copies(change) for change in decided], usage=spent(decided))

    async def _without_copies(self, change: Change) -> Change:
        if not isinstance(change, Add) or not change.experience.lessons:
            return change
        new = change.experience
        same = await same_wording(self.store, new.lessons, scope=new.scope)
        once = said_once(new, {wording_of(lesson): lesson.id for lesson, _ in same})
        return change if once is new else change.model_copy(update={"experience": once})


async def same_wording(
    store: Store, lessons: Sequence[Lesson], /, *, scope: str
) -> Sequence[tuple[Lesson, Experience]]:
    """The lessons of the scope, in any state, that have the words of one of `lessons`; each with its experience."""
    asked = {wording_of(lesson) for lesson in lessons}
    owners = await store.worded(sorted(asked), scope=scope) if asked else ()
    return [(lesson, owner) for owner in owners for lesson in owner.lessons if wording_of(lesson) in asked]

"""Keep each wording once, so that the evidence for a lesson is never split over copies of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lessonbank.contracts.ports import Consolidator, Store
from lessonbank.contracts.records import Change, Experience, Lesson
from lessonbank.guard.wording import said_once, wording_of
from lessonbank.search import note_lessons

from .append import asks_model


@dataclass(frozen=True, slots=True)
class OneWording:
    """Around a consolidator: it decides about no lesson that has the words of one that the scope holds.

    It does not matter whether the held one is shown, retired or quarantined: what was taken out does not come back as
    a copy. The experience's `repeats` name the lesson that came again, as `Recognise` does. `wording_of` says which
    words are the same. The store refuses a copy that another process added meanwhile.
    """

    inner: Consolidator
    store: Store
    asks_model: bool = field(init=False)
    """Whether it may ask a model, be it an embedder."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "asks_model", asks_model(self.inner))

    async def __call__(self, new: Experience, /) -> Sequence[Change]:
        """The inner consolidator's changes for what says something new."""
        same = await same_wording(self.store, new.lessons, scope=new.scope)
        return await self.inner(said_once(new, {wording: lesson.id for wording, lesson, _ in same}))


async def same_wording(
    store: Store, lessons: Sequence[Lesson], /, *, scope: str
) -> Sequence[tuple[str, Lesson, Experience]]:
    """The lessons of the scope, in any state, that have the words of one of `lessons`; each with the name of these
    words, and with its experience.

    Retired ones come first: a merged lesson can have the words of a source.
    """
    asked = {wording_of(lesson) for lesson in lessons}
    owners = await store.experiences("wording", sorted(asked), scope=scope) if asked else ()
    if not owners:
        return ()
    held = [(lesson, owner) for owner in owners for lesson in owner.lessons]
    matches = [(name, lesson, owner) for lesson, owner in held if (name := wording_of(lesson)) in asked]
    note_lessons(store, [lesson for _, lesson, _ in matches], scope=scope)
    return sorted(matches, key=lambda match: not match[1].retired)

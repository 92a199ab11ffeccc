"""Notices when a run teaches what another one taught: that, and no wording, is what makes a lesson trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessonbank.contracts.ports import Consolidator, Decision, Retriever, Store
from lessonbank.contracts.records import Experience, Lesson, Merge, Trust, TrustState
from lessonbank.contracts.store_calls import experience_of_lesson
from lessonbank.guard.trust import evidence, independent

from .append import asks_model
from .duplicates import same_words
from .one_wording import same_wording
from .retry import spent


@dataclass(frozen=True, slots=True)
class Corroborating:
    """Around a consolidator: a lesson on probation and the same one from an independent run become active together.

    What `same` means is `duplicates.compare`'s to say. A lesson that memory had shown to the run is none of its own
    (the gate turns it away), so it cannot speak for itself. A quarantined lesson speaks for nothing, and the
    same coming again is quarantined, too. A doubted one waits for a person.
    """

    inner: Consolidator
    retriever: Retriever
    """Finds the lessons of like tasks, whatever their trust."""
    among: int = 20
    """How many of the nearest experiences are looked through."""
    store: Store | None = None
    """Knows who has the same words, also far from the task."""

    @property
    def asks_model(self) -> bool:
        """Whether the consolidator may ask a model, be it an embedder."""
        return self.retriever.space is not None or asks_model(self.inner)

    async def __call__(self, new: Experience, /) -> Decision:
        """The inner consolidator's changes, and one `Trust` for each lesson that is corroborated."""
        near = await self.retriever(new.task, scope=new.scope, limit=self.among)
        known = await self._known([match.experience for match in near.matches], new)
        decided = await self.inner(new)
        brought = [experience for change in decided if (experience := change.brings)]
        lesson_ids = {lesson.id for experience in brought for lesson in experience.lessons}
        retired = {id for change in decided if isinstance(change, Merge) for id in change.source_lesson_ids}
        left = lesson_ids - retired
        changes = [t for lesson in new.lessons for t in await self._corroborated(lesson, new, known, left)]
        once = {change.lesson_ids: change for change in changes}
        return Decision((*decided, *once.values()), usage=spent(decided))

    async def _known(self, near: Sequence[Experience], new: Experience) -> Sequence[tuple[Lesson, Experience]]:
        """What the nearest experiences show and who has the very words of `new`, each lesson with its true owner."""
        shown = {lesson.id: lesson for experience in near for lesson in experience.lessons}
        known = {i.id: (i, e) for e in near for i in e.lessons if i.id not in e.repeats}
        if self.store is None:
            return list(known.values())
        known |= {i.id: (i, owner) for _, i, owner in await same_wording(self.store, new.lessons, scope=new.scope)}
        for id in shown.keys() - known.keys():
            known[id] = shown[id], await experience_of_lesson(self.store, id, scope=new.scope)
        return list(known.values())

    async def _corroborated(
        self, lesson: Lesson, new: Experience, known: Sequence[tuple[Lesson, Experience]], lesson_ids: set[str]
    ) -> Sequence[Trust]:
        same = [(other, owner) for other, owner in known if same_words(lesson, other)]
        if lesson.hidden or any(other.state == "quarantined" for other, _ in same):
            doubted = lesson.id in lesson_ids and not lesson.hidden
            return [_trust(lesson.id, "quarantined", "the same was quarantined before", ())] if doubted else ()
        if any(candidate.is_doubted for candidate in (lesson, *(other for other, _ in same))):
            return ()
        speak = (held for held, owner in same if not held.retired and independent((lesson, new), (held, owner)))
        if (other := next(speak, None)) is None:
            return ()
        both = [each for each in (lesson, other) if each.state == "probation" and each.id in {other.id, *lesson_ids}]
        reason = "an independent run taught the same"
        return [_trust(each.id, "active", reason, evidence(lesson, other)) for each in both]


def _trust(id: str, state: TrustState, reason: str, runs: Sequence[str]) -> Trust:
    return Trust(lesson_ids=(id,), state=state, by="corroboration", reason=reason, evidence=tuple(runs))

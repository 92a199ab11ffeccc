"""Notices when a run teaches what another one taught: that, and no wording, is what makes a lesson trusted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lessonbank.contracts.ports import Consolidator, Decision, LessonFilter, Retriever, Store
from lessonbank.contracts.records import Add, Experience, Lesson, Merge, Replace, Trust, TrustState
from lessonbank.contracts.records.repeats import repeats_of
from lessonbank.contracts.store_calls import experience_of_lesson
from lessonbank.guard.identity import one_of_many
from lessonbank.guard.trust import TrustPolicy, evidence, independent
from lessonbank.text.bm25 import words

from ._words import PROTECTED
from .ask import asks_model
from .duplicates import rearranged, same_words
from .one_wording import same_wording
from .retry import spent

_PAIRS = 16
"""Pairs of words of a lesson that are looked for."""


@dataclass(frozen=True, slots=True)
class Corroborating:
    """Around a consolidator: a lesson on probation and the same one from an independent run become active together.

    What `same` means is `duplicates.compare`'s to say. A lesson that memory had shown to the run is none of its own
    (the gate turns it away), so it cannot speak for itself. A quarantined lesson speaks for nothing, and the
    same coming again is quarantined, too. A marked one waits for a person. One that says something else in nearly the
    words of another writer's active lesson needs two writers, because one alone could twist what others taught.
    """

    inner: Consolidator
    retriever: Retriever
    """Finds the lessons of like tasks, whatever their trust."""
    policy: TrustPolicy
    among: int = 20
    """How many of the nearest experiences are looked through."""
    store: Store | None = None
    """Knows who has the same words, or nearly the same, also far from the task."""

    @property
    def asks_model(self) -> bool:
        """Whether it may ask a model, be it an embedder."""
        return self.retriever.space is not None or asks_model(self.inner)

    async def __call__(self, new: Experience, /) -> Decision:
        """The inner consolidator's changes, and one `Trust` for each lesson that is corroborated."""
        near = await self.retriever(new.task, scope=new.scope, limit=self.among)
        known = await self._known([match.experience for match in near.matches], new)
        decided = await self.inner(new)
        brought = [change.experience for change in decided if isinstance(change, Add | Replace | Merge)]
        kept = {lesson.id for experience in brought for lesson in experience.lessons}
        retired = {id for change in decided if isinstance(change, Merge) for id in change.source_lesson_ids}
        left = kept - retired
        told = [t for lesson in new.lessons for t in await self._corroborated(lesson, new, known, left)]
        once = {change.lesson_ids: change for change in told}
        return Decision((*decided, *once.values()), usage=spent(decided))

    async def _known(self, near: Sequence[Experience], new: Experience) -> Sequence[tuple[Lesson, Experience]]:
        """What the nearest experiences show and who has the very words of `new`, each lesson with its true owner."""
        shown = {lesson.id: lesson for experience in near for lesson in experience.lessons}
        known = {i.id: (i, e) for e in near for i in e.lessons if i.id not in repeats_of(e)}
        if self.store is None:
            return list(known.values())
        known |= {i.id: (i, owner) for i, owner in await same_wording(self.store, new.lessons, scope=new.scope)}
        for id in shown.keys() - known.keys():
            known[id] = shown[id], await experience_of_lesson(self.store, id, scope=new.scope)
        return list(known.values())

    async def _corroborated(
        self, lesson: Lesson, new: Experience, known: Sequence[tuple[Lesson, Experience]], kept: set[str]
    ) -> Sequence[Trust]:
        same = [(other, owner) for other, owner in known if same_words(lesson, other)]
        if lesson.hidden or any(other.state == "quarantined" for other, _ in same):
            doubted = lesson.id in kept and not lesson.hidden
            return [_trust(lesson.id, "quarantined", "the same was quarantined before", ())] if doubted else ()
        if lesson.risk or any(other.is_unchecked for other, _ in same):
            return ()
        speak = [
            other
            for other, owner in same
            if not other.retired and independent((lesson, new), (other, owner), policy=self.policy)
        ]
        for other in speak:
            both = [one for one in (lesson, other) if one.state == "probation" and one.id in {other.id, *kept}]
            if both and await self._twisted_by_one(lesson, other, new.scope, [held for held, _ in known]):
                continue
            said = "an independent run taught the same"
            return [_trust(one.id, "active", said, evidence(lesson, other)) for one in both]
        return ()

    async def _twisted_by_one(self, lesson: Lesson, other: Lesson, scope: str, known: Sequence[Lesson]) -> bool:
        """Whether one writer alone vouches for what rearranges an active lesson of another one.

        Where the bank does not tell writers apart, all are one, and may correct themselves.
        """
        writer = lesson.provenance.identity
        if writer != other.provenance.identity or not one_of_many(writer):
            return False
        active = [one for one in known if one.state == "active"]
        if self.store is not None:
            active += await _active_in_like_words(self.store, lesson, scope)
        return any(one.provenance.identity != writer and rearranged(lesson, one) for one in active)


async def _active_in_like_words(store: Store, lesson: Lesson, scope: str) -> list[Lesson]:
    """Active lessons, whatever their task, that have two neighbours among the telling words of `lesson`.

    Of a lesson that `rearranged` calls like it, a third of these words may differ, and so two thirds of the pairs.
    """
    telling = [word for word in dict.fromkeys(words(lesson.text)) if word not in PROTECTED][: 2 * _PAIRS]
    pairs = [" ".join(telling[at : at + 2]) for at in range(0, len(telling), 2)]
    return [one for pair in pairs for one in await store.lessons(LessonFilter(state="active", text=pair), scope=scope)]


def _trust(id: str, state: TrustState, reason: str, runs: Sequence[str]) -> Trust:
    return Trust(lesson_ids=(id,), state=state, by="corroboration", reason=reason, evidence=tuple(runs))

"""What a view needs of its bank: one scope, one writer, and the parts behind them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from lessonbank._base.aio import if_there
from lessonbank.contracts.ports import Retriever, Store, Vectors
from lessonbank.contracts.records import Change, Experience, Extraction, JournalEntry, Learned, Lesson, Recall, Run
from lessonbank.contracts.records.repeats import repeats_of
from lessonbank.contracts.settings import OFF
from lessonbank.contracts.store_calls import count_records, experience_of_lesson
from lessonbank.errors import ModelError, SpaceMismatch, UsageError
from lessonbank.evidence.ledger import Ledger
from lessonbank.guard.identity import check_reviewer, holders
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.names import checked_name
from lessonbank.guard.quote import quoted
from lessonbank.learning.topics import Topics

from .acts import note_act
from .trying import Tried

log: Final = logging.getLogger("lessonbank")
_NO_VECTORS: Final[Mapping[str, Vectors]] = {}


@dataclass(frozen=True, slots=True)
class Handle:
    """A bank in one scope, as its views see it."""

    store: Store
    scope: str
    writer: str
    key: str | None = field(repr=False)
    """The key of the writer or reviewer, if it was given."""
    retriever: Retriever
    ledger: Ledger
    intake: IntakeFilter
    limit: int
    learn_as: Callable[..., Awaitable[Learned]]
    """Learns from runs as whoever submitted them."""
    correct: Callable[..., Awaitable[Learned]]
    draw: Callable[[Sequence[Run]], Awaitable[Extraction]]
    """Draws lessons from runs anew."""
    pays: bool
    """Whether a model draws them, or a part of the caller's own may ask one."""
    preview: Callable[[str, Tried], Awaitable[Recall]]
    is_scoped: bool
    """Whether it was made by `scoped()`: such a handle does not act on the whole file."""
    off: bool = False
    """Whether memory is switched off: nothing is written, and nothing is there."""
    one_wording: bool = False
    """Whether no lesson is written that has the words of another one."""
    corroborates: bool = False
    """Whether it trusts what independent runs taught, whoever made them."""
    keep_runs: float | None = None
    """Days after which the process asked that runs are erased."""
    topics: Topics | None = None
    """What decides which topic a new lesson belongs to."""

    def skips(self, call: str, /) -> bool:
        """Whether memory is switched off, so that `call` does nothing. The log says so."""
        if self.off:
            log.warning("%s did nothing: %s", call, OFF)
        return self.off

    async def lesson(self, id: str, /) -> Lesson | None:
        """The lesson of that id; `None` where it was erased."""
        owner = await if_there(experience_of_lesson(self.store, id, scope=self.scope))
        return owner and next((lesson for lesson in owner.lessons if lesson.id == id), None)

    async def lessons(self, ids: Collection[str], /) -> dict[str, Lesson]:
        """The lessons of those ids, in one read; erased ones are left out."""
        owners = await self.store.experiences("lesson", ids, scope=self.scope) if ids else ()
        return {lesson.id: lesson for owner in owners for lesson in owner.lessons if lesson.id in ids}

    async def apply(
        self,
        *changes: Change,
        by: str | None = None,
        vectors: Mapping[str, Vectors] = _NO_VECTORS,
        unchanged: Sequence[Experience] = (),
    ) -> tuple[JournalEntry, ...]:
        """Apply changes in the scope. `by`: the person who makes them; `unchanged`: what they were decided upon.

        Raises UsageError, NotFound, Conflict.
        """
        writer = self.writer if by is None else person(by)
        if self.skips("a change"):
            return ()
        safe = [await self._without_secrets(change) for change in changes]
        entries, notes = await self.apply_embedded(
            safe, vectors, writer=writer, one_wording=self.one_wording, unchanged=unchanged
        )
        for note in notes:
            log.warning("%s", note)
        return tuple(entries)

    async def _without_secrets(self, change: Change) -> Change:
        """`change` with its reason redacted: its texts are, but a reason is what a person typed just now."""
        reason: str = getattr(change, "reason", "")
        if (told := await self.intake.sentence(reason)) == reason:
            return change
        return change.model_copy(update={"reason": told})

    async def index(self, experiences: Sequence[Experience], /) -> tuple[Mapping[str, Vectors], tuple[str, ...]]:
        """Vectors for new experiences, and a note where the embedder failed: then they are embedded later."""
        try:
            return await self.retriever.index([e for e in experiences if e.active_lessons or repeats_of(e)]), ()
        except ModelError as error:
            return {}, (f"kept, but not embedded yet, because the embedder failed: {quoted(error)}",)

    async def misfit(self, task: str, /) -> SpaceMismatch | None:
        """Why vectors that are made now would not fit those of the scope; `None` where they do, or none are made.

        `task` is what is embedded to find out: a vector of it is needed again, when its lessons are kept.
        Raises ModelError: the embedder failed.
        """
        space = self.retriever.space
        if space is None or not (await count_records(self.store, scope=self.scope)).experiences:
            return None
        probe = Experience(scope=self.scope, task=task, lessons=(Lesson(title="A lesson", content="A lesson."),))
        try:
            for vector in (await self.retriever.index([probe])).values():
                await self.store.nearest(vector, scope=self.scope, space=space, limit=0)
        except SpaceMismatch as error:
            return error
        return None

    async def apply_embedded(
        self, changes: Sequence[Change], vectors: Mapping[str, Vectors], /, **more: Any
    ) -> tuple[Sequence[JournalEntry], tuple[str, ...]]:
        """Apply changes with their vectors; a note where these do not fit the bank's and are left out."""
        space = self.retriever.space
        try:
            return await self.store.apply(changes, scope=self.scope, vectors=vectors, space=space, **more), ()
        except SpaceMismatch as error:
            note = f"kept, but not embedded: {error}"
            return await self.store.apply(changes, scope=self.scope, **more), (note,)

    async def reviewed(self, call: str, /, *, by: str | None = None) -> None:
        """Refuse what decides which lessons are shown, where the bank has reviewers and none of them calls.

        `by`: the person that the call names. Raises UsageError, NotAllowed.
        """
        named = None if by is None else person(by)
        if not self.off:
            await check_reviewer(self.store, call, name=self.writer, key=self.key, by=named)

    async def by_owner(self, call: str, /) -> None:
        """Refuse a call on the whole file that a reviewer may make, or, where there is none, who has the whole file.

        Raises UsageError.
        """
        if not await holders(self.store, "reviewer"):
            self.whole_file(call)

    async def note_act(self, act: str, subject: str = "", /, *, read_only: bool = False) -> None:
        """Leave an entry of an administrative act in the journal, see `acts.note_act`."""
        await note_act(
            self.store, act, subject, scope=self.scope, writer=self.writer, key=self.key, read_only=read_only
        )

    def whole_file(self, call: str, /) -> None:
        """Refuse a call that acts on the whole file where the handle is one tenant's. Raises UsageError."""
        if self.is_scoped:
            raise UsageError(f"{call} acts on the whole file: call it on the bank itself, not on a handle of scoped()")


def lesson_of(owner: Experience, id: str, /) -> Lesson:
    """The lesson of that id, which its owner holds."""
    return next(lesson for lesson in owner.lessons if lesson.id == id)


def person(by: object, /) -> str:
    """The name of the person who does something. Raises UsageError."""
    return checked_name(by, what="by=")

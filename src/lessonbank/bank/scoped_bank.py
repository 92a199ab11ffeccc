"""A bank in one scope, with one writer, as the steps of the loop and the views act on it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from lessonbank._base.aio import get_or_none
from lessonbank._base.locks import ScopeLocks
from lessonbank.contracts.events import Event, FellBack, Hook
from lessonbank.contracts.ports import Store, Vectors
from lessonbank.contracts.records import Change, Experience, JournalEntry, Lesson
from lessonbank.contracts.settings import OFF
from lessonbank.contracts.store_calls import count_records, experience_of_lesson
from lessonbank.errors import ModelError, SpaceMismatch, UsageError
from lessonbank.guard.identity import check_reviewer, identity_of, key_names
from lessonbank.guard.names import checked_name
from lessonbank.guard.quote import quoted
from lessonbank.guard.receipts import Receipts

from .audit_log import record_act
from .parts import BankOptions, BankParts
from .spool import Spool

log: Final = logging.getLogger("lessonbank")
_NO_VECTORS: Final[Mapping[str, Vectors]] = {}


@dataclass(frozen=True, slots=True)
class BankState:
    """What all handles on one bank share in this process."""

    receipts: Receipts
    locks: ScopeLocks = field(default_factory=ScopeLocks)
    changed: Counter[str] = field(default_factory=Counter[str])
    """How often each scope was changed by this process through `apply_embedded`."""
    vectors_fit: set[str] = field(default_factory=set[str])
    """The scopes in which new vectors were found to fit."""
    erased: dict[str, tuple[date, float]] = field(default_factory=dict[str, tuple[date, float]])
    """When old runs of a scope were erased last, and after how many days."""
    upkeep: dict[str, tuple[date, dict[str, list[frozenset[str]]]]] = field(
        default_factory=dict[str, tuple[date, dict[str, list[frozenset[str]]]]]
    )
    """By scope: when lessons were put away last, and which sleep, with the words of the tasks that taught them."""
    retention_checked: dict[tuple[str, str | None], date] = field(default_factory=dict[tuple[str, str | None], date])


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedBank:
    """A bank in one scope, with one writer."""

    store: Store
    scope: str
    writer: str
    key: str | None = field(repr=False)
    """The key of the writer or reviewer, if it was given."""
    parts: BankParts
    options: BankOptions
    state: BankState
    is_scoped: bool
    """Whether it was made by `scoped()`: such a handle does not act on the whole file."""
    teller: str | None = None
    """The identity of who submitted the runs, where the bank learns in the name of another caller."""

    @property
    def spool(self) -> Spool | None:
        """The file of runs that wait on this machine for the bank, with this key; `None` where none does."""
        return Spool.of(self.options.place, self.key) if self.options.place else None

    async def identity(self) -> str:
        """Who calls, as the bank knows it. Raises UsageError for a wrong key."""
        if self.teller is not None:
            return self.teller
        return await identity_of(self.store, name=self.writer, key=self.key)

    def emit(self, *events: Event, notes: Sequence[str] = ()) -> tuple[str, ...]:
        """Call the hooks; a note for each that failed. What `notes` say becomes events of a fallback."""
        if not self.parts.hooks:
            return ()
        return tuple(note for event in events for note in call_hooks(self.parts.hooks, event, notes=notes))

    def is_off(self, call: str, /, *, waits: bool = False) -> bool:
        """Whether memory is switched off, so that `call` does nothing. The log says so.

        `waits`: what is handed in has waited, and waits on where it is refused. Raises UsageError.
        """
        if self.options.off and waits:
            raise UsageError(OFF)
        if self.options.off:
            log.warning("%s did nothing: %s", call, OFF)
        return self.options.off

    async def lesson(self, id: str, /) -> Lesson | None:
        """The lesson of that id; `None` where it was erased."""
        owner = await get_or_none(experience_of_lesson(self.store, id, scope=self.scope))
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
        if_unchanged: Sequence[Experience] = (),
    ) -> tuple[JournalEntry, ...]:
        """Apply changes in the scope. `by`: the person who makes them; `if_unchanged`: what they were decided upon.

        Raises UsageError, NotFound, Conflict.
        """
        writer = self.writer if by is None else person(by)
        if self.is_off("a change"):
            return ()
        safe = [await self._without_secrets(change) for change in changes]
        entries, _ = await self.apply_embedded(
            safe, vectors, writer=writer, unique_wording=self.options.unique_wording, if_unchanged=if_unchanged
        )
        return tuple(entries)

    async def _without_secrets(self, change: Change) -> Change:
        """`change` with its reason redacted: its texts are, but a reason is what a person typed just now."""
        reason: str = getattr(change, "reason", "")
        if (sentence := await self.parts.intake.sentence(reason)) == reason:
            return change
        return change.model_copy(update={"reason": sentence})

    async def index(self, experiences: Sequence[Experience], /) -> tuple[Mapping[str, Vectors], tuple[str, ...]]:
        """Vectors for new experiences, and a note where the embedder failed: then they are embedded later."""
        if self.parts.space is None:  # it embeds nothing
            return {}, ()
        try:
            return await self.parts.retriever.index([e for e in experiences if e.active_lessons or e.repeats]), ()
        except ModelError as error:
            note = f"kept, but not embedded yet, because the embedder failed: {quoted(error)}"
            log.warning("%s", note)
            return {}, (note,)

    async def vector_mismatch(self, task: str, /) -> SpaceMismatch | None:
        """Why vectors that are made now would not fit those of the scope; `None` where they do, or none are made.

        `task` is what is embedded to find out: a vector of it is needed again, when its lessons are kept.
        Raises ModelError: the embedder failed.
        """
        space = self.parts.space
        if space is None or not (await count_records(self.store, scope=self.scope)).experiences:
            return None
        probe = Experience(scope=self.scope, task=task, lessons=(Lesson(title="A lesson", content="A lesson."),))
        try:
            for vector in (await self.parts.retriever.index([probe])).values():
                await self.store.nearest(vector, scope=self.scope, space=space, limit=0)
        except SpaceMismatch as error:
            return error
        self.state.vectors_fit.add(self.scope)
        return None

    async def apply_embedded(
        self, changes: Sequence[Change], vectors: Mapping[str, Vectors], /, **more: Any
    ) -> tuple[Sequence[JournalEntry], tuple[str, ...]]:
        """Apply changes with their vectors; a note where these do not fit the bank's and are left out."""
        space, notes = self.parts.space if vectors else None, tuple[str, ...]()
        try:
            entries = await self.store.apply(changes, scope=self.scope, vectors=vectors, space=space, **more)
        except SpaceMismatch as error:
            notes = (f"kept, but not embedded: {error}",)
            log.warning("%s", notes[0])
            entries = await self.store.apply(changes, scope=self.scope, **more)
        self.state.changed[self.scope] += 1
        return entries, notes

    async def check_reviewer(self, call: str, /, *, by: str | None = None) -> None:
        """Refuse a call that decides which lessons are shown, where the bank has reviewers and none of them makes it.

        `by`: the person that the call names. Raises UsageError, NotAllowed.
        """
        named = None if by is None else person(by)
        if not self.options.off:
            await check_reviewer(self.store, call, name=self.writer, key=self.key, by=named)

    async def check_owner(self, call: str, /) -> None:
        """Refuse a call on the whole file that a reviewer may make, or, where there is none, who has the whole file.

        Raises UsageError.
        """
        if not await key_names(self.store, "reviewer"):
            self.check_whole_file(call)

    async def record_act(self, act: str, subject: str = "", /, *, read_only: bool = False) -> None:
        """Leave an entry of an administrative act in the journal, see `record_act`."""
        await record_act(
            self.store, act, subject, scope=self.scope, writer=self.writer, key=self.key, read_only=read_only
        )

    def check_whole_file(self, call: str, /) -> None:
        """Refuse a call that acts on the whole file where the handle is one tenant's. Raises UsageError."""
        if self.is_scoped:
            raise UsageError(f"{call} acts on the whole file: call it on the bank itself, not on a handle of scoped()")


def lesson_of(owner: Experience, id: str, /) -> Lesson:
    """The lesson of that id, which its owner holds."""
    return next(lesson for lesson in owner.lessons if lesson.id == id)


def person(by: object, /) -> str:
    """The name of the person who does something. Raises UsageError."""
    return checked_name(by, what="by=")


def call_hooks(hooks: Iterable[Hook], event: Event, /, *, notes: Sequence[str] = ()) -> tuple[str, ...]:
    """Call every hook with an event, and with a `FellBack` for each note; one sentence for each hook that failed."""
    events = [event, *(FellBack(what=type(event).__name__, why=note) for note in notes)]
    return tuple(failure for hook in hooks for each in events if (failure := _failure(hook, each)))


def _failure(hook: Hook, event: Event) -> str:
    try:
        hook(event)
    except Exception as error:  # noqa: BLE001 - what a hook raises must not undo or repeat what happened
        failure = f"a hook failed after {type(event).__name__}: {type(error).__name__}: {quoted(error)}"
        log.warning("%s", failure)
        return failure
    return ""

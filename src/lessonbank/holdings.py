"""What can be done with a bank's contents without judging or extracting: look, take back, bring back, carry over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Self

from .errors import ModelError, StoreError, UsageError
from .guard.quote import quoted
from .guard.trust import check_person
from .history import Past
from .protocols import Retriever, Store, Vectors
from .types import Change, Counts, Experience, Lesson, Restore, Retire, Trajectory, Trust
from .views import archive
from .views.audit import differences


class Holdings(Past):
    """The part of a bank that reads and curates. Every method acts in one scope: the bank's own, or the one named."""

    def __init__(self, store: Store, /, *, retriever: Retriever, scope: str, writer: str) -> None:
        self.store, self.scope, self.writer, self._retriever = store, scope, writer, retriever

    async def items(self, *, scope: str | None = None, retired: bool = False) -> tuple[Lesson, ...]:
        """Every lesson of the scope, oldest first; with `retired`, those taken back too."""
        found = [i async for e in self.store.scan(scope=self._within(scope)) for i in e.lessons]
        return tuple(i for i in found if retired or not i.retired)

    async def get(self, id: str, /, *, scope: str | None = None) -> Lesson:
        """One lesson. Raises NotFound."""
        owner = await self.store.owner(id, scope=self._within(scope))
        return next(lesson for lesson in owner.lessons if lesson.id == id)

    async def experience(self, id: str, /, *, scope: str | None = None) -> Experience:
        """One experience. Raises NotFound."""
        return await self.store.get(id, scope=self._within(scope))

    async def trajectory(self, id: str, /, *, scope: str | None = None) -> Trajectory:
        """One run, as it was learned. Raises NotFound."""
        return await self.store.trajectory(id, scope=self._within(scope))

    async def pending(self, *, scope: str | None = None) -> tuple[Trajectory, ...]:
        """Runs that still wait for a verdict or for extraction; hand one to `learn` to try again."""
        return tuple(await self.store.pending(scope=self._within(scope)))

    async def counts(self, *, scope: str | None = None) -> Counts:
        """How much the scope holds."""
        return await self.store.counts(scope=self._within(scope))

    async def scopes(self) -> tuple[str, ...]:
        """Every scope of the bank, sorted: for the owner of the file, never for an agent."""
        return tuple(await self.store.scopes())

    async def verify(self, *, journal: bool = True) -> tuple[str, ...]:
        """What is wrong with the stored records, one sentence each; empty when all is sound.

        With `journal`, the journal of every scope is folded, too, and each record compared with what comes of it.
        """
        found = list(await self.store.verify())
        for scope in await self.store.scopes() if journal else ():
            try:
                found += await differences(self.store, scope=scope)
            except StoreError as error:
                found.append(f"{scope}: {error}")
        return tuple(found)

    async def retire(self, *lesson_ids: str, reason: str, scope: str | None = None) -> tuple[Change, ...]:
        """Stop showing lessons. They stay, and `restore` brings them back. Raises UsageError, NotFound, Conflict."""
        return await self._apply(Retire(lesson_ids=_named(lesson_ids), reason=reason), scope)

    async def restore(self, *lesson_ids: str, reason: str, scope: str | None = None) -> tuple[Change, ...]:
        """Show retired lessons again. Raises UsageError, NotFound, Conflict."""
        return await self._apply(Restore(lesson_ids=_named(lesson_ids), reason=reason), scope)

    async def approve(
        self, *lesson_ids: str, by: str, reason: str = "", scope: str | None = None
    ) -> tuple[Change, ...]:
        """A person vouches for lessons: they are trusted from now on, quarantined ones too. `by`: the person's name.

        Nothing else lets a lesson out of quarantine: never call this for an agent, a tool or an import.
        Raises UsageError, NotFound, Conflict.
        """
        check_person(by, call="approve(by=…)", of="the lessons")
        change = Trust(lesson_ids=_named(lesson_ids), state="active", by="person", reason=reason or f"approved by {by}")
        return await self._apply(change, scope, writer=by)

    async def quarantine(self, *lesson_ids: str, reason: str, scope: str | None = None) -> tuple[Change, ...]:
        """Show lessons to nobody until a person approves them. Raises UsageError, NotFound, Conflict."""
        change = Trust(lesson_ids=_named(lesson_ids), state="quarantined", by="person", reason=reason)
        return await self._apply(change, scope)

    def signed_by(self, writer: str, /) -> Self:
        """The same bank for another writer: what it learns is kept under that name, and one writer's lessons never
        speak for one another. Nothing is opened or copied."""
        bank = copy(self)
        bank.writer = writer
        return bank

    async def backup(self, path: str | Path, /) -> None:
        """Copy the whole bank as it is now, every scope with its journal and vectors, while others may write to it.

        The copy is a bank. An earlier backup at `path` stays until the new one is whole, checked and on disk.

        Raises:
            UsageError: `path` is the bank itself, a folder or no bank; or this bank is not in a file: export it.
            StoreUnavailable: the copy cannot be written, or the bank is damaged.
        """
        await self.store.backup(Path(path))

    async def export(self, path: str | Path, /, *, scope: str | None = None) -> int:
        """Write the scope as JSON lines, whole or not at all; how many records. `import_` reads it back losslessly."""
        return await archive.write(self.store, Path(path), scope=self._within(scope))

    async def import_(self, path: str | Path, /, *, scope: str | None = None, approved_by: str | None = None) -> int:
        """Add what an export holds and this scope does not have yet; how many records were new.

        Lessons keep their origin and come in on probation, whatever the file says; `approved_by`: the name of a person
        who vouches for those that were trusted where the file was written.
        """
        where = self._within(scope)
        return await archive.read(self.store, Path(path), scope=where, writer="import", approved_by=approved_by)

    async def reindex(self, *, scope: str | None = None, progress: Callable[[int], None] | None = None) -> int:
        """Embed whatever has no vector in the present space, as after a change of embedder; how many were done.

        `progress` is called with the number done so far. Raises ModelError.
        """
        done = 0
        while batch := await self._retriever.catch_up(scope=self._within(scope), most=256):
            done += batch
            if progress:
                progress(done)
        return done

    async def close(self) -> None:
        """Release the store. Calling it twice is fine."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _index(self, experiences: Sequence[Experience]) -> tuple[Mapping[str, Vectors], tuple[str, ...]]:
        """Vectors for new experiences. Without them the records are kept all the same, and embedded later."""
        try:
            return await self._retriever.index([e for e in experiences if e.active_lessons]), ()
        except ModelError as error:
            return {}, (f"kept, but not embedded yet, because the embedder failed: {quoted(str(error))}",)

    async def _apply(self, change: Change, scope: str | None, /, *, writer: str | None = None) -> tuple[Change, ...]:
        await self.store.apply([change], scope=self._within(scope), writer=writer or self.writer)
        return (change,)


def _named(lesson_ids: tuple[object, ...], /) -> tuple[str, ...]:
    named = tuple(id for id in lesson_ids if isinstance(id, str))
    if not named or len(named) < len(lesson_ids):
        raise UsageError("name at least one lesson by its id, as in retire(lesson.id, reason='…')")
    return named

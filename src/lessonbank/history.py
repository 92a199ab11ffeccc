"""What a bank was, how it came to be what it is, and the way back: all read off the journal under its records."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from .errors import NotFound, UsageError
from .guard import check_scope
from .timeline import Diff, State, about, diff, state_at
from .types import Erasure, JournalEntry, Rollback

if TYPE_CHECKING:
    from .protocols import Store

Moment: TypeAlias = int | datetime
"""The sequence of a change (0: before the first), or a time with its zone: after the last change until then."""


class Past:
    """The part of a bank that looks back, goes back and erases. Every method acts in one scope."""

    store: Store
    scope: str
    writer: str

    async def history(
        self, *, item: str | None = None, experience: str | None = None, since: int = 0, scope: str | None = None
    ) -> tuple[JournalEntry, ...]:
        """The journal after change `since`, oldest first: all of it, or what concerns one item or one experience.

        Rollbacks that took the thing out or brought it back are among it. Raises UsageError for both at once.
        """
        if item is not None and experience is not None:
            raise UsageError("history is of an item or of an experience: name one of them")
        where = self._within(scope)
        if item is None and experience is None:
            return tuple([entry async for entry in self.store.journal(scope=where, since=since)])
        entries = [entry async for entry in self.store.journal(scope=where)]
        return tuple(e for e in about(entries, item=item, experience=experience) if e.sequence > since)

    async def as_of(self, when: Moment, /, *, scope: str | None = None) -> State:
        """The experiences and items of a moment, to be read and not changed. Raises NotFound, UsageError."""
        where = self._within(scope)
        entries = await self._until(when, where)
        return state_at(entries, len(entries), scope=where)

    async def diff(self, a: Moment, b: Moment, /, *, scope: str | None = None) -> Diff:
        """What moment `b` has that `a` had not, and the reverse. Raises NotFound, UsageError."""
        where = self._within(scope)
        one, other = [await self._until(moment, where) for moment in (a, b)]
        return diff(state_at(one, len(one), scope=where), state_at(other, len(other), scope=where))

    async def rollback(self, *, to: Moment, reason: str, scope: str | None = None) -> JournalEntry:
        """Make the experiences what they were at a moment; nothing is destroyed.

        The rollback is a change like any other: one `to` the change before it undoes it. Runs, receipts and their
        outcomes stay; the runs of what was taken out wait to be learned again. Raises NotFound, UsageError.
        """
        where = self._within(scope)
        target = _checked(to)
        if isinstance(target, datetime):
            target = len(await self._until(target, where))
        back = Rollback(to=target, reason=reason)
        return (await self.store.apply([back], scope=where, writer=self.writer))[0]

    async def purge(
        self,
        *,
        trajectory: str | None = None,
        item: str | None = None,
        scope_wide: bool = False,
        reason: str,
        scope: str | None = None,
    ) -> JournalEntry:
        """Erase a run, an item or the whole scope for good, with everything derived from it; see `Store.purge`.

        Nothing brings it back. What is left is the entry returned, without content. Raises NotFound, UsageError,
        StoreUnavailable.
        """
        asked: dict[Erasure, str | None] = {
            "trajectory": trajectory,
            "item": item,
            "scope": "" if scope_wide else None,
        }
        named: list[tuple[Erasure, str]] = [(what, id) for what, id in asked.items() if id is not None]
        if len(named) != 1:
            raise UsageError("purge takes one of trajectory=, item= and scope_wide=True")
        return await self.store.purge(*named[0], scope=self._within(scope), writer=self.writer, reason=reason)

    async def rebuild(self) -> None:
        """Make everything that follows from the records anew. Vectors that are missing need `reindex`, too."""
        await self.store.rebuild()

    async def _until(self, when: Moment, scope: str) -> list[JournalEntry]:
        """The scope's first entries, up to a moment."""
        target = _checked(when)
        found: list[JournalEntry] = []
        async with aclosing(cast("AsyncGenerator[JournalEntry]", self.store.journal(scope=scope))) as journal:
            async for entry in journal:
                if (entry.sequence > target) if isinstance(target, int) else (entry.at > target):
                    break
                found.append(entry)
        if isinstance(target, int) and target > len(found):
            raise NotFound(f"there is no change {target} in this scope: the last one is {len(found)}")
        return found

    def _within(self, scope: str | None) -> str:
        """The scope a call acts in. An empty or malformed one is refused, never taken for the bank's own."""
        return self.scope if scope is None else check_scope(scope)


def _checked(when: object, /) -> Moment:
    if isinstance(when, datetime) and when.tzinfo is None:
        raise UsageError("a moment needs its time zone, as in datetime.now(UTC)")
    if isinstance(when, datetime) or (isinstance(when, int) and not isinstance(when, bool) and when >= 0):
        return when
    raise UsageError(f"a moment is the number of a change, from 0, or a datetime; got {when!r}")

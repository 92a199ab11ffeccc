"""What a bank was, how it came to be what it is, and the way back: all read off the journal under its records."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias, cast

from anyio import to_thread

from .errors import NotFound, UsageError
from .guard import check_scope
from .text.bm25 import scores, words
from .types import Erasure, Experience, Found, JournalEntry, Match, Rollback
from .types.timeline import Diff, Lineage, State, about, diff, lineage, state_at

if TYPE_CHECKING:
    from .protocols import Store

Moment: TypeAlias = int | datetime
"""The sequence of a change (0: before the first), or a time with its zone: after the last change until then."""


class Past:
    """The part of a bank that looks back, goes back and erases. Every method acts in one scope."""

    store: Store
    scope: str
    writer: str
    limit: int

    async def history(
        self, *, lesson: str | None = None, experience: str | None = None, since: int = 0, scope: str | None = None
    ) -> tuple[JournalEntry, ...]:
        """The journal after change `since`, oldest first: all of it, or what concerns one lesson or one experience.

        Rollbacks that took the thing out or brought it back are among it. Raises UsageError for both at once.
        """
        if lesson is not None and experience is not None:
            raise UsageError("history is of a lesson or of an experience: name one of them")
        where = self._within(scope)
        if lesson is None and experience is None:
            return tuple([entry async for entry in self.store.journal(scope=where, since=since)])
        entries = [entry async for entry in self.store.journal(scope=where)]
        story = await to_thread.run_sync(partial(about, entries, lesson=lesson, experience=experience))
        return tuple(entry for entry in story if entry.sequence > since)

    async def as_of(self, when: Moment, /, *, scope: str | None = None) -> State:
        """The experiences and lessons of a moment, to be read and not changed. Raises NotFound, UsageError."""
        return (await self._states(when, scope=scope))[0]

    async def diff(self, a: Moment, b: Moment, /, *, scope: str | None = None) -> Diff:
        """What moment `b` has that `a` had not, and the reverse. Raises NotFound, UsageError."""
        before, after = await self._states(a, b, scope=scope)
        return await to_thread.run_sync(diff, before, after)

    async def retrieve_as_of(
        self, task: str, /, *, when: Moment, limit: int | None = None, scope: str | None = None
    ) -> Found:
        """What a search by words would have found for `task` at a moment, best first, with that moment's statistics.

        Nothing is shown to an agent, so no receipt is kept. Raises NotFound, UsageError.
        """
        most = self.limit if limit is None else limit
        _check_question(task, most)
        state = await self.as_of(when, scope=scope)
        matches = await to_thread.run_sync(_search, state.experiences, task, most)
        return Found(matches=matches, notes=(f"by the words of the tasks, as of change {state.sequence}",))

    async def rollback(self, *, to: Moment, reason: str, scope: str | None = None) -> JournalEntry:
        """Make the experiences what they were at a moment; nothing is destroyed.

        The rollback is a change like any other: one `to` the change before it undoes it. Runs, receipts and their
        outcomes stay; the runs of what was taken out wait to be learned again. Raises NotFound, UsageError.
        """
        where = self._within(scope)
        target = _checked(to)
        if isinstance(target, datetime):
            target = (await self._until([target], where))[1][0]
        back = Rollback(to=target, reason=reason)
        return (await self.store.apply([back], scope=where, writer=self.writer))[0]

    async def purge(
        self,
        *,
        trajectory: str | None = None,
        lesson: str | None = None,
        scope_wide: bool = False,
        reason: str,
        scope: str | None = None,
    ) -> JournalEntry:
        """Erase a run, a lesson or the whole scope for good, with everything derived from it; see `Store.purge`.

        Nothing brings it back. What is left is the entry returned, without content. Raises NotFound, UsageError,
        StoreUnavailable.
        """
        asked: dict[Erasure, str | None] = {
            "trajectory": trajectory,
            "lesson": lesson,
            "scope": "" if scope_wide else None,
        }
        named: list[tuple[Erasure, str]] = [(what, id) for what, id in asked.items() if id is not None]
        if len(named) != 1:
            raise UsageError("purge takes one of trajectory=, lesson= and scope_wide=True")
        return await self.store.purge(*named[0], scope=self._within(scope), writer=self.writer, reason=reason)

    async def lineage(self, lesson_id: str, /, *, scope: str | None = None) -> Lineage:
        """Which lessons a lesson was merged from, and which it became, through every merge still in force."""
        entries = [entry async for entry in self.store.journal(scope=self._within(scope))]
        return lineage(entries, lesson_id)

    async def rebuild(self) -> None:
        """Make everything that follows from the records anew. Vectors that are missing need `reindex`, too."""
        await self.store.rebuild()

    async def _states(self, *moments: Moment, scope: str | None) -> list[State]:
        """The scope at each of the moments, from one reading of its journal."""
        where = self._within(scope)
        entries, ends = await self._until([_checked(moment) for moment in moments], where)
        return [await to_thread.run_sync(partial(state_at, entries, end, scope=where)) for end in ends]

    async def _until(self, moments: Sequence[Moment], scope: str) -> tuple[list[JournalEntry], list[int]]:
        """The scope's first entries, up to the last of the moments, and the sequence at which each of these is."""
        found: list[JournalEntry] = []
        async with aclosing(cast("AsyncGenerator[JournalEntry]", self.store.journal(scope=scope))) as journal:
            async for entry in journal:
                if all(_is_after(entry, moment) for moment in moments):
                    break
                found.append(entry)
        for moment in moments:
            if isinstance(moment, int) and moment > len(found):
                raise NotFound(f"there is no change {moment} in this scope: the last one is {len(found)}")
        return found, [sum(1 for _ in takewhile(lambda e, m=moment: not _is_after(e, m), found)) for moment in moments]

    def _within(self, scope: str | None) -> str:
        """The scope a call acts in. An empty or malformed one is refused, never taken for the bank's own."""
        return self.scope if scope is None else check_scope(scope)


def _check_question(task: object, limit: object) -> None:
    if not isinstance(task, str) or not task.strip():
        raise UsageError("a search needs the text of a task that is not blank")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise UsageError(f"limit is a number of experiences, 1 or more; got {limit!r}")


def _is_after(entry: JournalEntry, moment: Moment) -> bool:
    return (entry.sequence > moment) if isinstance(moment, int) else (entry.at > moment)


def _search(experiences: Sequence[Experience], task: str, limit: int) -> tuple[Match, ...]:
    """As `Store.search` ranks: by BM25 over all of them, those with an active lesson, equal scores newest first."""
    asked = words(task)
    lengths, postings = list[int](), {word: dict[int, int]() for word in asked}
    for place, experience in enumerate(experiences):
        held = Counter(words(experience.task))
        lengths.append(held.total())
        for word in held.keys() & postings.keys():
            postings[word][place] = held[word]
    touched = {place: lengths[place] for holders in postings.values() for place in holders}
    found = scores(asked, postings, touched, documents=len(lengths), total=sum(lengths))
    ranked = sorted((p for p in found if experiences[p].active_lessons), key=lambda p: (found[p], p), reverse=True)
    return tuple(Match(experience=experiences[place], score=found[place]) for place in ranked[:limit])


def _checked(when: object, /) -> Moment:
    if isinstance(when, datetime) and when.tzinfo is None:
        raise UsageError("a moment needs its time zone, as in datetime.now(UTC)")
    if isinstance(when, datetime) or (isinstance(when, int) and not isinstance(when, bool) and when >= 0):
        return when
    raise UsageError(f"a moment is the number of a change, from 0, or a datetime; got {when!r}")

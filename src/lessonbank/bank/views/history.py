"""What a scope was, how it came to be what it is, and the way back: all read from the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Final, TypeAlias

from anyio import to_thread

from lessonbank._base.aio import get_or_none
from lessonbank._base.checks import a_count, a_moment, a_text, an_id, maybe_count, maybe_id
from lessonbank._base.iterate import closing
from lessonbank.bank.scoped_bank import ScopedBank
from lessonbank.contracts.records import Add, Experience, Found, JournalEntry, Match, Merge, Rollback
from lessonbank.contracts.records.repeats import shown_with
from lessonbank.contracts.records.timeline import (
    Diff,
    Lineage,
    State,
    about,
    diff,
    lineage,
    live,
    rollbacks_of,
    state_at,
)
from lessonbank.contracts.settings import OFF
from lessonbank.contracts.store_calls import count_records, experience_of_lesson
from lessonbank.errors import NotFound, UsageError
from lessonbank.guard.reviewed import asks
from lessonbank.text.bm25 import scores, words

Moment: TypeAlias = int | datetime
"""The sequence of a change (0: before the first), or a time with its zone: after the last change until then."""


_DESCENT: Final = frozenset({"merge", "restore", "rollback"})
"""What says which lessons were merged from which."""
_SKEW: Final = timedelta(seconds=10)
"""By how much the clocks of two machines may differ."""
SPEAK_OF_LESSONS: Final = frozenset({"edit", "merge", "replace", "restore", "retire", "rollback", "trust", "verdict"})
"""The kinds of entries that speak of lessons, without those that every task adds."""


@asks("history")
@dataclass(frozen=True, slots=True)
class AsyncHistory:
    """`bank.history`. Every method acts in the scope of its bank."""

    _bank: ScopedBank

    async def list(
        self,
        *,
        lesson: str | None = None,
        experience: str | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> tuple[JournalEntry, ...]:
        """Changes after change `after`, oldest first: all of them, or those about one lesson or one experience.

        Rollbacks that removed it or brought it back are among them. `limit`: the largest number of entries.
        Raises UsageError for a lesson and an experience at once.
        """
        if lesson is not None and experience is not None:
            raise UsageError("history takes a lesson or an experience, not both: name one of them")
        lesson, experience = maybe_id(lesson, "lesson="), maybe_id(experience, "experience=")
        after, limit = a_count(after, "after=", least=0), maybe_count(limit)
        if lesson is None and experience is None:
            return await self._entries(after, limit)
        entries = await (self._with_adds_of(str(experience)) if lesson is None else self._perhaps_about(lesson))
        story = await to_thread.run_sync(partial(about, entries, lesson=lesson, experience=experience))
        return tuple(entry for entry in story if entry.sequence > after)[:limit]

    async def state(self, at: Moment, /) -> State:
        """The experiences and lessons of a moment. Raises NotFound, UsageError."""
        return (await self._states(at))[0]

    async def diff(self, a: Moment, b: Moment, /) -> Diff:
        """What moment `b` has that `a` had not, and the reverse. Raises NotFound, UsageError."""
        before, after = await self._states(a, b)
        return await to_thread.run_sync(diff, before, after)

    async def retrieve(self, task: str, /, *, at: Moment, limit: int | None = None) -> Found:
        """What a search by words would have found for `task` at a moment, best first.

        Nothing is shown to an agent, so no receipt is kept. Raises NotFound, UsageError.
        """
        task, limit = a_text(task, "the task", blank=False), maybe_count(limit) or self._bank.options.limit
        state = await self.state(at)
        matches = await to_thread.run_sync(_by_words, state.experiences, task, limit)
        return Found(matches=matches, notes=(f"by the words of the tasks, as of change {state.sequence}",))

    async def rollback(self, *, to: Moment, reason: str, by: str | None = None) -> JournalEntry:
        """Make the experiences what they were at a moment. Nothing is destroyed.

        A rollback is a change like any other: one `to` the change before it undoes it. Runs, receipts and their
        outcomes stay, and so do a quarantine and what lives on after a purge. Runs that were learned since wait to be
        learned again. Raises NotFound, UsageError, NotAllowed.
        """
        target, reason = a_moment(to, "to="), a_text(reason, "reason=")
        if isinstance(target, datetime):
            target = (await self._until([target]))[1][0]
        if self._bank.options.off:
            raise UsageError(OFF)
        return (await self._bank.apply(Rollback(to=target, reason=reason), by=by))[0]

    async def lineage(self, lesson_id: str, /) -> Lineage:
        """Which lessons a lesson was merged from, and which it became, through every merge still in force."""
        return lineage(await self._entries(0, None, kinds=_DESCENT), an_id(lesson_id))

    async def _entries(
        self,
        after: int,
        limit: int | None,
        *,
        kinds: Collection[str] | None = None,
        naming: Collection[str] | None = None,
    ) -> tuple[JournalEntry, ...]:
        page: list[JournalEntry] = []
        async with self._journal(after, kinds, naming) as entries:
            async for entry in entries:
                page.append(entry)
                if limit is not None and len(page) >= limit:
                    break
        return tuple(page)

    def _journal(
        self, after: int, kinds: Collection[str] | None, naming: Collection[str] | None = None
    ) -> aclosing[AsyncGenerator[JournalEntry]]:
        return closing(self._bank.store.journal(scope=self._bank.scope, since=after, kinds=kinds, naming=naming))

    async def _perhaps_about(self, lesson: str) -> Sequence[JournalEntry]:
        """The entries among which the story of a lesson is, in their order: of the many that add, only its own."""
        few = await self._entries(0, None, kinds=SPEAK_OF_LESSONS)
        owner = await get_or_none(experience_of_lesson(self._bank.store, lesson, scope=self._bank.scope))
        if owner is None:
            return await self._with_adds_of(lesson)
        if jumps := rollbacks_of(few):
            added = await self._added_again(lesson, owner, jumps)
            return await self._with_adds_of(lesson) if added is None else _ordered(few, added)
        if any(isinstance(entry.entry, Merge) and entry.entry.experience.id == owner.id for entry in few):
            return few
        entry = await self._added_by(owner)
        return _ordered(few, [entry]) if entry else await self._with_adds_of(lesson)

    async def _added_again(
        self, lesson: str, owner: Experience, jumps: Mapping[int, int]
    ) -> Sequence[JournalEntry] | None:
        """The entries that added a lesson in a scope that was rolled back; `None` where its first one is not found.

        Another one adds it only after a rollback took it out: what was added before that is not read.
        """
        made = min(owner.created_at, *(candidate.created_at for candidate in owner.lessons if candidate.id == lesson))
        first = await self._first_with(lesson, await self._before(made))
        earliest = await self._before(made - _SKEW)
        if first is None or any(earliest < jump < first.sequence for jump in jumps):  # there may be one before it
            first = await self._first_with(lesson, earliest)
        if first is None:
            return None
        known = first.sequence
        out = next((s for s in sorted(jumps) if s > known and not any(known in span for span in live(jumps, s))), None)
        again = () if out is None else await self._entries(out, None, kinds={"add"}, naming=(lesson,))
        return [first, *again]

    async def _first_with(self, lesson: str, since: int) -> JournalEntry | None:
        """The first entry after `since` with an experience that holds a lesson."""
        async with self._journal(since, {"add", "merge", "replace"}, (lesson,)) as entries:
            async for entry in entries:
                brought = entry.entry.brings
                if brought is not None and any(i.id == lesson for i in brought.lessons):
                    return entry
        return None

    async def _added_by(self, experience: Experience) -> JournalEntry | None:
        """The entry that added an experience, looked for from when it was made; then with a margin for clocks that
        differ, in which an import can have added very many others."""
        for margin in (timedelta(), _SKEW):
            since = await self._before(experience.created_at - margin)
            async with self._journal(since, {"add"}, (experience.id,)) as added:
                async for entry in added:
                    if isinstance(entry.entry, Add) and entry.entry.experience.id == experience.id:
                        return entry
        return None

    async def _with_adds_of(self, id: str) -> Sequence[JournalEntry]:
        """The entries that speak of lessons; of the many that add, those that may name this lesson or experience."""
        few = await self._entries(0, None, kinds=SPEAK_OF_LESSONS)
        added = await self._entries(0, None, kinds={"add"}, naming=(id,))
        return _ordered(few, added)

    async def _before(self, moment: datetime) -> int:
        """A sequence after which everything later than `moment` was written, if clocks went forward."""
        low, high = 0, (await count_records(self._bank.store, scope=self._bank.scope)).changes
        while low < high:
            middle = (low + high) // 2
            (entry, *_) = await self._entries(middle, 1) or (None,)
            if entry is not None and entry.at < moment:
                low = middle + 1
            else:
                high = middle
        return low

    async def _states(self, *moments: Moment) -> Sequence[State]:
        """The scope at each of the moments, from one reading of its journal."""
        entries, ends = await self._until([a_moment(moment) for moment in moments])
        return [await to_thread.run_sync(partial(state_at, entries, end, scope=self._bank.scope)) for end in ends]

    async def _until(self, moments: Sequence[Moment]) -> tuple[Sequence[JournalEntry], Sequence[int]]:
        """The scope's first entries, up to the last of the moments, and the sequence at which each of these is."""
        first_entries: list[JournalEntry] = []
        async with closing(self._bank.store.journal(scope=self._bank.scope)) as entries:
            async for entry in entries:
                if all(_is_after(entry, moment) for moment in moments):
                    break
                first_entries.append(entry)
        for moment in moments:
            if isinstance(moment, int) and moment > len(first_entries):
                raise NotFound(f"there is no change {moment} in this scope: the last one is {len(first_entries)}")
        return first_entries, [
            sum(1 for _ in takewhile(lambda e, m=moment: not _is_after(e, m), first_entries)) for moment in moments
        ]


def _ordered(*entries: Sequence[JournalEntry]) -> Sequence[JournalEntry]:
    """All of these once, in their order."""
    return [entry for _, entry in sorted({entry.sequence: entry for some in entries for entry in some}.items())]


def _is_after(entry: JournalEntry, moment: Moment) -> bool:
    return (entry.sequence > moment) if isinstance(moment, int) else (entry.at > moment)


def _by_words(experiences: Sequence[Experience], task: str, limit: int) -> tuple[Match, ...]:
    """As `Index.search` ranks: by BM25 over all of them, those with an active lesson, equal scores newest first."""
    asked = words(task)
    lengths, postings = list[int](), {word: dict[int, int]() for word in asked}
    for place, experience in enumerate(experiences):
        counts = Counter(words(experience.task))
        lengths.append(counts.total())
        for word in counts.keys() & postings.keys():
            postings[word][place] = counts[word]
    touched = {place: lengths[place] for holders in postings.values() for place in holders}
    held = {lesson.id: lesson for experience in experiences for lesson in experience.lessons}
    place_scores = scores(asked, postings, touched, documents=len(lengths), total=sum(lengths))
    whole = {place: shown_with(experiences[place], held) for place in place_scores}
    ranked = sorted(
        (p for p in place_scores if whole[p].active_lessons), key=lambda p: (place_scores[p], p), reverse=True
    )
    return tuple(Match(experience=whole[place], score=place_scores[place]) for place in ranked[:limit])

"""Compares the records of a scope with what its journal makes of them, without holding either in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from anyio import to_thread

from lessonbank._base.iterate import async_batches
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import (
    Edit,
    Erased,
    Experience,
    JournalEntry,
    Lesson,
    Purge,
    Record,
    Rejudge,
    Restore,
    Rollback,
    Trust,
)
from lessonbank.contracts.records.timeline import Entry, live, rollbacks_of

_PORTION: Final = 200
_TRIES: Final = 3
_WORDING: Final = dict.fromkeys(("title", "description", "content", "only", "version"), True)
_BY: Final = {"method": True, "writer": True}
_APART: Final[Any] = {
    "lessons": {"__all__": {"retired": True, "state": True, "approved": True, "provenance": _BY, **_WORDING}},
    "attempts": {"__all__": {"verdict": True}},
}
"""What later changes set in an experience without writing it whole: digested apart."""


@dataclass(slots=True)
class Trace:
    """What is kept of an experience for a comparison: less than a hundred bytes of it, and its ids."""

    body: bytes
    flags: dict[str, tuple[bool, tuple[str, bool]]]
    """Lesson id to whether it is retired, and how far it is trusted: its state, and whether a person approved it."""
    said: dict[str, tuple[int, bytes]]
    """Lesson id to its version and the digest of its words and of who wrote them."""
    verdicts: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, experience: Experience, /) -> Trace:
        """The trace of a record."""
        return cls(
            body=blake2b(experience.model_dump_json(exclude=_APART).encode(), digest_size=16).digest(),
            flags={lesson.id: (lesson.retired, (lesson.state, lesson.approved)) for lesson in experience.lessons},
            said={lesson.id: (lesson.version, _wording(lesson)) for lesson in experience.lessons},
            verdicts=tuple((a.trajectory_id, _digest(a.verdict)) for a in experience.attempts),
        )

    def unlike(self, record: Trace, /) -> str:
        """What is different in the record, in words; empty when nothing is."""
        if self.body != record.body:
            return "its record is not what the journal makes of it"
        for at, what in enumerate(("is retired", "is trusted")):
            if wrong := [id for id, flags in self.flags.items() if record.flags[id][at] != flags[at]]:
                return f"the journal and the record disagree on whether {', '.join(wrong)} {what}"
        if self.said != record.said:
            return "the journal and the record disagree on the words of a lesson"
        if self.verdicts != record.verdicts:
            return "the journal and the record disagree on a verdict"
        return ""


class Tracing:
    """The traces that a journal leaves, entry by entry, oldest first."""

    def __init__(self) -> None:
        self.traces: dict[str, Trace] = {}
        self.owners: dict[str, str] = {}

    def make(self, entries: Iterable[Entry], /) -> None:
        """Take in entries that hold no rollback in force."""
        for entry in entries:
            self._flag(entry)
            if (brought := entry.brings) is not None:
                self._put(brought)
            elif isinstance(entry, Rejudge):
                self._rejudge(entry)

    def touched(self, entry: Entry, /) -> set[str]:
        """The experiences that an entry writes, as far as they are known by now."""
        found = {self.owners[id] for id in entry.marks if id in self.owners}
        if entry.brings is not None:
            found.add(entry.brings.id)
        return found | {*filter(None, [entry.amends])}

    def _put(self, experience: Experience) -> None:
        earlier = self.traces.get(experience.id)
        for lesson_id in earlier.flags if earlier else ():
            if self.owners.get(lesson_id) == experience.id:
                del self.owners[lesson_id]
        self.traces[experience.id] = Trace.of(experience)
        self.owners.update((lesson.id, experience.id) for lesson in experience.lessons)

    def _edit(self, change: Edit) -> None:
        if change.lesson_id in self.owners:
            said = self.traces[self.owners[change.lesson_id]].said
            said[change.lesson_id] = said[change.lesson_id][0] + 1, _digest_of(change, method="human", writer=change.by)

    def _flag(self, entry: Entry) -> None:
        if isinstance(entry, Edit):
            self._edit(entry)
            return
        for lesson_id in entry.marks:
            if lesson_id in self.owners:
                flags = self.traces[self.owners[lesson_id]].flags
                retired, trust = flags[lesson_id]
                if isinstance(entry, Trust):
                    trust = entry.state, entry.approves
                else:
                    retired = not isinstance(entry, Restore)
                flags[lesson_id] = retired, trust

    def _rejudge(self, change: Rejudge) -> None:
        trace = self.traces.get(change.experience_id)
        if trace is not None:
            told = change.trajectory_id, _digest(change.verdict)
            trace.verdicts = tuple(told if id == told[0] else (id, known) for id, known in trace.verdicts)


async def differences(store: Store, /, *, scope: str) -> tuple[str, ...]:
    """One sentence for each experience whose record is not what the journal makes of it; empty when all agree.

    Others may write meanwhile: what they changed while this was read is left out of it.
    """
    for _ in range(_TRIES):
        tracing, last = await _traced(store, scope)
        wrong = await _compared(store, scope, tracing.traces)
        later = [entry.entry async for entry in store.journal(scope=scope, since=last)] if wrong else []
        if not any(isinstance(entry, Rollback | Purge | Erased) for entry in later):
            moved = {id for entry in later for id in tracing.touched(entry)}
            return tuple(f"{scope}: experience {id}: {what}" for id, what in wrong.items() if id not in moved)
    return (f"{scope}: it went back and forth while it was compared with its journal: compare it again",)


async def _traced(store: Store, scope: str) -> tuple[Tracing, int]:
    """The traces of all entries, and the sequence of the last one. A journal with rollbacks is read twice."""
    tracing, jumps, last = Tracing(), dict[int, int](), 0
    async with aclosing(async_batches(store.journal(scope=scope), size=_PORTION)) as journal:
        async for portion in journal:
            last = portion[-1].sequence
            jumps |= rollbacks_of(portion)
            if not jumps:
                await to_thread.run_sync(tracing.make, [entry.entry for entry in portion])
    if jumps:
        tracing = await _retraced(store.journal(scope=scope), live(jumps, last))
    return tracing, last


async def _retraced(journal: AsyncIterator[JournalEntry], spans: Sequence[range]) -> Tracing:
    tracing, last = Tracing(), spans[-1][-1] if spans else 0
    async with aclosing(async_batches(journal, size=_PORTION)) as read:
        async for portion in read:
            within = [e.entry for e in portion if any(e.sequence in span for span in spans)]
            await to_thread.run_sync(tracing.make, within)
            if portion[-1].sequence >= last:
                break
    return tracing


async def _compared(store: Store, scope: str, traces: Mapping[str, Trace]) -> dict[str, str]:
    wrong, left = dict[str, str](), set(traces)
    async with aclosing(async_batches(store.scan(scope=scope), size=_PORTION)) as records:
        async for portion in records:
            wrong |= await to_thread.run_sync(_unlike, portion, traces)
            left.difference_update(record.id for record in portion)
    return wrong | dict.fromkeys(sorted(left), "the journal has it, the records have not")


def _unlike(records: Iterable[Experience], traces: Mapping[str, Trace]) -> dict[str, str]:
    found: dict[str, str] = {}
    for record in records:
        trace = traces.get(record.id)
        what = trace.unlike(Trace.of(record)) if trace else "the records have it, the journal has not"
        if what:
            found[record.id] = what
    return found


def _wording(lesson: Lesson) -> bytes:
    return _digest_of(lesson, method=lesson.provenance.method, writer=lesson.provenance.writer)


def _digest_of(said: Lesson | Edit, *, method: str, writer: str) -> bytes:
    words = json.dumps([said.title, said.description, said.content, said.only, method, writer])
    return blake2b(words.encode(), digest_size=8).digest()


def _digest(record: Record) -> bytes:
    return blake2b(record.model_dump_json().encode(), digest_size=8).digest()

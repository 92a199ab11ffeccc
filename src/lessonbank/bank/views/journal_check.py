"""Compares the records of a scope with what its journal makes of them, which is held in memory packed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, MutableMapping, Sequence
from contextlib import aclosing
from typing import Any, Final

from anyio import to_thread

from lessonbank._base.iterate import async_batches
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Erased, Experience, JournalEntry, Purge, Rollback
from lessonbank.contracts.records.timeline import Entry, Fold, live, rollbacks_of

_PORTION: Final = 200
_TRIES: Final = 3
_WORDING: Final = ("title", "description", "content", "only_for_tasks", "version")
_APART: Final[Any] = {
    "lessons": {
        "__all__": dict.fromkeys(("retired", "state", "approved", *_WORDING), True)
        | {"provenance": {"method": True, "writer": True}}
    },
    "attempts": {"__all__": {"verdict": True}},
}
"""What later changes set in an experience without writing it whole: told apart."""
_SAID: Final[Any] = dict.fromkeys(_WORDING, True) | {"provenance": {"method", "writer"}}


class Packed(MutableMapping[str, Experience]):
    """Experiences by id in some hundred bytes each: all of a scope are held at once."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}

    def __getitem__(self, id: str) -> Experience:
        return Experience.model_validate_json(zlib.decompress(self._texts[id]))

    def __setitem__(self, id: str, experience: Experience) -> None:
        self._texts[id] = zlib.compress(_text(experience), 1)

    def __delitem__(self, id: str) -> None:
        del self._texts[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def holds(self, experience: Experience, /) -> bool:
        """Whether a record is stored as it is, text by text: nothing is parsed."""
        return zlib.decompress(self._texts[experience.id]) == _text(experience)

    @property
    def size(self) -> int:
        """The bytes of what is held."""
        return sum(map(len, self._texts.values()))


def _text(experience: Experience) -> bytes:
    return experience.model_dump_json().encode()


def _make_all(fold: Fold[Packed], entries: Iterable[Entry]) -> None:
    for entry in entries:
        fold.make(entry)


async def differences(store: Store, /, *, scope: str) -> tuple[str, ...]:
    """One sentence for each experience whose record is not what the journal makes of it; empty when all agree.

    Others may write meanwhile: what they changed while this was read is left out of it.
    """
    for _ in range(_TRIES):
        fold, last = await _folded(store, scope)
        wrong = await _compared(store, scope, fold)
        later = [entry.entry async for entry in store.journal(scope=scope, since=last)] if wrong else []
        if not any(isinstance(entry, Rollback | Purge | Erased) for entry in later):
            moved = {id for entry in later for id in fold.written_by(entry)}
            return tuple(f"{scope}: experience {id}: {what}" for id, what in wrong.items() if id not in moved)
    return (f"{scope}: it went back and forth while it was compared with its journal: compare it again",)


async def _folded(store: Store, scope: str) -> tuple[Fold[Packed], int]:
    """What all entries make, and the sequence of the last one. A journal with rollbacks is read twice."""
    fold, jumps, last = Fold(Packed()), dict[int, int](), 0
    async with aclosing(async_batches(store.journal(scope=scope), size=_PORTION)) as journal:
        async for portion in journal:
            last = portion[-1].sequence
            jumps |= rollbacks_of(portion)
            if not jumps:
                await to_thread.run_sync(_make_all, fold, [entry.entry for entry in portion])
    if jumps:
        fold = await _folded_in_force(store.journal(scope=scope), live(jumps, last))
    return fold, last


async def _folded_in_force(journal: AsyncIterator[JournalEntry], spans: Sequence[range]) -> Fold[Packed]:
    fold, last = Fold(Packed()), spans[-1][-1] if spans else 0
    async with aclosing(async_batches(journal, size=_PORTION)) as read:
        async for portion in read:
            within = [e.entry for e in portion if any(e.sequence in span for span in spans)]
            await to_thread.run_sync(_make_all, fold, within)
            if portion[-1].sequence >= last:
                break
    return fold


async def _compared(store: Store, scope: str, fold: Fold[Packed]) -> dict[str, str]:
    wrong, left = dict[str, str](), set(fold.experiences)
    async with aclosing(async_batches(store.scan(scope=scope), size=_PORTION)) as records:
        async for portion in records:
            wrong |= await to_thread.run_sync(_unlike, portion, fold.experiences)
            left.difference_update(record.id for record in portion)
    return wrong | dict.fromkeys(sorted(left), "the journal has it, the records have not")


def _unlike(records: Iterable[Experience], held: Packed) -> dict[str, str]:
    problems: dict[str, str] = {}
    for record in records:
        if record.id not in held:
            problems[record.id] = "the records have it, the journal has not"
        elif not held.holds(record):
            problems[record.id] = _difference(held[record.id], record)
    return problems


def _difference(made: Experience, record: Experience) -> str:
    """What of an experience is otherwise in its record than the journal makes it, in words."""
    if made.model_dump_json(exclude=_APART) != record.model_dump_json(exclude=_APART):
        return "its record is not what the journal makes of it"
    pairs = list(zip(made.lessons, record.lessons, strict=True))
    retired = [lesson.id for lesson, other in pairs if lesson.retired != other.retired]
    trusted = [lesson.id for lesson, other in pairs if (lesson.state, lesson.approved) != (other.state, other.approved)]
    for wrong, what in ((retired, "retired"), (trusted, "trusted")):
        if wrong:
            return f"the journal and the record disagree on whether {', '.join(wrong)} is {what}"
    words = any(lesson.model_dump(include=_SAID) != other.model_dump(include=_SAID) for lesson, other in pairs)
    return f"the journal and the record disagree on {'the words of a lesson' if words else 'a verdict'}"

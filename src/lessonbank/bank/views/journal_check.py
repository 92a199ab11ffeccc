"""Compares the records of a scope with what its journal makes of them, a share of them at a time, packed in memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from anyio import to_thread

from lessonbank._base.iterate import async_batches
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Erased, Experience, Purge, Rollback
from lessonbank.contracts.records.timeline import Fold, live, rollbacks_of
from lessonbank.contracts.store_calls import count_records

_SHARE: Final = 100_000
"""Experiences that are held at once, about."""
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
    """Experiences by id in some hundred bytes each: a whole share is held at once."""

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


def _text(experience: Experience) -> bytes:
    return experience.model_dump_json().encode()


async def differences(store: Store, /, *, scope: str, share: int = _SHARE) -> tuple[str, ...]:
    """One sentence for each experience whose record is not what the journal makes of it; empty when all agree.

    About `share` experiences are held in memory at once, and for each share all is read once more. Others may write
    meanwhile: what they changed while this was read is left out of it.
    """
    counts, sentences = await count_records(store, scope=scope), list[str]()
    shares = -(-min(counts.experiences, counts.changes) // share) or 1  # a count may be what is damaged
    for number in range(shares):
        sentences += await _differences(store, scope, partial(_is_in, number, shares))
    return tuple(dict.fromkeys(sentences))


def _is_in(number: int, shares: int, id: str) -> bool:
    return zlib.crc32(id.encode()) % shares == number


async def _differences(store: Store, scope: str, takes: Callable[[str], bool]) -> list[str]:
    for _ in range(_TRIES):
        last = (await count_records(store, scope=scope)).changes
        fold = await _folded(store, scope, takes, last)
        wrong = await _compared(store, scope, fold)
        later = [entry.entry async for entry in store.journal(scope=scope, since=last)] if wrong else []
        if not any(isinstance(entry, Rollback | Purge | Erased) for entry in later):
            moved = {id for entry in later for id in fold.written_by(entry)}
            return [f"{scope}: experience {id}: {what}" for id, what in wrong.items() if id not in moved]
    return [f"{scope}: it went back and forth while it was compared with its journal: compare it again"]


async def _folded(store: Store, scope: str, takes: Callable[[str], bool], last: int) -> Fold[Packed]:
    """What the entries up to `last` make that no rollback jumps over."""
    jumps = rollbacks_of([entry async for entry in store.journal(scope=scope, kinds=("rollback",))])
    fold, spans = Fold(Packed(), takes), live({at: to for at, to in jumps.items() if at <= last}, last)
    async with aclosing(async_batches(store.journal(scope=scope), size=_PORTION)) as journal:
        async for portion in journal:
            within = [e.entry for e in portion if any(e.sequence in span for span in spans)]
            await to_thread.run_sync(fold.make, *within)
            if portion[-1].sequence >= last:
                break
    return fold


async def _compared(store: Store, scope: str, fold: Fold[Packed]) -> dict[str, str]:
    wrong, left = dict[str, str](), set(fold.experiences)
    async with aclosing(async_batches(store.scan(scope=scope), size=_PORTION)) as records:
        async for portion in records:
            own = [record for record in portion if fold.takes(record.id)]
            wrong |= await to_thread.run_sync(_unlike, own, fold.experiences)
            left.difference_update(record.id for record in own)
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

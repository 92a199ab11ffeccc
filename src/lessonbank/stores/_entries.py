"""What a store appends to a scope's journal, and what each entry says of the experiences it wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final, overload

from pydantic import Field, TypeAdapter, ValidationError

from lessonbank.contracts.records import (
    Change,
    Erased,
    Experience,
    Forgotten,
    JournalEntry,
    Missing,
    Purge,
    Rollback,
    Settle,
    Trajectory,
)
from lessonbank.contracts.records.timeline import Entry, live
from lessonbank.errors import StoreDamaged, StoreUnavailable

from ._records import microseconds, moment
from ._texts import TextWithSum, checked

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors

_PLAIN: Final = re.compile(r"[A-Za-z0-9_.:-]+")
_SEQUENCES: Final = 1 << 32
"""The key of an entry is its sequence, or a multiple of this more."""


@cache
def _adapter() -> TypeAdapter[Entry]:
    return TypeAdapter(Annotated[Entry, Field(discriminator="kind")])


def entry_of(text: bytes, /) -> Entry:
    """What happened, from the JSON of its journal entry.

    Raises:
        StoreDamaged: the text is no entry.
    """
    try:
        return _adapter().validate_json(text)
    except ValidationError:
        pass
    try:
        # Deeper nesting than pydantic's own JSON reader takes.
        return _adapter().validate_python(json.loads(text))
    except (ValueError, RecursionError):
        raise StoreDamaged("a journal entry cannot be read") from None


def may_name(text: bytes, ids: Collection[str] | None, /) -> bool:
    """Whether an entry's JSON may hold one of these ids; always, where JSON could write an id in several ways."""
    return ids is None or any(not _PLAIN.fullmatch(id) or f'"{id}"'.encode() in text for id in ids)


def readable_entry(stored: bytes, /) -> Entry | None:
    """The entry that is stored; `None` where it cannot be read."""
    try:
        return entry_of(checked(stored))
    except StoreUnavailable:
        return None


def erased_since(entry: Entry, since: int, /) -> bool:
    """Whether an erasure took away what was made after `since`, in microseconds."""
    return isinstance(entry, Purge) or (isinstance(entry, Forgotten) and microseconds(entry.before) > since)


@dataclass(frozen=True, slots=True)
class Batch:
    """The arguments of one `apply`, ready to be written: lone surrogates gone."""

    scope: str
    writer: str
    entries: Sequence[tuple[Entry, TextWithSum]]
    """What happens, in order, each as it is kept."""
    vectors: Mapping[str, Vectors] = field(default_factory=dict[str, "Vectors"])
    space: str = ""
    if_unlearned: Sequence[str] = ()
    if_unchanged: Sequence[Experience] = ()
    if_unsettled: bool = False
    """What the entries were decided upon, see `Records.apply`."""
    unique_wording: bool = False
    runs: Sequence[Trajectory] = ()
    """Runs to be kept, none of which is there."""

    @property
    def changes(self) -> list[Change]:
        """The entries that change lessons."""
        return [
            entry for entry, _ in self.entries if not isinstance(entry, Settle | Purge | Erased | Forgotten | Missing)
        ]


@dataclass(frozen=True, slots=True)
class Journalled(Sequence[JournalEntry]):
    """What a batch appended to the journal; an entry is made when it is looked at, because most never are."""

    scope: str
    writer: str
    at: int
    """In microseconds, as it is kept: the entry returned equals the entry read later."""
    first: int
    entries: Sequence[Entry]

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, index: int) -> JournalEntry: ...
    @overload
    def __getitem__(self, index: slice) -> list[JournalEntry]: ...
    def __getitem__(self, index: int | slice) -> JournalEntry | list[JournalEntry]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return JournalEntry(
            sequence=self.first + at, at=moment(self.at), scope=self.scope, writer=self.writer, entry=self.entries[at]
        )


def link_experiences(
    entries: Iterable[tuple[int, Entry]], ids: Mapping[str, int], /
) -> Iterator[tuple[int, Entry, list[int], list[int]]]:
    """Each entry of a scope's whole journal, with the experiences it holds whole and those it changes in part.

    `entries` have a key, see `_SEQUENCES`; `ids` has the number of each experience.
    """
    holders: dict[str, str] = {}
    given: dict[int, tuple[str, tuple[str, ...]]] = {}
    jumps: dict[int, int] = {}
    for key, entry in entries:
        sequence = key % _SEQUENCES
        if isinstance(entry, Rollback):
            jumps[sequence] = entry.to
            spans = live(jumps, sequence)
            past = (known for at, known in given.items() if any(at in span for span in spans))
            holders = {lesson: holder for holder, lessons in past for lesson in lessons}
        whole, part = wrote(entry, holders)
        if (brought := entry.brings) is not None:
            given[sequence] = brought.id, tuple(lesson.id for lesson in brought.lessons)
        held, flipped = ([ids[id] for id in sorted(some) if id in ids] for some in (whole, part))
        yield key, entry, held, flipped


def wrote(entry: Entry, holders: dict[str, str], /) -> tuple[set[str], set[str]]:
    """Ids of the experiences that an entry holds whole, and of those it changes in part.

    `holders` says which experience each lesson belongs to, and is kept up to date.
    """
    part = {holders[id] for id in entry.marks if id in holders} | {*filter(None, [entry.amends])}
    if (brought := entry.brings) is None:
        return set(), part
    holders.update((lesson.id, brought.id) for lesson in brought.lessons)
    return {brought.id}, part - {brought.id}

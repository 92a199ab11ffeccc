"""Which records of a scope name what is erased: they are looked for once, for all that goes together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from lessonbank.contracts.records import Recall
from lessonbank.guard.shown_lines import ShownBlocks

from ._entries import entry_of
from ._erasure import Erasing
from ._records import json_of, loaded

K = TypeVar("K")
_END: Final = 1 << 62
"""A number that no entry of the journal reaches."""
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
"""A text in JSON, with its quotes."""
_FEW: Final = 12
"""So many ids are looked for one by one. Where there are more, reading every text of the JSON is quicker."""


def entries_naming(
    read: Callable[[int], Iterable[tuple[int, bytes]]], probes: Sequence[Erasing], /
) -> dict[int, bytes]:
    """The journal entries that name what goes, once `probes` know all of it, as JSON by number.

    `read` gives number and JSON of the entries below a number, oldest first. The journal is read once, and a part of
    it again if it told of more that goes.
    """
    entries, upto = dict[int, bytes](), _END
    while upto:
        more = _take_in(read(upto), probes, entries)
        upto = (more if upto == _END else _END) if more else 0
    return entries


def _take_in(texts: Iterable[tuple[int, bytes]], probes: Sequence[Erasing], entries: dict[int, bytes]) -> int:
    """Take in the entries that name what goes; the last one that told of more, or 0.

    Told one entry at a time, `probes` take in too much: what other runs share is known only at the end.
    """
    marks, last = _marks(id for probe in probes for id in probe.ids), 0
    for number, text in texts:
        if not _names(text, marks):
            continue
        entries[number], entry = text, entry_of(text)
        for probe in probes:
            if probe.read([entry]):
                marks |= _marks(probe.ids)
                last = number
    return last


def naming(texts: Iterable[tuple[K, bytes]], ids: Iterable[str], /) -> Iterator[tuple[K, bytes]]:
    """Return the records that name one of the ids, each with its key."""
    marks = _marks(ids)
    return ((known, text) for known, text in texts if _names(text, marks))


def every_id(probes: Iterable[Erasing], /) -> set[str]:
    """Every id that a record which matters can name."""
    return {id for probe in probes for id in probe.ids}


def shown_ids(probes: Iterable[Erasing], /) -> set[str]:
    """Every id by which a receipt is known to show what goes, or to be made for it."""
    return {id for probe in probes for id in (*probe.lessons, *probe.recalls)}


def scrub_entries(entries: dict[int, bytes], erasing: Erasing, /, *, by: int) -> dict[int, tuple[str, str]]:
    """Number to kind and JSON of the journal entries of which less remains. They are changed in `entries`, too."""
    read = [(number, entry_of(text)) for number, text in naming(sorted(entries.items()), erasing.ids)]
    scrubbed = [(number, left) for number, entry in read if (left := erasing.entry(entry, by=by)) is not entry]
    changed = {number: (left.kind, json_of(left)) for number, left in scrubbed}
    entries.update((number, text.encode()) for number, (_, text) in changed.items())
    return changed


def scrub_recalls(recalls: dict[int, bytes], erasing: Erasing, /) -> dict[int, Recall]:
    """The receipts of which less remains, by number. They are changed in `recalls`, too."""
    named = naming(recalls.items(), (*erasing.lessons, *erasing.recalls))
    every = [(number, loaded(Recall, text)) for number, text in named]
    changed = {number: left for number, recall in every if (left := erasing.recall(recall)) is not recall}
    recalls.update((number, json_of(left).encode()) for number, left in changed.items())
    return changed


def runs_without(runs: Iterable[tuple[K, bytes]], shown: ShownBlocks, /) -> Iterator[tuple[K, str]]:
    """The JSON of the runs in which any of it stands, without it, each with what the run is known by."""
    for known, text in runs:
        if (left := shown.without(record := text.decode())) != record:
            yield known, left


def texts_lost(before: Mapping[int, bytes], after: Mapping[int, bytes], /) -> ShownBlocks:
    """What receipts showed that have lost their text."""
    lost = [text for number, text in before.items() if after.get(number, text) != text]
    return ShownBlocks.of(loaded(Recall, text).text for text in lost)


def take_in_all(entries: Mapping[int, bytes], erasing: Erasing, /) -> None:
    """Have `erasing` read the journal entries that name what goes, until they tell it of no more."""
    while erasing.read(entry_of(text) for _, text in naming(sorted(entries.items()), erasing.ids)):
        pass


def _names(text: bytes, marks: set[bytes]) -> bool:
    """Whether JSON holds one of the marks. Of a few, it may see one where a text ends and the next begins."""
    if len(marks) > _FEW:
        return not marks.isdisjoint(_STRING.findall(text))
    return any(map(text.__contains__, marks))


def _marks(ids: Iterable[str]) -> set[bytes]:
    """How ids stand in JSON."""
    return {json.dumps(id, ensure_ascii=False).encode() for id in ids}

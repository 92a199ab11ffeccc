"""Finds out what another program's memory file is, and reads it within bounds."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Final

from lessonbank._base.atomic_write import belongs_to_database, is_database
from lessonbank._base.checks import short_path
from lessonbank._base.safe_read import open_regular
from lessonbank.contracts.records import Experience, Json, Lesson, Provenance
from lessonbank.errors import FormatError
from lessonbank.text.bounded_json import parse

from . import ace, awm, langmem, mem0, pypi_reasoning_bank, reasoning_bank
from ._memory import Format, Memory

log: Final = logging.getLogger("lessonbank")
ORIGIN: Final = "origin"
"""The metadata key of an experience that says which program's file it was read from."""
MOST: Final = 20_000
"""Memories of one file."""
_LARGEST: Final = 512 * 2**20
"""Bytes of a file of JSON lines. Most of them are vectors, which are not read."""
_PART: Final = 64 * 2**20
"""Bytes of a line, and of a file that is one value or a text."""
_SAMPLE: Final = 20
_NOTHING: Final = Memory("", ())
_ORDER: Final[tuple[Format, ...]] = (
    reasoning_bank.FORMAT,
    pypi_reasoning_bank.FORMAT,
    langmem.FORMAT,
    mem0.FORMAT,
    ace.FORMAT,
    awm.FORMAT,
)
FORMATS: Final = tuple((format.name, format.description) for format in _ORDER)
"""Every format's name, and what it is."""


@dataclass(frozen=True, slots=True)
class Memories:
    """What a file holds: its format, and its memories as experiences, with ids that follow from their words."""

    format: str
    experiences: tuple[Experience, ...]


def read(path: Path, /, *, scope: str) -> Memories | None:
    """The memories in another program's file; `None` where it is none that is known.

    Only words are taken: no counter, score, rating, vector, user or time of the file. Nothing in it is run, and no
    pickle is read. A part without a lesson is passed over; the log says how many.

    Raises:
        FormatError: it is one of the known files, and holds no lesson, too many, or more than can be read.
    """
    try:
        contents = _of_database(path) if belongs_to_database(path) else _of_file(path)
    except (OSError, FormatError) as error:
        raise FormatError(f"cannot read the memories in {short_path(path)}: {error}; nothing was imported") from error
    if contents is None:
        return None
    format, memories = contents
    usable_memories = [memory for memory in memories if memory.task and memory.lessons]
    if len(usable_memories) < len(memories):
        log.warning(
            "%s: %d of %d memories hold no lesson and were passed over",
            short_path(path),
            len(memories) - len(usable_memories),
            len(memories),
        )
    if not usable_memories:
        raise FormatError(f"{short_path(path)} looks like {format.name}, and holds no lesson; nothing was imported")
    once = {e.id: e for e in (_experience(memory, format, scope) for memory in usable_memories)}
    return Memories(format.name, tuple(once.values()))


def _of_database(path: Path) -> tuple[Format, Sequence[Memory]] | None:
    if not is_database(path):
        return None
    rows = pypi_reasoning_bank.rows_of(path, most=MOST + 1)
    return _of_values(rows, (pypi_reasoning_bank.FORMAT,))


def _of_file(path: Path) -> tuple[Format, Sequence[Memory]] | None:
    with open_regular(path) as file:
        first = file.readline(_PART + 1)
        if len(first) <= _PART and isinstance(head := _value(first), dict | list):
            if isinstance(head, dict) and "format" in head and "version" in head:
                return None  # an export of a bank: it has a reader of its own
            rest = (_value(line) for line in iter(_bounded(file.readline), b"") if line.strip())
            return _of_values(chain([head], rest), _ORDER)
        text = first + file.read(_PART + 1 - len(first)) if len(first) <= _PART else first
    if len(text) > _PART:
        return None
    whole = _value(text)
    if whole is not None:
        return _of_values(iter([whole]), _ORDER)
    words = text.decode("utf-8-sig", "replace")
    return next(
        ((f, _enough(list(islice(memories, MOST + 1)))) for f in _ORDER if (memories := f.of_text(words))), None
    )


def _bounded(readline: Callable[[int], bytes]) -> Callable[[], bytes]:
    """Lines of a file, each and all within bounds."""
    left = _LARGEST

    def line() -> bytes:
        nonlocal left
        read = readline(_PART + 1)
        left -= len(read)
        if len(read) > _PART or left < 0:
            raise FormatError(f"it has a line of more than {_PART >> 20} MB, or more than {_LARGEST >> 20} MB in all")
        return read

    return line


def _of_values(values: Iterator[Json], formats: Sequence[Format]) -> tuple[Format, Sequence[Memory]] | None:
    """The memories in values, all of the format that the first ones show."""
    first = list(islice(values, _SAMPLE))
    format = next((f for f in formats if any(f.of_value(value) for value in first)), None)
    if format is None:
        return None
    memories = (memory for value in chain(first, values) for memory in format.of_value(value) or (_NOTHING,))
    return format, _enough(list(islice(memories, MOST + 1)))


def _enough(memories: Sequence[Memory]) -> Sequence[Memory]:
    if len(memories) > MOST:
        raise FormatError(f"it holds more than {MOST:,} memories: split it, and keep the useful ones")
    return memories


def _value(raw: bytes) -> Json:
    try:
        return parse(raw)
    except ValueError:
        return None


def _experience(memory: Memory, format: Format, scope: str) -> Experience:
    words = [format.name, memory.task, *([d.kind, d.title, d.description, d.content] for d in memory.lessons)]
    id = _id(json.dumps(words))
    lessons = tuple(
        Lesson(
            id=_id(f"{id} {number}"),
            title=draft.title,
            description=draft.description,
            content=draft.content,
            kind=draft.kind or "strategy",
            provenance=Provenance(writer="import", method=format.name),
        )
        for number, draft in enumerate(memory.lessons)
    )
    return Experience(id=id, scope=scope, task=memory.task, lessons=lessons, metadata={ORIGIN: format.name})


def _id(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:32]

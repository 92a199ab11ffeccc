"""Many entries made ready to be written: one thread says them as JSON, two deflate them, which needs no interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final, TypeVar

from lessonbank._concurrency import breathing
from lessonbank.stores._packing import packed
from lessonbank.stores._records import dumped
from lessonbank.types import Experience, Record
from lessonbank.types.timeline import Entry

R = TypeVar("R", bound=Record)

SMALL: Final = 2
"""Changes that are made ready to be written in the event loop: a thread would take longer to begin."""
BRIEF: Final = 16_384
"""Characters of a record that is made ready there: a megabyte would stop the loop for tens of milliseconds."""
_MANY: Final = 128
"""Entries from which a second thread is worth its start."""


def are_small(entries: Sequence[Entry], /) -> bool:
    """Whether they are so few and short that they are quickly packed."""
    return len(entries) <= SMALL and all(map(_brief, entries))


def _brief(entry: Entry) -> bool:
    experience = getattr(entry, "experience", None)
    if not isinstance(experience, Experience):
        return True
    return len(experience.task) + sum(len(lesson.text) for lesson in experience.lessons) < BRIEF


def ready(record: R, /) -> tuple[R, bytes]:
    """A record as it is kept, and packed."""
    clean, text = dumped(record)
    return clean, packed(text)


def all_packed(
    entries: Sequence[R], /, *, beside: Callable[[Callable[[], list[bytes]]], Future[list[bytes]]]
) -> list[tuple[R, bytes]]:
    """Each entry as it is kept, and packed; `beside` begins a call in another thread.

    Saying and deflating are apart, because two threads that need the interpreter by turns wait for it most of the time.

    Raises:
        UsageError: an entry has no JSON form.
    """
    told = [dumped(entry) for entry in breathing(entries)]
    texts = [text for _, text in told]
    half = len(texts) // 2 if len(texts) >= _MANY else len(texts)
    rest = partial(_deflated, texts[half:])
    other = beside(rest) if half < len(texts) else None
    blobs = _deflated(texts[:half])
    if other is not None:
        # Where every thread does this at once, none is left that could begin the other half.
        blobs += rest() if other.cancel() else other.result()
    return [(clean, blob) for (clean, _), blob in zip(told, blobs, strict=True)]


def _deflated(texts: Sequence[str]) -> list[bytes]:
    return list(map(packed, breathing(texts)))

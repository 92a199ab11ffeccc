"""Which entries of the journal are so few and small that they are written at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

from lessonbank.timeline import Entry
from lessonbank.types import Add, Experience, JournalEntry, Settle

from ._derived import TAIL
from ._inline import Lengthy
from ._journalling import Batch
from ._placing import FRESH
from ._writing import apply

SMALL: Final = 2
"""Changes that are made ready to be written in the event loop: a thread would take longer to begin."""
BRIEF: Final = 16_384
"""Characters of a record that is made ready there: a megabyte would stop the loop for tens of milliseconds."""
_VECTORS: Final = 16
"""That come with a small write, those of items included."""

_DUE: Final = (
    "SELECT (SELECT coalesce(max(number), 0) FROM experiences) - (SELECT upto FROM indexed),"
    " (SELECT p.revision FROM spaces p JOIN scopes s ON s.number = p.scope WHERE s.name = ? AND p.name = ?)"
)


def are_small(entries: Sequence[Entry], /) -> bool:
    """Whether they are so few and short that they are quickly packed."""
    return len(entries) <= SMALL and all(map(_brief, entries))


def _brief(entry: Entry) -> bool:
    experience = getattr(entry, "experience", None)
    if not isinstance(experience, Experience):
        return True
    return len(experience.task) + sum(len(item.text) for item in experience.items) < BRIEF


def hurried_apply(batch: Batch, /) -> Callable[[sqlite3.Connection], Sequence[JournalEntry]] | None:
    """`apply`, where that may be short: little is new, and nothing that was there before is written anew."""
    entries = [entry for entry, _ in batch.entries]
    new = sum(isinstance(entry, Add) for entry in entries)
    if new + sum(isinstance(entry, Settle) for entry in entries) < len(entries):
        return None
    if len(batch.vectors) > _VECTORS or not are_small(entries):
        return None

    def write(connection: sqlite3.Connection) -> Sequence[JournalEntry]:
        _check_nothing_due(connection, batch, new)
        return apply(connection, batch)

    return write


def _check_nothing_due(connection: sqlite3.Connection, batch: Batch, new: int) -> None:
    """Raise Lengthy where vectors would be joined to a block, or the words of the newest tasks be indexed."""
    waiting, revision = connection.execute(_DUE, (batch.scope, batch.space or "")).fetchone()
    vectors = len(batch.vectors)
    if (waiting or 0) + new >= TAIL or (vectors and (revision or 0) % FRESH + vectors >= FRESH):
        raise Lengthy

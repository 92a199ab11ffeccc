"""The records of what bringing back a bank file did."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .record import Record
from .usage import Counts


class FileState(Record):
    """How much a bank file holds, over all scopes, and when it was last changed."""

    bytes: int
    """With its log, where it has one."""
    counts: Counts | None = None
    """`None` where it cannot be read; `problem` says why."""
    last_change: datetime | None = None
    """When the last entry was written to a journal."""
    problem: str = ""


class Restored(Record):
    """What `restore` put in place, and what was there before."""

    bank: str
    backup: str
    now: FileState
    before: FileState | None = None
    """`None` where there was no file."""
    kept: str | None = None
    """Where the earlier file is now, with its log beside it. Delete both when you do not need them any more."""


class Lost(Record):
    """What of one scope `salvage` could not bring back, by id."""

    scope: str
    experiences: tuple[str, ...] = ()
    lessons: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    recalls: tuple[str, ...] = ()
    changes: tuple[int, ...] = ()
    """Sequences of journal entries."""


class Salvaged(Record):
    """What `salvage` brought over to a new bank, and what is lost."""

    bank: str
    new: str
    counts: Counts
    lost: tuple[Lost, ...] = Field(default=())
    """Of each scope that lost something; empty where nothing is known to be lost."""
    notes: tuple[str, ...] = ()
    """What else somebody should know, one sentence each."""

    @property
    def complete(self) -> bool:
        """Whether nothing is known to be lost."""
        return not self.lost

"""The journal's entries about the journal itself: they name other entries and carry no experience."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from .record import Record

Erasure: TypeAlias = Literal["lesson", "trajectory", "recall", "scope"]


class Rollback(Record):
    """Make the experiences what they were after an earlier entry. Undone by another one."""

    kind: Literal["rollback"] = "rollback"
    to: Annotated[int, Field(ge=0)]
    """The sequence of that entry; 0 is before the first."""
    reason: str


class Purge(Record):
    """What remains of something that was erased: that it was, when, why, how much; never what."""

    kind: Literal["purge"] = "purge"
    what: Erasure
    digest: str
    """SHA-256 of the id that was named: whoever has the id can check that it was erased."""
    reason: str
    experiences: int = 0
    lessons: int = 0
    trajectories: int = 0
    recalls: int = 0
    entries: int = 0
    """Journal entries that lost their content, or part of it."""


class Erased(Record):
    """The place of a journal entry whose content was purged."""

    kind: Literal["erased"] = "erased"
    by: int
    """The sequence of the `Purge`."""


class Forgotten(Record):
    """Runs and recalls that were erased because of their age: how many, never what."""

    kind: Literal["forgotten"] = "forgotten"
    before: datetime
    """Everything older than this went."""
    runs: int = 0
    recalls: int = 0

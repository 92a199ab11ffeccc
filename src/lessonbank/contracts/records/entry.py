"""Says what an entry of a journal means: what it writes, what becomes of lessons, and how a person reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from .lessons import Experience, Lesson
from .recalls import Settlement
from .record import Record


@dataclass(frozen=True, slots=True)
class Sentence:
    """One entry of a journal, for people."""

    text: str
    """What was done."""
    lessons: tuple[str, ...] = ()
    """The ids of the lessons that it is about."""
    reason: str = ""
    run: str = ""
    """The run that it is about, if it is about one."""
    experience: str = ""
    """The experience that it is about, if it is about one."""


class Removal(Protocol):
    """What an erasure takes away, by ids, and what it leaves of records that hold some of that."""

    lessons: set[str]
    experiences: set[str]
    """Those that go whole."""
    trajectory: str | None
    receipt: str | None

    def experience(self, experience: Experience, /) -> Experience | None: ...
    def settlement(self, settlement: Settlement, /) -> Settlement: ...


class Entry(Record):
    """Base of all that stands in a journal. A kind of its own says here what it means, and nowhere else."""

    @property
    def brings(self) -> Experience | None:
        """The experience that is written whole."""
        return None

    @property
    def marks(self) -> tuple[str, ...]:
        """The ids of the lessons whose flags or words are set, in experiences that stay as they are otherwise."""
        return ()

    def mark(self, lesson: Lesson, /) -> Lesson:
        """Make what becomes of one of those lessons."""
        return lesson

    def misfit(self, lesson: Lesson, /) -> str:
        """Say why one of those lessons cannot be marked; empty where it can."""
        return ""

    @property
    def amends(self) -> str:
        """The id of the experience that is changed in something else than its lessons; empty: none."""
        return ""

    def amend(self, experience: Experience, /) -> Experience:
        """Make what becomes of that experience."""
        return experience

    def without(self, removal: Removal, /) -> Entry | None:
        """Make what an erasure leaves of it: itself where that is all of it, `None` where it is nothing.

        Every kind says so itself: one that did not would keep in the journal what was erased.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `without`: say what of it goes with what is erased")

    def sentence(self) -> Sentence:
        """Tell a person what was done."""
        return Sentence(str(getattr(self, "kind", "")))


class Contentless(Entry):
    """Base of entries that hold nothing of a lesson or a run: an erasure leaves them as they are."""

    def without(self, removal: Removal, /) -> Entry:
        return self

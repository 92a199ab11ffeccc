"""What has to go when one lesson or run is erased: everything derived from it, and it alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lessonbank.errors import NotFound
from lessonbank.types import (
    Add,
    Counts,
    Erased,
    Erasure,
    Experience,
    Merge,
    Purge,
    Recall,
    Rejudge,
    Replace,
    Restore,
    Retire,
    Settle,
    Settlement,
    Trust,
)
from lessonbank.types.ids import digest
from lessonbank.types.timeline import Entry, named_lessons


class Erasing:
    """The ids that go, and the records without them. `read` the journal until it finds no more.

    Of a run: the lessons drawn from it, alone or with others; the experiences that hold no other run's attempt;
    whatever was merged from these. Of a lesson: whatever was merged from it.
    """

    def __init__(self, *, lesson: str | None = None, trajectory: str | None = None) -> None:
        self.lesson, self.trajectory = lesson, trajectory
        self.what: Erasure = "trajectory" if lesson is None else "lesson"
        self.named = (trajectory if lesson is None else lesson) or ""
        self.lessons: set[str] = {lesson} if lesson is not None else set()
        self.experiences: set[str] = set()
        self.recalls: set[str] = set()
        """Receipts that were made for the run: their task is the run's."""
        self.found = False
        """Whether any entry held the lesson, or knew of the run."""
        self._tried: set[str] = set()
        self._shared: set[str] = set()

    @property
    def ids(self) -> set[str]:
        """Every id that an entry which matters can name."""
        return {*self.lessons, *self.experiences, *self._tried, *([self.trajectory] if self.trajectory else [])}

    def read(self, entries: Iterable[Entry], /) -> bool:
        """Take in the entries that name any of `ids`, oldest first; whether they brought anything new."""
        before = len(self.ids) + len(self._shared)
        for entry in entries:
            if isinstance(entry, Add | Replace | Merge):
                self._read_experience(entry.experience, sources=named_lessons(entry))
            elif isinstance(entry, Settle) and self.trajectory in entry.settlement.trajectory_ids:
                self.recalls.add(entry.settlement.recall_id)
        if len(self.ids) + len(self._shared) > before:
            return True
        # Only now is it known which experiences no other run shares.
        alone = self._tried - self._shared - self.experiences
        self.experiences |= alone
        return bool(alone)

    def _read_experience(self, experience: Experience, *, sources: Iterable[str]) -> None:
        tried = {attempt.trajectory_id for attempt in experience.attempts}
        if self.trajectory in tried:
            self._tried.add(experience.id)
        if tried - {self.trajectory}:
            self._shared.add(experience.id)
        if not self.lessons.isdisjoint(sources):
            self.experiences.add(experience.id)
        self.lessons.update(i.id for i in experience.lessons if self.trajectory in i.provenance.trajectory_ids)
        self.found |= self.trajectory in tried or any(i.id == self.lesson for i in experience.lessons)
        if experience.id in self.experiences:
            self.lessons.update(lesson.id for lesson in experience.lessons)

    def experience(self, experience: Experience, /) -> Experience | None:
        """What remains of it."""
        if experience.id in self.experiences:
            return None
        lessons = tuple(i for i in experience.lessons if i.id not in self.lessons)
        attempts = tuple(a for a in experience.attempts if a.trajectory_id != self.trajectory)
        if len(lessons) == len(experience.lessons) and len(attempts) == len(experience.attempts):
            return experience
        return experience.model_copy(update={"lessons": lessons, "attempts": attempts, "rejected": ()})

    def entry(self, entry: Entry, /, *, by: int) -> Entry:
        """What remains of a journal entry; the entry itself where all of it does."""
        match entry:
            case Add() | Replace():
                left = self.experience(entry.experience)
                return Erased(by=by) if left is None else _with(entry, {"experience": left})
            case Merge():
                left = self.experience(entry.experience)
                return self._flips(Retire, entry, by=by) if left is None else _with(entry, {"experience": left})
            case Rejudge():
                gone = entry.trajectory_id == self.trajectory or entry.experience_id in self.experiences
                return Erased(by=by) if gone else entry
            case Retire() | Restore():
                return entry if self.lessons.isdisjoint(entry.lesson_ids) else self._flips(type(entry), entry, by=by)
            case Trust():
                return self._trust(entry, by=by)
            case Settle():
                return _with(entry, {"settlement": self.settlement(entry.settlement)})
            case _:
                return entry

    def _flips(self, kind: type[Retire | Restore], entry: Entry, *, by: int) -> Entry:
        # A reason may quote what it speaks of. The other sources of a merge stay retired: a purge shows nothing anew.
        left = tuple(id for id in named_lessons(entry) if id not in self.lessons)
        return kind(lesson_ids=left, reason="purged") if left else Erased(by=by)

    def _trust(self, entry: Trust, *, by: int) -> Entry:
        left = tuple(id for id in entry.lesson_ids if id not in self.lessons)
        evidence = tuple(id for id in entry.evidence if id != self.trajectory and id not in self.lessons)
        if len(left) + len(evidence) == len(entry.lesson_ids) + len(entry.evidence):
            return entry
        told = {"lesson_ids": left, "evidence": evidence, "reason": "purged"}
        return entry.model_copy(update=told) if left else Erased(by=by)

    def recall(self, recall: Recall, /) -> Recall:
        """A receipt without the text, if that showed any of it; without its task, if that was the run's."""
        own = recall.id in self.recalls
        if not own and not any(c.shown and c.lesson_id in self.lessons for c in recall.candidates):
            return recall
        return recall.model_copy(update={"text": "", "text_digest": "", **({"task": ""} if own else {})})

    def settlement(self, settlement: Settlement, /) -> Settlement:
        """A settlement that no longer names the run, nor the template that it named."""
        left = tuple(id for id in settlement.trajectory_ids if id != self.trajectory)
        if len(left) == len(settlement.trajectory_ids):
            return settlement
        gone = settlement.experience_id in self.experiences
        owner = None if gone else settlement.experience_id
        return settlement.model_copy(update={"trajectory_ids": left, "experience_id": owner, "template": None})

    def tombstone(self, reason: str, /, *, trajectories: int, recalls: int, entries: int) -> Purge:
        """What is kept of it."""
        return Purge(
            what=self.what,
            digest=digest(self.named),
            reason=reason,
            experiences=len(self.experiences),
            lessons=len(self.lessons),
            trajectories=trajectories,
            recalls=recalls,
            entries=entries,
        )


def unknown(erasing: Erasing, /) -> NotFound:
    """The error for what cannot be erased because nothing here knows of it."""
    return NotFound(f"no {erasing.what} {erasing.named!r} in this scope, nor in its past")


def scope_tombstone(scope: str, reason: str, counts: Counts, /, *, entries: int) -> Purge:
    """What is kept of everything a scope held."""
    return Purge(
        what="scope",
        digest=digest(scope),
        reason=reason,
        experiences=counts.experiences,
        lessons=counts.lessons,
        trajectories=counts.trajectories,
        recalls=counts.recalls,
        entries=entries,
    )


def _with(entry: Any, update: Mapping[str, Any]) -> Any:
    same = all(getattr(entry, name) is value for name, value in update.items())
    return entry if same else entry.model_copy(update=update)

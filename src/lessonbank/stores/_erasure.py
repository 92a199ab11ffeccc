"""What has to go when one lesson or run is erased: everything derived from it, and it alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from lessonbank._base.surrogates import encodable
from lessonbank.contracts.records import (
    Change,
    Counts,
    Erased,
    Erasure,
    Experience,
    Purge,
    Recall,
    Settle,
    Settlement,
    target_of,
)
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.records.repeats import without_repeats_of
from lessonbank.contracts.records.timeline import Entry
from lessonbank.errors import NotFound, UsageError
from lessonbank.evidence.treatments import template_of


class Erasing:
    """The ids that go, and the records without them. `read` the journal until it finds no more.

    Of a run: the lessons drawn from it, alone or with others; the experiences that hold no other run's attempt;
    whatever was merged from these. Of a lesson: whatever was merged from it, the proposals to change it, and its
    experience where no run taught it and no other lesson is left.
    """

    def __init__(self, what: Erasure, id: str, /) -> None:
        self.what: Erasure = what
        self.named = id
        self.lesson = id if what == "lesson" else None
        self.trajectory = id if what == "trajectory" else None
        self.receipt = id if what == "recall" else None
        """The recall that goes whole."""
        lesson = self.lesson
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
        named = {id for id in (self.trajectory, self.receipt) if id}
        return self.lessons | self.experiences | self._tried | named

    def read(self, entries: Iterable[Entry], /) -> bool:
        """Take in the entries that name any of `ids`, oldest first; whether they brought anything new."""
        before = len(self.ids) + len(self._shared)
        for entry in entries:
            if (brought := entry.brings) is not None:
                self._read_experience(brought, sources=entry.marks)
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
        if not self.lessons.isdisjoint((*sources, target_of(experience))):
            self.experiences.add(experience.id)
        self.lessons.update(i.id for i in experience.lessons if self.trajectory in i.provenance.trajectory_ids)
        self.found |= self.trajectory in tried or any(i.id == self.lesson for i in experience.lessons)
        if not experience.attempts and experience.lessons and self.lessons.issuperset(i.id for i in experience.lessons):
            self.experiences.add(experience.id)  # no run taught it: its task is an example for the lesson, or its words
        if experience.id in self.experiences:
            self.lessons.update(lesson.id for lesson in experience.lessons)

    def experience(self, experience: Experience, /) -> Experience | None:
        """What remains of it."""
        if experience.id in self.experiences:
            return None
        if self.receipt is not None:
            return self._unreceipted(experience)
        lessons = tuple(i for i in experience.lessons if i.id not in self.lessons)
        attempts = tuple(a for a in experience.attempts if a.trajectory_id != self.trajectory)
        if len(lessons) == len(experience.lessons) and len(attempts) == len(experience.attempts):
            return without_repeats_of(experience, self.lessons)
        left = experience.model_copy(update={"lessons": lessons, "attempts": attempts, "rejected": ()})
        # Nothing says which of several runs taught a lesson again.
        alone = len(attempts) == len(experience.attempts)
        return without_repeats_of(left, self.lessons if alone else left.repeats)

    def _unreceipted(self, experience: Experience) -> Experience:
        named = experience.recall_id == self.receipt
        return experience.model_copy(update={"recall_id": None}) if named else experience

    def entry(self, entry: Entry, /, *, by: int) -> Entry:
        """What remains of a journal entry; the entry itself where all of it does."""
        left = entry.without(self)
        return Erased(by=by) if left is None else cast("Entry", left)

    def recall(self, recall: Recall, /) -> Recall:
        """A receipt without the text, if that showed any of it; without its task, if that was the run's."""
        own = recall.id in self.recalls
        if not own and not any(c.offered and c.lesson_id in self.lessons for c in recall.candidates):
            return recall
        return without_text(recall).model_copy(update=_NOTHING_TOLD if own else {})

    def settlement(self, settlement: Settlement, /) -> Settlement:
        """A settlement that no longer names the run, nor the template that it named."""
        left = tuple(id for id in settlement.trajectory_ids if id != self.trajectory)
        if len(left) == len(settlement.trajectory_ids):
            return settlement
        is_erased = settlement.experience_id in self.experiences
        owner = None if is_erased else settlement.experience_id
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


_NOTHING_TOLD: Mapping[str, Any] = {"task": "", "metadata": {}, "notes": ()}


SALT: Final = "forget.salt"
"""The setting without which nobody can guess a forgotten task from its digest."""
_FORGOTTEN: Final = "forgotten "


def is_forgotten(recall: Recall, /) -> bool:
    """Whether only the evidence of it is left."""
    return recall.task.startswith(_FORGOTTEN) and not (recall.text or recall.metadata or recall.notes)


def forgotten(recall: Recall, salt: str, /) -> Recall:
    """What is left of an old recall with an outcome: tasks of one template keep one name, in letters alone."""
    known = digest(f"{salt} {template_of(recall.task)}")[:24].translate(_LETTERS)
    return without_text(recall).model_copy(update={**_NOTHING_TOLD, "task": _FORGOTTEN + known})


def without_text(recall: Recall, /) -> Recall:
    """A receipt without what it showed, and without what a model had left out of that."""
    fit = recall.fit and recall.fit.model_copy(update={"unfitted": ""})
    return recall.model_copy(update={"text": "", "text_digest": "", "fit": fit})


_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")


def checked_erasures(
    what: Sequence[tuple[Erasure, str]] | datetime, changes: Sequence[Change], /
) -> Sequence[tuple[Erasure, str]] | datetime:
    """What is to be erased, each once; a scope without an id. Raises UsageError for a scope that does not go alone."""
    if isinstance(what, datetime) or [kind for kind, _ in what] == ["scope"]:
        if changes:
            raise UsageError("a scope, or what is older than a moment, is erased without changes: leave changes= out")
        return what if isinstance(what, datetime) else [("scope", "")]
    if any(kind == "scope" for kind, _ in what):
        raise UsageError("a whole scope cannot be purged together with single records: purge the scope alone")
    each: dict[tuple[Erasure, str], None] = dict.fromkeys((kind, encodable(id)) for kind, id in what)
    return list(each)


def not_gone(these: Iterable[tuple[Erasure, str]], /) -> Iterator[Erasing]:
    """What is to be erased of each, one after the other; nothing of a lesson that went with an earlier one."""
    lesson_ids = set[str]()
    for what, id in these:
        if what != "lesson" or id not in lesson_ids:
            yield (erasing := Erasing(what, id))
            lesson_ids |= erasing.lessons


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


OUTLIVE: Final = ("admin", "purge", "forgotten")
"""The kinds of journal entries that stay when their whole scope is erased: they tell who did what, and no contents."""


def without_reason(entry: Entry, /) -> Entry:
    """An entry that outlives its scope. The reason of an earlier erasure may quote what was erased."""
    return entry.model_copy(update={"reason": "purged"}) if isinstance(entry, Purge) else entry

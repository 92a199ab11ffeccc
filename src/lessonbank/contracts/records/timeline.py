"""What a journal tells: the experiences as of any moment, what differs between two, and which entries concern what."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Generic, TypeAlias, TypeVar

from lessonbank.errors import NotFound

from . import (
    Change,
    Counts,
    Edit,
    Erased,
    Experience,
    Forgotten,
    JournalEntry,
    Lesson,
    Merge,
    Missing,
    Purge,
    Record,
    Replace,
    Restore,
    Rollback,
    Settle,
    Trust,
)

M = TypeVar("M", bound=MutableMapping[str, Experience])
Entry: TypeAlias = Change | Settle | Purge | Erased | Forgotten | Missing


@dataclass(frozen=True, slots=True)
class State:
    """The experiences of one scope as they were after one journal entry. Nothing about it can change."""

    scope: str
    sequence: int
    """The last entry it knows of; 0 is before the first."""
    experiences: tuple[Experience, ...]
    """Oldest first, as a store's `scan` gives them."""

    def lessons(self, *, retired: bool = False) -> tuple[Lesson, ...]:
        """Every lesson of that moment, oldest first; with `retired`, those taken back too."""
        return tuple(i for e in self.experiences for i in e.lessons if retired or not i.retired)

    def get(self, id: str, /) -> Lesson:
        """One lesson. Raises NotFound."""
        lesson = next((i for e in self.experiences for i in e.lessons if i.id == id), None)
        if lesson is None:
            raise NotFound(f"there was no lesson {id!r} after change {self.sequence}")
        return lesson

    def experience(self, id: str, /) -> Experience:
        """One experience. Raises NotFound."""
        experience = next((e for e in self.experiences if e.id == id), None)
        if experience is None:
            raise NotFound(f"there was no experience {id!r} after change {self.sequence}")
        return experience

    def counts(self) -> Counts:
        """How much there was. Runs and receipts are no changes: their fields are 0 here."""
        lessons = self.lessons(retired=True)
        return Counts(
            experiences=len(self.experiences),
            lessons=len(lessons),
            retired=sum(i.retired for i in lessons),
            quarantined=sum(i.hidden and not i.retired for i in lessons),
            changes=self.sequence,
        )


class Replaced(Record):
    """One experience before and after, where more than the flags of its lessons differs."""

    before: Experience
    after: Experience


class Diff(Record):
    """What is different between two moments, each tuple oldest first."""

    added: tuple[Experience, ...] = ()
    removed: tuple[Experience, ...] = ()
    """Experiences of the first moment that the second lacks: a rollback, or the second is the earlier one."""
    replaced: tuple[Replaced, ...] = ()
    lessons_added: tuple[Lesson, ...] = ()
    lessons_removed: tuple[Lesson, ...] = ()
    retired: tuple[Lesson, ...] = ()
    restored: tuple[Lesson, ...] = ()
    trusted: tuple[Lesson, ...] = ()
    """Lessons that are trusted more or less than before, as they are afterwards."""
    edited: tuple[Lesson, ...] = ()
    """Lessons in another wording than before, as they are afterwards."""

    @property
    def empty(self) -> bool:
        """Whether both moments held the same."""
        return self == Diff()


class Lineage(Record):
    """What merges made of one lesson, and what they made it of, through any number of merges; the nearest first."""

    lesson_id: str
    sources: tuple[str, ...] = ()
    """The lessons it stands for."""
    successors: tuple[str, ...] = ()
    """The lessons that stand for it."""


def live(rollbacks: Mapping[int, int], upto: int, /) -> list[range]:
    """The sequences whose changes are in force after entry `upto`, oldest first; a rollback jumps over the rest.

    `rollbacks` maps the sequence of each `Rollback` to its `to`, which is smaller.
    """
    known, end, spans = sorted(rollbacks), upto, list[range]()
    while end > 0:
        place = bisect_right(known, end)
        last = known[place - 1] if place else 0
        if last < end:
            spans.append(range(last + 1, end + 1))
        end = rollbacks[last] if last else 0
    return spans[::-1]


def state_at(entries: Iterable[JournalEntry], sequence: int, /, *, scope: str) -> State:
    """The experiences after entry `sequence`, from a scope's whole journal or at least what precedes it."""
    past = [entry for entry in entries if entry.sequence <= sequence]
    arrivals: dict[str, int] = {}
    for entry in past:
        if (brought := entry.entry.brings) is not None:
            arrivals.setdefault(brought.id, entry.sequence)
    in_force = frozenset(chain.from_iterable(live(rollbacks_of(past), sequence)))
    experiences = folded(entry.entry for entry in past if entry.sequence in in_force)
    order = sorted(experiences.values(), key=lambda e: (e.created_at, arrivals[e.id]))
    return State(scope=scope, sequence=sequence, experiences=tuple(order))


def rollbacks_of(entries: Iterable[JournalEntry], /) -> dict[int, int]:
    """Sequence to target of every rollback."""
    return {e.sequence: e.entry.to for e in entries if isinstance(e.entry, Rollback)}


def folded(entries: Iterable[Entry], /) -> dict[str, Experience]:
    """Experiences by id once these entries, which hold no rollback in force, were made one after the other.

    They were checked when they were made; what a purge took out of the middle is passed over.
    """
    fold = Fold(dict[str, Experience]())
    fold.make(*entries)
    return fold.experiences


class Fold(Generic[M]):
    """Makes experiences of journal entries, those whose ids it `takes`; `experiences` may be a mapping that packs."""

    def __init__(self, experiences: M, takes: Callable[[str], bool] = bool, /) -> None:
        self.experiences, self.takes = experiences, takes
        self._owners: dict[str, str] = {}

    def make(self, *entries: Entry) -> None:
        """Take in the next entries."""
        for entry in entries:
            self._mark(entry)
            if (experience := self.experiences.get(entry.amends)) is not None:
                self.experiences[experience.id] = entry.amend(experience)
            if entry.brings is not None:
                self._put(entry.brings)

    def written_by(self, entry: Entry, /) -> set[str]:
        """The ids of the experiences that an entry writes, as far as they are known by now."""
        owners = [self._owners.get(id) for id in entry.marks]
        return set(filter(None, [entry.brings and entry.brings.id, entry.amends, *owners]))

    def _put(self, experience: Experience) -> None:
        earlier = self.experiences.get(experience.id)
        lost = [i.id for i in earlier.lessons if self._owners.get(i.id) == experience.id] if earlier else []
        for id in (*lost, *[lesson.id for lesson in experience.lessons]):
            self._owners.pop(id, None)
        if self.takes(experience.id):
            self._owners.update((lesson.id, experience.id) for lesson in experience.lessons)
            self.experiences[experience.id] = experience

    def _mark(self, entry: Entry) -> None:
        marks = set(entry.marks)
        for owner in {self._owners[id]: None for id in entry.marks if id in self._owners}:
            experience = self.experiences[owner]
            lessons = tuple(entry.mark(i) if i.id in marks else i for i in experience.lessons)
            self.experiences[owner] = experience.model_copy(update={"lessons": lessons})


def taken_out(entries: Mapping[int, Entry], spans: Sequence[range], /) -> list[Replace | Trust]:
    """What purges left in the place of what they erased, and is not in force with these spans, oldest first.

    `entries`: by sequence, those that replace, trust and purge. A purge makes them in one go with its last entry.
    """
    replacements = [(s, e) for s, e in entries.items() if isinstance(e, Replace) and e.heirs]
    known = {(e.experience.id, id) for s, e in replacements if any(s in span for span in spans) for id in e.heirs}
    changes, new = list[Replace | Trust](), set[str]()
    for entry in entries.values():
        if isinstance(entry, Purge):
            new.clear()
        elif isinstance(entry, Replace):
            home = entry.experience.id
            if lost := tuple(id for id in entry.heirs if (home, id) not in known):
                changes.append(entry.model_copy(update={"heirs": lost}))
            known.update((home, id) for id in lost)
            new.update(lost)
        elif isinstance(entry, Trust) and new.issuperset(entry.lesson_ids):
            changes.append(entry)
    return changes


def reworded(entries: Iterable[JournalEntry], /) -> dict[str, datetime]:
    """The moment since which each edited lesson says what it says now. A rollback over an edit is a new moment, too.

    Only edits and rollbacks are looked at, oldest first.
    """
    edits, jumps, moments = dict[str, list[int]](), dict[int, int](), dict[str, datetime]()
    for entry in entries:
        change = entry.entry
        if isinstance(change, Edit):
            edits.setdefault(change.lesson_id, []).append(entry.sequence)
            moments[change.lesson_id] = entry.at
        elif isinstance(change, Rollback):
            for id, known in edits.items():
                if _in_force(known, jumps, entry.sequence - 1) != _in_force(known, jumps, change.to):
                    moments[id] = entry.at
            jumps[entry.sequence] = change.to
    return moments


def diff(before: State, after: State, /) -> Diff:
    """What is in `after` and was not in `before`, and the reverse."""
    earlier, later = ({e.id: e for e in s.experiences} for s in (before, after))
    was, now = ({i.id: i for i in s.lessons(retired=True)} for s in (before, after))
    both = [(was[id], lesson) for id, lesson in now.items() if id in was]
    return Diff(
        added=tuple(e for id, e in later.items() if id not in earlier),
        removed=tuple(e for id, e in earlier.items() if id not in later),
        replaced=tuple(
            Replaced(before=earlier[id], after=e)
            for id, e in later.items()
            if id in earlier and _differ(earlier[id], e)
        ),
        lessons_added=tuple(i for id, i in now.items() if id not in was),
        lessons_removed=tuple(i for id, i in was.items() if id not in now),
        retired=tuple(i for old, i in both if i.retired and (not old.retired or (old.asleep and not i.asleep))),
        restored=tuple(i for old, i in both if old.retired and not i.retired),
        trusted=tuple(i for old, i in both if (i.state, i.approved) != (old.state, old.approved)),
        edited=tuple(i for old, i in both if i.version != old.version),
    )


def _differ(experience: Experience, other: Experience) -> bool:
    return experience is not other and _unflagged(experience) != _unflagged(other)


def _unflagged(experience: Experience) -> Experience:
    lessons = tuple(
        i.model_copy(update={"retired": False, "asleep": False, "state": "probation", "approved": False})
        for i in experience.lessons
    )
    return experience.model_copy(update={"lessons": lessons})


def about(
    entries: Sequence[JournalEntry], /, *, lesson: str | None = None, experience: str | None = None
) -> list[JournalEntry]:
    """The entries that made, changed, took away or brought back one lesson or experience, from a whole journal.

    A verdict on a run of the experience that holds a lesson is part of the lesson's story.
    """
    own: set[str] = {id for id in (lesson,) if id is not None}
    home = experience
    direct: list[int] = []
    for entry in entries:
        change = entry.entry
        brought = change.brings
        held = {member.id for member in brought.lessons} if brought else set[str]()
        if brought and (brought.id == experience if experience is not None else not own.isdisjoint(held)):
            home, own = brought.id, own if experience is None else own | held
            direct.append(entry.sequence)
        elif not own.isdisjoint(change.marks) or (home and change.amends == home):
            direct.append(entry.sequence)
    jumps = rollbacks_of(entries)
    wanted = set(direct) | {
        s for s, to in jumps.items() if _in_force(direct, jumps, s - 1) != _in_force(direct, jumps, to)
    }
    return [entry for entry in entries if entry.sequence in wanted]


def _in_force(sequences: Iterable[int], rollbacks: Mapping[int, int], upto: int) -> list[int]:
    spans = live(rollbacks, upto)
    return [s for s in sequences if any(s in span for span in spans)]


def lineage(entries: Iterable[JournalEntry], lesson_id: str, /) -> Lineage:
    """Which lessons a lesson descends from and which it became, as a scope's whole journal tells; see `successors`."""
    forth = successors(entries)
    back: dict[str, list[str]] = {}
    for source, made in forth.items():
        for merged in made:
            back.setdefault(merged, []).append(source)
    return Lineage(lesson_id=lesson_id, sources=reached(back, lesson_id), successors=reached(forth, lesson_id))


def successors(entries: Iterable[JournalEntry], /) -> dict[str, tuple[str, ...]]:
    """Lesson id to the merged lessons that stand for it now, directly. Reads only merges, restores and rollbacks.

    A merge that was rolled back never was. A source that was restored, as unmerging does, stands for itself again.
    """
    known = [entry for entry in entries if isinstance(entry.entry, Merge | Restore | Rollback)]
    last = max((entry.sequence for entry in known), default=0)
    spans = live(rollbacks_of(known), last)
    made: dict[str, tuple[str, ...]] = {}
    for entry in known:
        change = entry.entry
        if not any(entry.sequence in span for span in spans):
            continue
        if isinstance(change, Restore):
            for id in change.lesson_ids:
                made.pop(id, None)
        elif isinstance(change, Merge):
            merged = tuple(lesson.id for lesson in change.experience.lessons)
            made.update({id: (*made.get(id, ()), *merged) for id in change.source_lesson_ids})
    return made


def reached(steps: Mapping[str, Sequence[str]], start: str, /) -> tuple[str, ...]:
    """Everything that can be reached from `start` by `steps`, the nearest first."""
    ids = dict.fromkeys(steps.get(start, ()))
    todo = list(ids)
    for id in todo:
        todo.extend(new for new in steps.get(id, ()) if new not in ids)
        ids.update(dict.fromkeys(steps.get(id, ())))
    return tuple(id for id in ids if id != start)

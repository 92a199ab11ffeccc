"""Everything one scope holds, in dictionaries, and what follows from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from lessonbank.stores._changes import open_attempts
from lessonbank.stores._erasure import Erasing, forgotten, is_forgotten, unknown
from lessonbank.stores._listing import is_unfinished
from lessonbank.stores._matrix import PARTS, Matrix, ranked
from lessonbank.stores._records import encodable, microseconds
from lessonbank.text.bm25 import words
from lessonbank.types import Counts, Experience, Forgotten, JournalEntry, Match, Purge, Recall, Settlement, Trajectory
from lessonbank.types.ids import now
from lessonbank.types.timeline import Entry, state_at

if TYPE_CHECKING:
    from lessonbank.protocols import Vectors
    from lessonbank.stores._vectors import Rows


@dataclass(slots=True)
class Scope:
    """Everything one scope holds. Dictionaries keep the order of arrival."""

    experiences: dict[str, Experience] = field(default_factory=dict[str, Experience])
    gone: dict[str, Experience] = field(default_factory=dict[str, Experience])
    """What a rollback took out, as it was then: its vectors are still right if it comes back with the same task."""
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    ids: dict[int, str] = field(default_factory=dict[int, str])
    owners: dict[str, str] = field(default_factory=dict[str, str])
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    postings: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    total: int = 0
    attempts: dict[str, dict[str, bool]] = field(default_factory=dict[str, dict[str, bool]])
    trajectories: dict[str, Trajectory] = field(default_factory=dict[str, Trajectory])
    spaces: dict[str, Matrix] = field(default_factory=dict[str, Matrix])
    vectors: dict[str, dict[str, Rows]] = field(default_factory=dict[str, dict[str, "Rows"]])
    recalls: dict[str, Recall] = field(default_factory=dict[str, Recall])
    settlements: dict[str, Settlement] = field(default_factory=dict[str, Settlement])
    kept_at: dict[str, datetime] = field(default_factory=dict[str, datetime])
    """When each run came."""
    journal: list[JournalEntry] = field(default_factory=list[JournalEntry])

    def knows(self, id: str, /) -> bool:
        """See `View.knows`."""
        return id in self.experiences

    def experience(self, id: str, /) -> Experience | None:
        """See `View.experience`."""
        return self.experiences.get(id)

    def owner(self, lesson_id: str, /) -> str | None:
        """See `View.owner`."""
        return self.owners.get(lesson_id)

    def holds(self, id: str, /) -> bool:
        """Whether it is an experience or a lesson of this scope."""
        return id in self.experiences or id in self.owners

    def learned(self, trajectory_ids: Collection[str], /) -> set[str]:
        """See `View.learned`."""
        return {id for id in trajectory_ids if not self.waits(encodable(id))}

    def waits(self, trajectory_id: str) -> bool:
        """Whether no experience has settled this trajectory."""
        return all(self.attempts.get(trajectory_id, {}).values())

    def is_pending(self, run: Trajectory, /) -> bool:
        """Whether a kept run still waits for a verdict or for extraction."""
        return self.waits(run.id) and not is_unfinished(run)

    def holding(self, trajectory_ids: Collection[str], /) -> Experience | None:
        """The newest experience that one of the runs belongs to."""
        ids = {id for known in trajectory_ids for id in self.attempts.get(known, {})}
        return max((self.experiences[id] for id in ids), key=self.age, default=None)

    def keep(self, run: Trajectory, /) -> bool:
        """Keep a run; whether it was new."""
        if run.id in self.trajectories:
            return False
        self.trajectories[run.id], self.kept_at[run.id] = run, now()
        return True

    def oldest_first(self) -> list[Experience]:
        """In the order of a scan."""
        return sorted(self.experiences.values(), key=self.age)

    def age(self, experience: Experience) -> tuple[int, int]:
        """Sorts by time, then by arrival."""
        return microseconds(experience.created_at), self.numbers[experience.id]

    def write(self, experience: Experience) -> None:
        """Put an experience in the place of what has its id."""
        earlier = self.experiences.get(experience.id)
        if earlier is not None:
            self._forget(earlier)
        known = earlier or self.gone.pop(experience.id, None)
        self._number(experience.id)
        if known is not None:
            self._drop_stale(known, experience)
        self.experiences[experience.id] = experience
        self._derive(experience)
        for space in self.vectors:
            self._show(experience, space)

    def roll_back(self, to: int, /, *, scope: str) -> None:
        """Make the experiences what they were after entry `to`."""
        wanted = {e.id: e for e in state_at(self.journal, to, scope=scope).experiences}
        for id in [id for id in self.experiences if id not in wanted]:
            self._take_out(id)
        for id, experience in wanted.items():
            if self.experiences.get(id) != experience:
                self.write(experience)

    def place(self, ids: Sequence[str], rows: Rows, space: str) -> None:
        """Keep unit rows of experiences that are there."""
        self.spaces.setdefault(space, Matrix(rows[0].shape[1]))
        for at, id in enumerate(ids):
            self.vectors.setdefault(space, {})[id] = rows[0][at : at + 1], rows[1][at : at + 1]
        for owner in dict.fromkeys(self.owners.get(id, id) for id in ids):
            self._show(self.experiences[owner], space)

    def nearest(self, query: Vectors, space: str, /, *, limit: int, exclude: Collection[str]) -> list[Match]:
        """The closest rows of a space that holds some; `query` is a unit row."""
        numbers = [self.numbers[id] for id in exclude if id in self.numbers]
        found = self.spaces[space].snapshot().nearest(query, limit=limit, exclude=numbers)
        return [self._match(*divmod(key, PARTS), score) for key, score in ranked(found, limit=limit, age=self._ages)]

    def _ages(self, numbers: Sequence[int]) -> dict[int, int]:
        return {number: microseconds(self.experiences[self.ids[number]].created_at) for number in numbers}

    def _match(self, number: int, place: int, score: float) -> Match:
        experience = self.experiences[self.ids[number]]
        return Match(experience=experience, score=score, lesson_id=experience.lessons[place - 1].id if place else None)

    def rebuild(self) -> None:
        """Rebuild everything that follows from the experiences, and drop vectors that belong to nothing."""
        self.owners, self.lengths, self.postings, self.total, self.attempts = {}, {}, {}, 0, {}
        for experience in self.oldest_first():
            self._derive(experience)
        for space, rows in self.vectors.items():
            self.vectors[space] = {id: row for id, row in rows.items() if id in self.numbers or self._has_lesson(id)}
            self.spaces[space] = Matrix(self.spaces[space].dimensions)
            for experience in self.experiences.values():
                self._show(experience, space)

    def counts(self) -> Counts:
        """How much there is."""
        lessons = [lesson for experience in self.experiences.values() for lesson in experience.lessons]
        return Counts(
            experiences=len(self.experiences),
            lessons=len(lessons),
            retired=sum(lesson.retired for lesson in lessons),
            quarantined=sum(lesson.hidden and not lesson.retired for lesson in lessons),
            trajectories=len(self.trajectories),
            pending=sum(map(self.is_pending, self.trajectories.values())),
            recalls=len(self.recalls),
            settled=len(self.settlements),
        )

    def check_known(self, erasing: Erasing, /) -> None:
        """Raise NotFound for what neither the scope nor its past knows."""
        while erasing.read(entry.entry for entry in self.journal):
            pass
        kept = erasing.receipt in self.recalls or erasing.trajectory in self.trajectories
        if not kept and not erasing.found:
            raise unknown(erasing)

    def erase(self, erasing: Erasing, reason: str, /) -> Purge:
        """Take out of every record what has to go; its tombstone. The journal keeps its length."""
        by = len(self.journal) + 1
        while erasing.read(entry.entry for entry in self.journal):
            pass
        receipt = run = None
        if erasing.receipt is not None:
            receipt = self.recalls.pop(erasing.receipt, None)
            self.settlements.pop(erasing.receipt, None)
        if erasing.trajectory is not None:
            run = self.trajectories.pop(erasing.trajectory, None)
            self.kept_at.pop(erasing.trajectory, None)
        if run is None and receipt is None and not erasing.found:
            raise unknown(erasing)
        before = self.journal
        self.journal = [_kept(entry, erasing.entry(entry.entry, by=by)) for entry in before]
        recalls = self.recalls
        self.recalls = {id: erasing.recall(recall) for id, recall in recalls.items()}
        self.settlements = {id: erasing.settlement(s) for id, s in self.settlements.items()}
        self._erase_experiences(erasing)
        return erasing.tombstone(
            reason,
            trajectories=int(run is not None),
            recalls=sum(self.recalls[id] is not recalls[id] for id in recalls) + int(receipt is not None),
            entries=sum(new is not old for new, old in zip(self.journal, before, strict=True)),
        )

    def forget(self, before: datetime, /, *, salt: str) -> Forgotten:
        """Erase old runs and recalls, but for the evidence."""
        end = microseconds(before)
        runs = [id for id, at in self.kept_at.items() if microseconds(at) < end]
        old = [r for r in self.recalls.values() if microseconds(r.created_at) < end and not is_forgotten(r)]
        for id in runs:
            del self.trajectories[id], self.kept_at[id]
        for recall in old:
            if recall.id in self.settlements:
                self.recalls[recall.id] = forgotten(recall, salt)
            else:
                del self.recalls[recall.id]
        return Forgotten(before=before, runs=len(runs), recalls=len(old))

    def _erase_experiences(self, erasing: Erasing) -> None:
        for id, experience in list(self.experiences.items()):
            left = erasing.experience(experience)
            if left is None:
                self._take_out(id)
            elif left is not experience:
                self.write(left)
        for id in erasing.experiences:
            self.gone.pop(id, None)
            self.numbers.pop(id, None)
        for id in (*erasing.experiences, *erasing.lessons):
            for rows in self.vectors.values():
                rows.pop(id, None)
        self.gone = {id: left for id, e in self.gone.items() if (left := erasing.experience(e))}

    def _derive(self, experience: Experience) -> None:
        for lesson in experience.lessons:
            self.owners[lesson.id] = experience.id
        held = Counter(words(experience.task))
        for word, count in held.items():
            self.postings.setdefault(word, {})[experience.id] = count
        self.lengths[experience.id] = held.total()
        self.total += held.total()
        for trajectory_id, waiting in open_attempts(experience).items():
            self.attempts.setdefault(trajectory_id, {})[experience.id] = waiting

    def _number(self, id: str) -> None:
        # What was purged had the last number, perhaps: none is given twice.
        number = self.numbers.setdefault(id, next(reversed(self.ids), -1) + 1)
        self.ids[number] = id

    def _forget(self, earlier: Experience) -> None:
        for lesson in earlier.lessons:
            if self.owners.get(lesson.id) == earlier.id:
                del self.owners[lesson.id]
        for word in set(words(earlier.task)):
            del self.postings[word][earlier.id]
        self.total -= self.lengths.pop(earlier.id)
        for attempt in earlier.attempts:
            self.attempts.get(attempt.trajectory_id, {}).pop(earlier.id, None)

    def _take_out(self, id: str) -> None:
        self.gone[id] = earlier = self.experiences.pop(id)
        self._forget(earlier)
        for matrix in self.spaces.values():
            for key in self._keys(earlier).values():
                matrix.drop(key)

    def _keys(self, experience: Experience) -> dict[str, int]:
        """The ids that may have a vector, each with its key in a matrix."""
        first = self.numbers[experience.id] * PARTS
        lessons = enumerate(experience.lessons[: PARTS - 1], 1)
        return {experience.id: first, **{lesson.id: first + at for at, lesson in lessons}}

    def _has_lesson(self, id: str) -> bool:
        return id in self.owners or any(lesson.id == id for e in self.gone.values() for lesson in e.lessons)

    def _drop_stale(self, before: Experience, after: Experience) -> None:
        """Vectors of a task that is another now are of no use, nor are those of changed lessons."""
        said, says, keys = _texts(before), _texts(after), self._keys(after)
        for id, key in self._keys(before).items():
            if says.get(id) != said[id] or keys.get(id) != key:
                for space, rows in self.vectors.items():
                    rows.pop(id, None)
                    self.spaces[space].drop(key)

    def _show(self, experience: Experience, space: str) -> None:
        shown = {experience.id: bool(experience.active_lessons), **{i.id: not i.hidden for i in experience.lessons}}
        for id, key in self._keys(experience).items():
            row = self.vectors[space].get(id)
            if row is not None:
                self.spaces[space].put(key, row, active=shown[id])


def _texts(experience: Experience) -> dict[str, str]:
    return {experience.id: experience.task, **{lesson.id: lesson.text for lesson in experience.lessons}}


def _kept(entry: JournalEntry, left: Entry) -> JournalEntry:
    return entry if left is entry.entry else entry.model_copy(update={"entry": left})


def journaled(
    journal: list[JournalEntry], entries: Sequence[Entry], /, *, scope: str, writer: str
) -> list[JournalEntry]:
    """Append entries to a journal; each with its sequence."""
    at = now()
    first = len(journal) + 1
    new = [
        JournalEntry(sequence=sequence, at=at, scope=scope, writer=writer, entry=entry)
        for sequence, entry in enumerate(entries, first)
    ]
    journal.extend(new)
    return new

"""What a batch of changes is decided upon: a scope as one transaction sees it, what can be foreseen asked together."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

from lessonbank.contracts.records import Experience
from lessonbank.guard.wording import wording_of
from lessonbank.stores._entries import Batch
from lessonbank.stores._records import encodable

from ._database import Answer, Connection, ask, stored
from ._read import LEARNED, learned_of
from ._rows import experience_of


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a batch will ask about, by id."""

    experiences: Collection[str] = ()
    lessons: Collection[str] = ()
    runs: Collection[str] = ()
    wordings: Collection[str] = ()


def foreseen(batch: Batch, /) -> Foreseen:
    """What the changes of a batch name, and the lessons they bring."""
    brought = [brought for c in batch.changes if (brought := c.brings)]
    forecast = foreseen_of(brought)
    named = {c.amends for c in batch.changes if c.amends} | {e.id for e in batch.if_unchanged}
    lessons = {id for change in batch.changes for id in change.marks}
    wordings = {wording_of(i) for e in brought for i in e.lessons} if batch.unique_wording else set[str]()
    return Foreseen({*forecast.experiences, *named}, {*forecast.lessons, *lessons}, tuple(batch.if_unlearned), wordings)


def foreseen_of(brought: Iterable[Experience], /) -> Foreseen:
    """What experiences that come to a scope will ask about."""
    held = list(brought)
    return Foreseen({e.id for e in held}, {lesson.id for e in held for lesson in e.lessons})


class Earlier:
    """An experience as it was before the batch; one that a rollback took out (`is_removed`) gets its row back."""

    def __init__(self, number: int, words: int, is_removed: bool, record: bytes, /) -> None:
        self.number, self.words, self.is_removed = number, words, is_removed
        self._record = record

    @cached_property
    def experience(self) -> Experience:
        """Read the experience's record. Raises StoreDamaged."""
        return experience_of(self._record)


class Present:
    """A scope's state as this transaction sees it, before it writes; the `View` that changes are planned on."""

    def __init__(self, connection: Connection, scope: str, /, *, foreseen: Foreseen | None = None) -> None:
        forecast, look = foreseen or Foreseen(), partial(_Looked, connection, scope)
        self._experiences = look(_EXPERIENCES, forecast.experiences)
        self._lessons = look(_LESSONS, forecast.lessons)
        self._repeats = look(_REPEATS, forecast.lessons)
        self._runs = look(LEARNED, list(map(encodable, forecast.runs)))
        self._wordings = look(_WORDINGS, forecast.wordings)
        self._read = dict[str, Earlier]()

    def knows(self, id: str, /) -> bool:
        """See `View.knows`."""
        return self._present(id) is not None

    def experience(self, id: str, /) -> Experience | None:
        """See `View.experience`."""
        earlier = self._present(id)
        return earlier.experience if earlier else None

    def find_holder(self, lesson_id: str, /) -> str | None:
        """See `View.find_holder`."""
        return next((id for _, id in self._lessons([lesson_id])), None)

    def settled_runs(self, trajectory_ids: Collection[str], /) -> set[str]:
        """See `View.settled_runs`."""
        return learned_of(trajectory_ids, self._runs(list(map(encodable, trajectory_ids))))

    def find_wordings(self, wordings: Collection[str], /) -> list[tuple[str, str]]:
        """See `View.find_wordings`."""
        return [(wording, id) for wording, id in self._wordings(wordings)]

    def earlier(self, ids: Collection[str], /) -> dict[str, Earlier]:
        """What has these ids, also what a rollback took out."""
        for id, *columns in self._experiences(ids):
            self._read.setdefault(id, Earlier(*columns))
        return {id: self._read[id] for id in ids if id in self._read}

    def teaching_again(self, lesson_ids: Collection[str], /) -> set[int]:
        """The experiences, by number, that taught one of these lessons again."""
        return {number for _, number in self._repeats(lesson_ids)}

    def _present(self, id: str) -> Earlier | None:
        earlier = self.earlier([id]).get(id)
        return None if earlier is None or earlier.is_removed else earlier


class _Looked:
    """Rows by their first column. Those of foreseen keys are asked for at once, others when they are wanted."""

    def __init__(self, connection: Connection, scope: str, sql: str, keys: Collection[str], /) -> None:
        self._connection, self._scope, self._sql = connection, scope, sql
        self._rows = {key: list[tuple[Any, ...]]() for key in keys}
        self._waiting = [self._asked(keys)] if keys else []

    def __call__(self, keys: Collection[str], /) -> list[tuple[Any, ...]]:
        """The rows of these keys."""
        if others := [key for key in dict.fromkeys(keys) if key not in self._rows]:
            self._rows.update((key, []) for key in others)
            self._waiting.append(self._asked(others))
        while self._waiting:
            for row in self._waiting.pop():
                self._rows[row[0]].append(row)
        return [row for key in dict.fromkeys(keys) for row in self._rows[key]]

    def _asked(self, keys: Collection[str]) -> Answer:
        return ask(self._connection, self._sql, self._scope, list(keys))


# The numbers stand in the statements, and no join does in their place: so the planner knows that they are few. It would
# read the whole scope for one experience else.
_EXPERIENCES: Final = (
    f"SELECT id, number, words, gone, {stored('record')} FROM lessonbank.experiences WHERE scope = %s AND id = ANY(%s)"
)
_LESSONS: Final = (
    "SELECT l.id, e.id FROM lessonbank.lessons l JOIN lessonbank.experiences e ON e.scope = l.scope"
    " AND e.number = l.experience WHERE l.scope = %s AND l.id = ANY(%s)"
)
_REPEATS: Final = "SELECT lesson, experience FROM lessonbank.repeats WHERE scope = %s AND lesson = ANY(%s)"
_WORDINGS: Final = "SELECT wording, id FROM lessonbank.lessons WHERE scope = %s AND wording = ANY(%s)"

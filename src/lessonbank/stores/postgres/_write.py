"""What a write does to the tables; each function runs inside one transaction and is all or nothing with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lessonbank.errors import NotFound
from lessonbank.evidence.review_snapshot import key as told_key
from lessonbank.stores._changes import Draft, planned
from lessonbank.stores._entries import Batch, Journalled, entry_of, erased_since
from lessonbank.stores._listing import is_unfinished, tags
from lessonbank.stores._packing import packed, packed_records, unpacked
from lessonbank.stores._records import encodable, microseconds, moment
from lessonbank.text.bm25 import words
from lessonbank.types import (
    Add,
    Edit,
    Experience,
    JournalEntry,
    Recall,
    Settle,
    Trajectory,
)
from lessonbank.types.ids import now
from lessonbank.types.queue import IN_HAND

from ._database import Connection, ask, do, many, row, rows
from ._derived import derive, refresh_shown, settle_pending, stale_places, underive
from ._postings import index_words, unindex_words
from ._read import LEARNED, learned_of
from ._rows import ScopeRow, drawn, experience_of, experiences_at, make_scope
from ._vectors import forget, place


class Present:
    """A scope's state as this transaction sees it; the `View` that changes are planned on.

    Which ids of what is `new` are there is asked at once.
    """

    def __init__(self, connection: Connection, scope: str, /, *, new: Sequence[Experience] = ()) -> None:
        self._connection = connection
        self._scope = scope
        self._unknown = self._not_there(_EXPERIENCES, [e.id for e in new])
        self._unowned = self._not_there(_LESSONS, [i.id for e in new for i in e.lessons])

    def _not_there(self, sql: str, ids: Sequence[str]) -> set[str]:
        if not ids:
            return set()
        return set(ids) - {id for (id, *_) in rows(self._connection, sql, self._scope, list(ids))}

    def knows(self, id: str, /) -> bool:
        """See `View.knows`."""
        return id not in self._unknown and self._one(_EXPERIENCES, id) is not None

    def experience(self, id: str, /) -> Experience | None:
        """See `View.experience`."""
        number = None if id in self._unknown else self._one(_EXPERIENCES, id)
        return None if number is None else experiences_at(self._connection, self._scope, [number])[number]

    def owner(self, lesson_id: str, /) -> str | None:
        """See `View.owner`."""
        return None if lesson_id in self._unowned else self._one(_LESSONS, lesson_id)

    def learned(self, trajectory_ids: Collection[str], /) -> set[str]:
        """See `View.learned`."""
        if not trajectory_ids:
            return set()
        found = rows(self._connection, LEARNED, self._scope, list(map(encodable, trajectory_ids)))
        return learned_of(trajectory_ids, found)

    def worded(self, wordings: Collection[str], /) -> list[tuple[str, str]]:
        """See `View.worded`."""
        sql = "SELECT wording, id FROM lessonbank.lessons WHERE scope = %s AND wording = ANY(%s)"
        return [(wording, id) for wording, id in rows(self._connection, sql, self._scope, list(wordings))]

    def _one(self, sql: str, id: str) -> Any:
        found = row(self._connection, sql, self._scope, [id])
        return found[1] if found else None


_EXPERIENCES: Final = "SELECT id, number FROM lessonbank.experiences WHERE scope = %s AND NOT gone AND id = ANY(%s)"
_LESSONS: Final = (
    "SELECT l.id, e.id FROM lessonbank.lessons l JOIN lessonbank.experiences e ON e.scope = l.scope"
    " AND e.number = l.experience WHERE l.scope = %s AND l.id = ANY(%s)"
)


def keep(
    connection: Connection,
    /,
    *,
    scope: str,
    runs: Sequence[Trajectory],
    wait: float = IN_HAND,
    together: bool = True,
) -> Callable[[], list[str]]:
    """Insert trajectories by id; what tells the ids that were new. `together`: see `Store.keep`."""
    do(connection, _SCOPE, scope)
    at, held = microseconds(now()), packed_records(runs)
    leader = held[0][0].id if together and len(held) > 1 else None
    told = [
        {
            "scope": scope,
            "id": run.id,
            "at": at,
            "due": None if is_unfinished(run) else at + round(wait * 1e6),
            "leader": None if run.id == leader else leader,
            "tags": list(tags(run.metadata)),
            "record": blob,
        }
        for run, blob in held
    ]
    answers = [ask(connection, _KEEP, one) for one in told]
    return lambda: [id for answer in answers for (id,) in answer.fetchall()]


_SCOPE: Final = "INSERT INTO lessonbank.scopes (scope) VALUES (%s) ON CONFLICT DO NOTHING"
_KEEP: Final = (
    "INSERT INTO lessonbank.trajectories (scope, id, kept_at, due, leader, tags, record, pending)"
    " VALUES (%(scope)s, %(id)s, %(at)s, %(due)s,"
    " (SELECT number FROM lessonbank.trajectories WHERE scope = %(scope)s AND id = %(leader)s), %(tags)s, %(record)s,"
    " NOT EXISTS (SELECT 1 FROM lessonbank.attempts WHERE scope = %(scope)s AND trajectory = %(id)s AND NOT waiting))"
    " ON CONFLICT DO NOTHING RETURNING id"
)


def apply(connection: Connection, batch: Batch, /) -> Sequence[JournalEntry]:
    """Make the changes, place the vectors, settle the recall, write the journal.

    Raises:
        NotFound, Conflict, SpaceMismatch, UsageError: see `Store.apply`.
    """
    scope = make_scope(connection, batch.scope)
    changes = batch.changes
    draft = planned(
        changes,
        Present(connection, scope.name, new=[change.experience for change in changes if isinstance(change, Add)]),
        scope=batch.scope,
        unlearned=batch.unlearned,
        unchanged=batch.unchanged,
        one_wording=batch.one_wording,
    )
    with connection.pipeline():  # from here on little is asked: the network is waited for a few times, and not twenty
        return _applied(connection, scope, batch, draft)


def _applied(connection: Connection, scope: ScopeRow, batch: Batch, draft: Draft) -> Sequence[JournalEntry]:
    numbers = write(connection, scope, Written.of(draft, scope)) if draft.written else {}
    if any(isinstance(change, Edit) for change in batch.changes):
        do(connection, "DELETE FROM lessonbank.settings WHERE key = %s", told_key(batch.scope))
    if batch.vectors:
        place(connection, scope.name, batch.vectors, batch.space, numbers=numbers)
    for sequence, (entry, _) in enumerate(batch.entries, scope.sequence + 1):
        if isinstance(entry, Settle):
            _settle(connection, scope.name, entry.settlement.recall_id, sequence)
    touched = [{numbers[i]: w for i, w in t.items()} for t in draft.touched]
    return journal(connection, scope, batch, touched=touched)


def journal(
    connection: Connection, scope: ScopeRow, batch: Batch, /, *, touched: Sequence[Mapping[int, bool]] = ()
) -> Sequence[JournalEntry]:
    """Append the entries of a batch; `touched` has for each change the numbers of the experiences it wrote.

    The number maps to whether the change holds the whole record.
    """
    # Through microseconds and back, so that the entry returned equals the entry read later.
    at, first = microseconds(now()), scope.sequence + 1
    places = [*touched, *[dict[int, bool]()] * (len(batch.entries) - len(touched))]
    many(
        connection,
        "INSERT INTO lessonbank.journal (scope, sequence, at, kind, writer, whole, part, entry)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
        (
            (scope.name, sequence, at, entry.kind, batch.writer, *_parted(written), blob)
            for sequence, ((entry, blob), written) in enumerate(zip(batch.entries, places, strict=True), first)
        ),
    )
    sql = "UPDATE lessonbank.scopes SET sequence = sequence + %s WHERE scope = %s"
    do(connection, sql, len(batch.entries), scope.name)
    return Journalled(batch.scope, batch.writer, moment(at), first, [entry for entry, _ in batch.entries])


def _parted(touched: Mapping[int, bool]) -> tuple[list[int], list[int]]:
    return [n for n, held in touched.items() if held], [n for n, held in touched.items() if not held]


def record(connection: Connection, receipt: Recall, /) -> Callable[[], bool]:
    """Keep a receipt; a known one stays as it is. What tells whether it was new."""
    ((recall, blob),) = packed_records([receipt])
    told = {
        "scope": recall.scope,
        "id": recall.id,
        "created_at": microseconds(recall.created_at),
        "tags": list(tags(recall.metadata)),
        "record": blob,
        "shown": sorted({candidate.lesson_id for candidate in recall.candidates if candidate.shown}),
    }
    answer = ask(connection, _RECORD, told)
    return lambda: answer.fetchone() is not None


_RECORD: Final = (  # one statement: each recall waits for it
    "WITH made AS (INSERT INTO lessonbank.scopes (scope) VALUES (%(scope)s) ON CONFLICT DO NOTHING),"
    " new AS (INSERT INTO lessonbank.recalls (scope, id, created_at, tags, record)"
    " VALUES (%(scope)s, %(id)s, %(created_at)s, %(tags)s, %(record)s) ON CONFLICT DO NOTHING RETURNING number),"
    " seen AS (INSERT INTO lessonbank.shown (scope, lesson, recall)"
    " SELECT %(scope)s, lesson, number FROM new, unnest(%(shown)s::text[]) lesson)"
    " SELECT number FROM new"
)


def note_shown(connection: Connection, recalls: Mapping[int, Recall], /, *, scope: str) -> None:
    """Make recalls, by number, findable by the lessons they showed."""
    shown = {(scope, c.lesson_id, number) for number, recall in recalls.items() for c in recall.candidates if c.shown}
    many(connection, "INSERT INTO lessonbank.shown (scope, lesson, recall) VALUES (%s, %s, %s)", sorted(shown))


def take_back(connection: Connection, receipt: Recall, /) -> Callable[[], bool]:
    """Keep a receipt that comes back, unless the scope has erased anything since; what tells whether it is kept."""
    since = microseconds(receipt.created_at)
    found = rows(
        connection,
        "SELECT entry FROM lessonbank.journal WHERE scope = %s AND kind = ANY(%s) AND at >= %s",
        receipt.scope,
        ["purge", "forgotten"],
        since,
    )
    if any(erased_since(entry_of(unpacked(blob)), since) for (blob,) in found):
        return lambda: False
    record(connection, receipt)
    return lambda: True


def set_setting(connection: Connection, key: str, value: str | None, /) -> None:
    """Keep a choice with the bank; `None` removes it."""
    if value is None:
        do(connection, "DELETE FROM lessonbank.settings WHERE key = %s", key)
    else:
        sql = (
            "INSERT INTO lessonbank.settings (key, value) VALUES (%s, %s)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        )
        do(connection, sql, key, value)


def _settle(connection: Connection, scope: str, recall_id: str, sequence: int) -> None:
    sql = "UPDATE lessonbank.recalls SET settled = %s WHERE scope = %s AND id = %s RETURNING id"
    if row(connection, sql, sequence, scope, recall_id) is None:
        raise NotFound(f"no recall {recall_id!r} in this scope")


@dataclass(frozen=True, slots=True)
class Written:
    """Experiences to be put in the place of what has their ids."""

    experiences: Mapping[str, Experience]
    added: Collection[str]
    """Ids of those that are new to the scope."""
    entries: Mapping[str, int]
    """Id to the sequence of the journal entry that wrote it last."""

    @classmethod
    def of(cls, draft: Draft, scope: ScopeRow, /) -> Written:
        """What a draft writes, when its changes become the next entries of the journal."""
        entries = {id: sequence for sequence, touched in enumerate(draft.touched, scope.sequence + 1) for id in touched}
        return cls(draft.written, draft.added, entries)


@dataclass(frozen=True, slots=True)
class _Old:
    number: int
    words: int
    gone: bool
    experience: Experience


def write(connection: Connection, scope: ScopeRow, written: Written, /) -> dict[str, int]:
    """Write experiences with all that follows from them; the number of each."""
    every = written.experiences
    old = _old(connection, scope.name, every)
    numbers = {id: one.number for id, one in old.items()}
    new = [id for id in every if id not in old]
    lengths = {id: len(words(e.task)) for id, e in every.items()}
    more = sum(lengths.values()) - sum(one.words for id, one in old.items() if id not in written.added)
    fresh = drawn(connection, scope.name, len(new), documents=len(written.added), words=more)
    numbers.update(zip(new, fresh, strict=True))
    trajectories, again = underive(connection, scope.name, {o.number: o.experience for o in old.values()})
    _put(connection, scope.name, written, numbers, old=old, lengths=lengths)
    derive(connection, scope.name, {numbers[id]: e for id, e in every.items()})
    there = {id: one for id, one in old.items() if not one.gone}
    moved = {id for id, e in every.items() if id not in there or there[id].experience.task != e.task}
    unindex_words(connection, scope.name, {o.number: o.experience.task for id, o in there.items() if id in moved})
    index_words(connection, scope.name, {numbers[id]: every[id].task for id in moved})
    if old:
        forget(connection, scope.name, places=[p for id, o in old.items() for p in _stale(o, every[id])])
    again |= {lesson.id for e in every.values() for lesson in e.lessons}
    refresh_shown(connection, scope.name, numbers.values(), lessons=again, new=not old)
    settle_pending(connection, scope.name, trajectories | {a.trajectory_id for e in every.values() for a in e.attempts})
    return numbers


def _old(connection: Connection, scope: str, ids: Iterable[str]) -> dict[str, _Old]:
    """What has these ids, also what a rollback took out: it gets its row back, to be written over."""
    sql = "SELECT id, number, words, gone, record FROM lessonbank.experiences WHERE scope = %s AND id = ANY(%s)"
    found = rows(connection, sql, scope, list(ids))
    return {id: _Old(number, length, gone, experience_of(record)) for id, number, length, gone, record in found}


def _put(
    connection: Connection,
    scope: str,
    written: Written,
    numbers: Mapping[str, int],
    *,
    old: Mapping[str, _Old],
    lengths: Mapping[str, int],
) -> None:
    def columns(id: str) -> tuple[object, ...]:
        experience = written.experiences[id]
        shown = any(not lesson.hidden for lesson in experience.lessons)
        kept = list(tags(experience.metadata)), packed(experience.model_dump_json())
        told = microseconds(experience.created_at), shown, lengths[id], written.entries[id]
        return *told, *kept, scope, numbers[id]

    many(connection, _UPDATE, (columns(id) for id in old))
    many(connection, _INSERT, ((*columns(id), id) for id in written.experiences if id not in old))


_UPDATE: Final = (
    "UPDATE lessonbank.experiences SET created_at = %s, shown = %s, gone = false, words = %s, entry = %s, tags = %s,"
    " record = %s WHERE scope = %s AND number = %s"
)
_INSERT: Final = (
    "INSERT INTO lessonbank.experiences (created_at, shown, words, entry, tags, record, scope, number, id)"
    " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)"
)


def _stale(old: _Old, new: Experience) -> list[tuple[int, int]]:
    """Where vectors lie of a task or of lessons that say something else now."""
    places = stale_places(old.experience.lessons, new.lessons)
    return [(old.number, place) for place in (places if old.experience.task == new.task else {0, *places})]

"""What a write does to the tables; each function runs inside one transaction and is all or nothing with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lessonbank.contracts.records import Edit, Experience, JournalEntry, Recall, Settle, Trajectory
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.queue import IN_HAND
from lessonbank.contracts.records.settings import REVIEW
from lessonbank.errors import Conflict, NotFound
from lessonbank.stores._changes import KEPT, SETTLED, Draft, planned, stale_places
from lessonbank.stores._entries import Batch, Journalled, entry_of, erased_since
from lessonbank.stores._listing import noted_again, tags_of
from lessonbank.stores._records import encodable, json_of, loaded, microseconds, wait_of
from lessonbank.stores._texts import checked, records_with_sums, with_sum
from lessonbank.text.bm25 import words

from ._database import CLOCK, Connection, ask, do, many, rows, stored
from ._derived import derive, refresh, settle_pending, settle_runs, underive
from ._postings import index_words, unindex_words
from ._present import Earlier, Present, foreseen
from ._rows import VISIBLE, ScopeRow, add_scope, asked_scope, reserve_numbers, told_scope
from ._vectors import forget, place
from ._vectors import index as index


def keep(
    connection: Connection, /, *, scope: str, runs: Sequence[Trajectory], wait: float = IN_HAND, together: bool = True
) -> Callable[[], list[str]]:
    """Insert trajectories by id; what tells the ids that were new. `together`: see `Records.save_runs`."""
    add_scope(connection, scope)
    held = records_with_sums(runs)
    leader = held[0][0].id if together and len(held) > 1 else None
    rows = [
        {
            "scope": scope,
            "id": run.id,
            "wait": None if run.unfinished else wait_of(wait),
            "leader": None if run.id == leader else leader,
            "tags": list(tags_of(run)),
            "record": text,
            "sum": total,
        }
        for run, (text, total) in held
    ]
    answers = [ask(connection, _KEEP, row) for row in rows]
    return lambda: [id for answer in answers for (id,) in answer.fetchall()]


def note_again(connection: Connection, /, *, scope: str, runs: Sequence[Trajectory], wait: float) -> None:
    """Keep what is said now of runs that wait. Workers may take unfinished ones in `wait` seconds."""
    sql = (
        f"SELECT id, {stored('record')} FROM lessonbank.trajectories WHERE scope = %s AND id = ANY(%s) AND pending"
        " FOR UPDATE"
    )
    waiting = dict(rows(connection, sql, scope, [encodable(run.id) for run in runs]))
    held = [(run, loaded(Trajectory, checked(waiting[id]))) for run in runs if (id := encodable(run.id)) in waiting]
    unfinished = [encodable(previous.id) for _, previous in held if previous.unfinished]
    noted = [noted_again(previous, run) for run, previous in held]
    for run, columns in records_with_sums([run for run in noted if run]):
        sql = (
            "UPDATE lessonbank.trajectories SET record_json = %s, record_sum = %s, tags = %s"
            " WHERE scope = %s AND id = %s"
        )
        do(connection, sql, *columns, list(tags_of(run)), scope, run.id)
    if unfinished:
        sql = f"UPDATE lessonbank.trajectories SET due = {CLOCK} + %s WHERE scope = %s AND id = ANY(%s)"
        do(connection, sql, wait_of(wait), scope, unfinished)


_KEEP: Final = (
    "INSERT INTO lessonbank.trajectories (scope, id, kept_at, due, leader, tags, record_json, record_sum, pending)"
    f" VALUES (%(scope)s, %(id)s, {CLOCK}, {CLOCK} + %(wait)s::bigint,"
    " (SELECT number FROM lessonbank.trajectories WHERE scope = %(scope)s AND id = %(leader)s), %(tags)s, %(record)s,"
    " %(sum)s, NOT EXISTS (SELECT 1 FROM lessonbank.attempts WHERE scope = %(scope)s AND trajectory = %(id)s"
    " AND NOT waiting)) ON CONFLICT DO NOTHING RETURNING id"
)


def apply(connection: Connection, batch: Batch, /) -> Sequence[JournalEntry]:
    """Make the changes, place the vectors, settle the recall, write the journal.

    What can be foreseen is asked together, and what is written is waited for together: both are one trip each where the
    connection is in pipeline mode.

    Raises:
        NotFound, Conflict, SpaceMismatch, UsageError: see `Records.apply`.
    """
    new = keep(connection, scope=batch.scope, runs=batch.runs) if batch.runs else list[str]
    asked = asked_scope(connection, batch.scope)
    present = Present(connection, batch.scope, foreseen=foreseen(batch))
    receipts = [entry.settlement.recall_id for entry, _ in batch.entries if isinstance(entry, Settle)]
    known = ask(connection, _RECEIPTS, batch.scope, receipts) if receipts else None
    scope = told_scope(connection, batch.scope, asked)
    if len(new()) < len(batch.runs):
        raise Conflict(KEPT)
    draft = planned(batch, present, batch.changes)
    there = {row[0]: row[1] for row in known} if known else {}
    if unknown := [id for id in receipts if id not in there]:
        raise NotFound(f"no recall {unknown[0]!r} in this scope")
    if batch.if_unsettled and any(there.values()):
        raise Conflict(SETTLED)
    return _apply(connection, scope, batch, draft, present)


def _apply(
    connection: Connection, scope: ScopeRow, batch: Batch, draft: Draft, present: Present
) -> Sequence[JournalEntry]:
    numbers = write(connection, scope, Written.of(draft, scope), present) if draft.written else {}
    if any(isinstance(change, Edit) for change in batch.changes):
        do(connection, "DELETE FROM lessonbank.settings WHERE key = %s", REVIEW.of(batch.scope))
    if batch.vectors:
        place(connection, scope.name, batch.vectors, batch.space, numbers=numbers)
    for sequence, (entry, _) in enumerate(batch.entries, scope.sequence + 1):
        if isinstance(entry, Settle):
            do(connection, _SETTLE, sequence, scope.name, entry.settlement.recall_id)
    touched = [{numbers[i]: w for i, w in t.items()} for t in draft.touched]
    return journal(connection, scope, batch, touched=touched)


_RECEIPTS: Final = "SELECT id, settled FROM lessonbank.recalls WHERE scope = %s AND id = ANY(%s)"
_SETTLE: Final = "UPDATE lessonbank.recalls SET settled = %s WHERE scope = %s AND id = %s"


def journal(
    connection: Connection, scope: ScopeRow, batch: Batch, /, *, touched: Sequence[Mapping[int, bool]] = ()
) -> Sequence[JournalEntry]:
    """Append the entries of a batch; `touched` has for each change the numbers of the experiences it wrote.

    The number maps to whether the change holds the whole record.
    """
    at, first = microseconds(now()), scope.sequence + 1
    places = [*touched, *[dict[int, bool]()] * (len(batch.entries) - len(touched))]
    many(
        connection,
        "INSERT INTO lessonbank.journal (scope, sequence, at, kind, writer, whole, part, entry_json, entry_sum)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            (scope.name, sequence, at, entry.kind, batch.writer, *_parted(written), *columns)
            for sequence, ((entry, columns), written) in enumerate(zip(batch.entries, places, strict=True), first)
        ),
    )
    sql = "UPDATE lessonbank.scopes SET sequence = sequence + %s WHERE scope = %s"
    do(connection, sql, len(batch.entries), scope.name)
    return Journalled(batch.scope, batch.writer, at, first, [entry for entry, _ in batch.entries])


def _parted(touched: Mapping[int, bool]) -> tuple[list[int], list[int]]:
    return [n for n, held in touched.items() if held], [n for n, held in touched.items() if not held]


def record(connection: Connection, receipt: Recall, /) -> Callable[[], bool]:
    """Keep a receipt; a known one stays as it is. What tells whether it was new."""
    ((recall, (text, total)),) = records_with_sums([receipt])
    parameters = {
        "scope": recall.scope,
        "id": recall.id,
        "created_at": microseconds(recall.created_at),
        "tags": list(tags_of(recall)),
        "record": text,
        "sum": total,
        "shown": sorted({candidate.lesson_id for candidate in recall.candidates if candidate.shown}),
    }
    answer = ask(connection, _RECORD, parameters)
    return lambda: answer.fetchone() is not None


_RECORD: Final = (  # one statement: each recall waits for it
    "WITH made AS (INSERT INTO lessonbank.scopes (scope) VALUES (%(scope)s) ON CONFLICT DO NOTHING),"
    " new AS (INSERT INTO lessonbank.recalls (scope, id, created_at, tags, record_json, record_sum)"
    " VALUES (%(scope)s, %(id)s, %(created_at)s, %(tags)s, %(record)s, %(sum)s) ON CONFLICT DO NOTHING"
    " RETURNING number),"
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
    entries = rows(
        connection,
        f"SELECT {stored('entry')} FROM lessonbank.journal WHERE scope = %s AND kind = ANY(%s) AND at >= %s",
        receipt.scope,
        ["purge", "forgotten"],
        since,
    )
    if any(erased_since(entry_of(checked(blob)), since) for (blob,) in entries):
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


def write(connection: Connection, scope: ScopeRow, written: Written, present: Present, /) -> dict[str, int]:
    """Write experiences with all that follows from them; the number of each."""
    every = written.experiences
    old = present.earlier(every)
    new = {id: e for id, e in every.items() if id not in old}
    numbers = {id: earlier.number for id, earlier in old.items()}
    lengths = {id: len(words(e.task)) for id, e in every.items()}
    more = sum(lengths.values()) - sum(earlier.words for id, earlier in old.items() if id not in written.added)
    fresh = reserve_numbers(connection, scope, len(new), documents=len(written.added), words=more)
    numbers.update(zip(new, fresh, strict=True))
    trajectories, again = underive(connection, scope.name, {o.number: o.experience for o in old.values()})
    derive(connection, scope.name, {numbers[id]: e for id, e in every.items()})
    _put(connection, scope.name, written, numbers, old=old, lengths=lengths)
    there = {id: earlier for id, earlier in old.items() if not earlier.is_removed}
    moved = {id for id, e in every.items() if id not in there or there[id].experience.task != e.task}
    unindex_words(connection, scope.name, {o.number: o.experience.task for id, o in there.items() if id in moved})
    index_words(connection, scope.name, {numbers[id]: every[id].task for id in moved})
    if old:
        stale = [(o.number, at) for id, o in old.items() for at in stale_places(o.experience, every[id])]
        forget(connection, scope.name, places=stale)
    others = present.teaching_again(again | {lesson.id for e in every.values() for lesson in e.lessons})
    these = {earlier.number for earlier in old.values()}
    refresh(connection, scope.name, these | others, with_vectors=these | (others - set(numbers.values())))
    settle_runs(connection, scope.name, new.values())
    settle_pending(connection, scope.name, trajectories | {a.trajectory_id for id in old for a in every[id].attempts})
    return numbers


def _put(
    connection: Connection,
    scope: str,
    written: Written,
    numbers: Mapping[str, int],
    *,
    old: Mapping[str, Earlier],
    lengths: Mapping[str, int],
) -> None:
    def columns(id: str) -> dict[str, object]:
        experience = written.experiences[id]
        text, total = with_sum(json_of(experience))
        return {
            "scope": scope,
            "number": numbers[id],
            "id": id,
            "created_at": microseconds(experience.created_at),
            "shown": any(not lesson.hidden for lesson in experience.lessons),
            "words": lengths[id],
            "entry": written.entries[id],
            "tags": list(tags_of(experience)),
            "record": text,
            "sum": total,
            "again": list(experience.repeats),
        }

    many(connection, _UPDATE, (columns(id) for id in old))
    new = [columns(id) for id in written.experiences if id not in old]
    many(connection, _INSERT.format(shown="%(shown)s"), (row for row in new if not row["again"]))
    many(connection, _INSERT.format(shown=_SHOWS), (row for row in new if row["again"]))


_UPDATE: Final = (
    "UPDATE lessonbank.experiences SET created_at = %(created_at)s, shown = %(shown)s, gone = false, words = %(words)s,"
    " entry = %(entry)s, tags = %(tags)s, record_json = %(record)s, record_sum = %(sum)s"
    " WHERE scope = %(scope)s AND number = %(number)s"
)
_INSERT: Final = (
    "INSERT INTO lessonbank.experiences (created_at, shown, words, entry, tags, record_json, record_sum, scope,"
    " number, id) VALUES (%(created_at)s, {shown}, %(words)s, %(entry)s, %(tags)s, %(record)s,"
    " %(sum)s, %(scope)s, %(number)s, %(id)s)"
)
_SHOWS: Final = (
    "%(shown)s OR EXISTS (SELECT 1 FROM lessonbank.lessons l WHERE l.scope = %(scope)s AND l.id = ANY(%(again)s)"
    f" AND {VISIBLE})"
)
"""Whether a lesson may be shown that a new experience holds or taught again."""

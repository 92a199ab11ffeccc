"""Rebuilds a scope's derived tables from its records, and says where they differ from what they follow from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from lessonbank.contracts.records import Experience, Recall, Rollback, Settle, Trajectory
from lessonbank.contracts.records.timeline import Entry, live
from lessonbank.errors import StoreUnavailable
from lessonbank.stores._entries import entry_of, link_experiences, readable_entry
from lessonbank.stores._listing import tags_of
from lessonbank.stores._records import encodable, loaded, microseconds
from lessonbank.stores._texts import checked
from lessonbank.text.bm25 import words

from ._database import Connection, do, many, row, rows, stored
from ._derived import attempt_rows, derive, lesson_rows, recount, refresh_shown, settle_pending
from ._postings import every_place, index_words, term_rows
from ._rollback import versions
from ._rows import VISIBLE, experience_of
from ._write import note_shown

_BATCH: Final = 256
_DERIVED: Final = ("lessons", "repeats", "attempts", "terms", "shown")


def rebuild(connection: Connection, scope: str, /) -> None:
    """Fill what follows from the records; drop vectors of nothing."""
    for table in (*_DERIVED, "postings"):
        do(connection, f"DELETE FROM lessonbank.{table} WHERE scope = %s", scope)
    for batch in _pages(
        connection, f"SELECT number, gone, {stored('record')} FROM lessonbank.experiences WHERE scope = %s", scope
    ):
        _rebuild_experiences(
            connection, scope, {n: (is_removed, experience_of(record)) for n, is_removed, record in batch}
        )
    _rename_journal(connection, scope)
    for batch in _pages(
        connection, f"SELECT number, {stored('record')} FROM lessonbank.recalls WHERE scope = %s", scope
    ):
        _tag(connection, scope, "recalls", recalls := {n: loaded(Recall, checked(blob)) for n, blob in batch})
        note_shown(connection, recalls, scope=scope)
    for batch in _pages(
        connection, f"SELECT number, {stored('record')} FROM lessonbank.trajectories WHERE scope = %s", scope
    ):
        _tag(connection, scope, "trajectories", {n: loaded(Trajectory, checked(blob)) for n, blob in batch})
    do(connection, f"DELETE FROM lessonbank.vectors v WHERE scope = %s AND ({_OF_NOTHING} OR {_UNFIT})", scope)
    do(connection, f"DELETE FROM lessonbank.spaces s WHERE scope = %s AND {_EMPTY}", scope)
    recount(connection, scope)
    settle_pending(connection, scope, None)
    everything = [number for (number,) in rows(connection, _NUMBERS, scope)]
    refresh_shown(connection, scope, everything)


_NUMBERS: Final = "SELECT number FROM lessonbank.experiences WHERE scope = %s"
_LAST: Final = (
    "UPDATE lessonbank.scopes s SET numbers = greatest(numbers,"
    " (SELECT max(number) FROM lessonbank.experiences e WHERE e.scope = s.scope)), sequence = greatest(sequence,"
    " (SELECT max(j.sequence) FROM lessonbank.journal j WHERE j.scope = s.scope)) WHERE s.scope = %s"
)
_UNFIT: Final = (
    "NOT EXISTS (SELECT 1 FROM lessonbank.spaces s WHERE s.scope = v.scope AND s.space = v.space"
    " AND s.dimensions = vector_dims(v.unit))"
)
_EMPTY: Final = "NOT EXISTS (SELECT 1 FROM lessonbank.vectors v WHERE v.scope = s.scope AND v.space = s.space)"
_OF_NOTHING: Final = (
    "NOT EXISTS (SELECT 1 FROM lessonbank.experiences e WHERE e.scope = v.scope AND e.number = v.experience"
    " AND (e.gone OR v.place = 0 OR EXISTS (SELECT 1 FROM lessonbank.lessons l WHERE l.scope = v.scope"
    " AND l.experience = v.experience AND l.place = v.place)))"
)


def _rebuild_experiences(
    connection: Connection, scope: str, experiences: Mapping[int, tuple[bool, Experience]]
) -> None:
    many(
        connection,
        "UPDATE lessonbank.experiences SET id = %s, created_at = %s, words = %s, tags = %s"
        " WHERE scope = %s AND number = %s",
        ((*_columns(e), list(tags_of(e)), scope, number) for number, (_, e) in experiences.items()),
    )
    present = {number: e for number, (is_removed, e) in experiences.items() if not is_removed}
    derive(connection, scope, present)
    index_words(connection, scope, {number: e.task for number, e in present.items()})


def _columns(experience: Experience) -> tuple[str, int, int]:
    return experience.id, microseconds(experience.created_at), len(words(experience.task))


def _tag(connection: Connection, scope: str, table: str, records: Mapping[int, Recall | Trajectory]) -> None:
    sql = f"UPDATE lessonbank.{table} SET tags = %s WHERE scope = %s AND id = %s"
    many(connection, sql, ((list(tags_of(record)), scope, record.id) for record in records.values()))


def _rename_journal(connection: Connection, scope: str) -> None:
    """Say anew which experiences each entry wrote; and which entry wrote each, and settled each receipt, last."""
    settled, jumps, sequence = dict[str, int](), dict[int, int](), 0
    for sequence, entry, whole, part in link_experiences(_entries(connection, scope), _ids(connection, scope)):
        if isinstance(entry, Settle):
            settled[entry.settlement.recall_id] = sequence
        elif isinstance(entry, Rollback):
            jumps[sequence] = entry.to
        sql = "UPDATE lessonbank.journal SET kind = %s, whole = %s, part = %s WHERE scope = %s AND sequence = %s"
        do(connection, sql, entry.kind, whole, part, scope, sequence)
    do(connection, "UPDATE lessonbank.recalls SET settled = NULL WHERE scope = %s", scope)
    sql = "UPDATE lessonbank.recalls SET settled = %s WHERE scope = %s AND id = %s"
    many(connection, sql, ((sequence, scope, id) for id, sequence in settled.items()))
    sql = "UPDATE lessonbank.experiences SET entry = %s WHERE scope = %s AND number = %s AND NOT gone"
    wrote = versions(connection, scope, live(jumps, sequence))
    many(connection, sql, ((sequence, scope, number) for number, sequence in wrote.items()))
    do(connection, _LAST, scope)


def _entries(connection: Connection, scope: str) -> Iterator[tuple[int, Entry]]:
    sql = f"SELECT sequence, {stored('entry')} FROM lessonbank.journal WHERE scope = %s ORDER BY sequence"
    for batch in _pages(connection, sql, scope):
        yield from ((sequence, entry_of(checked(blob))) for sequence, blob in batch)


def _ids(connection: Connection, scope: str) -> dict[str, int]:
    return dict(rows(connection, "SELECT id, number FROM lessonbank.experiences WHERE scope = %s", scope))


def _pages(connection: Connection, sql: str, scope: str) -> Iterator[list[tuple[Any, ...]]]:
    with connection.cursor("pages", binary=True) as cursor:
        cursor.execute(sql.encode(), (scope,))
        while batch := cursor.fetchmany(_BATCH):
            yield batch


def problems(connection: Connection, scope: str, /) -> list[str]:
    """What is wrong in a scope, one sentence each; empty when all is sound."""
    faults = chain(_faults(connection, scope), _faults_of_records(connection, scope))
    return [f"{count} {what} in the scope {scope!r}" for what, count in faults if count]


def problems_outside(connection: Connection, scope: str, /) -> list[str]:
    """What is wrong between the tables of a scope; no record is read."""
    return [f"{count} {what} in the scope {scope!r}" for what, count in _faults(connection, scope) if count]


def _faults(connection: Connection, scope: str) -> Iterator[tuple[str, int]]:
    for what, condition in _COUNTED.items():
        answer = row(connection, f"SELECT count(*) FROM lessonbank.{condition}", {"scope": scope})
        yield what, answer[0] if answer else 0


def _faults_of_records(connection: Connection, scope: str) -> Iterator[tuple[str, int]]:
    unread: Counter[str] = Counter()
    yield from _unlike_records(connection, scope, unread)
    yield from _unlike_journal(connection, scope, unread)
    for what, condition in _WRONGLY_SHOWN.items():
        answer = row(connection, f"SELECT count(*) FROM lessonbank.{condition}", {"scope": scope})
        yield what, answer[0] if answer else 0
    yield from unread.items()


_COUNTED: Final = {
    "gaps in the journal": (
        "scopes s WHERE scope = %(scope)s AND (sequence, sequence) <> (SELECT count(*), coalesce(max(j.sequence), 0)"
        " FROM lessonbank.journal j WHERE j.scope = %(scope)s)"
    ),
    "numbers that would be given twice": (
        "scopes WHERE scope = %(scope)s AND numbers < (SELECT max(number) FROM lessonbank.experiences"
        " WHERE scope = %(scope)s)"
    ),
    "spaces that are said to lack no vector of later changes": (
        "spaces WHERE scope = %(scope)s AND greatest(tasks_checked, lessons_checked) >"
        " (SELECT sequence FROM lessonbank.scopes WHERE scope = %(scope)s)"
    ),
    "wrong word counts": (
        "scopes s WHERE scope = %(scope)s AND (documents, words) <> (SELECT count(*), coalesce(sum(words), 0)"
        " FROM lessonbank.experiences WHERE scope = %(scope)s AND NOT gone)"
    ),
    "runs with the wrong pending mark": (
        "trajectories t WHERE scope = %(scope)s AND pending = EXISTS (SELECT 1 FROM lessonbank.attempts a"
        " WHERE a.scope = t.scope AND a.trajectory = t.id AND NOT a.waiting)"
    ),
    "vectors without an experience or lesson": f"vectors v WHERE scope = %(scope)s AND {_OF_NOTHING}",
    "vectors that do not fit their space": f"vectors v WHERE v.scope = %(scope)s AND {_UNFIT}",
    "settlements without a journal entry": (
        "recalls r LEFT JOIN lessonbank.journal j ON j.scope = r.scope AND j.sequence = r.settled"
        " WHERE r.scope = %(scope)s AND r.settled IS NOT NULL AND j.kind IS DISTINCT FROM 'settle'"
    ),
}


_SHOWABLE: Final = f"lessonbank.lessons l WHERE l.scope = %(scope)s AND {VISIBLE}"
_WRONGLY_SHOWN: Final = {
    "experiences that searches find or miss against what their lessons say": (
        "experiences e WHERE e.scope = %(scope)s AND NOT e.gone AND e.shown <>"
        f" (e.number IN (SELECT l.experience FROM {_SHOWABLE}) OR e.number IN (SELECT r.experience"
        f" FROM lessonbank.repeats r WHERE r.scope = %(scope)s AND r.lesson IN (SELECT l.id FROM {_SHOWABLE})))"
    ),
    "vectors that searches find or miss against what their lessons say": (
        "vectors v JOIN lessonbank.experiences e ON e.scope = v.scope AND e.number = v.experience"
        " WHERE v.scope = %(scope)s AND v.shown <> CASE WHEN v.place = 0 THEN e.shown AND NOT e.gone"
        f" ELSE (v.experience, v.place) IN (SELECT l.experience, l.place FROM {_SHOWABLE}) END"
    ),
}
"""Conditions that read the marks of every lesson."""


def _unlike_records(connection: Connection, scope: str, unread: Counter[str]) -> Iterator[tuple[str, int]]:
    wanted: dict[str, Counter[tuple[Any, ...]]] = {table: Counter() for table in _DERIVED}
    wrong = 0

    def every(kind: Any, sql: str) -> Iterator[tuple[Any, tuple[Any, ...]]]:
        for blob, *columns in rows(connection, sql, scope):
            try:
                yield loaded(kind, checked(blob)), tuple(columns)
            except StoreUnavailable:
                unread[f"{kind.__name__} records that cannot be read"] += 1

    columns = f"{stored('record')}, number, gone, id, created_at, words, tags"
    sql = f"SELECT {columns} FROM lessonbank.experiences WHERE scope = %s"
    for e, (number, is_removed, *columns, tagged) in every(Experience, sql):
        wrong += (tuple(columns), set(tagged)) != (_columns(e), set(tags_of(e)))
        if not is_removed:
            _want(wanted, number, e)
    sql = f"SELECT {stored('record')}, number, id, created_at, tags FROM lessonbank.recalls WHERE scope = %s"
    for r, (number, id, at, tagged) in every(Recall, sql):
        wrong += (r.id, microseconds(r.created_at), set(tags_of(r))) != (id, at, set(tagged))
        wanted["shown"].update({(encodable(c.lesson_id), number) for c in r.candidates if c.shown})
    sql = f"SELECT {stored('record')}, id, tags FROM lessonbank.trajectories WHERE scope = %s"
    for t, (id, tagged) in every(Trajectory, sql):
        wrong += (t.id, set(tags_of(t))) != (id, set(tagged))
    yield "records that cannot be found by what they say", wrong
    for table, those in wanted.items():
        there = Counter(map(tuple, _read_rows(connection, scope, table)))
        yield f"rows of {table} that disagree with the records", ((there - those) + (those - there)).total()


def _read_rows(connection: Connection, scope: str, table: str) -> Iterable[Sequence[Any]]:
    if table == "terms":
        return every_place(connection, scope)
    return rows(connection, f"SELECT {_COLUMNS[table]} FROM lessonbank.{table} WHERE scope = %s", scope)


_COLUMNS: Final = {
    "lessons": "id, experience, place, state, created_at, kind, writer, wording, seen::text",
    "repeats": "lesson, experience",
    "attempts": "trajectory, experience, waiting, outcome",
    "shown": "lesson, recall",
}


def _want(wanted: Mapping[str, Counter[tuple[Any, ...]]], number: int, experience: Experience) -> None:
    wanted["lessons"].update(lesson_rows(number, experience))
    wanted["repeats"].update((id, number) for id in experience.repeats)
    wanted["attempts"].update(attempt_rows(number, experience))
    wanted["terms"].update(term_rows(number, experience.task))


def _unlike_journal(connection: Connection, scope: str, unread: Counter[str]) -> Iterator[tuple[str, int]]:
    beside = {
        sequence: (set(whole), set(part))
        for sequence, whole, part in rows(
            connection, "SELECT sequence, whole, part FROM lessonbank.journal WHERE scope = %s", scope
        )
    }
    held: dict[int, str] = {}
    jumps: dict[int, int] = {}
    settled: dict[str, int] = {}
    ids, untold = _ids(connection, scope), 0
    for sequence, entry, whole, part in link_experiences(_readable(connection, scope, unread), ids):
        columns = beside[sequence]
        # A purge may leave an entry naming more than it once wrote.
        untold += not (set(whole) <= columns[0] and set(part) <= columns[1] | columns[0])
        if (brought := entry.brings) is not None:
            held[sequence] = brought.id
        elif isinstance(entry, Rollback):
            jumps[sequence] = entry.to
        elif isinstance(entry, Settle):
            settled[entry.settlement.recall_id] = sequence
    yield "journal entries that do not say which experiences they wrote", untold
    spans = live(jumps, max(beside, default=0))
    sql = "SELECT id, number, entry FROM lessonbank.experiences WHERE scope = %s AND NOT gone"
    present = rows(connection, sql, scope)
    there, wrote = {id for id, _, _ in present}, versions(connection, scope, spans)
    wrong_entries = sum(wrote.get(number, entry) != entry for _, number, entry in present)
    yield "experiences that do not name the journal entry that wrote them last", wrong_entries
    journal_ids = {id for at, id in held.items() if any(at in span for span in spans)}
    yield (
        "experiences that are not there as the journal tells",
        len((there ^ journal_ids) | (set(held.values()) - set(ids))),
    )
    sql = "SELECT id, settled FROM lessonbank.recalls WHERE scope = %s AND settled IS NOT NULL"
    wrong = {*dict(rows(connection, sql, scope)).items()} ^ {*settled.items()}
    yield "receipts that do not say which entry settled them", len({id for id, _ in wrong})


def _readable(connection: Connection, scope: str, unread: Counter[str]) -> Iterator[tuple[int, Entry]]:
    sql = f"SELECT sequence, kind, {stored('entry')} FROM lessonbank.journal WHERE scope = %s ORDER BY sequence"
    for sequence, kind, blob in rows(connection, sql, scope):
        entry = readable_entry(blob)
        if entry is None or entry.kind != kind:
            unread["journal entries that cannot be read"] += 1
        else:
            yield sequence, entry

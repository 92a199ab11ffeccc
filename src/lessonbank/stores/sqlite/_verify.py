"""Saying what is wrong with a file: what cannot be read, and what does not follow from the records as it should."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np

from lessonbank.contracts.records import Experience, Recall, Rollback, Settle, Trajectory
from lessonbank.contracts.records.attempts import attempts_of
from lessonbank.contracts.records.timeline import Entry, live
from lessonbank.errors import StoreUnavailable
from lessonbank.stores._entries import readable_entry
from lessonbank.stores._listing import listed, tags_of
from lessonbank.stores._records import encodable, loaded, microseconds
from lessonbank.stores._texts import checked
from lessonbank.text.bm25 import words

from . import _lesson_words
from ._arrays import numbers_in
from ._checks import VECTORS, checksum, stored
from ._derived import EXPERIENCE, RECALL, RUN, TASKS, upto
from ._rebuild import OF_NOTHING, ids_of, journal_of, link_experiences, unfinished
from ._rows import LENGTHS, experience_of, mark, place_of, sequence_of, task_terms, terms

SQLITE_SAYS: Final = "SQLite says: "
"""How the problems begin that make a file unfit to be written to."""
_ORPHANS: Final = {
    "lessons without an experience": (
        "FROM lessons x LEFT JOIN experiences e ON e.number = x.experience"
        " AND x.scope = CASE WHEN e.scope > 0 THEN e.scope ELSE -e.number END"
    ),
    "attempts without an experience": (
        "FROM attempts x LEFT JOIN experiences e ON e.number = x.experience"
        " AND x.scope = CASE WHEN e.scope > 0 THEN e.scope ELSE -e.number END"
    ),
    "experiences without their task": "FROM experiences x LEFT JOIN tasks e ON e.number = x.number",
    "tasks without an experience": "FROM tasks x LEFT JOIN experiences e ON e.number = x.number",
    "experiences without a scope": "FROM experiences x LEFT JOIN scopes e ON e.number = abs(x.scope)",
    "trajectories without a scope": "FROM trajectories x LEFT JOIN scopes e ON e.number = x.scope",
    "recalls without a scope": "FROM recalls x LEFT JOIN scopes e ON e.number = x.scope",
    "settlements without a recall": "FROM settlements x LEFT JOIN recalls e ON e.id = x.recall AND e.scope = x.scope",
    "shown lessons without a recall": "FROM shown x LEFT JOIN recalls e ON e.number = x.recall AND e.scope = x.scope",
    "tags without a run": "FROM (SELECT * FROM tags WHERE kind = 1) x LEFT JOIN trajectories e ON e.number = x.record",
    "tags without a recall": "FROM (SELECT * FROM tags WHERE kind = 2) x LEFT JOIN recalls e ON e.number = x.record",
    "tags without an experience": (
        "FROM (SELECT * FROM tags WHERE kind = 3) x LEFT JOIN experiences e ON e.number = x.record"
    ),
    "repeats without an experience": "FROM repeats x LEFT JOIN experiences e ON e.number = x.experience",
    "settlements without a journal entry": "FROM settlements x LEFT JOIN journal e ON e.number = x.entry",
    "experiences without the journal entry that wrote them": (
        "FROM experiences x LEFT JOIN journal e ON e.number = x.entry"
    ),
}

_FAULTS: Final = {
    "scopes have a gap in their journal": (
        "SELECT count(*) FROM scopes s WHERE s.sequence <> (SELECT count(*) FROM journal j"
        f" WHERE j.number BETWEEN s.number * {1 << 32} + 1 AND s.number * {1 << 32} + s.sequence)"
        f" OR EXISTS (SELECT 1 FROM journal j WHERE j.number > s.number * {1 << 32} + s.sequence"
        f" AND j.number < (s.number + 1) * {1 << 32})"
    ),
    "scopes have wrong word counts": (
        "SELECT count(*) FROM scopes s WHERE (s.documents, s.words) <>"
        " (SELECT count(*), coalesce(sum(words), 0) FROM experiences e WHERE e.scope = s.number)"
    ),
    "experiences have half a record": "SELECT count(*) FROM experiences WHERE (record IS NULL) <> (record_sum IS NULL)",
    "vectors of no experience or lesson, or unlike their space": f"SELECT count(*) FROM ({OF_NOTHING})",
    "word index does not say how far it goes": "SELECT count(*) <> 1 OR min(upto) < 0 FROM indexed",
    "runs have the wrong pending mark": (
        "SELECT count(*) FROM trajectories t WHERE t.pending <> NOT EXISTS (SELECT 1 FROM attempts a"
        " WHERE a.scope = t.scope AND a.trajectory = t.id AND a.waiting = 0)"
    ),
}


_SUMS: Final = {
    "scopes do not have the name that was written": "SELECT sum, name FROM scopes",
    "journal entries do not have the time or the writer that was written": (
        "SELECT sum, number, at, writer FROM journal"
    ),
    "experiences do not name the journal entry that wrote them": "SELECT sum, number, entry FROM experiences",
    "runs do not have the time or the scope that was written": "SELECT sum, scope, kept_at, id FROM trajectories",
    "vectors are not what was written": VECTORS,
    "spaces of vectors are not what was written": "SELECT sum, scope, name, dimensions FROM spaces",
    "settings are not what was written": "SELECT sum, key, value FROM settings",
}
"""What has a checksum of its own, see `_checks`."""


def problems(connection: sqlite3.Connection, /) -> list[str]:
    """What is wrong, one sentence each; empty when the file is sound."""
    return _problems(connection, chain(_counts(connection), _counts_of_records(connection)))


def problems_outside(connection: sqlite3.Connection, /) -> list[str]:
    """What is wrong with pages, tables and sums; no record is read."""
    return _problems(connection, _counts(connection))


def _problems(connection: sqlite3.Connection, counts: Iterator[tuple[str, int]]) -> list[str]:
    problems = [f"{SQLITE_SAYS}{text}" for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
    if problems:
        return problems
    if unfinished(connection):
        problems.append("a purge was interrupted before its bytes were gone from the file: rebuild finishes it")
    problems.extend(f"{count} {what}" for what, count in counts if count)
    return problems


def _counts(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    for what, source in _ORPHANS.items():
        yield what, connection.execute(f"SELECT count(*) {source} WHERE e.rowid IS NULL").fetchone()[0]
    for what, question in _FAULTS.items():
        yield what, connection.execute(question).fetchone()[0]
    for what, rows in _SUMS.items():
        yield what, sum(total != checksum(*values) for total, *values in connection.execute(rows))


def _counts_of_records(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    yield "experiences are not in the word index with their words", _unlike_words(connection)
    for what, table, agrees in (("runs", "trajectories", _said_of_run), ("receipts", "recalls", _said_of_recall)):
        rows = connection.execute(
            f"SELECT s.name, x.*, {stored('x.record')} AS stored FROM {table} x JOIN scopes s ON s.number = x.scope"
        )
        rows.row_factory = sqlite3.Row
        yield (
            f"{what} cannot be read, or not be found by what they say",
            sum(not agrees(connection, row) for row in rows),
        )
    yield from _experiences(connection)
    yield from _journals(connection)


def _unlike_words(connection: sqlite3.Connection) -> int:
    """How many tasks the index has not as they are, or has too early. Added up are checksums of words and lengths."""
    (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM experiences").fetchone()
    there, wanted = (np.zeros(last + 2, np.int64) for _ in range(2))
    for term, docs in connection.execute("SELECT term, group_concat(doc) FROM word_places GROUP BY term"):
        rows = numbers_in(docs)
        there[np.minimum(rows // LENGTHS, last + 1)] += checksum(term) + rows % LENGTHS
    sums = lru_cache(1 << 16)(checksum)
    for number, scope, task in connection.execute(f"{TASKS} WHERE e.number <= ?", (upto(connection),)):
        every = words(task)
        terms_of = task_terms(scope, " ".join(every)).split()
        wanted[number] = sum([sums(term) + place_of(0, len(every)) for term in terms_of])
    return int(np.count_nonzero(there != wanted))


def _said_of_run(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
    try:
        run = loaded(Trajectory, checked(row["stored"]))
    except StoreUnavailable:
        return False
    return run.id == row["id"] and _tagged(connection, RUN, row["number"], run)


def _said_of_recall(connection: sqlite3.Connection, row: sqlite3.Row) -> bool:
    try:
        recall = loaded(Recall, checked(row["stored"]))
    except StoreUnavailable:
        return False
    listed = connection.execute("SELECT lesson FROM shown WHERE recall = ?", (row["number"],))
    shown = {encodable(candidate.lesson_id) for candidate in recall.candidates if candidate.shown}
    columns = recall.id, recall.scope, microseconds(recall.created_at), shown
    there = row["id"], row["name"], row["created_at"], {id for (id,) in listed}
    return columns == there and _tagged(connection, RECALL, row["number"], recall)


def _tagged(connection: sqlite3.Connection, kind: int, number: int, record: Trajectory | Recall | Experience) -> bool:
    rows = connection.execute("SELECT tag FROM tags WHERE kind = ? AND record = ?", (kind, number))
    return {tag for (tag,) in rows} == set(tags_of(record))


def _experiences(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    lessons = _by_experience(
        connection,
        "SELECT experience, id, place, retired, state, created_at, kind, writer, wording FROM lessons ORDER BY 1, 3",
    )
    attempts = _by_experience(connection, "SELECT experience, trajectory, waiting, outcome FROM attempts ORDER BY 1")
    repeats = _by_experience(connection, "SELECT experience, lesson FROM repeats ORDER BY 1")
    lost, wrong, counts, indexed = 0, 0, Counter[str](), upto(connection)
    rows = connection.execute(
        f"SELECT e.number, {stored('e.record')}, {stored('j.entry')}, s.number, s.name, e.id, t.task, e.created_at,"
        " e.active, e.words FROM experiences e JOIN scopes s ON s.number = abs(e.scope)"
        " LEFT JOIN tasks t ON t.number = e.number"
        " LEFT JOIN journal j ON j.number = e.entry ORDER BY e.number"
    )
    for number, record, entry, scope, *columns in rows:
        try:
            experience = experience_of(record, entry)
        except StoreUnavailable:
            lost += 1
            continue
        derived = columns, lessons(number), sorted(attempts(number))
        again = {lesson for (lesson,) in repeats(number)} == set(experience.repeats)
        if number <= indexed:
            counts.update(terms(scope, _lesson_words.words_of(experience)).split())
        is_findable = again and _tagged(connection, EXPERIENCE, number, experience)
        wrong += derived != _derived(experience) or not is_findable
    yield "experiences have lost their record", lost
    yield "experiences disagree with what was derived from them", wrong
    unlike = _unlike(_lesson_words.count_by_word(connection), counts)
    yield "words of lessons are not in the index as often as lessons hold them", len(unlike)


def _by_experience(connection: sqlite3.Connection, sql: str) -> Callable[[int], list[tuple[Any, ...]]]:
    """The rows of an experience, whose number is the first column. Asked, as they come, in ascending order: a file has
    too many to be held at once."""
    groups = groupby(connection.execute(sql), itemgetter(0))
    ahead, rows = -1, iter(())

    def of(number: int) -> list[tuple[Any, ...]]:
        nonlocal ahead, rows
        while ahead < number and (group := next(groups, None)):
            ahead, rows = group
        return [tuple(columns) for _, *columns in rows] if ahead == number else []

    return of


def _derived(experience: Experience) -> tuple[list[Any], Sequence[tuple[Any, ...]], Sequence[tuple[Any, ...]]]:
    columns = [
        experience.scope,
        experience.id,
        experience.task,
        microseconds(experience.created_at),
        bool(experience.active_lessons),
        len(words(experience.task)),
    ]
    lessons = [(lesson.id, place, mark(lesson), *listed(lesson)) for place, lesson in enumerate(experience.lessons, 1)]
    return columns, lessons, sorted(attempts_of(experience))


_LOST: Final = "journal entries cannot be read"
_UNTOLD: Final = "journal entries do not say which experiences they wrote"
_MISSING: Final = "experiences are not there as the journal tells"
_UNSETTLED: Final = "receipts do not say which entry settled them"


def _journals(connection: sqlite3.Connection) -> Iterator[tuple[str, int]]:
    faults: Counter[str] = Counter()
    for (scope,) in connection.execute("SELECT number FROM scopes").fetchall():
        _read_journal(connection, scope, faults)
    yield from faults.items()


def _read_journal(connection: sqlite3.Connection, scope: int, faults: Counter[str]) -> None:
    beside: dict[int, tuple[str | None, str | None]] = {}
    held: dict[int, int] = {}
    jumps: dict[int, int] = {}
    settled: dict[str, int] = {}
    ids, lost = ids_of(connection, scope), set[str]()
    for number, entry, *those in link_experiences(_readable(connection, scope, beside, faults), ids):
        faults[_UNTOLD] += not _names_what_it_wrote(*beside.pop(number), *those)
        if (brought := entry.brings) is not None:
            held[sequence_of(number)] = ids.get(brought.id, 0)
            lost.update([] if brought.id in ids else [brought.id])
        elif isinstance(entry, Rollback):
            jumps[sequence_of(number)] = entry.to
        elif isinstance(entry, Settle):
            settled[entry.settlement.recall_id] = number
    (last,) = connection.execute("SELECT sequence FROM scopes WHERE number = ?", (scope,)).fetchone()
    spans = live(jumps, last)
    rows = connection.execute("SELECT number FROM experiences WHERE scope = ?", (scope,))
    made = {number for at, number in held.items() if number and any(at in span for span in spans)}
    faults[_MISSING] += len(made ^ {number for (number,) in rows}) + len(lost)
    rows = connection.execute("SELECT recall, entry FROM settlements WHERE scope = ?", (scope,))
    faults[_UNSETTLED] += sum(settled.pop(recall, None) != entry for recall, entry in rows) + len(settled)


def _unlike(actual: Mapping[str, int], other: Mapping[str, int]) -> set[str]:
    """The keys that the two have not alike."""
    return {key for key in chain(actual, other) if actual.get(key) != other.get(key)}


def _readable(
    connection: sqlite3.Connection, scope: int, beside: dict[int, tuple[str | None, str | None]], faults: Counter[str]
) -> Iterator[tuple[int, Entry]]:
    for number, kind, whole, part, blob in journal_of(connection, scope):
        entry = readable_entry(blob)
        if entry is None or entry.kind != kind:
            faults[_LOST] += 1
        else:
            beside[number] = whole, part
            yield number, entry


def _names_what_it_wrote(whole: str | None, part: str | None, held: list[int], flipped: list[int]) -> bool:
    """Whether an entry names what it wrote. A purge may leave it naming more that it once changed in part."""
    try:
        return sorted(json.loads(whole or "[]")) == sorted(held) and set(flipped) <= {*json.loads(part or "[]"), *held}
    except (TypeError, ValueError):
        return False

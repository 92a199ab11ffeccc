"""A rollback in the tables: moves experiences out and back whole, and writes anew only those whose record differs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from lessonbank.stores._changes import check_target
from lessonbank.timeline import folded, live
from lessonbank.types import Experience, JournalEntry, Rollback

from ._derived import recount, settle_all
from ._reading import entry_of
from ._rows import ScopeRow, find_scope, make_scope
from ._writing import Batch, journal, write

_AMONG: Final = "IN (SELECT value FROM json_each(?))"


def rewind(connection: sqlite3.Connection, batch: Batch, rollback: Rollback, /) -> list[JournalEntry]:
    """Make the experiences of a scope what they were after entry `rollback.to`.

    Raises:
        NotFound: there is no such entry.
    """
    scope = make_scope(connection, batch.scope)
    check_target(rollback, sequence=scope.sequence)
    jumps = _rollbacks(connection, scope)
    now, then = live(jumps, scope.sequence), live(jumps, rollback.to)
    touched = _touched(connection, scope, set(chain(*now)) ^ set(chain(*then)))
    if touched:
        _change_over(connection, scope, batch.scope, touched, now, then)
    return journal(connection, find_scope(connection, batch.scope), batch, touched=[{}])


def _change_over(
    connection: sqlite3.Connection,
    scope: ScopeRow,
    name: str,
    touched: Collection[int],
    now: Sequence[range],
    then: Sequence[range],
) -> None:
    """An experience's record follows from the last entry that wrote it, so only other versions are written anew."""
    was, wanted = (_versions(connection, scope, touched, spans) for spans in (now, then))
    kept: dict[int, int] = dict(
        connection.execute(f"SELECT experience, version FROM removed WHERE experience {_AMONG}", (_json(touched),))
    )
    there = was | kept
    other = [number for number, version in wanted.items() if there.get(number) != version]
    # Before anything comes back: an item may have gone from one experience to another.
    _drop_derived(connection, other)
    _take_out(connection, {number: version for number, version in was.items() if number not in wanted})
    _bring_back(connection, scope, [number for number in wanted if number in kept])
    recount(connection, scope=scope.number)
    if other:
        records = [_record(connection, scope, number, then) for number in other]
        write(connection, find_scope(connection, name), {e.id: e for e in records}, added=())
    settle_all(connection, scope=scope.number)


def _rollbacks(connection: sqlite3.Connection, scope: ScopeRow) -> dict[int, int]:
    rows = connection.execute(
        "SELECT sequence, json_extract(entry, '$.to') FROM journal"
        """ WHERE scope = ? AND substr(entry, 1, 18) = '{"kind":"rollback"'""",
        (scope.number,),
    )
    return dict(rows.fetchall())


def _touched(connection: sqlite3.Connection, scope: ScopeRow, sequences: Collection[int]) -> set[int]:
    rows = connection.execute(
        f"SELECT DISTINCT experience FROM touched WHERE scope = ? AND sequence {_AMONG}",
        (scope.number, _json(sequences)),
    )
    return {number for (number,) in rows}


def _versions(
    connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int], spans: Sequence[range]
) -> dict[int, int]:
    """The last entry that wrote each experience, for those that the entries of `spans` leave in being."""
    last: dict[int, int] = {}
    whole: set[int] = set()
    for span in spans:
        rows = connection.execute(
            "SELECT experience, max(sequence), max(whole) FROM touched"
            f" WHERE scope = ? AND sequence BETWEEN ? AND ? AND experience {_AMONG} GROUP BY experience",
            (scope.number, span[0], span[-1], _json(numbers)),
        )
        for number, sequence, put in rows:
            last[number] = sequence
            if put:
                whole.add(number)
    return {number: sequence for number, sequence in last.items() if number in whole}


def _record(connection: sqlite3.Connection, scope: ScopeRow, number: int, spans: Sequence[range]) -> Experience:
    (id,) = connection.execute("SELECT id FROM experiences WHERE number = ?", (number,)).fetchone()
    texts: list[str] = []
    for span in spans:
        rows = connection.execute(
            "SELECT j.entry FROM touched t JOIN journal j ON j.scope = t.scope AND j.sequence = t.sequence"
            " WHERE t.scope = ? AND t.experience = ? AND t.sequence BETWEEN ? AND ? ORDER BY t.sequence",
            (scope.number, number, span[0], span[-1]),
        )
        texts.extend(text for (text,) in rows)
    return folded(map(entry_of, texts))[id]


def _drop_derived(connection: sqlite3.Connection, numbers: Collection[int]) -> None:
    for table in ("items", "attempts"):
        connection.execute(f"DELETE FROM {table} WHERE experience {_AMONG}", (_json(numbers),))


def _take_out(connection: sqlite3.Connection, versions: Mapping[int, int]) -> None:
    among = (_json(versions),)
    connection.execute(f"UPDATE experiences SET scope = -scope WHERE number {_AMONG}", among)
    for table in ("items", "attempts"):
        connection.execute(f"UPDATE {table} SET scope = -experience WHERE experience {_AMONG}", among)
    connection.executemany("INSERT INTO removed (experience, version) VALUES (?, ?)", versions.items())


def _bring_back(connection: sqlite3.Connection, scope: ScopeRow, numbers: Collection[int]) -> None:
    among = (_json(numbers),)
    connection.execute(f"UPDATE experiences SET scope = -scope WHERE number {_AMONG}", among)
    for table in ("items", "attempts"):
        connection.execute(f"UPDATE {table} SET scope = ? WHERE experience {_AMONG}", (scope.number, *among))
    connection.execute(f"DELETE FROM removed WHERE experience {_AMONG}", among)


def _json(numbers: Iterable[int]) -> str:
    return json.dumps(list(numbers))

"""What can be asked of a scope without ranking; each function runs inside one snapshot."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from lessonbank.contracts.ports import ExperienceKey
from lessonbank.contracts.records import Counts, Experience, JournalEntry
from lessonbank.errors import StoreDamaged
from lessonbank.stores._entries import may_name
from lessonbank.stores._listing import UNFINISHED_TAG
from lessonbank.stores._records import moment
from lessonbank.stores._texts import checked

from ._checks import checksum, stored
from ._connection import Connection
from ._rows import AMONG_IDS, OF_SCOPE, among_ids, entry_of, find_scope, sequence_of, stored_at
from ._rows import experience_of as experience_of

_SCOPES: Final = 1_000
"""Of so many scopes at most one connection remembers how many lessons they hold."""
# Sorted without the records: LIMIT keeps SQLite from sorting what is joined to it, too.
SCAN: Final = (
    f"SELECT {stored('e.record')}, {stored('j.entry')} FROM (SELECT number FROM experiences WHERE scope ="
    " (SELECT number FROM scopes WHERE name = ?) ORDER BY created_at, number LIMIT -1) o"
    " CROSS JOIN experiences e ON e.number = o.number LEFT JOIN journal j ON j.number = e.entry"
)
FAILED: Final = "t.due IS NULL AND t.error IS NOT NULL"
"""Which of the runs that nothing was learned from are given up."""
UNSETTLED: Final = (
    "t.pending = 1 AND NOT EXISTS (SELECT 1 FROM tags g WHERE g.kind = 1 AND g.tag = ?2 AND g.record = t.number)"
)
"""From which trajectories something can still be learned; the second parameter is `UNFINISHED_TAG`."""
PENDING: Final = f"{UNSETTLED} AND NOT ({FAILED})"
"""Which of them wait."""
JOURNAL: Final = (
    f"SELECT j.number, j.at, j.writer, {stored('j.entry')} FROM scopes s JOIN journal j"
    f" ON j.number > s.number * {1 << 32} + ?2 AND j.number < (s.number + 1) * {1 << 32} WHERE s.name = ?1"
    " AND (?3 IS NULL OR j.kind IN (SELECT value FROM json_each(?3))) ORDER BY j.number"
)


_EXPERIENCES: Final[Mapping[ExperienceKey, str]] = {
    "id": f"SELECT number FROM experiences WHERE {OF_SCOPE} AND id {AMONG_IDS}",
    "lesson": f"SELECT experience FROM lessons WHERE {OF_SCOPE} AND id {AMONG_IDS}",
    "run": f"SELECT experience FROM attempts WHERE {OF_SCOPE} AND trajectory {AMONG_IDS}",
    "wording": (
        f"SELECT experience FROM lessons INDEXED BY lessons_by_wording WHERE {OF_SCOPE} AND wording {AMONG_IDS}"
    ),
    "repeats": (
        f"SELECT e.number FROM repeats r JOIN experiences e ON e.number = r.experience WHERE e.{OF_SCOPE}"
        f" AND r.lesson {AMONG_IDS}"
    ),
}


def experiences(
    connection: sqlite3.Connection, scope_name: str, by: ExperienceKey, values: Iterable[str], /
) -> list[Experience]:
    """See `Records.experiences`."""
    rows = connection.execute(
        f"SELECT number FROM experiences WHERE number IN ({_EXPERIENCES[by]}) ORDER BY created_at, number",
        (scope_name, among_ids(values)),
    ).fetchall()
    records = stored_at(connection, [number for (number,) in rows]) if rows else {}
    return [experience_of(*records[number]) for (number,) in rows]


def counts(connection: sqlite3.Connection, scope_name: str, /) -> Counts:
    """How much a scope holds."""
    scope = find_scope(connection, scope_name)
    numbers = connection.execute(
        "SELECT ?3, ?5,"
        " (SELECT count(*) FROM lessons WHERE scope = ?1 AND state = 'retired'),"
        " (SELECT count(*) FROM lessons WHERE scope = ?1 AND state = 'quarantined'),"
        " (SELECT count(*) FROM trajectories WHERE scope = ?1),"
        f" (SELECT count(*) FROM trajectories t WHERE scope = ?1 AND {PENDING}),"
        " (SELECT count(*) FROM recalls WHERE scope = ?1),"
        " (SELECT count(*) FROM settlements WHERE scope = ?1), ?4",
        (scope.number, UNFINISHED_TAG, scope.documents, scope.sequence, _lessons_in(connection, scope.number)),
    ).fetchone()
    return Counts(**dict(zip(Counts.model_fields, numbers, strict=True)))


def _lessons_in(connection: sqlite3.Connection, scope: int) -> int:
    """How many lessons a scope holds: counted again only after something was written, by whomever."""
    content = connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes
    held = connection.lessons if isinstance(connection, Connection) else None
    counted = held[1] if held and held[0] == content and len(held[1]) < _SCOPES else dict[int, int]()
    if scope not in counted:
        (counted[scope],) = connection.execute("SELECT count(*) FROM lessons WHERE scope = ?", (scope,)).fetchone()
    if isinstance(connection, Connection):
        connection.lessons = content, counted
    return counted[scope]


def scopes(connection: sqlite3.Connection, /) -> list[str]:
    """Every scope, sorted as Python sorts text."""
    return sorted(name for (name,) in connection.execute("SELECT name FROM scopes"))


def count(connection: sqlite3.Connection, scope_name: str | None, /) -> dict[str, Counts]:
    """See `Records.count`."""
    if scope_name is not None:
        return {scope_name: counts(connection, scope_name)}
    rows = connection.execute(_COUNT_ALL, (None, UNFINISHED_TAG)).fetchall()
    return {name: Counts(**dict(zip(Counts.model_fields, numbers, strict=True))) for name, *numbers in sorted(rows)}


_COUNT_ALL: Final = (
    "SELECT s.name, s.documents, coalesce(l.every, 0), coalesce(l.retired, 0), coalesce(l.quarantined, 0),"
    " coalesce(t.every, 0), coalesce(t.pending, 0), coalesce(r.every, 0), coalesce(d.every, 0), s.sequence"
    " FROM scopes s LEFT JOIN (SELECT scope, count(*) AS every, total(state = 'retired') AS retired,"
    "  total(state = 'quarantined') AS quarantined FROM lessons GROUP BY scope) l ON l.scope = s.number"
    f" LEFT JOIN (SELECT scope, count(*) AS every, total({PENDING}) AS pending FROM trajectories t GROUP BY scope) t"
    "  ON t.scope = s.number"
    " LEFT JOIN (SELECT scope, count(*) AS every FROM recalls GROUP BY scope) r ON r.scope = s.number"
    " LEFT JOIN (SELECT scope, count(*) AS every FROM settlements GROUP BY scope) d ON d.scope = s.number"
)


def setting(connection: sqlite3.Connection, key: str, /) -> str | None:
    """A choice kept with the file. Raises StoreDamaged."""
    row = connection.execute("SELECT value, sum FROM settings WHERE key = ?", (key,)).fetchone()
    if row and row[1] != checksum(key, row[0]):
        raise StoreDamaged(f"the setting {key!r} is not what was written")
    return row[0] if row else None


def settings(connection: sqlite3.Connection, prefix: str, exact: bool, /) -> dict[str, str]:
    """The choices whose name begins with `prefix`; or the one with just this name, which is checked."""
    if exact:
        value = setting(connection, prefix)
        return {} if value is None else {prefix: value}
    sql = "SELECT key, value FROM settings WHERE substr(key, 1, length(?1)) = ?1 AND key NOT LIKE 'file.%' ORDER BY key"
    return dict(connection.execute(sql, (prefix,)))


def journal_entry(scope: str, row: Sequence[Any], /, *, naming: Collection[str] | None = None) -> JournalEntry | None:
    """A row of `JOURNAL` as a record; `None` where it names none of the ids asked for."""
    number, at, writer, blob = row
    text = checked(blob)
    if not may_name(text, naming):
        return None
    return JournalEntry(sequence=sequence_of(number), at=moment(at), scope=scope, writer=writer, entry=entry_of(text))

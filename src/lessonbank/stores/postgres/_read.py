"""What can be asked of a scope without ranking; each function runs inside one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from lessonbank.contracts.records import Counts, Experience, JournalEntry, Recall, Settle, Settlement, Trajectory
from lessonbank.errors import NotFound
from lessonbank.stores._entries import entry_of, may_name
from lessonbank.stores._listing import UNFINISHED_TAG
from lessonbank.stores._records import encodable, loaded, moment
from lessonbank.stores._texts import checked

from ._database import Connection, row, rows, stored
from ._rows import experience_of, experiences_at

SCAN: Final = (
    f"SELECT {stored('record')} FROM lessonbank.experiences WHERE scope = %s AND NOT gone"
    " ORDER BY scope, created_at, number"
)
RECEIPTS: Final = (
    f"SELECT {stored('record')} FROM lessonbank.recalls WHERE scope = %s"
    " AND coalesce((settled IS NOT NULL) = %s, true) ORDER BY scope, created_at, number"
)
FAILED: Final = "(t.due IS NULL AND t.error IS NOT NULL)"
"""Which of the runs that nothing was learned from are given up."""
UNSETTLED: Final = "t.pending AND NOT %(unfinished)s = ANY(t.tags)"
"""From which trajectories something can still be learned; `unfinished` is `UNFINISHED_TAG`."""
JOURNAL: Final = (
    f"SELECT sequence, at, writer, {stored('entry')} FROM lessonbank.journal WHERE scope = %s AND sequence > %s"
    " AND coalesce(kind = ANY(%s), true) ORDER BY scope, sequence"
)


LEARNED: Final = (
    "SELECT DISTINCT trajectory FROM lessonbank.attempts WHERE scope = %s AND NOT waiting AND trajectory = ANY(%s)"
)
"""Which of these runs an experience has settled."""
HOLDING: Final = (
    f"SELECT created_at, number, {stored('record')} FROM lessonbank.experiences WHERE scope = %(scope)s"
    " AND number = ANY(ARRAY(SELECT experience FROM lessonbank.attempts WHERE scope = %(scope)s"
    " AND trajectory = ANY(%(ids)s)))"
)
"""The experiences that these runs belong to. An array, and no join: so the planner knows that they are few."""
WORDED: Final = (
    f"SELECT number, {stored('record')} FROM lessonbank.experiences WHERE scope = %(scope)s AND number = ANY(ARRAY("
    "SELECT experience FROM lessonbank.lessons WHERE scope = %(scope)s AND wording = ANY(%(wordings)s)))"
)
"""The experiences with a lesson of one of these wordings."""


def newest(found: Iterable[tuple[int, int, bytes]], /) -> Experience | None:
    """Of the rows of `HOLDING` the newest."""
    best = max(found, key=lambda one: one[:2], default=None)
    return None if best is None else experience_of(best[2])


def holding(connection: Connection, scope: str, ids: Collection[str], /) -> Experience | None:
    """The newest experience that one of the runs belongs to."""
    return newest(rows(connection, HOLDING, {"scope": scope, "ids": list(map(encodable, ids))}))


def learned_of(ids: Collection[str], found: Iterable[tuple[str]], /) -> set[str]:
    """Those of the ids that `LEARNED` has found."""
    settled = {id for (id,) in found}
    return {id for id in ids if encodable(id) in settled}


def trajectory(connection: Connection, scope: str, id: str, /) -> Trajectory:
    """One kept run. Raises NotFound."""
    sql = f"SELECT {stored('record')} FROM lessonbank.trajectories WHERE scope = %s AND id = %s"
    return loaded(Trajectory, checked(_found(connection, sql, scope, id, "trajectory")))


def experience(connection: Connection, scope: str, id: str, /) -> Experience:
    """One experience. Raises NotFound."""
    sql = "SELECT number FROM lessonbank.experiences WHERE scope = %s AND id = %s AND NOT gone"
    return _at(connection, scope, _found(connection, sql, scope, id, "experience"))


def owner(connection: Connection, scope: str, lesson_id: str, /) -> Experience:
    """The experience of a lesson. Raises NotFound."""
    sql = "SELECT experience FROM lessonbank.lessons WHERE scope = %s AND id = %s"
    return _at(connection, scope, _found(connection, sql, scope, lesson_id, "lesson"))


def owners(connection: Connection, scope: str, lesson_ids: Collection[str], /) -> list[Experience]:
    """The experiences of lessons, oldest first."""
    sql = "SELECT DISTINCT experience FROM lessonbank.lessons WHERE scope = %s AND id = ANY(%s)"
    return _all(connection, scope, rows(connection, sql, scope, list(map(encodable, lesson_ids))))


def repeating(connection: Connection, scope: str, lesson_ids: Collection[str], /) -> list[Experience]:
    """The experiences that taught one of these lessons again, oldest first."""
    sql = "SELECT DISTINCT experience FROM lessonbank.repeats WHERE scope = %s AND lesson = ANY(%s)"
    return _all(connection, scope, rows(connection, sql, scope, list(map(encodable, lesson_ids))))


def recall(connection: Connection, scope: str, id: str, /) -> Recall:
    """A receipt. Raises NotFound."""
    sql = f"SELECT {stored('record')} FROM lessonbank.recalls WHERE scope = %s AND id = %s"
    return loaded(Recall, checked(_found(connection, sql, scope, id, "recall")))


def settlement(connection: Connection, scope: str, recall_id: str, /) -> Settlement | None:
    """The latest settlement of a recall."""
    found = row(
        connection,
        f"SELECT {stored('j.entry')} FROM lessonbank.recalls r JOIN lessonbank.journal j ON j.scope = r.scope"
        " AND j.sequence = r.settled WHERE r.scope = %s AND r.id = %s",
        scope,
        encodable(recall_id),
    )
    held = entry_of(checked(found[0])) if found else None
    return held.settlement if isinstance(held, Settle) else None


def counts(connection: Connection, scope: str, /) -> Counts:
    """How much a scope holds."""
    found = row(
        connection,
        "SELECT (SELECT count(*) FROM lessonbank.experiences WHERE scope = %(scope)s AND NOT gone),"
        " l.every, l.retired, l.quarantined, t.every, t.pending, r.every, r.settled,"
        " coalesce((SELECT sequence FROM lessonbank.scopes WHERE scope = %(scope)s), 0) FROM"
        " (SELECT count(*) AS every, count(*) FILTER (WHERE state = 'retired') AS retired,"
        "  count(*) FILTER (WHERE state = 'quarantined') AS quarantined"
        "  FROM lessonbank.lessons WHERE scope = %(scope)s) l,"
        f" (SELECT count(*) AS every, count(*) FILTER (WHERE {UNSETTLED} AND NOT {FAILED}) AS pending"
        "  FROM lessonbank.trajectories t WHERE scope = %(scope)s) t,"
        " (SELECT count(*) AS every, count(settled) AS settled FROM lessonbank.recalls WHERE scope = %(scope)s) r",
        {"scope": scope, "unfinished": UNFINISHED_TAG},
    )
    return Counts(**dict(zip(Counts.model_fields, found or (), strict=True)))


def scopes(connection: Connection, /) -> list[str]:
    """Every scope that this role may list, sorted as Python sorts text."""
    return [name for (name,) in rows(connection, "SELECT scope FROM lessonbank.scopes ORDER BY scope")]


def setting(connection: Connection, key: str, /) -> str | None:
    """A choice kept with the bank."""
    found = row(connection, "SELECT value FROM lessonbank.settings WHERE key = %s", key)
    return found[0] if found else None


def settings(connection: Connection, prefix: str, /) -> dict[str, str]:
    """The choices whose name begins with `prefix`."""
    sql = "SELECT key, value FROM lessonbank.settings WHERE starts_with(key, %s) ORDER BY key"
    return dict(rows(connection, sql, prefix))


def journal_entry(scope: str, found: Sequence[Any], /, *, naming: Collection[str] | None = None) -> JournalEntry | None:
    """A row of `JOURNAL` as a record; `None` where it names none of the ids asked for."""
    sequence, at, writer, blob = found
    text = checked(blob)
    if not may_name(text, naming):
        return None
    return JournalEntry(sequence=sequence, at=moment(at), scope=scope, writer=writer, entry=entry_of(text))


def _all(connection: Connection, scope: str, numbers: Sequence[tuple[int]]) -> list[Experience]:
    return list(experiences_at(connection, scope, sorted(number for (number,) in numbers)).values())


def _at(connection: Connection, scope: str, number: int) -> Experience:
    return experiences_at(connection, scope, [number])[number]


def _found(connection: Connection, sql: str, scope: str, id: str, kind: str) -> Any:
    found = row(connection, sql, scope, encodable(id))
    if found is None:
        raise NotFound(f"no {kind} {id!r} in this scope")
    return found[0]

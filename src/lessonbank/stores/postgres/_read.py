"""What can be asked of a scope without ranking; each function runs inside one snapshot."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from lessonbank.contracts.ports import ExperienceKey
from lessonbank.contracts.records import Counts, Experience, JournalEntry
from lessonbank.stores._entries import entry_of, may_name
from lessonbank.stores._listing import UNFINISHED_TAG
from lessonbank.stores._records import encodable, moment
from lessonbank.stores._texts import checked

from ._database import Connection, enter_scope, row, rows, stored
from ._rows import experience_of

SCAN: Final = (
    f"SELECT {stored('record')} FROM lessonbank.experiences WHERE scope = %s AND NOT gone"
    " ORDER BY scope, created_at, number"
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
_LOOKUPS: Final[Mapping[ExperienceKey, str]] = {
    "lesson": "SELECT experience FROM lessonbank.lessons WHERE scope = %(scope)s AND id = ANY(%(values)s)",
    "run": "SELECT experience FROM lessonbank.attempts WHERE scope = %(scope)s AND trajectory = ANY(%(values)s)",
    "wording": "SELECT experience FROM lessonbank.lessons WHERE scope = %(scope)s AND wording = ANY(%(values)s)",
    "repeats": "SELECT experience FROM lessonbank.repeats WHERE scope = %(scope)s AND lesson = ANY(%(values)s)",
}


def looked_up(by: ExperienceKey, /) -> str:
    """The statement that finds experiences by `values`. An array, and no join: the planner knows that they are few."""
    condition = f"number = ANY(ARRAY({_LOOKUPS[by]}))" if by != "id" else "NOT gone AND id = ANY(%(values)s)"
    columns = f"created_at, number, {stored('record')}"
    return f"SELECT {columns} FROM lessonbank.experiences WHERE scope = %(scope)s AND {condition}"


def oldest_first(rows: Iterable[tuple[int, int, bytes]], /) -> list[Experience]:
    """The experiences of such rows."""
    return [experience_of(record) for *_, record in sorted(rows, key=lambda row: row[:2])]


def experiences(connection: Connection, scope: str, by: ExperienceKey, values: Iterable[str], /) -> list[Experience]:
    """See `Records.experiences`."""
    asked = {"scope": scope, "values": list(map(encodable, values))}
    return oldest_first(rows(connection, looked_up(by), asked))


def learned_of(ids: Collection[str], rows: Iterable[tuple[str]], /) -> set[str]:
    """Return the ids that `LEARNED` has found."""
    settled = {id for (id,) in rows}
    return {id for id in ids if encodable(id) in settled}


def counts(connection: Connection, scope: str, /) -> Counts:
    """How much a scope holds."""
    numbers = row(
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
    return Counts(**dict(zip(Counts.model_fields, numbers or (), strict=True)))


def scopes(connection: Connection, /) -> list[str]:
    """Every scope that this role may list, sorted as Python sorts text."""
    return [name for (name,) in rows(connection, "SELECT scope FROM lessonbank.scopes ORDER BY scope")]


def count(connection: Connection, scope: str | None, /) -> dict[str, Counts]:
    """See `Records.count`. Row security shows one scope at a time, so that each is entered."""
    if scope is not None:
        return {scope: counts(connection, scope)}
    totals = dict[str, Counts]()
    for name in scopes(connection):
        enter_scope(connection, name)
        totals[name] = counts(connection, name)
    return totals


def setting(connection: Connection, key: str, /) -> str | None:
    """A choice kept with the bank."""
    answer = row(connection, "SELECT value FROM lessonbank.settings WHERE key = %s", key)
    return answer[0] if answer else None


def settings_sql(*, exact: bool) -> str:
    """What finds the choices whose name begins with a text, or is just this."""
    named = "key = %s" if exact else "starts_with(key, %s)"
    return f"SELECT key, value FROM lessonbank.settings WHERE {named} ORDER BY key"


def journal_entry(scope: str, row: Sequence[Any], /, *, naming: Collection[str] | None = None) -> JournalEntry | None:
    """A row of `JOURNAL` as a record; `None` where it names none of the ids asked for."""
    sequence, at, writer, blob = row
    text = checked(blob)
    if not may_name(text, naming):
        return None
    return JournalEntry(sequence=sequence, at=moment(at), scope=scope, writer=writer, entry=entry_of(text))

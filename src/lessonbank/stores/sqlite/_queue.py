"""The queue: kept runs that wait are handed to workers, for a time, one after the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Final

from lessonbank.contracts.records import Claim, QueueStatus, Trajectory
from lessonbank.stores._listing import UNFINISHED_TAG
from lessonbank.stores._records import LONGEST_WAIT, encodable, loaded, moment, wait_of
from lessonbank.stores._texts import checked

from ._checks import stored
from ._clock import present
from ._read import FAILED, UNSETTLED
from ._rows import AMONG_IDS, among_ids, find_scope

_WAITS: Final = f"t.due > ?3 AND t.due <= ?3 + {LONGEST_WAIT}"
_HELD: Final = f"t.worker IS NOT NULL AND {_WAITS}"
_NOT_HELD: Final = (f" AND NOT ({_HELD}) ORDER BY t.number",)
_DUE: Final = tuple(f" AND t.due {due} ORDER BY t.due, t.number" for due in ("<= ?3", f"> ?3 + {LONGEST_WAIT}"))
"""Two statements: each of them follows an index."""
_FREE: Final = (
    f"SELECT t.number, s.name, t.tries, {stored('t.record')} FROM trajectories t JOIN scopes s ON s.number = t.scope"
    f" WHERE {UNSETTLED} AND (t.leader IS NULL OR NOT EXISTS (SELECT 1 FROM trajectories l"
    " WHERE l.number = t.leader AND l.scope = t.scope AND l.pending = 1))"
    " AND (NOT ?4 OR t.scope NOT IN (SELECT o.scope FROM trajectories o"
    f" WHERE o.pending = 1 AND o.worker <> ?5 AND o.due > ?3 AND o.due <= ?3 + {LONGEST_WAIT}))"
)


def claim(
    connection: sqlite3.Connection,
    scope: str | None,
    /,
    *,
    worker: str,
    limit: int,
    seconds: float,
    exclusive: bool,
    include_given_up: bool,
) -> list[Claim]:
    """See `Queue.claim`."""
    at = present(connection)
    condition = "" if scope is None else " AND t.scope = (SELECT number FROM scopes WHERE name = ?1)"
    free = [f"{_FREE}{condition}{ready} LIMIT 1" for ready in (_NOT_HELD if include_given_up else _DUE)]
    values, taken = (scope, UNFINISHED_TAG, at, exclusive, worker), list[Claim]()
    while len(taken) < limit:
        row = next((row for sql in free if (row := connection.execute(sql, values).fetchone())), None)
        if row is None:
            break
        number, name, tries, blob = row
        sql = "UPDATE trajectories SET worker = ?, due = ?, tries = tries + 1 WHERE number = ?"
        connection.execute(sql, (worker, at + wait_of(seconds), number))
        taken.append(Claim(scope=name, trajectory=loaded(Trajectory, checked(blob)), tries=tries))
    return taken


def extend(
    connection: sqlite3.Connection, scope: str, ids: Collection[str], /, *, worker: str, seconds: float
) -> set[str]:
    """See `Queue.extend`."""
    rows = connection.execute(
        f"UPDATE trajectories SET due = ? WHERE scope = ? AND id {AMONG_IDS} AND worker = ? AND pending = 1"
        " RETURNING id",
        (present(connection) + wait_of(seconds), find_scope(connection, scope).number, among_ids(ids), worker),
    )
    held = {id for (id,) in rows}
    return {id for id in ids if encodable(id) in held}


def release(
    connection: sqlite3.Connection, scope: str, id: str, /, *, worker: str, error: str | None, wait: float | None
) -> bool:
    """See `Queue.release`."""
    due = None if wait is None else present(connection) + wait_of(wait)
    why = error or "" if wait is None else error
    number, which = find_scope(connection, scope).number, encodable(id)
    done = connection.execute(
        "UPDATE trajectories SET worker = NULL, due = ?1, error = coalesce(?2, error), tries = tries - (?2 IS NULL)"
        " WHERE scope = ?3 AND id = ?4 AND worker = ?5 AND pending = 1",
        (due, why, number, which, worker),
    )
    if done.rowcount == 1 and wait is None:
        connection.execute(
            "UPDATE trajectories SET due = NULL, error = ?1 WHERE scope = ?2 AND pending = 1"
            " AND leader = (SELECT number FROM trajectories WHERE scope = ?2 AND id = ?3)",
            (why, number, which),
        )
    return done.rowcount == 1


def queue(connection: sqlite3.Connection, scope: str | None, /) -> QueueStatus:
    """See `Queue.queue`."""
    condition = "" if scope is None else " AND t.scope = (SELECT number FROM scopes WHERE name = ?1)"
    every, claimed, failed, oldest = connection.execute(
        f"SELECT count(*), total({_HELD}), total({FAILED}), min(CASE WHEN {FAILED} THEN NULL ELSE t.kept_at END)"
        f" FROM trajectories t WHERE {UNSETTLED}{condition}",
        (scope, UNFINISHED_TAG, present(connection)),
    ).fetchone()
    return QueueStatus(
        waiting=every - int(claimed) - int(failed),
        claimed=int(claimed),
        failed=int(failed),
        oldest=None if oldest is None else moment(oldest),
    )

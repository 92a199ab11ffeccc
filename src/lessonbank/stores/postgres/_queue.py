"""The queue: kept runs that wait are handed to workers, for a time, one after the other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from lessonbank.contracts.records import Claim, QueueStatus, Trajectory
from lessonbank.stores._listing import UNFINISHED_TAG
from lessonbank.stores._records import LONGEST_WAIT, encodable, loaded, moment, wait_of
from lessonbank.stores._texts import checked

from ._database import CLOCK, Connection, do, row, rows, stored
from ._read import FAILED, UNSETTLED

_WAITS: Final = f"t.due > {CLOCK} AND t.due <= {CLOCK} + {LONGEST_WAIT}"
_HELD: Final = f"(t.worker IS NOT NULL AND {_WAITS})"
_DUE: Final = (f"t.due <= {CLOCK}", f"t.due > {CLOCK} + {LONGEST_WAIT}")
"""Two statements: each of them follows an index."""
_ALONE: Final = "SELECT pg_advisory_xact_lock(hashtextextended('lessonbank claims', 0))"
_SHARED: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended('lessonbank claims', 0))"
_CLAIM: Final = (
    "WITH free AS (SELECT t.scope, t.id, t.number, t.due FROM lessonbank.trajectories t"
    f" WHERE {UNSETTLED} AND {{ready}} AND (t.leader IS NULL OR NOT EXISTS (SELECT 1 FROM lessonbank.trajectories l"
    " WHERE l.scope = t.scope AND l.number = t.leader AND l.pending))"
    " AND (NOT %(exclusive)s OR NOT EXISTS (SELECT 1 FROM lessonbank.trajectories o WHERE o.scope = t.scope"
    " AND o.pending AND o.worker <> %(worker)s AND o.due > "
    f"{CLOCK} AND o.due <= {CLOCK} + {LONGEST_WAIT}))"
    " ORDER BY {order} LIMIT %(limit)s FOR UPDATE OF t SKIP LOCKED)"
    " UPDATE lessonbank.trajectories t SET worker = %(worker)s, due = "
    f"{CLOCK} + %(wait)s, tries = t.tries + 1 FROM free"
    " WHERE t.scope = free.scope AND t.id = free.id"
    f" RETURNING free.due, t.number, t.scope, t.tries - 1, {stored('t.record')}"
)


def claim(
    connection: Connection,
    scope: str | None,
    /,
    *,
    worker: str,
    limit: int,
    seconds: float,
    exclusive: bool,
    include_given_up: bool,
) -> list[Claim]:
    """See `Queue.claim`. Whoever wants a scope alone waits until others have said what they take."""
    rows(connection, _ALONE if exclusive else _SHARED)
    asked: dict[str, Any] = {"scope": scope, "unfinished": UNFINISHED_TAG, "wait": wait_of(seconds)}
    asked |= {"exclusive": exclusive, "worker": worker}
    taken = list[tuple[Any, ...]]()
    for ready in (f"NOT {_HELD}",) if include_given_up else _DUE:
        sql = _CLAIM.format(
            ready=ready if scope is None else f"{ready} AND t.scope = %(scope)s",
            order="t.number" if include_given_up else "t.due, t.number",
        )
        if len(taken) < limit:
            taken += rows(connection, sql, asked | {"limit": limit - len(taken)})
    taken.sort(key=lambda row: row[1:2] if include_given_up else row[:2])
    return [Claim(scope=s, trajectory=loaded(Trajectory, checked(b)), tries=n) for _, _, s, n, b in taken]


def extend(connection: Connection, scope: str, ids: Collection[str], /, *, worker: str, seconds: float) -> set[str]:
    """See `Queue.extend`."""
    updates = rows(
        connection,
        f"UPDATE lessonbank.trajectories SET due = {CLOCK} + %s WHERE scope = %s AND id = ANY(%s::text[])"
        " AND worker = %s AND pending RETURNING id",
        wait_of(seconds),
        scope,
        list(map(encodable, ids)),
        worker,
    )
    held = {id for (id,) in updates}
    return {id for id in ids if encodable(id) in held}


def release(
    connection: Connection, scope: str, id: str, /, *, worker: str, error: str | None, wait: float | None
) -> bool:
    """See `Queue.release`."""
    why = error or "" if wait is None else error
    asked = {
        "scope": scope,
        "id": encodable(id),
        "worker": worker,
        "wait": None if wait is None else wait_of(wait),
        "why": why,
        "untried": int(why is None),
    }
    done = do(
        connection,
        f"UPDATE lessonbank.trajectories SET worker = NULL, due = {CLOCK} + %(wait)s::bigint,"
        " error = coalesce(%(why)s, error), tries = tries - %(untried)s"
        " WHERE scope = %(scope)s AND id = %(id)s AND worker = %(worker)s AND pending",
        asked,
    )
    if done and wait is None:
        do(
            connection,
            "UPDATE lessonbank.trajectories SET due = NULL, error = %(why)s WHERE scope = %(scope)s AND pending"
            " AND leader = (SELECT number FROM lessonbank.trajectories WHERE scope = %(scope)s AND id = %(id)s)",
            asked,
        )
    return done == 1


def queue(connection: Connection, scope: str | None, /) -> QueueStatus:
    """See `Queue.queue`."""
    counts = row(
        connection,
        f"SELECT count(*), count(*) FILTER (WHERE {_HELD}), count(*) FILTER (WHERE {FAILED}),"
        f" min(t.kept_at) FILTER (WHERE NOT {FAILED}) FROM lessonbank.trajectories t WHERE {UNSETTLED}"
        f"{'' if scope is None else ' AND t.scope = %(scope)s'}",
        {"scope": scope, "unfinished": UNFINISHED_TAG},
    )
    every, claimed, failed, oldest = counts or (0, 0, 0, None)
    since = None if oldest is None else moment(oldest)
    return QueueStatus(waiting=every - claimed - failed, claimed=claimed, failed=failed, oldest=since)

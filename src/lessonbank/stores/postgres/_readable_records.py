"""Step 2: records that were packed bytes become plain JSON in a text column, which any tool can read.

It is the one step that rewrites tables, so nobody else reads or writes the bank while it is made. It is one
transaction: killed or refused, everything is as it was. A release that knows step 1 alone cannot read text. It says so
when it opens the bank, and is told to open it again where it has it open. The way back is a dump from before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lessonbank.contracts.records import Experience, Recall, Trajectory
from lessonbank.stores._format_10 import Table, upgraded
from lessonbank.stores._listing import tags_of
from lessonbank.stores._records import loaded

from ._database import Connection, do, many

_KEYS: Final[Mapping[Table, tuple[str, str]]] = {
    "journal": ("entry", "sequence"),
    "experiences": ("record", "number"),
    "trajectories": ("record", "id"),
    "recalls": ("record", "id"),
}
"""Table to the column of a record, and to what names a row in its scope."""
_KINDS: Final = {"experiences": Experience, "trajectories": Trajectory, "recalls": Recall}
_PAGE: Final = 500
"""Rows that are held at once."""


def unpack_records(connection: Connection, /) -> None:
    """Make the step, in the transaction that has begun.

    Raises:
        StoreDamaged: a record is not what was written.
    """
    tables = ", ".join(f"lessonbank.{table}" for table in _KEYS)
    do(connection, f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")
    for table, (column, key) in _KEYS.items():
        at = f"ALTER TABLE lessonbank.{table}"
        do(connection, f"{at} ADD COLUMN {column}_json text, ADD COLUMN {column}_sum bigint")
        do(connection, f"{at} ALTER COLUMN {column} DROP NOT NULL")
        do(connection, f"{at} NO FORCE ROW LEVEL SECURITY")  # the owner sees every scope
        _rewrite(connection, table, column, key)
        do(connection, f"{at} FORCE ROW LEVEL SECURITY")
        do(connection, f"{at} ALTER COLUMN {column}_json SET NOT NULL, ALTER COLUMN {column}_sum SET NOT NULL")
        do(connection, f"{at} DROP COLUMN {column}")


def _rewrite(connection: Connection, table: Table, column: str, key: str) -> None:
    """Nothing is left of the packed bytes in a row, so that none of them outlives what is erased later."""
    where = f"WHERE scope = %s AND {key} = %s"
    update = f"UPDATE lessonbank.{table} SET {column}_json = %s, {column}_sum = %s, {column} = NULL {where}"
    tagged = f"UPDATE lessonbank.{table} SET tags = %s {where}"
    with connection.cursor("packed") as cursor:
        cursor.execute(f"SELECT scope, {key}, {column} FROM lessonbank.{table}".encode())
        while page := cursor.fetchmany(_PAGE):
            read = [(scope, id, upgraded(table, data)) for scope, id, data in page]
            many(connection, update, [(*record.text, scope, id) for scope, id, record in read])
            many(
                connection,
                tagged,
                _tags(table, [(s, id, record.text[0]) for s, id, record in read if record.has_moved]),
            )


def _tags(table: Table, moved: Sequence[tuple[str, Any, str]]) -> list[tuple[Any, ...]]:
    """A record whose metadata became fields is found by other tags. The journal has none."""
    kind = _KINDS.get(table)
    return [(list(tags_of(loaded(kind, text))), scope, id) for scope, id, text in moved] if kind else []

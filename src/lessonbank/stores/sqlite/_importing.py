"""Records of another bank, written in the one transaction that makes an import whole or nothing."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Final

from lessonbank.contracts.ports import RecallFilter
from lessonbank.stores._importing import Receiver, Table
from lessonbank.stores._records import encodable

from ._journal import Batch
from ._listing import recalls
from ._read import experiences
from ._rows import find_scope, make_scope
from ._write import Present, apply, keep, record

_BEFORE: Final[dict[Table, tuple[str, str]]] = {
    "trajectories": ("trajectories", "id = ? AND number <= ?"),
    "attempts": ("experiences", "trajectory = ? AND experience <= ?"),
    "recalls": ("recalls", "id = ? AND number <= ?"),
    "lessons": ("experiences", "id = ? AND experience <= ?"),
}
"""What is there when an import begins has a smaller number than what it brings: whose number, and the condition."""


def receiver(connection: sqlite3.Connection, name: str, /) -> Receiver:
    """A scope as an import writes to it."""
    scope = make_scope(connection, name).number
    newest = "SELECT coalesce(max(number), 0) FROM {} WHERE scope = ?"
    last = {of: connection.execute(newest.format(of), (scope,)).fetchone()[0] for of, _ in _BEFORE.values()}

    def there(sql: str, *values: object) -> bool:
        return connection.execute(sql, (scope, *values)).fetchone() is not None

    def has(table: Table, id: str) -> bool:
        of, before = _BEFORE[table]
        sql = f"SELECT 1 FROM {table} WHERE scope = ? AND {before}"
        return last[of] > 0 and there(sql, encodable(id), last[of])

    settled = "SELECT 1 FROM settlements WHERE scope = ? AND recall = ?"
    return Receiver(
        has=has,
        recall=lambda id: recalls(connection, name, RecallFilter(ids=(id,)))[0].recall,
        keep=lambda runs: len(keep(connection, scope, runs, together=False)),
        record=partial(record, connection),
        is_settled=lambda id: there(settled, encodable(id)),
        present=lambda new: Present(connection, find_scope(connection, name), new=new),
        repeating=partial(experiences, connection, name, "repeats"),
        apply=lambda entries, writer: apply(connection, Batch(name, writer, entries)),
    )

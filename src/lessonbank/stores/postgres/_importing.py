"""Records of another bank, written in the one transaction that makes an import whole or nothing."""

from __future__ import annotations

from typing import Final

from lessonbank.contracts.ports import RecallFilter
from lessonbank.stores._entries import Batch
from lessonbank.stores._importing import Receiver, Table
from lessonbank.stores._records import encodable

from ._database import Connection, row
from ._listing import recalls
from ._present import Present, foreseen_of
from ._read import experiences
from ._rows import make_scope
from ._write import apply, keep, record

_BEFORE: Final[dict[Table, tuple[int, str]]] = {
    "trajectories": (0, "id = %s AND number < %s"),
    "attempts": (1, "trajectory = %s AND experience < %s"),
    "recalls": (0, "id = %s AND number < %s"),
    "lessons": (1, "id = %s AND experience < %s"),
}
"""What is there when an import begins has a smaller number than what it brings: which number, and the condition."""


def receiver(connection: Connection, scope: str, /) -> Receiver:
    """A scope as an import writes to it."""
    make_scope(connection, scope)
    sql = "SELECT nextval('lessonbank.numbers'), numbers + 1 FROM lessonbank.scopes WHERE scope = %s"
    first = row(connection, sql, scope) or (0, 0)

    def has(table: Table, id: str) -> bool:
        at, before = _BEFORE[table]
        sql = f"SELECT 1 FROM lessonbank.{table} WHERE scope = %s AND {before}"
        return row(connection, sql, scope, encodable(id), first[at]) is not None

    settled = "SELECT 1 FROM lessonbank.recalls WHERE scope = %s AND id = %s AND settled IS NOT NULL"
    return Receiver(
        has=has,
        recall=lambda id: recalls(connection, scope, RecallFilter(ids=(id,)))[0].recall,
        keep=lambda runs: len(keep(connection, scope=scope, runs=runs, together=False)()),
        record=lambda recall: record(connection, recall)(),
        is_settled=lambda id: row(connection, settled, scope, encodable(id)) is not None,
        present=lambda new: Present(connection, scope, foreseen=foreseen_of(new)),
        repeating=lambda ids: experiences(connection, scope, "repeats", ids) if ids else [],
        apply=lambda entries, writer: apply(connection, Batch(scope, writer, entries)),
    )

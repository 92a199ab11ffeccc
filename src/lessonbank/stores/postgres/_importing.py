"""Records of another bank, written in the one transaction that makes an import whole or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lessonbank.contracts.ports import RecallFilter
from lessonbank.contracts.records import Experience, Recall, Trajectory
from lessonbank.stores._changes import View
from lessonbank.stores._entries import Batch
from lessonbank.stores._records import encodable
from lessonbank.stores._texts import TextWithSum

from ._database import Connection, row
from ._listing import recalls
from ._present import Present, foreseen_of
from ._read import experiences
from ._rows import make_scope
from ._write import apply, keep, record

if TYPE_CHECKING:
    from lessonbank.contracts.records.timeline import Entry


class Receiver:
    """What is there when an import begins has a smaller number than what it brings."""

    def __init__(self, connection: Connection, scope: str, /) -> None:
        self._connection, self._scope = connection, scope
        make_scope(connection, scope)
        sql = "SELECT nextval('lessonbank.numbers'), numbers + 1 FROM lessonbank.scopes WHERE scope = %s"
        self._last, self._first = row(connection, sql, scope) or (0, 0)

    def has_run(self, id: str, /) -> bool:
        """See `Before.has_run`."""
        return self._has("trajectories", "id = %s AND number < %s", id, self._last) or self._has(
            "attempts", "trajectory = %s AND experience < %s", id, self._first
        )

    def made_recall(self, id: str, /) -> bool:
        """See `Before.made_recall`."""
        if not self._has("recalls", "id = %s AND number < %s", id, self._last):
            return False
        (one,) = recalls(self._connection, self._scope, RecallFilter(ids=(id,)))
        return not one.recall.imported

    def has_lesson(self, id: str, /) -> bool:
        """See `Before.has_lesson`."""
        return self._has("lessons", "id = %s AND experience < %s", id, self._first)

    def _has(self, table: str, condition: str, id: str, end: int) -> bool:
        sql = f"SELECT 1 FROM lessonbank.{table} WHERE scope = %s AND {condition}"
        return row(self._connection, sql, self._scope, encodable(id), end) is not None

    def keep(self, runs: Sequence[Trajectory], /) -> int:
        """See `Receiver.keep`."""
        return len(keep(self._connection, scope=self._scope, runs=runs, together=False)())

    def record(self, recall: Recall, /) -> bool:
        """See `Receiver.record`."""
        return record(self._connection, recall)()

    def is_settled(self, recall_id: str, /) -> bool:
        """See `Receiver.is_settled`."""
        sql = "SELECT 1 FROM lessonbank.recalls WHERE scope = %s AND id = %s AND settled IS NOT NULL"
        return row(self._connection, sql, self._scope, encodable(recall_id)) is not None

    def present(self, new: Sequence[Experience] = (), /) -> View:
        """See `Receiver.present`."""
        return Present(self._connection, self._scope, foreseen=foreseen_of(new))

    def repeating(self, lesson_ids: Sequence[str], /) -> Sequence[Experience]:
        """See `Receiver.repeating`."""
        return experiences(self._connection, self._scope, "repeats", lesson_ids) if lesson_ids else []

    def apply(self, entries: Sequence[tuple[Entry, TextWithSum]], /, *, writer: str) -> object:
        """See `Receiver.apply`."""
        return apply(self._connection, Batch(self._scope, writer, entries))

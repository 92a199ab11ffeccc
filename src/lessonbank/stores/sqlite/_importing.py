"""Records of another bank, written in the one transaction that makes an import whole or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from lessonbank.contracts.ports import RecallFilter
from lessonbank.contracts.records import Experience, Recall, Trajectory
from lessonbank.stores._changes import View
from lessonbank.stores._records import encodable
from lessonbank.stores._texts import TextWithSum

from ._journal import Batch
from ._listing import recalls
from ._read import experiences
from ._rows import find_scope, make_scope
from ._write import Present, apply, keep, record

if TYPE_CHECKING:
    from lessonbank.contracts.records.timeline import Entry


class Receiver:
    """What is there when an import begins has a smaller number than what it brings."""

    _COUNTED: Final = ("trajectories", "experiences", "recalls")

    def __init__(self, connection: sqlite3.Connection, scope: str, /) -> None:
        self._connection, self._name, self._scope = connection, scope, make_scope(connection, scope).number
        self._last = {table: self._newest(table) for table in self._COUNTED}

    def _newest(self, table: str) -> int:
        sql = f"SELECT coalesce(max(number), 0) FROM {table} WHERE scope = ?"
        return int(self._connection.execute(sql, (self._scope,)).fetchone()[0])

    def has_run(self, id: str, /) -> bool:
        """See `Before.has_run`."""
        return self._has("trajectories", "id = ? AND number <= ?", id) or self._has(
            "attempts", "trajectory = ? AND experience <= ?", id, of="experiences"
        )

    def made_recall(self, id: str, /) -> bool:
        """See `Before.made_recall`."""
        if not self._has("recalls", "id = ? AND number <= ?", id):
            return False
        (one,) = recalls(self._connection, self._name, RecallFilter(ids=(id,)))
        return not one.recall.imported

    def has_lesson(self, id: str, /) -> bool:
        """See `Before.has_lesson`."""
        return self._has("lessons", "id = ? AND experience <= ?", id, of="experiences")

    def _has(self, table: str, condition: str, id: str, *, of: str | None = None) -> bool:
        last = self._last[of or table]
        sql = f"SELECT 1 FROM {table} WHERE scope = ? AND {condition}"
        return last > 0 and self._connection.execute(sql, (self._scope, encodable(id), last)).fetchone() is not None

    def keep(self, runs: Sequence[Trajectory], /) -> int:
        """See `Receiver.keep`."""
        return len(keep(self._connection, self._name, runs, together=False))

    def record(self, recall: Recall, /) -> bool:
        """See `Receiver.record`."""
        return record(self._connection, recall)

    def is_settled(self, recall_id: str, /) -> bool:
        """See `Receiver.is_settled`."""
        sql = "SELECT 1 FROM settlements WHERE scope = ? AND recall = ?"
        return self._connection.execute(sql, (self._scope, encodable(recall_id))).fetchone() is not None

    def present(self, new: Sequence[Experience] = (), /) -> View:
        """See `Receiver.present`."""
        return Present(self._connection, find_scope(self._connection, self._name), new=new)

    def repeating(self, lesson_ids: Sequence[str], /) -> Sequence[Experience]:
        """See `Receiver.repeating`."""
        return experiences(self._connection, self._name, "repeats", lesson_ids)

    def apply(self, entries: Sequence[tuple[Entry, TextWithSum]], /, *, writer: str) -> object:
        """See `Receiver.apply`."""
        return apply(self._connection, Batch(self._name, writer, entries))

"""What of a damaged bank is what was written: every row is held against its checksum before it counts."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from lessonbank.contracts.records import Experience, Recall, Record, Trajectory
from lessonbank.contracts.records.timeline import Entry
from lessonbank.errors import StoreDamaged
from lessonbank.stores._format_10 import Table, upgraded
from lessonbank.stores._records import loaded
from lessonbank.stores._texts import TextWithSum as Text
from lessonbank.stores._texts import checked
from lessonbank.stores.sqlite._checks import checksum
from lessonbank.stores.sqlite._migrations import run
from lessonbank.stores.sqlite._rows import entry_of

from .pages import Pages

R = TypeVar("R", bound=Record)

_SHORTEST: Final = 32
"""Bytes of a journal entry at least."""
_TABLES: Final = ("scopes", "settings", "journal", "experiences", "trajectories", "recalls", "lessons")
_PACKED: Final = {"journal": "entry", "experiences": "record", "trajectories": "record", "recalls": "record"}
"""Table to the column of a record, which format 10 packed."""
_TYPES: Final = {"INTEGER": int, "TEXT": str, "BLOB": bytes}
_IDS: Final = {
    "sqlite_autoindex_experiences_1": "experiences",
    "sqlite_autoindex_trajectories_1": "trajectories",
    "sqlite_autoindex_recalls_1": "recalls",
}
"""Indexes that have the id of every row of a table, after its scope and before its number."""


@dataclass(frozen=True, slots=True)
class WrittenEntry:
    """A journal entry that can be read."""

    at: int
    writer: str
    entry: Entry
    text: Text


@dataclass(frozen=True, slots=True)
class ExperienceRow:
    """An experience's row: where it is shown, which entry wrote it last, and its own record where it has one."""

    scope: int
    """Negative where a rollback took it out."""
    id: str
    entry: int
    record: Experience | None


@dataclass(slots=True)
class Wreck:
    """Sound rows by number, and the ids that anything in the file speaks of."""

    most: int = 0
    """Entries that a journal can have had at most: a number of more is damaged."""
    scopes: dict[int, str] = field(default_factory=dict[int, str])
    sequences: dict[int, int] = field(default_factory=dict[int, int])
    settings: dict[str, str] = field(default_factory=dict[str, str])
    journal: dict[int, WrittenEntry] = field(default_factory=dict[int, WrittenEntry])
    experiences: dict[int, ExperienceRow] = field(default_factory=dict[int, ExperienceRow])
    runs: dict[int, tuple[dict[str, Any], Trajectory]] = field(
        default_factory=dict[int, tuple[dict[str, Any], Trajectory]]
    )
    recalls: dict[int, tuple[dict[str, Any], Recall]] = field(default_factory=dict[int, tuple[dict[str, Any], Recall]])
    named: dict[str, dict[tuple[int, str], int]] = field(
        default_factory=lambda: defaultdict[str, dict[tuple[int, str], int]](dict)
    )
    """Table to (scope, id) to the number of a row, also where the row cannot be read; of lessons, of the experience."""

    @classmethod
    def of(cls, pages: Pages, /) -> Wreck:
        """Everything in these pages. What lies in a table's own pages counts before what was found astray."""
        wreck, shapes = cls(len(pages) * pages.size // _SHORTEST), _shapes()
        before = _shapes_of_format_10(shapes)
        owners, free = pages.owners(), pages.free()
        for number in sorted(set(range(1, len(pages) + 1)) - free, key=lambda n: n not in owners):
            owner = owners.get(number, "")
            for at, values in pages.rows(number):
                if owner in _IDS and len(values) == 3:
                    wreck.named[_IDS[owner]].setdefault((values[0], values[1]), values[2])
                elif owner == "items_by_state" and len(values) == 6:
                    wreck.named["lessons"].setdefault((values[0], values[5]), values[3])
                elif table := _table(values, shapes):
                    wreck._take(table, at or 0, dict(zip(shapes[table], values, strict=True)))
                elif table := _table(values, before):
                    wreck._take_packed(table, at or 0, dict(zip(before[table], values, strict=True)))
        wreck._bring_home()
        return wreck

    def _bring_home(self) -> None:
        """Give receipts the scope that they name: the number beside them has no checksum."""
        numbers = {name: number for number, name in self.scopes.items()}
        numbers |= {w.entry.brings.scope: n >> 32 for n, w in self.journal.items() if w.entry.brings}
        for row, recall in self.recalls.values():
            row["scope"] = numbers.setdefault(recall.scope, row["scope"])

    def _take_packed(self, table: str, number: int, row: dict[str, Any]) -> None:
        """Take a row of format 10."""
        column = _PACKED[table]
        try:
            pair = (None, None) if row[column] is None else upgraded(cast("Table", table), row[column]).text
        except StoreDamaged:
            return
        self._take(table, number, {**row, column: pair[0], f"{column}_sum": pair[1]})

    def _take(self, table: str, number: int, row: dict[str, Any]) -> None:
        try:
            match table:
                case "scopes":
                    self._scope(number, row)
                case "settings":
                    self._setting(row)
                case "journal":
                    self._entry(number, row)
                case "experiences":
                    self._experience(number, row)
                case "trajectories":
                    self._run(number, row)
                case "recalls":
                    self._recall(number, row)
                case _:
                    self.named["lessons"].setdefault((row["scope"], row["id"]), row["experience"])
        except StoreDamaged:
            return

    def _scope(self, number: int, row: dict[str, Any]) -> None:
        if row["sum"] == checksum(row["name"]):
            self.scopes.setdefault(number, row["name"])
            self.sequences.setdefault(number, min(row["sequence"], self.most))

    def _setting(self, row: dict[str, Any]) -> None:
        if row["sum"] == checksum(row["key"], row["value"]):
            self.settings.setdefault(row["key"], row["value"])

    def _entry(self, number: int, row: dict[str, Any]) -> None:
        if number not in self.journal and row["sum"] == checksum(number, row["at"], row["writer"]):
            entry = entry_of(_text(row, "entry"))
            self.journal[number] = WrittenEntry(row["at"], row["writer"], entry, (row["entry"], row["entry_sum"]))

    def _experience(self, number: int, row: dict[str, Any]) -> None:
        self.named["experiences"].setdefault((row["scope"], row["id"]), number)
        record = _record(Experience, row) if row["record"] is not None else None
        if row["sum"] == checksum(number, row["entry"]) and (record is None or record.id == row["id"]):
            scope = row["entry"] >> 32 if row["scope"] > 0 else -(row["entry"] >> 32)  # its own has no checksum
            self.experiences.setdefault(number, ExperienceRow(scope, row["id"], row["entry"], record))

    def _run(self, number: int, row: dict[str, Any]) -> None:
        self.named["trajectories"].setdefault((row["scope"], row["id"]), number)
        if row["sum"] == checksum(row["scope"], row["kept_at"], row["id"]) and number not in self.runs:
            self.runs[number] = row, _record(Trajectory, row)

    def _recall(self, number: int, row: dict[str, Any]) -> None:
        self.named["recalls"].setdefault((row["scope"], row["id"]), number)
        recall = _record(Recall, row)
        if recall.id == row["id"]:
            self.recalls.setdefault(number, (row, recall))


def _record(kind: type[R], row: Mapping[str, Any]) -> R:
    return loaded(kind, _text(row, "record"))


def _text(row: Mapping[str, Any], column: str) -> bytes:
    return checked(f"{row[f'{column}_sum']} {row[column]}".encode())


def _shapes() -> dict[str, dict[str, tuple[type, ...]]]:
    """Table to column to the types that a value of it can have in the file."""
    with closing(sqlite3.connect(":memory:")) as connection:
        run(connection, "schema.sql")
        tables = {name: connection.execute(f"PRAGMA table_info({name})").fetchall() for name in _TABLES}
        numbered = {name for (name,) in connection.execute("SELECT name FROM pragma_table_list WHERE wr = 0")}
    return {
        table: {
            name: _allowed(kind, alias=key == 1 and kind == "INTEGER" and table in numbered, null=not filled)
            for _, name, kind, filled, _, key in columns
        }
        for table, columns in tables.items()
    }


def _shapes_of_format_10(
    shapes: Mapping[str, Mapping[str, tuple[type, ...]]],
) -> dict[str, dict[str, tuple[type, ...]]]:
    """Return the shapes of rows that a release of format 10 wrote."""
    packed = {
        table: {name: kinds for name, kinds in shapes[table].items() if name != f"{column}_sum"}
        for table, column in _PACKED.items()
    }
    for table, column in _PACKED.items():
        packed[table][column] = tuple(bytes if kind is str else kind for kind in packed[table][column])
    return packed


def _allowed(kind: str, *, alias: bool, null: bool) -> tuple[type, ...]:
    """The types of a column; one that is another name of the row's number is empty in the file."""
    if alias:
        return (type(None),)
    return (_TYPES[kind], type(None)) if null else (_TYPES[kind],)


def _table(values: tuple[Any, ...], shapes: Mapping[str, Mapping[str, tuple[type, ...]]]) -> str:
    """The table whose rows look like this; empty where none does."""
    for table, columns in shapes.items():
        if len(columns) == len(values) and all(map(isinstance, values, columns.values())):
            return table
    return ""

"""Brings an older file to today's format: whole or not at all, and a copy of what it was stays beside it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path
from typing import Final

from lessonbank.contracts.records import Experience, Recall, Trajectory
from lessonbank.stores._format_10 import Table, upgraded
from lessonbank.stores._listing import tags_of
from lessonbank.stores._records import loaded
from lessonbank.stores._texts import checked

from . import _lesson_words
from ._backup import backup
from ._checks import checksum, stored
from ._derived import EXPERIENCE, RECALL, RUN, reindex_words
from ._rows import experience_at
from ._wal_identity import FORMATS

log: Final = logging.getLogger("lessonbank")


def copy_of(path: Path, format: int, /) -> Path:
    """Where the copy of a file of an older format lies."""
    return path.with_name(f"{path.name}.format-{format}")


def copies_of(path: Path, /) -> dict[int, Path]:
    """The copies that upgrades left beside a file, by format."""
    return {format: copy for format in MIGRATIONS if (copy := copy_of(path, format)).is_file()}


@contextmanager
def keeping_copy(connection: sqlite3.Connection, path: Path, /) -> Generator[Callable[[int], None]]:
    """What is called with the format of the file, inside a transaction that alone may write, copies the file.

    So the copy is what is upgraded. It goes again where the upgrade fails: it takes room, and says nothing new.

    Raises:
        StoreUnavailable: there is no room for the copy.
    """
    made: list[tuple[int, Path]] = []

    def copy(format: int) -> None:
        target = copy_of(path, format)
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as reader:
            backup(reader, target)
        made.append((format, target))

    try:
        yield copy
    finally:
        now = int(connection.execute("PRAGMA user_version").fetchone()[0]) % FORMATS if made else 0
        for format, target in made:
            if format == now:
                target.unlink(missing_ok=True)
            else:
                log.warning(
                    "%s was upgraded to format %d; the file as it was stays beside it as %s: "
                    "delete that when you need no way back",
                    *(path, now, target.name),
                )


def upgrade(connection: sqlite3.Connection, old_format: int, /) -> None:
    """Bring the tables from `old_format` to today's. Raises StoreDamaged: a record is not what was written."""
    for format in range(old_format, max(MIGRATIONS) + 1):
        MIGRATIONS[format](connection)


# --- format 10 to 11 --------------------------------------------------------------------------------------------------

_COLUMNS: Final[Mapping[Table, str]] = {
    "journal": "entry",
    "experiences": "record",
    "trajectories": "record",
    "recalls": "record",
}
"""Table to the column of a record."""


def _unpack_records(connection: sqlite3.Connection) -> None:
    """Records become plain JSON. One row at a time is read and written: memory does not grow with the bank."""
    run(connection, "0011_tables.sql")
    moved: dict[Table, set[int]] = {table: _rewrite(connection, table, column) for table, column in _COLUMNS.items()}
    run(connection, "0011_names.sql")
    _tag_again(connection, moved)


def _rewrite(connection: sqlite3.Connection, table: Table, column: str) -> set[int]:
    """Fill the new table and drop the old one; the numbers of records whose metadata became fields."""
    names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
    at, moved = names.index(column), set[int]()

    def rows() -> Iterator[tuple[object, ...]]:
        for row in connection.execute(f"SELECT {', '.join(names)} FROM {table} ORDER BY number"):
            if row[at] is None:
                yield *row, None
                continue
            (text, total), has_moved = upgraded(table, row[at])
            if has_moved:
                moved.add(row[0])
            yield *row[:at], text, *row[at + 1 :], total

    columns = ", ".join([*names, f"{column}_sum"])
    marks = ", ".join("?" * (len(names) + 1))
    connection.executemany(f"INSERT INTO {table}_11 ({columns}) VALUES ({marks})", rows())
    connection.execute(f"DROP TABLE {table}")
    return moved


def _tag_again(connection: sqlite3.Connection, moved: Mapping[Table, Collection[int]]) -> None:
    """A record whose metadata became fields is found by other tags."""
    for number in moved["trajectories"]:
        _tag(connection, RUN, number, loaded(Trajectory, _record(connection, "trajectories", number)))
    for number in moved["recalls"]:
        _tag(connection, RECALL, number, loaded(Recall, _record(connection, "recalls", number)))
    entries = moved["journal"]
    held = connection.execute("SELECT number, entry FROM experiences WHERE record IS NULL").fetchall()
    for number in (*moved["experiences"], *(number for number, entry in held if entry in entries)):
        _tag(connection, EXPERIENCE, number, experience_at(connection, number))


def _record(connection: sqlite3.Connection, table: Table, number: int) -> bytes:
    sql = f"SELECT {stored('record')} FROM {table} WHERE number = ?"
    return checked(connection.execute(sql, (number,)).fetchone()[0])


def _tag(connection: sqlite3.Connection, kind: int, number: int, record: Trajectory | Recall | Experience) -> None:
    connection.execute("DELETE FROM tags WHERE kind = ? AND record = ?", (kind, number))
    rows = [(kind, tag, number) for tag in tags_of(record)]
    connection.executemany("INSERT INTO tags (kind, tag, record) VALUES (?, ?, ?)", rows)


# --- format 11 to 12 --------------------------------------------------------------------------------------------------


def _unjoin_vectors(connection: sqlite3.Connection) -> None:
    """Vectors that lay together in blocks become rows of their own; those of a damaged block are left out."""
    import numpy as np  # noqa: PLC0415 - few banks are that old

    run(connection, "0012_vectors.sql")
    sql = "INSERT OR REPLACE INTO vectors (space, key, vector, sum)"
    for space, held, joined, total in connection.execute(
        "SELECT space, keys, vectors, sum FROM blocks ORDER BY number"
    ):
        if total == checksum(space, held, joined):
            keys = np.frombuffer(held, "<i8").tolist()
            each = np.frombuffer(joined, f"V{len(joined) // len(keys)}")
            rows = ((space, key, row.tobytes()) for key, row in zip(keys, each, strict=True))
            connection.executemany(f"{sql} VALUES (?, ?, ?, ?)", ((*row, checksum(*row)) for row in rows))
    connection.execute(f"{sql} SELECT space, key, vector, sum FROM fresh")
    for table in ("blocks", "fresh"):
        connection.execute(f"DROP TABLE {table}")
    reindex_words(connection)
    _lesson_words.reindex(connection)


MIGRATIONS: Final[Mapping[int, Callable[[sqlite3.Connection], None]]] = {10: _unpack_records, 11: _unjoin_vectors}
"""A format to what brings it to the next one."""


# --- the SQL files of this package ------------------------------------------------------------------------------------


def run(connection: sqlite3.Connection, name: str, /) -> None:
    """Execute the statements of an SQL file of this package."""
    for statement in statements(script(name)):
        connection.execute(statement)


def script(name: str, /) -> str:
    """An SQL file of this package."""
    return (resources.files("lessonbank.stores.sqlite") / name).read_text(encoding="utf-8")


def statements(script: str, /) -> Iterator[str]:
    """The statements of a script, one by one."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""

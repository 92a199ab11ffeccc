"""How many words each indexed task has, many in one row: a search by words asks it of every task it finds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from lessonbank._batches import batches
from lessonbank.errors import StoreDamaged

from ._rows import journal_number

Lengths = npt.NDArray[np.void]

_LENGTH: Final = np.dtype([("number", "<u4"), ("words", "<u4")])
_FULL: Final = 500
"""Tasks in one row: it fits into one page."""
_ROWS: Final = "number BETWEEN ? AND ? ORDER BY number"


def lengths_of(connection: sqlite3.Connection, scope: int, /) -> Lengths:
    """`number` and `words` of the tasks of a scope, those that a rollback took out included, by number.

    Raises:
        StoreDamaged: a row is not what was written.
    """
    rows = connection.execute(f"SELECT packed FROM lengths WHERE {_ROWS}", _span(scope, (1 << 32) - 1))
    return _unpacked(b"".join(packed for (packed,) in rows))


def catch_up(connection: sqlite3.Connection, after: int, last: int, /) -> None:
    """Put in the tasks behind number `after`, up to `last`; none of them is there."""
    rows = connection.execute(f"SELECT abs(scope), number, words FROM experiences WHERE {_ROWS}", (after + 1, last))
    for some in batches(rows, size=10_000):
        _add(connection, some)


def make_anew(connection: sqlite3.Connection, /) -> None:
    """Put in all tasks, and nothing else."""
    connection.execute("DELETE FROM lengths")
    catch_up(connection, 0, 1 << 62)


def _add(connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int]]) -> None:
    by_scope: dict[int, list[tuple[int, int]]] = {}
    for scope, number, words in rows:
        by_scope.setdefault(scope, []).append((number, words))
    for scope, these in by_scope.items():
        _, begun = _row_of(connection, scope, (1 << 32) - 1)
        every = np.concatenate((begun if len(begun) < _FULL else begun[:0], np.array(these, _LENGTH)))
        connection.executemany(
            "INSERT OR REPLACE INTO lengths (number, packed) VALUES (?, ?)",
            (
                (journal_number(scope, int(every["number"][at])), every[at : at + _FULL].tobytes())
                for at in range(0, len(every), _FULL)
            ),
        )


def change(connection: sqlite3.Connection, scope: int, number: int, words: int, /) -> None:
    """Say anew how many words a task has that is there."""
    row, there = _row_of(connection, scope, number)
    changed = there.copy()
    changed["words"][changed["number"] == number] = words
    connection.execute("UPDATE lengths SET packed = ? WHERE number = ?", (changed.tobytes(), row))


def every_length(connection: sqlite3.Connection, /) -> Iterator[tuple[int, int, int]]:
    """Scope, number and words of each task; nothing of a row that cannot be right."""
    for row, packed in connection.execute("SELECT number, packed FROM lengths"):
        held = _unpacked(packed[: len(packed) // _LENGTH.itemsize * _LENGTH.itemsize]).tolist()
        if held and len(held) * _LENGTH.itemsize == len(packed) and row % (1 << 32) == held[0][0]:
            yield from ((row >> 32, number, words) for number, words in held)


def _row_of(connection: sqlite3.Connection, scope: int, number: int) -> tuple[int, Lengths]:
    """The row that holds a task, or would; an empty one where there is none."""
    found = connection.execute(
        f"SELECT number, packed FROM lengths WHERE {_ROWS} DESC LIMIT 1", _span(scope, number)
    ).fetchone()
    return (found[0], _unpacked(found[1])) if found else (0, np.empty(0, _LENGTH))


def _span(scope: int, last: int) -> tuple[int, int]:
    return journal_number(scope, 0), journal_number(scope, last)


def _unpacked(packed: bytes) -> Lengths:
    if len(packed) % _LENGTH.itemsize:
        raise StoreDamaged("the lengths of tasks are not what was written")
    return np.frombuffer(packed, _LENGTH)

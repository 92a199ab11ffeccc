"""How many words each indexed task has, many in one row: a search by words asks it of every task it finds."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from lessonbank._base.iterate import batches
from lessonbank.errors import StoreDamaged

from ._rows import journal_number

Numbers = npt.NDArray[np.int64]

_FULL: Final = 1000
"""Tasks in one row: where their numbers follow one another, it fits into one page."""
_ROWS: Final = "number BETWEEN ? AND ? ORDER BY number"
_LAST: Final = (1 << 32) - 1


class Lengths(NamedTuple):
    """Tasks by number, and the words of each."""

    numbers: Numbers
    words: npt.NDArray[np.uint32]


def lengths_of(connection: sqlite3.Connection, scope: int, /) -> Lengths:
    """The tasks of a scope, those that a rollback took out included.

    Raises:
        StoreDamaged: a row is not what was written.
    """
    rows = connection.execute(f"SELECT number, numbers, words FROM lengths WHERE {_ROWS}", _span(scope, _LAST))
    parts, told = list[range | Numbers](), list[bytes]()
    for row, numbers, words in rows:
        span, before = _span_of(row, numbers, words), parts[-1] if parts else None
        told.append(words)
        if numbers is not None:
            parts.append(_read(numbers))
        elif isinstance(before, range) and before.stop == span.start:
            parts[-1] = range(before.start, span.stop)  # an array for each row takes longer than to read it
        else:
            parts.append(span)
    named = [np.arange(part.start, part.stop) if isinstance(part, range) else part for part in parts]
    every = named[0] if len(named) == 1 else np.concatenate([*named, _NONE.numbers])
    return Lengths(every, np.frombuffer(b"".join(told), "<u4"))


def catch_up(connection: sqlite3.Connection, after: int, last: int, /) -> None:
    """Put in the tasks behind number `after`, up to `last`; none of them is there."""
    rows = connection.execute(f"SELECT abs(scope), number, words FROM experiences WHERE {_ROWS}", (after + 1, last))
    for some in batches(rows, size=10_000):
        _add(connection, some)


def make_anew(connection: sqlite3.Connection, /) -> None:
    """Put in all tasks, and nothing else."""
    connection.execute("DELETE FROM lengths")
    catch_up(connection, 0, _LAST)


def _add(connection: sqlite3.Connection, rows: Iterable[tuple[int, int, int]]) -> None:
    by_scope: dict[int, list[tuple[int, int]]] = {}
    for scope, number, words in rows:
        by_scope.setdefault(scope, []).append((number, words))
    for scope, these in by_scope.items():
        begun = _row_of(connection, scope, _LAST)
        new = Lengths(*np.array(these, np.int64).T)
        every = _joined(begun, new) if 0 < len(begun.numbers) < _FULL else new
        for at in range(0, len(every.numbers), _FULL):
            _put(connection, scope, every.numbers[at : at + _FULL], every.words[at : at + _FULL])


def change(connection: sqlite3.Connection, scope: int, number: int, words: int, /) -> None:
    """Say anew how many words a task has that is there."""
    there = _row_of(connection, scope, number)
    if len(there.numbers):
        _put(connection, scope, there.numbers, np.where(there.numbers == number, words, there.words))


def drop(connection: sqlite3.Connection, scope: int, number: int, /) -> None:
    """Forget how many words a task has."""
    there = _row_of(connection, scope, number)
    left = there.numbers != number
    if left.all():
        return
    connection.execute("DELETE FROM lengths WHERE number = ?", (journal_number(scope, int(there.numbers[0])),))
    if left.any():
        _put(connection, scope, there.numbers[left], there.words[left])


def every_length(connection: sqlite3.Connection, /) -> Iterator[tuple[int, int, int]]:
    """Scope, number and words of each task; nothing of a row that cannot be right."""
    for row, numbers, words in connection.execute("SELECT number, numbers, words FROM lengths"):
        try:
            held = _unpacked(row, numbers, words)
        except StoreDamaged:
            continue
        yield from ((row >> 32, *each) for each in zip(held.numbers.tolist(), held.words.tolist(), strict=True))


def _put(connection: sqlite3.Connection, scope: int, numbers: Numbers, words: npt.NDArray[np.integer]) -> None:
    first, last = int(numbers[0]), int(numbers[-1])
    broken = None if last - first == len(numbers) - 1 else numbers.astype("<u4").tobytes()
    connection.execute(
        "INSERT OR REPLACE INTO lengths (number, numbers, words) VALUES (?, ?, ?)",
        (journal_number(scope, first), broken, words.astype("<u4").tobytes()),
    )


def _row_of(connection: sqlite3.Connection, scope: int, number: int) -> Lengths:
    """The row that holds a task, or would; an empty one where there is none."""
    sql = f"SELECT number, numbers, words FROM lengths WHERE {_ROWS} DESC LIMIT 1"
    found = connection.execute(sql, _span(scope, number)).fetchone()
    return _unpacked(*found) if found else _NONE


def _span(scope: int, last: int) -> tuple[int, int]:
    return journal_number(scope, 0), journal_number(scope, last)


def _joined(*parts: Lengths) -> Lengths:
    return Lengths(*map(np.concatenate, zip(*parts, strict=True)))


def _unpacked(row: int, numbers: bytes | None, words: bytes) -> Lengths:
    span = _span_of(row, numbers, words)
    named = np.arange(span.start, span.stop) if numbers is None else _read(numbers)
    return Lengths(named, np.frombuffer(words, "<u4"))


def _read(numbers: bytes) -> Numbers:
    return np.frombuffer(numbers, "<u4").astype(np.int64)


def _span_of(row: int, numbers: bytes | None, words: bytes) -> range:
    """The numbers of the tasks in a row, where they follow one another; else the first of them, and as many.

    Raises:
        StoreDamaged: it is not what was written.
    """
    first = row % (1 << 32)
    there = numbers is None or (len(numbers) == len(words) and numbers[:4] == first.to_bytes(4, "little"))
    if len(words) % 4 or not there:
        raise StoreDamaged("the lengths of tasks are not what was written")
    return range(first, first + len(words) // 4)


_NONE: Final = Lengths(np.empty(0, np.int64), np.empty(0, np.uint32))

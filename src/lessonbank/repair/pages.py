"""Reads the rows of a damaged file page by page: SQLite gives up a whole table for one page that leads to others.

What is read is not trusted here: whoever asks compares checksums. The format: https://sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

Row: TypeAlias = tuple[int | None, tuple[Any, ...]]
"""The number of a row, where its table has such numbers, and its values."""

_PAGE: Final = 4096
"""Bytes of a page where the file itself does not say."""
_TABLE_LEAF: Final = 0x0D
_TABLE: Final = 0x05
_INDEX_LEAF: Final = 0x0A
_INDEX: Final = 0x02
_BROKEN: Final = (IndexError, ValueError, struct.error, OverflowError)
_INTEGERS: Final = (0, 1, 2, 3, 4, 6, 8)
"""Bytes of an integer, by its type's number."""


@dataclass(slots=True)
class Pages:
    """The pages of a file as the transactions of its log left them."""

    data: bytes
    size: int
    newer: dict[int, bytes] = field(default_factory=dict[int, bytes])
    """Pages of the log by number."""

    @classmethod
    def of(cls, path: Path, log: Path | None, /) -> Pages:
        """Read a file, and its log where there is one. Raises OSError."""
        data = path.read_bytes()
        newer = _logged(log.read_bytes()) if log is not None and log.exists() else {}
        header_size = int.from_bytes((newer.get(1) or data)[16:18])
        size = header_size if header_size >= 512 and not header_size & (header_size - 1) else _PAGE
        return cls(data, size, newer)

    def __len__(self) -> int:
        return max(-(-len(self.data) // self.size), *self.newer, 0, 0)

    def __getitem__(self, number: int) -> bytes:
        if not 0 < number <= len(self):
            raise IndexError(number)
        return self.newer.get(number) or self.data[(number - 1) * self.size : number * self.size]

    def free(self) -> set[int]:
        """Pages that hold nothing any more, as far as the list of them can be read."""
        pages: set[int] = set()
        with suppress(*_BROKEN):
            trunk = int.from_bytes(self[1][32:36])
            while trunk and trunk not in pages:
                pages.add(trunk)
                trunk, count = struct.unpack_from(">II", page := self[trunk])
                pages.update(struct.unpack_from(f">{min(count, self.size // 4 - 2)}I", page, 8))
        return pages

    def owners(self) -> dict[int, str]:
        """Page to the table or index it belongs to, as far as one can be reached from its first page."""
        owners: dict[int, str] = {}
        self._own(1, "sqlite_schema", owners)
        schema = [number for number in owners if self.kind(number) == _TABLE_LEAF]
        for _, values in [row for number in schema for row in self.rows(number)]:
            if len(values) == 5 and isinstance(values[3], int) and values[3]:
                self._own(values[3], str(values[1]), owners)
        return owners

    def _own(self, root: int, name: str, owners: dict[int, str]) -> None:
        todo = [root]
        while todo:
            number = todo.pop()
            if number in owners:
                continue
            owners[number] = name
            with suppress(*_BROKEN):
                todo += self._children(number)

    def _children(self, number: int) -> list[int]:
        page, start = self[number], _start(number)
        if page[start] not in (_TABLE, _INDEX):
            return []
        cells = _cells(page, start, header=12)
        return [struct.unpack_from(">I", page, at)[0] for at in (*cells, start + 8)]

    def kind(self, number: int, /) -> int:
        """What a page says it is; 0 where it is nothing that has rows."""
        with suppress(*_BROKEN):
            kind = self[number][_start(number)]
            return kind if kind in (_TABLE_LEAF, _INDEX_LEAF, _INDEX) else 0
        return 0

    def rows(self, number: int, /) -> Iterator[Row]:
        """The rows that lie on a page, those that cannot be read left out."""
        kind = self.kind(number)
        if not kind:
            return
        page, start = self[number], _start(number)
        with suppress(*_BROKEN):
            for at in _cells(page, start, header=12 if kind == _INDEX else 8):
                with suppress(*_BROKEN):
                    yield self._row(page, at + (4 if kind == _INDEX else 0), table=kind == _TABLE_LEAF)

    def _row(self, page: bytes, at: int, *, table: bool) -> Row:
        length, at = _varint(page, at)
        number = None
        if table:
            number, at = _varint(page, at)
            number -= (number >> 63) << 64
        return number, _values(self._payload(page, at, length, table=table))

    def _payload(self, page: bytes, at: int, length: int, *, table: bool) -> bytes:
        most = self.size - 35 if table else (self.size - 12) * 64 // 255 - 23
        if length <= most:
            return page[at : at + length]
        if length > len(self) * self.size:
            raise ValueError(length)
        least = (self.size - 12) * 32 // 255 - 23
        here = least + (length - least) % (self.size - 4)
        here = here if here <= most else least
        parts, left = [page[at : at + here]], length - here
        (following,) = struct.unpack_from(">I", page, at + here)
        while left > 0:
            page = self[following]
            (following,) = struct.unpack_from(">I", page)
            parts.append(page[4 : 4 + min(left, self.size - 4)])
            left -= self.size - 4
        return b"".join(parts)


def _start(number: int) -> int:
    return 100 if number == 1 else 0


def _cells(page: bytes, start: int, *, header: int) -> tuple[int, ...]:
    (count,) = struct.unpack_from(">H", page, start + 3)
    return struct.unpack_from(f">{count}H", page, start + header)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def _values(payload: bytes) -> tuple[Any, ...]:
    end, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    for kind in kinds:
        value, end = _value(payload, end, kind)
        values.append(value)
    if end != len(payload):
        raise ValueError(end)
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind >= 12:
        end = at + (kind - 12) // 2
        return (payload[at:end].decode() if kind % 2 else payload[at:end]), end
    if kind in (8, 9):
        return kind - 8, at
    if kind > 6:
        raise ValueError(kind)  # a fraction, which no bank keeps, or nothing that SQLite knows
    end = at + _INTEGERS[kind]
    return (int.from_bytes(payload[at:end], signed=True) if kind else None), end


def _logged(data: bytes) -> dict[int, bytes]:
    """The pages of a log's whole transactions, up to the first that is not what was written."""
    size, salts = int.from_bytes(data[8:12]), data[16:24]
    if len(data) < 32 or size % 8:
        return {}
    order = ">" if data[3:4] == b"\x83" else "<"
    done: dict[int, bytes] = {}
    waiting: dict[int, bytes] = {}
    sums = _log_sums(data[:24], (0, 0), order)
    for at in range(32, len(data), 24 + size) if size else ():
        head, page = data[at : at + 24], data[at + 24 : at + 24 + size]
        sums = _log_sums(head[:8] + page, sums, order) if len(page) == size else (0, 0)
        if head[8:16] != salts or struct.pack(">II", *sums) != head[16:24]:
            break
        waiting[int.from_bytes(head[:4])] = page
        if head[4:8] != b"\0\0\0\0":
            done |= waiting
            waiting = {}
    return done


def _log_sums(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    total, other = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for at in range(0, len(words), 2):
        total = (total + words[at] + other) & 0xFFFFFFFF
        other = (other + words[at + 1] + total) & 0xFFFFFFFF
    return total, other

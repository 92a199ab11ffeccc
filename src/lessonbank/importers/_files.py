"""Reads a file, plain or gzipped, as a stream of JSON values, within bounds that are said in every refusal."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from lessonbank._base.atomic_write import belongs_to_database
from lessonbank._base.safe_read import open_regular
from lessonbank.contracts.records import Json
from lessonbank.learning.judging import SUCCESS_AT
from lessonbank.text.bounded_json import parse

from ._packed import PROTOBUF, ZIP, logs, traces

RECORD_LIMIT = 64 * 2**20
"""Unpacked bytes of one record: a line, a file that is one JSON value, or a log."""
_MOST_TIMES = 250
"""How many times its packed size a file may have. Repetitive logs reach 50, an archive bomb 1,000."""
_PASSED_OVER = 256 * 2**20
"""Bytes of a line too long that are passed over to find the next one. After more the file is not read further."""
_MOST_BLANK = 2**20
"""Bytes of blank lines in a row. A small archive may hold many millions of them."""
NOT_A_BANK = "it is a bank, or a part of one, and no file of runs"
_SAMPLE = 20
_UNREADABLE = "the file cannot be read further"
# UTF-32's little-endian mark begins with UTF-16's, so it comes first.
_MARKS = (
    *((mark, "utf-32") for mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)),
    *((mark, "utf-16") for mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)),
)
_SUFFIXES = (".gz", ".json", ".jsonl", ".ndjson", ".traj", ".eval", *PROTOBUF)


@dataclass(frozen=True, slots=True)
class Skipped:
    """One line, entry or file that gives no run, and why."""

    path: Path
    line: int
    reason: str
    unknown: bool = False
    """The whole file can be read, and holds no runs in a known format. Reported only for files found in a folder."""


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON value of a file, with the number of its line."""

    line: int
    value: Json


class Source:
    """A file of runs. A file that is one value is read once and kept."""

    def __init__(self, path: Path, /, *, inside: Path | None = None, success_at: float = SUCCESS_AT) -> None:
        self.path = path
        self.inside = inside
        """The folder that links must not lead out of; `None`: they may lead anywhere."""
        self.success_at = success_at
        """The reward from which a run of this file is a success, where the file does not say so itself."""
        self.name = path.name.removesuffix(".gz")

    @property
    def stem(self) -> str:
        """The file's name without its endings: the same for the file and its gzipped copy."""
        name = self.path.name
        while name.endswith(_SUFFIXES):
            name = name[: name.rindex(".")]
        return name or self.path.name

    @property
    def folder(self) -> Path:
        """Where the file lies, by its full path."""
        return Path(os.path.realpath(self.path)).parent

    def run_of(self, instance: str, /) -> str:
        """The folder of the run: a run may keep one folder per instance, or all its instances in one."""
        folder = self.folder
        return (folder.parent if folder.name == instance else folder).name

    def beside(self, path: Path, /) -> Source:
        """Another file that belongs to this one, under the same conditions."""
        return Source(path, inside=self.inside, success_at=self.success_at)

    def first(self) -> Json:
        """Its first value; `None` where there is none that can be read."""
        row = next(self.rows(), None)
        return row.value if isinstance(row, Row) else None

    def rows(self) -> Iterator[Row | Skipped]:
        """Every JSON value: one for each line, or the one value the file is."""
        if self._is_packed:
            yield from self._unpacked()
            return
        if self._document is not None:
            yield self._document
            return
        for number, line in self._lines():
            yield self._row(number, line)

    @cached_property
    def _is_packed(self) -> bool:
        if self.name.endswith(PROTOBUF):
            return True
        try:
            with self._open() as file:
                return file.read(len(ZIP)) == ZIP
        except (EOFError, OSError, zlib.error):
            return False

    def _unpacked(self) -> Iterator[Row | Skipped]:
        """The values of a file that is no text."""
        number = 0
        try:
            if self.name.endswith(PROTOBUF):
                yield from (Row(number, value) for number, value in enumerate(traces(self.read_all()), 1))
                return
            with open_regular(self.path, inside=self.inside) as file:
                for number, value in enumerate(logs(cast("BinaryIO", file), limit=RECORD_LIMIT), 1):
                    yield Skipped(self.path, number, value) if isinstance(value, str) else Row(number, value)
        except OSError as error:
            yield Skipped(self.path, number + 1, f"{_UNREADABLE}: {_one_line(error)}")

    def read_all(self) -> bytes:
        """All of the file. Raises OSError: it cannot be read, or is too large for one record."""
        try:
            with self._open() as file:
                content = file.read(RECORD_LIMIT + 1)
        except (EOFError, zlib.error) as error:
            raise OSError(str(error)) from error
        if len(content) > RECORD_LIMIT:
            raise OSError(f"it is one record of more than {RECORD_LIMIT >> 20} MB (unpacked): write each run on a line")
        return content

    def _lines(self) -> Iterator[tuple[int, bytes | str]]:
        """Numbered lines that are not blank; text in place of bytes says why a line could not be read."""
        number = blank = 0
        try:
            with self._open() as file:
                while raw := file.readline(RECORD_LIMIT + 1):
                    number += 1
                    if len(raw) > RECORD_LIMIT:
                        _finish_line(file, raw)
                        yield number, f"the line is longer than {RECORD_LIMIT >> 20} MB"
                    elif raw.strip():
                        blank = 0
                        yield number, raw
                    elif (blank := blank + len(raw)) > _MOST_BLANK:
                        raise OSError(f"more than {_MOST_BLANK >> 20} MB of blank lines")
        except (EOFError, OSError, zlib.error) as error:
            yield number + 1, f"{_UNREADABLE}: {_one_line(error)}"

    def _row(self, number: int, line: bytes | str) -> Row | Skipped:
        if isinstance(line, str):
            return Skipped(self.path, number, line)
        try:
            return Row(number, parse(line))
        except ValueError as error:
            return Skipped(self.path, number, f"not valid JSON: {_one_line(error)}")

    @cached_property
    def _document(self) -> Row | Skipped | None:
        """The whole file as one value; `None` when its lines are values of their own."""
        first = next(self._lines(), None)
        if first is None or not isinstance(self._row(*first), Skipped):
            return None
        try:
            return Row(1, parse(self.read_all()))
        except (OSError, ValueError) as error:
            if any(self._holds_data(line) for _, line in islice(self._lines(), _SAMPLE)):
                return None
            why = "not valid JSON" if isinstance(error, ValueError) else _UNREADABLE
            return Skipped(self.path, getattr(error, "lineno", 1), f"{why}: {_one_line(error)}")

    def _holds_data(self, line: bytes | str) -> bool:
        row = self._row(1, line)
        return isinstance(row, Row) and isinstance(row.value, dict | list) and bool(row.value)

    @cached_property
    def _is_bank(self) -> bool:
        return belongs_to_database(self.path)

    def _open(self) -> BinaryIO:
        if self._is_bank:  # whoever else opens and closes it drops the locks that SQLite holds for this process
            raise OSError(NOT_A_BANK)
        file: io.BufferedReader[Any] = open_regular(self.path, inside=self.inside)
        if file.peek(2).startswith(b"\x1f\x8b"):
            file = io.BufferedReader(_Unpacked(file))
        if file.peek(3).startswith(codecs.BOM_UTF8):
            file.read(len(codecs.BOM_UTF8))
        encoding = next((name for mark, name in _MARKS if file.peek(4).startswith(mark)), None)
        return cast("BinaryIO", file if encoding is None else _Recoded(file, encoding))


class _Unpacked(io.RawIOBase):
    """What is in a gzipped file, as long as it is not out of proportion."""

    def __init__(self, packed: io.BufferedReader) -> None:
        self._packed, self._file, self._count = packed, gzip.GzipFile(fileobj=packed), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        count = self._file.readinto(buffer)
        self._count += count
        if self._count > RECORD_LIMIT and self._count > _MOST_TIMES * self._packed.raw.tell():
            raise OSError(f"it unpacks to more than {_MOST_TIMES} times its size")
        return count

    def close(self) -> None:
        self._file.close()
        self._packed.close()
        super().close()


class _Recoded(io.BufferedIOBase):
    """A file of another encoding (some shells write UTF-16) as UTF-8. Sizes count characters, of up to four bytes."""

    def __init__(self, file: io.BufferedReader[Any], encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding=encoding, errors="replace", newline="\n")

    def read(self, size: int | None = -1, /) -> bytes:
        return self._text.read(size).encode()

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._text.readline(-1 if size is None else size).encode()

    def close(self) -> None:
        self._text.close()
        super().close()


def _finish_line(file: BinaryIO, line: bytes) -> None:
    """Pass over the rest of a line that is too long. Raises OSError where that would take too much time."""
    left = _PASSED_OVER
    while not line.endswith(b"\n"):
        line = file.readline(2**20)
        left -= len(line)
        if not line:
            return
        if left < 0:
            raise OSError(f"a line is longer than {_PASSED_OVER >> 20} MB")


def _one_line(error: Exception) -> str:
    """Without the name of the file, which the reader has already, and which can hold anything."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:200]

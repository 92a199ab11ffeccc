"""Reads the stores of the PyPI package `reasoning-bank` 0.1.1: its SQLite file, and the JSON lines it exports."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from lessonbank._base.safe_read import has_table, open_database
from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError

from ._memory import Format, Memory, fields_of, memory

_TABLE: Final = "memory_items"
_FIELDS: Final = ("title", "description", "content", "source", "task_signature")
_LONGEST: Final = 2**20
"""Bytes of a field that SQLite may hand out."""


def _read(value: Json) -> Sequence[Memory] | None:
    row = fields_of(value, *_FIELDS)
    if row is None:
        return None
    return [
        memory(
            row["content"],
            title=row["title"],
            when=row["description"],
            task=row["task_signature"],
            kind="guardrail" if row["source"] == "failure" else "strategy",
        )
    ]


def rows_of(path: Path, /, *, most: int) -> Iterator[Json]:
    """At most `most` rows of the table of memories; none where the database has no such table.

    Raises:
        FormatError: the database is damaged, or would run something.
    """
    try:
        with open_database(path, longest=_LONGEST) as database:
            database.text_factory = _text
            if not has_table(database, _TABLE):
                return
            row = None
            for row in database.execute(f"SELECT {', '.join(_FIELDS)} FROM {_TABLE} LIMIT ?", (most,)):
                yield {
                    name: value if isinstance(value, str) else None for name, value in zip(_FIELDS, row, strict=True)
                }
            if row is None:
                raise FormatError("it holds no memory")
    except (sqlite3.Error, UnicodeError) as error:  # SQLite's own sentences may quote bytes that are no text
        raise FormatError(f"SQLite cannot read it: {error}") from error


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


FORMAT = Format(
    "reasoning_bank_pypi", "stores of the PyPI package `reasoning-bank`: SQLite, JSON lines", of_value=_read
)

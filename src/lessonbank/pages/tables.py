"""A list as CSV, for a spreadsheet: the same records as on the page, with whole ids and all of their numbers."""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from starlette.responses import Response

from lessonbank.guard import clean

T = TypeVar("T")
MOST: Final = 10_000
"""Records of one file."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet run a text."""


def csv_of(name: str, columns: Sequence[str], rows: Iterable[Sequence[object]], /) -> Response:
    """A file to download. Text of strangers can neither run in a spreadsheet nor drive a terminal."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(columns)
    writer.writerows([_cell(value) for value in row] for row in rows)
    kind = {"Content-Disposition": f'attachment; filename="{name}.csv"', "Cache-Control": "no-store"}
    return Response(buffer.getvalue().encode("utf-8", "replace"), media_type="text/csv; charset=utf-8", headers=kind)


async def every(page: Callable[..., Awaitable[Sequence[T]]], id_of: Callable[[T], str], /, **asked: Any) -> Sequence[T]:
    """The records of a list, page by page, at most `MOST`."""
    records, after = list[T](), None
    while len(records) < MOST and (more := await page(**asked, limit=1000, after=after)):
        records += more
        after = id_of(more[-1])
    return records[:MOST]


def _cell(value: object) -> object:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = clean(value)
    return f"'{text}" if text.startswith(_FORMULA) else text

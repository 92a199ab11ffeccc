"""Records as the tables keep them: plain JSON, which any tool can read, and its checksum in a column beside it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeAlias, TypeVar

from lessonbank.contracts.records import Record
from lessonbank.errors import StoreDamaged

from ._records import dumped

R = TypeVar("R", bound=Record)

TextWithSum: TypeAlias = tuple[str, int]
"""A record's JSON, and the CRC-32 of its UTF-8: for accidents. Whoever can forge it can write the file anyway."""


def with_sum(text: str, /) -> TextWithSum:
    """What the two columns of a record hold."""
    return text, zlib.crc32(text.encode())


def records_with_sums(records: Sequence[R], /) -> list[tuple[R, TextWithSum]]:
    """Each record as it is kept, and what its columns hold.

    Raises:
        UsageError: one has no JSON form.
    """
    return [(clean, (text, zlib.crc32(text.encode()))) for clean, text in map(dumped, records)]


def checked(value: bytes, /) -> bytes:
    """The JSON in a checksum and the text behind it, as a store selects both with its `kept`.

    Raises:
        StoreDamaged: the text is not what was written.
    """
    try:
        total, _, text = value.partition(b" ")
        if int(total) == zlib.crc32(text):
            return text
    except (AttributeError, TypeError, ValueError):  # a damaged row may hold anything
        pass
    raise StoreDamaged("a kept record is not what was written (its checksum is wrong)")


def kept_again(value: bytes, /) -> TextWithSum:
    """What the columns of another row hold to keep the same. Raises StoreDamaged."""
    return with_sum(checked(value).decode())

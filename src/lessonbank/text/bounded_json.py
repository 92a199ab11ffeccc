"""Reads JSON that somebody else wrote, within bounds: many small values take fifty times the room of their text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, cast

from lessonbank.contracts.records import Json
from lessonbank.errors import TooLarge

_MOST: Final = 4_000_000
"""Brackets and commas of a record."""
_PIECE: Final = 65_536
"""Bytes that are looked at in one go: between two of them other threads may run."""
_BRACKETS: Final = re.compile(r"[][{}]")
_DEEPEST: Final = 100
"""Levels of brackets in a model's reply; those that are asked for have five."""
_MOST_BRACKETS: Final = 4_000
_NO_BRACKET: Final = bytes(set(range(256)) - set(b"[]{}"))


def parse(raw: bytes | str, /) -> Json:
    """The JSON value in `raw`; bytes that are no UTF-8 are replaced.

    Raises:
        ValueError: no JSON, nested too deep, too many values, or a number of thousands of digits.
    """
    text = raw.decode("utf-8-sig", "replace") if isinstance(raw, bytes) else raw
    if len(text) > _MOST and sum(map(text.count, ",[{")) > _MOST:
        raise ValueError(f"more than {_MOST:,} values in one record")
    try:
        return cast("Json", json.loads(text))
    except RecursionError:
        raise ValueError("nested too deep") from None
    except json.JSONDecodeError:
        raise
    except ValueError:
        raise ValueError("a number of thousands of digits") from None


def shallow(text: str, /) -> str:
    """`text` up to where its brackets are nested too deep, or too many were opened: what follows is no reply."""
    depth = 0
    for count, bracket in enumerate(_BRACKETS.finditer(text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _DEEPEST or count > _MOST_BRACKETS:
            return text[: bracket.start()]
    return text


def check_shape(raw: bytes, /, *, values: int, depth: int) -> None:
    """Refuse JSON in UTF-8 that has too many values or is nested too deep, before anything is made of it.

    Raises:
        TooLarge: it has more of them than `values`, counted as brackets and commas, or more levels than `depth`.
    """
    in_string, count, level = False, 0, 0
    for piece in _without_escapes(raw):
        parts = piece.split(b'"')
        outside = b"".join(parts[in_string::2])
        in_string ^= len(parts) % 2 == 0
        count += sum(map(outside.count, (b",", b"[", b"{")))
        if count > values:
            raise TooLarge(f"the JSON has more than {values:,} values: send it in several requests")
        for bracket in outside.translate(None, _NO_BRACKET):
            level += 1 if bracket in b"[{" else -1
            if level > depth:
                raise TooLarge(f"the JSON is nested deeper than {depth} levels: send it flatter")


def _without_escapes(raw: bytes) -> Iterator[bytes]:
    """The text in pieces, in which every quotation mark begins or ends a string."""
    at = 0
    while at < len(raw):
        piece = raw[at : at + _PIECE]
        is_cut = (len(piece) - len(piece.rstrip(b"\\"))) % 2
        end = at + len(piece) + is_cut
        yield raw[at:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        at = end

"""Counts what is in a protobuf message before objects are made of it, which take fifty times its room."""

from __future__ import annotations

from typing import Any, Final

from lessonbank.errors import TooLarge

_NUMBER, _EIGHT, _LENGTH, _FOUR = 0, 1, 2, 5
_SHORTEST: Final = 2
"""Bytes of a field."""
_LONGEST: Final = 63
"""Bits of a number."""


def check_fields(raw: bytes, message: Any, /, *, most: int) -> None:
    """Refuse more than `most` fields. `message`: the descriptor of what `raw` is.

    Raises:
        TooLarge: it has more.
        ValueError: it is no protobuf.
    """
    if len(raw) <= _SHORTEST * most:
        return
    count, waiting = 0, [(0, len(raw), message)]
    inner = dict[str, dict[int, Any]]()
    while waiting:
        at, end, kind = waiting.pop()
        if kind.full_name not in inner:
            inner[kind.full_name] = {field.number: field.message_type for field in kind.fields}
        messages = inner[kind.full_name]
        while at < end:
            count += 1
            if count > most:
                raise TooLarge(f"the protobuf has more than {most:,} fields: export fewer spans at once")
            tag, at = _number(raw, at)
            begin, at = _next(raw, tag & 7, at)
            if tag & 7 == _LENGTH and messages.get(tag >> 3) is not None:
                waiting.append((begin, min(at, end), messages[tag >> 3]))


def _next(raw: bytes, kind: int, at: int) -> tuple[int, int]:
    """Where a field's value begins and ends."""
    if kind == _NUMBER:
        return at, _number(raw, at)[1]
    if kind in (_EIGHT, _FOUR):
        return at, at + (8 if kind == _EIGHT else 4)
    if kind != _LENGTH:
        raise ValueError("no OTLP message has groups")
    size, begin = _number(raw, at)
    return begin, begin + size


def _number(raw: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(raw) and shift <= _LONGEST:
        byte = raw[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number has no end")

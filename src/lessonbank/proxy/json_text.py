"""Adds text to a JSON body without touching any other byte of it: finds where each value stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

_decode = json.JSONDecoder().raw_decode
_blanks = re.compile(r"[ \t\n\r]*")


class Span(NamedTuple):
    """A value and where it stands in the text. A list that was asked for in parts is a list of spans."""

    value: Any
    start: int
    end: int


def fields(text: str, start: int = 0, /, *, parts: Iterable[str] = ()) -> dict[str, Span]:
    """The fields of the object that begins at `start`; those named in `parts`, where they are lists, in parts.

    Raises:
        ValueError: no such object, or one that names a field twice, so that readers could differ.
        RecursionError: nested too deeply.
    """
    return _object(text, start, parts)[0]


def parse_object(text: str, /, *, parts: Iterable[str] = ()) -> dict[str, Span]:
    """The fields of the object that the whole text is. Raises as `fields` does."""
    spans, end = _object(text, _skip(text, 0), parts)
    if _skip(text, end) != len(text):
        raise ValueError("something stands behind the object")
    return spans


def with_inserted(text: str, /, *edits: tuple[int, str]) -> str:
    """`text` with each piece inserted at its place; places in rising order."""
    pieces: list[str] = []
    last = 0
    for at, piece in edits:
        pieces += text[last:at], piece
        last = at
    return "".join((*pieces, text[last:]))


def _object(text: str, start: int, parts: Iterable[str]) -> tuple[dict[str, Span], int]:
    spans: dict[str, Span] = {}
    at = _skip(text, _expect(text, start, "{"))
    while not text.startswith("}", at):
        at = _skip(text, _expect(text, at, ",")) if spans else at
        name, end = _decode(text, at)
        if not isinstance(name, str) or name in spans:
            raise ValueError("an object with a field that is named twice, or not by text")
        at = _skip(text, _expect(text, _skip(text, end), ":"))
        spans[name] = _list(text, at) if name in parts and text.startswith("[", at) else Span(*_value(text, at))
        at = _skip(text, spans[name].end)
    return spans, at + 1


def _list(text: str, start: int) -> Span:
    spans: list[Span] = []
    at = _skip(text, start + 1)
    while not text.startswith("]", at):
        at = _skip(text, _expect(text, at, ",")) if spans else at
        spans.append(Span(*_value(text, at)))
        at = _skip(text, spans[-1].end)
    return Span(spans, start, at + 1)


def _value(text: str, at: int) -> tuple[Any, int, int]:
    value, end = _decode(text, at)
    return value, at, end


def _skip(text: str, at: int) -> int:
    match = _blanks.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, sign: str) -> int:
    if not text.startswith(sign, at):
        raise ValueError(f"a {sign!r} is missing at {at}")
    return at + 1

"""Finds the complete JSON objects in a reply that is not JSON as a whole, and nothing that was cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import json_repair

_SYNTAX = re.compile(r"""["'\\{}]""")
_FLAT = re.compile(r"\{[^{}]*\}")
_PYTHON_STYLE = re.compile(r"\{\s*'")
_SMALLEST = 8
_DEEPEST = 8
_RETRIES = 4
_REPAIR_EACH = 20_000
_REPAIR_TOTAL = 200_000
_REPAIR_NESTING = 40


@dataclass(slots=True)
class _Span:
    """One object in the text: where it starts and ends, and the objects inside it."""

    start: int
    python_style: bool
    end: int = 0
    children: list[_Span] = field(default_factory=list["_Span"])


def loads(text: str, /) -> Any:
    """The value of `text` as JSON, raw line breaks in strings allowed; `None` where it is not JSON."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def item_dicts(value: Any, /, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Every dict in `value` that has a title or a content, however it is wrapped; keys in lower case."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from item_dicts(part, depth + 1)
    if not isinstance(value, dict):
        return
    fields = {str(key).strip().lower(): part for key, part in cast("dict[Any, Any]", value).items()}
    if _is_item(fields):
        yield fields
    else:
        for part in fields.values():
            yield from item_dicts(part, depth + 1)


def says_none(value: Any, /) -> bool:
    """Whether `value` is a list without anything in it, or an object that wraps one."""
    if isinstance(value, dict):
        return any(part == [] for part in cast("dict[str, Any]", value).values())
    return value == []


def complete_objects(text: str, /) -> tuple[list[dict[str, Any]], bool]:
    """The item dicts among the complete objects of `text`, and whether one of the objects wraps an empty list.

    An object whose end is missing is never returned, whatever its strings hold: the scan knows strings and escapes.
    Objects that are complete but not valid JSON (single quotes, trailing commas, comments) are repaired. Where a stray
    quote has thrown the scan off, the objects without inner braces after the last one found are tried as they look.
    Linear in the length of `text`.
    """
    repair = _Repair()
    found: list[dict[str, Any]] = []
    empty, read_to = False, 0
    for span in _spans(text):
        items = list(_read(text, span, repair))
        found += items
        read_to = span.end if items else read_to
        empty = empty or (not items and says_none(loads(text[span.start : span.end])))
    for match in _FLAT.finditer(text, read_to):
        if _ends_with_a_value(match[0]):
            found += item_dicts(loads(match[0]) or repair(match[0]))
    return found, empty


def _spans(text: str) -> list[_Span]:
    """The outermost complete objects, in order; those inside an object that never ends count as outermost."""
    outermost: list[_Span] = []
    stack: list[_Span] = []
    quote, skip = "", -1
    for match in _SYNTAX.finditer(text):
        char, at = match[0], match.start()
        if at == skip:
            continue
        if quote:
            skip = at + 1 if char == "\\" else skip
            quote = "" if char == quote else quote
        elif char == "{":
            stack.append(_Span(at, _PYTHON_STYLE.match(text, at) is not None))
        elif stack and char == "}":
            span = stack.pop()
            span.end = at + 1
            if span.end - span.start >= _SMALLEST:
                (stack[-1].children if stack else outermost).append(span)
        elif stack and (char == '"' or (char == "'" and stack[-1].python_style)):
            quote = char
    for unfinished in stack:
        outermost += unfinished.children
    return sorted(outermost, key=lambda span: span.start)


def _read(text: str, span: _Span, repair: _Repair, retries: int = _RETRIES) -> Iterator[dict[str, Any]]:
    raw = text[span.start : span.end]
    value = loads(raw)
    if value is not None:
        yield from item_dicts(value)
        return
    inner = [d for child in span.children for d in _read(text, child, repair, retries - 1)] if retries else []
    yield from inner or item_dicts(repair(raw))


def _ends_with_a_value(raw: str) -> bool:
    """Whether the brace stands where an object can end: inside a valid JSON string, every quote is escaped."""
    end = raw[:-1].rstrip().rstrip(",").rstrip().removesuffix("]").rstrip()
    quotes = ('"', "'") if _PYTHON_STYLE.match(raw) else ('"',)
    return end.endswith(quotes) and end[-2:-1] != "\\"


def _is_item(fields: dict[str, Any]) -> bool:
    if "content" in fields and not _holds_objects(fields["content"]):
        return True
    return "title" in fields and not any(map(_holds_objects, fields.values()))


def _holds_objects(value: Any) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and any(isinstance(part, dict | list) for part in cast("list[Any]", value))


class _Repair:
    """json-repair within an allowance: its time grows faster than its input."""

    def __init__(self) -> None:
        self._left = _REPAIR_TOTAL

    def __call__(self, raw: str) -> Any:
        nesting = raw.count("{") + raw.count("[")
        if len(raw) > min(self._left, _REPAIR_EACH) or nesting > _REPAIR_NESTING:
            return None
        self._left -= len(raw)
        try:
            return cast("Any", json_repair.loads(raw, skip_json_loads=True))
        except Exception:  # noqa: BLE001 - guesswork on rubbish must never stop `learn`
            return None

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
_LIST = re.compile(r"""["']?\bitems["']?\s*:\s*\[""", re.I)
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


@dataclass(frozen=True, slots=True)
class Found:
    """Lessons found in a text; `empty`: an object wraps an empty list; `closed`: the `items` list was found."""

    lessons: list[dict[str, Any]]
    empty: bool = False
    closed: bool = False


def loads(text: str, /) -> Any:
    """The value of `text` as JSON, raw line breaks in strings allowed; `None` where it is not JSON."""
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


def lesson_dicts(value: Any, /, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Every dict in `value` that has a title or a content, however it is wrapped; keys in lower case."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from lesson_dicts(part, depth + 1)
    if not isinstance(value, dict):
        return
    fields = {str(key).strip().lower(): part for key, part in cast("dict[Any, Any]", value).items()}
    if _is_lesson(fields):
        yield fields
    else:
        for part in fields.values():
            yield from lesson_dicts(part, depth + 1)


def says_none(value: Any, /) -> bool:
    """Whether `value` is a list without anything in it, or an object that wraps one."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return "about" not in fields and any(part == [] for part in fields.values())  # a choice is no answer
    return value == []


def listed(value: Any, /, depth: int = 0) -> list[dict[str, Any]] | None:
    """The dicts of lessons in the first `items` list in `value`, `None` where there is none.

    A list of something else, such as the items of an order, is none; an empty one is.
    """
    if depth > _DEEPEST:
        return None
    parts: list[Any] = []
    if isinstance(value, list):
        parts = cast("list[Any]", value)
    elif isinstance(value, dict):
        fields = {str(key).strip().lower(): part for key, part in cast("dict[Any, Any]", value).items()}
        if _is_lesson(fields):
            return None
        inside = fields.get("items")
        if isinstance(inside, list) and ((lessons := [*lesson_dicts(inside)]) or not inside):
            return lessons
        parts = list(fields.values())
    return next((found for part in parts if (found := listed(part, depth + 1)) is not None), None)


def complete_objects(text: str, /) -> Found:
    """The dicts of lessons among the complete objects of `text`.

    Where one of the objects has an `items` list, that is the answer and the rest is talk about it: only the first such
    list is read. An object whose end is missing is never returned, whatever its strings hold: the scan knows strings
    and escapes. Objects that are complete but not valid JSON (single quotes, trailing commas, comments) are repaired.
    Where a stray quote has thrown the scan off, the objects without inner braces after the last one found are tried as
    they look. Linear in the length of `text`.
    """
    repair = _Repair()
    spans, unfinished = _spans(text)
    for span in sorted([*spans, *unfinished], key=lambda span: span.start):
        if not span.end and _opens_a_list(text, span):
            # Cut off, or thrown off by a stray quote: what stands before it is no part of it.
            return _lessons_of(text, [inner for inner in spans if inner.start > span.start], repair, span.start)
        if span.end and (lessons := _listed_in(text, span, repair)) is not None:
            return Found(lessons, empty=not lessons, closed=True)
    return _lessons_of(text, spans, repair)


def _lessons_of(text: str, spans: list[_Span], repair: _Repair, read_to: int = 0, /) -> Found:
    found: list[dict[str, Any]] = []
    empty = False
    for span in spans:
        lessons = list(_read(text, span, repair))
        found += lessons
        read_to = span.end if lessons else read_to
        empty = empty or (not lessons and says_none(loads(text[span.start : span.end])))
    for match in _FLAT.finditer(text, read_to):
        if _ends_with_a_value(match[0]):
            found += lesson_dicts(loads(match[0]) or repair(match[0]))
    return Found(found, empty=empty)


def _opens_a_list(text: str, span: _Span, /) -> bool:
    """Whether an object begins with an `items` list, as far as it has no objects in it."""
    end = span.end or len(text)
    inner = text.find("{", span.start + 1, end)
    return _LIST.search(text, span.start, end if inner < 0 else inner) is not None


def _listed_in(text: str, span: _Span, repair: _Repair, retries: int = _RETRIES) -> list[dict[str, Any]] | None:
    value = loads(text[span.start : span.end])
    if value is not None:
        return listed(value)
    if _opens_a_list(text, span):
        return [*_read(text, span, repair)] or None
    inner = (_listed_in(text, child, repair, retries - 1) for child in span.children if retries)
    return next((lessons for lessons in inner if lessons is not None), None)


def _spans(text: str) -> tuple[list[_Span], list[_Span]]:
    """The outermost complete objects, in order, and those that never end; what is inside of such is outermost too."""
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
    return sorted(outermost, key=lambda span: span.start), stack


def _read(text: str, span: _Span, repair: _Repair, retries: int = _RETRIES) -> Iterator[dict[str, Any]]:
    raw = text[span.start : span.end]
    value = loads(raw)
    if value is not None:
        yield from lesson_dicts(value)
        return
    inner = [d for child in span.children for d in _read(text, child, repair, retries - 1)] if retries else []
    yield from inner or lesson_dicts(repair(raw))


def _ends_with_a_value(raw: str) -> bool:
    """Whether the brace stands where an object can end: inside a valid JSON string, every quote is escaped."""
    end = raw[:-1].rstrip().rstrip(",").rstrip().removesuffix("]").rstrip()
    quotes = ('"', "'") if _PYTHON_STYLE.match(raw) else ('"',)
    return end.endswith(quotes) and end[-2:-1] != "\\"


def _is_lesson(fields: dict[str, Any]) -> bool:
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

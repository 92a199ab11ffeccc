"""Adds entries to settings files of other programs, and takes them out again: every other byte stays as it is.

The files are JSON, with or without comments and trailing commas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError

EMPTY: Final = "{\n}\n"
"""What a settings file begins with that did not exist."""
_GAP: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_PLAIN: Final = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_DECODER: Final = json.JSONDecoder()
_INDENT: Final = "  "
_DEEPEST: Final = 100


@dataclass(slots=True)
class Node:
    """A value of the file, and where it stands. A member of an object begins at its name."""

    start: int
    end: int
    value: Json
    key: str | None = None
    children: list[Node] = field(default_factory=list["Node"])

    def child(self, key: str) -> Node | None:
        """The member of this name; the last, where there are several."""
        return next((child for child in reversed(self.children) if child.key == key), None)


def parsed(text: str, /) -> Node:
    """The whole file. Raises FormatError: it is no JSON object."""
    begin = _skip(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, begin, 0)
    if _skip(text, node.end) != len(text):
        raise _broken(text, node.end)
    if not isinstance(node.value, dict):
        raise FormatError("it holds no JSON object")
    return node


def with_member(text: str, path: tuple[str, ...], value: Json, /) -> str:
    """The file with `value` at `path`: in the place of what is there, or as the last member of its object.

    Raises FormatError: the file is broken, or something other than an object stands on the way.
    """
    node = parsed(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise _in_the_way(path[:depth], "an object")
        child = node.child(key)
        if child is None:
            for outer in reversed(path[depth + 1 :]):
                value = {outer: value}
            return _inserted(text, node, f"{json.dumps(key)}: {_written(value, depth + 1)}", depth + 1)
        node = child
    return f"{text[: _opening(text, node)]}{_written(value, len(path))}{text[node.end :]}"


def with_element(text: str, path: tuple[str, ...], value: Json, /) -> str:
    """The file with `value` as the last element of the list at `path`. Raises FormatError, like `with_member`."""
    node: Node | None = parsed(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise _in_the_way(path[:depth], "an object")
        node = node.child(key)
        if node is None:
            return with_member(text, path, [value])
    if not isinstance(node.value, list):
        raise _in_the_way(path, "a list")
    return _inserted(text, node, _written(value, len(path) + 1), len(path) + 1)


def without(text: str, is_ours: Callable[[tuple[str, ...], Json], bool], /) -> str:
    """The file without the values that `is_ours` says are ours, and without what was made to hold them.

    `is_ours` gets the names on the way to a value (a list adds none), and the value. Raises FormatError.
    """
    while position := _find(text, parsed(text), (), is_ours, depth=1):
        text = _cut(text, *position)
    return text


def without_member(text: str, path: tuple[str, ...], /) -> str:
    """The file without the member at `path`; what held it stays, also empty. Raises FormatError."""
    node: Node | None = parsed(text)
    for key in path[:-1]:
        node = node and node.child(key)
    child = node and node.child(path[-1])
    return _cut(text, node, node.children.index(child)) if node and child else text


def _find(
    text: str, node: Node, path: tuple[str, ...], is_ours: Callable[[tuple[str, ...], Json], bool], *, depth: int
) -> tuple[Node, int] | None:
    """Where the first value of ours is: what holds it, and at which place. What was made for ours goes as a whole."""
    for place, child in enumerate(node.children):
        inner = path if child.key is None else (*path, child.key)
        if is_ours(inner, child.value):
            return node, place
        if (position := _find(text, child, inner, is_ours, depth=depth + 1)) is not None:
            is_whole = len(position[0].children) == 1 and position[0] is child and not _was_empty(text, child, depth)
            return (node, place) if is_whole else position
    return None


def _was_empty(text: str, node: Node, depth: int) -> bool:
    """Whether the one thing in it was put into what was there, and not written together with what holds it."""
    inner, line = node.children[0], "\n" + _INDENT * depth
    before, after = text[_opening(text, node) + 1 : inner.start], text[inner.end : node.end - 1]
    return before == line + _INDENT and after != line


def _cut(text: str, node: Node, place: int) -> str:
    """Exactly what inserting it had added, where it still is the last; comments that others wrote stay."""
    child, siblings = node.children[place], node.children
    if place:
        before, gap = siblings[place - 1].end, text[siblings[place - 1].end : child.start]
        if gap.count("/") == 0:
            return text[:before] + text[child.end :]
        comma = _skip(text, before)
        return text[:comma] + text[comma + 1 : child.start] + text[child.end :]
    if len(siblings) > 1:
        gap = text[child.end : siblings[1].start]
        behind = siblings[1].start if "/" not in gap else _skip(text, child.end) + 1
        return text[: child.start] + text[behind:]
    opening = _opening(text, node) + 1
    after = _skip(text, child.end)
    return text[:opening] + text[after + 1 if text[after : after + 1] == "," else child.end :]


def _inserted(text: str, node: Node, written: str, depth: int) -> str:
    """`written` as the last child of `node`, on a line of its own."""
    line = "\n" + _INDENT * depth + written
    at, comma = (node.children[-1].end, ",") if node.children else (_opening(text, node) + 1, "")
    return f"{text[:at]}{comma}{line}{text[at:]}"


def _written(value: Json, depth: int) -> str:
    return json.dumps(value, indent=_INDENT, ensure_ascii=False).replace("\n", "\n" + _INDENT * depth)


def _opening(text: str, node: Node) -> int:
    """Where a value itself begins."""
    if node.key is None:
        return node.start
    _, after = _string(text, node.start)
    return _skip(text, _skip(text, after) + 1)


def _value(text: str, at: int, depth: int) -> Node:
    letter = text[at : at + 1]
    if depth > _DEEPEST:
        raise FormatError("it is nested too deep")
    if letter in ("{", "["):
        return _container(text, at, depth)
    if letter == '"':
        value, end = _string(text, at)
        return Node(at, end, value)
    if match := _PLAIN.match(text, at):
        try:
            return Node(at, match.end(), json.loads(match.group()))
        except ValueError:
            pass
    raise _broken(text, at)


def _container(text: str, start: int, depth: int) -> Node:
    is_object = text[start] == "{"
    closing, children = "}" if is_object else "]", list[Node]()
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        if children:
            if text[at : at + 1] != ",":
                raise _broken(text, at)
            at = _skip(text, at + 1)
            if text[at : at + 1] == closing:  # a trailing comma
                break
        children.append(_member(text, at, depth) if is_object else _value(text, at, depth + 1))
        at = _skip(text, children[-1].end)
    value: Json = {str(c.key): c.value for c in children} if is_object else [c.value for c in children]
    return Node(start, at + 1, value, children=children)


def _member(text: str, at: int, depth: int) -> Node:
    if text[at : at + 1] != '"':
        raise _broken(text, at)
    key, end = _string(text, at)
    colon = _skip(text, end)
    if text[colon : colon + 1] != ":":
        raise _broken(text, colon)
    node = _value(text, _skip(text, colon + 1), depth + 1)
    return Node(at, node.end, node.value, key=key, children=node.children)


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except ValueError:
        raise _broken(text, at) from None


def _skip(text: str, at: int) -> int:
    match = _GAP.match(text, at)
    return match.end() if match else at


def _broken(text: str, at: int) -> FormatError:
    return FormatError(f"it is no valid JSON at line {text.count(chr(10), 0, at) + 1}")


def _in_the_way(path: tuple[str, ...], kind: str) -> FormatError:
    return FormatError(f"{'.'.join(path) or 'the file'} holds something other than {kind}")

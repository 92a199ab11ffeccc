"""Finds the JSON objects in a model's reply: behind thoughts, in prose and fences, broken or cut off.

Which of their fields count is for the caller to decide.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

T = TypeVar("T")
Fields = dict[str, Any]

_DEEPEST: Final = 8
"""Levels of objects inside broken ones that are looked at."""
_PARSED: Final = 200_000_000
"""Characters before the places at which objects turned out to be no JSON: telling where they are takes as long."""
_REPAIR_EACH: Final = 20_000
"""Characters of an object that is repaired: repairing takes longer than in proportion."""
_REPAIR_TOTAL: Final = 200_000
_REPAIR_NESTING: Final = 200
"""Brackets in it."""
_THOUGHT: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_JSON: Final = ("{", "[", "`")
_SYNTAX: Final = re.compile(r"""["'\\{}]""")
_IN_QUOTES: Final = re.compile(r"\{\s{0,40}'")
_OPENS: Final = re.compile(r"\{\s{0,40}([\"'])\w{1,40}\1\s{0,8}:")
"""An object's beginning. No string in the same quotes can hold it: there the quotes are escaped."""
_BRACE: Final = re.compile(r"[{}]")
_VALUE: Final = re.compile(r"(?<!\\)[\"']\s*\]?\s*,?\s*\Z")
"""The end of a value, as it stands before the last brace of an object."""


@dataclass(slots=True)
class JsonObject:
    """An object in a reply."""

    text: str = field(repr=False)
    """The reply."""
    start: int
    stop: int = 0
    """Behind its last brace; 0 where its end is missing."""
    fields: Fields | None = None
    """Names in lower case to values, also inside; a name that comes with two values has none. `None`: no JSON."""
    is_inner: bool = False
    """Whether it stands in one that is no JSON."""
    inner: list[JsonObject] = field(default_factory=list["JsonObject"])
    """The objects in one that is no JSON."""

    @property
    def is_cut(self) -> bool:
        """Whether its end is missing."""
        return not self.stop

    @property
    def length(self) -> int:
        """Characters of its text."""
        return (self.stop or len(self.text)) - self.start

    @property
    def raw(self) -> str:
        """The object's text."""
        return self.text[self.start : self.stop or None]

    @property
    def after(self) -> str:
        """What stands behind it."""
        return "" if self.is_cut else self.text[self.stop :]


def spoken(reply: str, /) -> str:
    """`reply` without the thoughts of a reasoning model, stripped. Thoughts that never end hide what follows them.

    A closing tag without an opening one ends thoughts that began before the reply: some servers drop the first tag.
    What begins like JSON or a fence is the answer, and tags in it are part of its strings.
    """
    parts, at, thinking = list[str](), 0, False
    for tag in _THOUGHT.finditer(reply):
        text = reply[at : tag.start()]
        if not thinking and text.lstrip().startswith(_JSON):
            break
        if not thinking:
            parts.clear() if tag[1] else parts.append(text)
        at, thinking = tag.end(), not tag[1]
    return "".join((*parts, "" if thinking else reply[at:])).strip()


def find_objects(text: str, /) -> Sequence[JsonObject]:
    """The outermost objects in a text, in order, the last ones possibly cut off. Linear in the length of the text."""
    return _Scan(text).objects()


def read_objects(objects: Iterable[JsonObject], read: Callable[[JsonObject, Fields], Iterable[T]], /) -> list[T]:
    """What `read` makes of each object and its fields, in order.

    Of an object that is no JSON it is asked for the objects inside; if it makes nothing of them, for the object
    itself, repaired.
    """
    left = _REPAIR_TOTAL

    def fields_of(json_object: JsonObject) -> Fields | None:
        nonlocal left
        if json_object.fields is not None or json_object.length > min(left, _REPAIR_EACH):
            return json_object.fields
        left -= json_object.length
        return _repair(json_object.raw)

    def each(objects: Iterable[JsonObject], depth: int) -> Iterator[T]:
        for json_object in objects if depth else ():
            if made := [*each(json_object.inner, depth - 1)]:
                yield from made
            elif (fields := fields_of(json_object)) is not None:
                yield from read(json_object, fields)

    return [*each(objects, _DEEPEST)]


def fields_with(check: str, text: str, /) -> Fields | None:
    """The last object in a text whose `check` is this code. One that is quoted from a run cannot know the code."""

    def has_code(_: JsonObject, fields: Fields) -> Iterable[Fields]:
        return [fields] if str(fields.get("check")).strip().lower() == check else []

    return next(reversed(read_objects(find_objects(text), has_code)), None)


class _Scan:
    """One pass over the signs that matter. Strings are told from what is outside them in objects that are no JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._outermost: list[JsonObject] = []
        self._open: list[JsonObject] = []
        self._quote = ""
        self._left = _PARSED

    def objects(self) -> Sequence[JsonObject]:
        at = 0
        while sign := _SYNTAX.search(self._text, at):
            at = self._begin(sign.start()) if sign[0] == "{" else self._pass(sign[0], sign.end())
        while self._close():
            pass
        return self._outermost

    def _begin(self, start: int) -> int:
        """Take in what may be an object; where to go on."""
        opens = _OPENS.match(self._text, start) if self._quote else None
        if opens and opens[1] == self._quote:
            self._quote = ""
            self._close()  # a stray quote had turned text and strings around
        json_object = JsonObject(self._text, start, is_inner=bool(self._open))
        if self._parses(json_object):
            self._into.append(json_object)
            return json_object.stop
        if not self._quote:
            self._into.append(json_object)
            self._open.append(json_object)
        return start + 1

    def _pass(self, sign: str, end: int) -> int:
        """Take in a sign inside an object; where to go on."""
        if sign == "\\":
            return end + bool(self._quote)
        if self._quote or not self._open:
            self._quote = "" if sign == self._quote else self._quote
        elif sign == "}":
            self._open.pop().stop = end
        elif sign == '"' or _IN_QUOTES.match(self._text, self._open[-1].start):
            self._quote = sign
        return end

    @property
    def _into(self) -> list[JsonObject]:
        return self._open[-1].inner if self._open else self._outermost

    def _parses(self, json_object: JsonObject) -> bool:
        try:
            json_object.fields, json_object.stop = (
                _DECODER.raw_decode(self._text, json_object.start) if self._left > 0 else (None, 0)
            )
        except json.JSONDecodeError as error:
            self._left -= error.pos
        except (ValueError, RecursionError):
            self._left -= _PARSED // 500
        return json_object.fields is not None

    def _close(self) -> bool:
        """End the innermost open object if it is one without objects in it that seems to end; whether it does."""
        start = self._open[-1].start if self._open else len(self._text)
        brace = _BRACE.search(self._text, start + 1)
        if not brace or brace[0] == "{" or not _VALUE.search(self._text, max(start, brace.start() - 40), brace.start()):
            return False
        self._open.pop().stop = brace.end()
        return True


def _repair(raw: str) -> Fields | None:
    if raw.count("{") + raw.count("[") > _REPAIR_NESTING:
        return None
    import json_repair  # noqa: PLC0415 - few replies are broken

    try:
        value: object = json_repair.loads(raw, skip_json_loads=True)
    except Exception:  # noqa: BLE001 - guesswork on rubbish must never stop `learn`
        return None
    return cast("Fields", _lower(value)) if isinstance(value, dict) else None


def _lower(value: object) -> object:
    if isinstance(value, list):
        return [_lower(part) for part in cast("list[object]", value)]
    if isinstance(value, dict):
        return _fields((name, _lower(part)) for name, part in cast("dict[object, object]", value).items())
    return value


def _fields(pairs: Iterable[tuple[object, object]], /) -> Fields:
    fields: Fields = {}
    for name, value in pairs:
        key = str(name).strip().lower()
        fields[key] = value if key not in fields or fields[key] == value else None
    return fields


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_fields, strict=False)

"""Turns whatever an SDK hands out into plain data a store can keep, or says that it cannot."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, time
from enum import Enum
from typing import Any, cast
from uuid import UUID

from lessonbank._base.surrogates import encodable
from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError

MAX_DEPTH = 100
"""Levels of nesting accepted: a trajectory wraps a message in a few more, and JSON readers give up near 200."""
_MAX_BITS = 1024
_TAGS = ("role", "type", "kind", "part_kind")


def plain(value: object, /, *, depth: int = 0) -> Json:
    """`value` as a new piece of JSON data; mappings, sequences, dataclasses and pydantic models are walked.

    Raises:
        FormatError: nested deeper than `MAX_DEPTH`, or in a circle.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value, depth=depth + 1)
    if isinstance(value, str):
        return encodable(str(value))
    if isinstance(value, int | float):
        return _number(value)
    if depth >= MAX_DEPTH:
        raise FormatError(f"is nested more than {MAX_DEPTH} levels deep")
    return _container(value, depth + 1)


def _container(value: object, depth: int) -> Json:
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value).items()
        return {cast("str", plain(str(key))): plain(item, depth=depth) for key, item in pairs}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth=depth) for item in cast("Sequence[object]", value)]
    if isinstance(value, bytes | bytearray | memoryview):
        return "[bytes]"
    if isinstance(value, date | time | UUID):
        return str(value)
    return plain(_fields(value), depth=depth)


def _number(value: float) -> Json:
    """JSON has no infinity, and its readers refuse integers of thousands of digits."""
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _MAX_BITS else hex(value)
    return float(value) if math.isfinite(value) else None


def _fields(value: object) -> object:
    """What an SDK object holds, as a mapping, or its text when it holds nothing."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return _dump(value, dump)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    held = {key: item for key, item in getattr(value, "__dict__", {}).items() if not key.startswith("_")}
    return {**_tags(value), **held} if held else str(value)


def _dump(value: object, dump: Any) -> object:
    """Only what was set: defaults an API never sent would come back as fields it never saw."""
    try:
        data = dump(exclude_unset=True, warnings=False)
    except TypeError:
        data = dump()
    return {**_tags(value), **cast("dict[str, object]", data)} if isinstance(data, dict) else str(value)


def _tags(value: object) -> dict[str, object]:
    """The fields that say what an object is are often class attributes or defaults, which a dump leaves out."""
    pairs = ((tag, getattr(value, tag, None)) for tag in _TAGS)
    return {tag: text for tag, text in pairs if isinstance(text, str)}


def same(left: Sequence[Json], right: Sequence[Json], /) -> bool:
    """Whether both are the same JSON, telling `1` from `true` and `1.0`; stops at the first difference."""
    return len(left) == len(right) and all(map(_alike, left, right))


def _alike(first: Json, other: Json) -> bool:
    return first == other and json.dumps(first, sort_keys=True) == json.dumps(other, sort_keys=True)

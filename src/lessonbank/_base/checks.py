"""Checks what a caller hands in: each check gives the value back, or one sentence that says what to pass."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from inspect import Signature
from pathlib import Path
from reprlib import Repr
from typing import Any, Final, TypeVar, cast

from pydantic import JsonValue, TypeAdapter
from typing_extensions import TypeIs

from lessonbank._base.surrogates import encodable
from lessonbank.errors import UsageError, printable

V = TypeVar("V")
K = TypeVar("K")

LONGEST_ID: Final = 200
"""Characters of an id. Those made here have 32; importers and callers may bring their own."""
LARGEST_COUNT: Final = 2**31 - 1
MOST_DAYS: Final = 365_000
MOST_SECONDS: Final = 31_536_000
"""A year: longer, and the clocks of some systems overflow."""
DEEPEST: Final = 100
"""Levels of nesting of data: readers of JSON give up near 200, and a record wraps data in a few more."""
_LONGEST_PATH: Final = 4096
_LONGEST_NAME: Final = 255
_LARGEST: Final = 2**63 - 1
"""The largest whole number that a store keeps."""
_LONGEST_NUMBER: Final = 13_000
"""Bits. Python writes no number out that has more than 4,300 digits."""
_METADATA: Final = TypeAdapter(dict[str, JsonValue])


def is_instance(value: object, kinds: type[K] | tuple[type[K], ...], /) -> TypeIs[K]:
    """Whether a value is of one of these types. `isinstance` may ask the value itself, whose answer can raise."""
    return issubclass(type(value), kinds)


def safe_getattr(value: object, name: str, default: object = None, /) -> Any:
    """An attribute of a caller's own object, or `default` where it has none or raises when it is asked."""
    try:
        return getattr(value, name, default)
    except Exception:  # noqa: BLE001 - whatever `__getattribute__` or a property raises
        return default


def display_name(value: object, /) -> str:
    """What a function or an object calls itself, else the name of its type."""
    return own if is_instance(own := safe_getattr(value, "__name__"), str) and own else type(value).__name__


def is_async(function: object, /) -> bool:
    """Whether calling it gives something to await: an async function, or an object whose `__call__` is one."""
    try:
        own = getattr(function, "__call__", None)  # noqa: B004 - an object whose __call__ is async
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(own)
    except Exception:  # noqa: BLE001 - whatever its own attributes raise
        return False


class _Short(Repr):
    """Short texts of values of any size and depth."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother, self.maxlong = 2, most, most, 40


def short_repr(value: object, /, *, most: int = 80) -> str:
    """`value` as one short line for an error: nothing in it can drive a terminal, and no value can break it."""
    try:
        text = _Short(most).repr(value)
    except Exception:  # noqa: BLE001 - a value's own methods, and numbers that Python refuses to write out
        text = type(value).__name__
    return printable(text, most=most + 2)


def short_path(path: object, /) -> str:
    """A path for an error: its beginning and its end, with control characters escaped."""
    return short_repr(str(path), most=160)


def kind(value: object, /) -> str:
    """The name of a value's type, for an error."""
    return printable(type(value).__name__, most=40)


def argument_error(name: str, takes: str, value: object, /) -> UsageError:
    """The error of an argument: what it takes, and what came."""
    return UsageError(f"{name} {takes}; got {short_repr(value)}")


def replace_surrogates(value: Any, /) -> Any:
    """`value` with every lone surrogate in its strings replaced by U+FFFD: they come out of cut-off JSON and bytes."""
    if isinstance(value, str):
        return value if str.isascii(value) else encodable(value)
    if isinstance(value, dict):
        return {replace_surrogates(k): replace_surrogates(v) for k, v in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [replace_surrogates(v) for v in cast("list[Any]", value)]
    return value


def a_text(value: object, name: str, /, *, blank: bool = True) -> str:
    """`value`, a text that can be encoded; without `blank` it must say something."""
    if not is_instance(value, str):
        raise argument_error(name, "takes a text", value)
    text = replace_surrogates(str.__str__(value))  # a plain one, whatever a subclass does
    if not blank and not text.strip():
        raise argument_error(name, "takes a text that is not blank", text)
    return text


def maybe_text(value: object, name: str, /) -> str | None:
    """Return the checked value, or `None` for `None`."""
    return None if value is None else a_text(value, name)


def an_id(value: object, name: str = "id", /) -> str:
    """`value`, if it can be the id of a record."""
    text = str.__str__(value) if is_instance(value, str) else ""
    if not 0 < len(text) <= LONGEST_ID or not text.isprintable():
        raise argument_error(name, "takes an id, the text that a record has as `.id`", value)
    return text


def maybe_id(value: object, name: str, /) -> str | None:
    """Return the checked value, or `None` for `None`."""
    return None if value is None else an_id(value, name)


def maybe_ids(value: object, name: str, /) -> tuple[str, ...]:
    """One id or several, each once; none for `None`."""
    if value is None:
        return ()
    if not is_instance(value, (list, tuple)):
        return (an_id(value, name),)
    ids = tuple(dict.fromkeys(an_id(id, name) for id in cast("Iterable[object]", value)))
    if not ids:
        raise UsageError(f"{name} takes an id or several; got none")
    return ids


def a_list_of_ids(values: Iterable[object], call: str, /) -> tuple[str, ...]:
    """At least one id."""
    ids = tuple(an_id(value, call) for value in values)
    if not ids:
        raise UsageError(f"{call} takes at least one id, as in {call}(lesson.id, …)")
    return ids


def a_count(value: object, name: str = "limit", /, *, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """`value`, a whole number from `least` to `most`."""
    number = _number(value)
    if not is_instance(number, int) or not least <= number <= most:
        bounds = f"from {least} to {most}" if is_instance(number, int) and number > most else f"of at least {least}"
        raise argument_error(name, f"is a whole number {bounds}", value)
    return number


def maybe_count(value: object, name: str = "limit", /, *, least: int = 1, most: int = LARGEST_COUNT) -> int | None:
    """Return the checked value, or `None` for `None`."""
    return None if value is None else a_count(value, name, least=least, most=most)


def a_seed(value: object, /) -> int:
    """`value`, a whole number that a generator of random numbers starts from."""
    number = _number(value)
    if not is_instance(number, int) or not -_LARGEST <= number <= _LARGEST:
        raise argument_error("seed", "is a whole number of at most 19 digits", value)
    return number


def a_number(value: object, name: str, takes: str, /, *, above: float = -math.inf, most: float = math.inf) -> float:
    """`value`, a finite number above `above` and at most `most`; `takes` says so."""
    number = _number(value)
    if number is None or not above < number <= most or not _finite(number):
        raise argument_error(name, takes, value)
    return float(number)


def some_seconds(value: object, name: str, /, *, above: float = 0.0) -> float:
    """`value`, a number of seconds that a clock can count."""
    takes = f"is a number of seconds above {above:g} and at most {MOST_SECONDS:,}"
    return a_number(value, name, takes, above=above, most=MOST_SECONDS)


def some_days(value: object, name: str, /) -> float:
    """`value`, a number of days that can be counted back from today."""
    return a_number(value, name, f"is a number of days above 0 and at most {MOST_DAYS:,}", above=0.0, most=MOST_DAYS)


def a_share(value: object, name: str, takes: str = "", /, *, least: float = 0.0, below: float | None = None) -> float:
    """`value`, a number from `least` to 1, or from there to below `below`."""
    number = _number(value)
    if number is None or not least <= number <= 1 or (below is not None and number >= below):
        bounds = f"goes from {least:g} to {'1' if below is None else f'below {below:g}'}"
        raise argument_error(name, takes or bounds, value)
    return float(number)


def a_flag(value: object, name: str, /) -> bool:
    """`value`, `True` or `False`."""
    if not is_instance(value, bool):
        raise argument_error(name, "is True or False", value)
    return value


def one_of(value: object, name: str, allowed: Collection[Any], /) -> Any:
    """`value`, one of the texts that are allowed."""
    if not is_instance(value, str) or str.__str__(value) not in allowed:
        *others, last = map(repr, allowed)
        raise argument_error(name, f"is {', '.join(others)} or {last}", value)
    return str.__str__(value)


def maybe_one_of(value: object, name: str, allowed: Collection[Any], /) -> Any:
    """Return the checked value, or `None` for `None`."""
    return None if value is None else one_of(value, name, allowed)


def check_record(value: object, name: str, record: type[V], /) -> V:
    """`value`, a record of one kind."""
    if not is_instance(value, record):
        raise argument_error(name, f"takes {'an' if record.__name__[0] in 'AEIOU' else 'a'} {record.__name__}", value)
    return value


def nonempty(values: object, name: str, record: type[V], /) -> list[V]:
    """At least one record of a kind, or text."""
    records = _items(values)
    if not records or not all(is_instance(entry, record) for entry in records):
        what = "text" if record is str else record.__name__
        raise argument_error(name, f"takes at least one {what}", values)
    return cast("list[V]", records)


def copy_mapping(value: Mapping[str, Any], name: str, /) -> dict[str, Any]:
    """A mapping of names, read once."""
    try:
        return {str(key): entry for key, entry in value.items()}
    except Exception:  # noqa: BLE001 - whatever a mapping of the caller's own raises
        raise argument_error(name, "takes a mapping that can be read", value) from None


def a_mapping(value: object, /) -> dict[str, Any]:
    """`value` as plain data that JSON can hold and every reader of JSON can read; empty for `None`."""
    if value is None:
        return {}
    try:
        mapping = dict(cast("Mapping[str, Any]", value))
        json.dumps(mapping, allow_nan=False)
        if issubclass(type(value), Mapping) and _is_readable([mapping]):
            return replace_surrogates(_METADATA.validate_python(mapping, strict=True))
    except Exception:  # noqa: BLE001 - whatever a mapping of the caller's own raises
        pass
    raise argument_error("metadata=", f"takes a mapping from text to JSON values, at most {DEEPEST} levels deep", value)


def check_data(values: Sequence[object], name: str, /) -> None:
    """Refuse data of records that some reader of JSON could not read back."""
    if not _is_readable(values):
        takes = f"takes data of at most {DEEPEST} levels, and finite numbers of at most 4,000 digits"
        raise argument_error(name, takes, next(value for value in values if not _is_readable([value])))


def filters(*, text: object, metadata: object, limit: object, after: object) -> dict[str, Any]:
    """What every list of records can be asked for."""
    wanted = None if metadata is None else a_mapping(metadata)
    return {
        "text": maybe_text(text, "text="),
        "metadata": wanted,
        "limit": a_count(limit),
        "after": maybe_id(after, "after="),
    }


def a_call(value: object, name: str, /) -> Any:
    """`value`, a function or an object that can be called, or `None`."""
    if value is not None and not callable(value):
        raise argument_error(name, "takes a function", value)
    return value


def an_action(value: object, name: str, /) -> Any:
    """`value`, a function or an object that can be called."""
    if value is None:
        raise argument_error(name, "takes a function", value)
    return a_call(value, name)


def a_place(value: object, name: str, takes: str = "takes the path of a file", /) -> str:
    """`value` as the text of a path that a file system can have."""
    try:
        raw_path = cast("object", os.fspath(cast("os.PathLike[str]", value)))
        path = str.__str__(raw_path) if is_instance(raw_path, str) else ""
        names = os.fsencode(path).split(os.sep.encode())
    except Exception:  # noqa: BLE001 - whatever its `__fspath__` raises, and half of a surrogate pair
        path, names = "", []
    if not path.strip() or "\x00" in path or len(path) > _LONGEST_PATH or max(map(len, names)) > _LONGEST_NAME:
        raise argument_error(name, takes, value)
    return path


def a_path(value: object, name: str = "path", /) -> Path:
    """An argument as a path; `~` is the home folder."""
    path = a_place(value, name)
    try:
        return Path(path).expanduser()
    except RuntimeError:  # no such user
        raise argument_error(name, "takes the path of a file", value) from None


def signature(function: object, /) -> Signature | None:
    """What a function takes, or `None` where it does not say: some that are built in do not."""
    try:
        return inspect.signature(cast("Any", function))
    except Exception:  # noqa: BLE001 - whatever its own attributes raise
        return None


def maybe_time(value: object, name: str, /) -> datetime | None:
    """`value`, a time with its zone; `None` for `None`."""
    if value is None or is_instance(value, datetime):
        if value and value.utcoffset() is None:
            raise UsageError("this datetime has no time zone: pass one with a zone, as in datetime.now(UTC)")
        return value
    raise argument_error(name, "is a datetime with its zone", value)


def a_moment(value: object, name: str = "a moment", /) -> int | datetime:
    """`value`, the number of a change, or a time with its zone."""
    if is_instance(value, datetime):
        return cast("datetime", maybe_time(value, name))
    number = _number(value)
    if not is_instance(number, int) or not 0 <= number <= _LARGEST:
        raise argument_error(name, "is the number of a change, from 0, or a datetime with its zone", value)
    return number


def set_frozen(settings: object, /, **values: object) -> None:
    """Put checked values into a frozen object that is just being made."""
    for name, value in values.items():
        object.__setattr__(settings, name, value)


def _number(value: object) -> int | float | None:
    """A plain number, whatever a subclass does."""
    if is_instance(value, bool) or not is_instance(value, (int, float)):
        return None
    return int.__int__(value) if is_instance(value, int) else float.__float__(value)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _items(values: object) -> list[object]:
    if is_instance(values, (str, bytes)) or not is_instance(values, Iterable):
        return []
    try:
        return list(cast("Iterable[object]", values))
    except Exception:  # noqa: BLE001 - whatever an iterable of the caller's own raises
        return []


def _is_readable(values: Sequence[object]) -> bool:
    """Whether every reader of JSON can read values back: nested no deeper than `DEEPEST`, and with finite numbers."""
    level: list[Any] = [value for value in values if issubclass(type(value), (dict, list, tuple))]
    for _ in range(DEEPEST):
        outer, level = level, []
        for container in outer:
            for inner in cast("dict[str, Any]", container).values() if issubclass(type(container), dict) else container:
                if type(inner) is str:  # most are
                    continue
                if issubclass(type(inner), (dict, list, tuple)):
                    level.append(inner)
                elif _is_endless(inner):
                    return False
        if not level:
            return True
    return False


def _is_endless(value: object) -> bool:
    if is_instance(value, float):
        return not math.isfinite(value)
    return is_instance(value, int) and value.bit_length() > _LONGEST_NUMBER

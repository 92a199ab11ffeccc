"""Checks what a caller hands in: each check gives the value back, or one sentence that says what to pass."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime
from pathlib import Path
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

V = TypeVar("V")

LONGEST_ID: Final = 200
"""Characters of an id. Those made here have 32; importers and callers may bring their own."""
_LONGEST_PATH: Final = 4096
_LARGEST: Final = 2**63 - 1
"""The largest whole number that a store keeps."""


class _Shown(Repr):
    """Short texts of values; dunders that raise, circles and depth cost nothing."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother, self.maxlong = 2, most, most, 40


def shown(value: object, /, *, most: int = 80) -> str:
    """`value` as one short line for an error: nothing in it can drive a terminal, and no value can break it."""
    try:
        said = _Shown(most).repr(str(value) if isinstance(value, Path) else value)
    except Exception:  # noqa: BLE001 - a value's own methods, and numbers that Python refuses to write out
        said = type(value).__name__
    said = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in said[: 2 * most])
    return said if len(said) <= most + 2 else f"{said[: most - 1]}…"


def named(path: object, /) -> str:
    """A path for an error: its beginning and its end, with control characters escaped."""
    return shown(str(path), most=160)


def refusal(name: str, takes: str, value: object, /) -> UsageError:
    """The error of an argument: what it takes, and what came."""
    return UsageError(f"{name} {takes}; got {shown(value)}")


def a_text(value: object, name: str, /, *, blank: bool = True) -> str:
    """`value`, a text; without `blank` it must say something."""
    if not isinstance(value, str):
        raise refusal(name, "takes a text", value)
    if not blank and not value.strip():
        raise refusal(name, "takes a text that is not blank", value)
    return value


def maybe_text(value: object, name: str, /) -> str | None:
    """The same, or `None`."""
    return None if value is None else a_text(value, name)


def an_id(value: object, name: str = "id", /) -> str:
    """`value`, if it can be the id of a record."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID or "\x00" in value or not _encodable(value):
        raise refusal(name, "takes an id, the text that a record has as `.id`", value)
    return value


def maybe_id(value: object, name: str, /) -> str | None:
    """The same, or `None`."""
    return None if value is None else an_id(value, name)


def ids(values: Iterable[object], call: str, /) -> tuple[str, ...]:
    """At least one id."""
    found = tuple(an_id(value, call) for value in values)
    if not found:
        raise UsageError(f"{call} takes at least one id, as in {call}(lesson.id, …)")
    return found


def a_count(value: object, name: str = "limit", /, *, least: int = 1, most: int = _LARGEST) -> int:
    """`value`, a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        bounds = f"of at least {least}" if most == _LARGEST else f"from {least} to {most}"
        raise refusal(name, f"takes a whole number {bounds}", value)
    return int(value)


def maybe_count(value: object, name: str = "limit", /, *, least: int = 1) -> int | None:
    """The same, or `None`."""
    return None if value is None else a_count(value, name, least=least)


def a_number(value: object, name: str, /, *, above: float = -math.inf, most: float = math.inf) -> float:
    """`value`, a finite number above `above` and at most `most`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not above < value <= most or not _finite(value):
        least = "" if math.isinf(above) else f" above {above:g}"
        largest = "" if math.isinf(most) else f" and at most {most:g}" if least else f" of at most {most:g}"
        raise refusal(name, f"takes a finite number{least}{largest}", value)
    return float(value)


def a_share(value: object, name: str, /, *, least: float = 0.0, below: float | None = None) -> float:
    """`value`, a number from `least` to 1, or from there to below `below`."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= 1
    if not fits or (below is not None and not cast("float", value) < below):
        upper = "1" if below is None else f"below {below:g}"
        raise refusal(name, f"takes a number from {least:g} to {upper}", value)
    return float(cast("float", value))


def a_flag(value: object, name: str, /) -> bool:
    """`value`, `True` or `False`."""
    if not isinstance(value, bool):
        raise refusal(name, "takes True or False", value)
    return value


def one_of(value: object, name: str, allowed: Collection[V], /) -> V:
    """`value`, one of those that are allowed."""
    if not isinstance(value, str) or value not in cast("Collection[Any]", allowed):
        raise refusal(name, f"is one of {', '.join(map(repr, allowed))}", value)
    return cast("V", value)


def maybe_one_of(value: object, name: str, allowed: Collection[V], /) -> V | None:
    """The same, or `None`."""
    return None if value is None else one_of(value, name, allowed)


def a(value: object, name: str, kind: type[V], /) -> V:
    """`value`, a record or settings of one kind."""
    if not isinstance(value, kind):
        raise refusal(name, f"takes {'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}", value)
    return value


def a_call(value: object, name: str, /) -> Any:
    """`value`, a function or an object that can be called, or `None`."""
    if value is not None and not callable(value):
        raise refusal(name, "takes a function", value)
    return value


def a_path(value: object, name: str = "path", /) -> Path:
    """`value` as a path that a file system can have; `~` is the home folder."""
    try:
        path: object = os.fspath(cast("os.PathLike[str]", value))
    except Exception:  # noqa: BLE001 - whatever its `__fspath__` raises
        path = None
    if not isinstance(path, str) or not path.strip() or "\x00" in path or len(path) > _LONGEST_PATH:
        raise refusal(name, "takes the path of a file", value)
    try:
        os.fsencode(path)
        return Path(path).expanduser()
    except (RuntimeError, UnicodeError):  # no such user, and half of a surrogate pair
        raise refusal(name, "takes the path of a file", value) from None


def a_moment(value: object, name: str = "a moment", /) -> int | datetime:
    """`value`, the number of a change, or a time with its zone."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise UsageError("this datetime has no time zone: pass one with a zone, as in datetime.now(UTC)")
        return value.astimezone(UTC) if value.year not in (1, 9999) else value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise refusal(name, "is the number of a change, from 0, or a datetime", value)
    return int(value)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False

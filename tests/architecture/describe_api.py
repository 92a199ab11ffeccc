"""Prints the public API, one fact per line, so that a change of it is a change of a file in review (`just api`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

import lessonbank

BANKS = ("AsyncReasoningBank", "ReasoningBank")


def describe() -> Iterator[str]:
    """Every public name, then the signature of each function, the fields of each settings object, and the methods of
    both banks and of their views.
    """
    names: list[str] = sorted(getattr(lessonbank, "__all__", ()))
    yield from (f"name {name}" for name in names)
    for name in names:
        value = getattr(lessonbank, name)
        if inspect.isfunction(value):
            yield f"function {name}{inspect.signature(value)}"
    for name in names:
        if is_dataclass(kind := getattr(lessonbank, name)):
            yield from settings(name, kind)
    for name in BANKS:
        if name in names:
            yield from members(name, getattr(lessonbank, name))


def settings(name: str, kind: Any, /) -> Iterator[str]:
    """The fields of a settings object, with what they are by default."""
    for one in fields(kind):
        default = "" if one.default is MISSING else f" = {one.default!r}"
        yield f"field {name}.{one.name}: {one.type!r}{default}"


def members(name: str, owner: type[Any], /) -> Iterator[str]:
    """Public methods and properties of a class, how it is made, and the same of each view it gives."""
    for member in sorted(dir(owner)):
        value = inspect.getattr_static(owner, member)
        if isinstance(value, property) and not member.startswith("_"):
            yield f"property {name}.{member}"
            given = get_type_hints(value.fget)["return"]
            if isinstance(given, type) and given.__module__.startswith("lessonbank"):
                yield from members(f"{name}.{member}", given)
        elif (member == "__init__" and name in BANKS) or (
            callable(getattr(owner, member)) and not member.startswith("_")
        ):
            yield f"method {name}.{member}{inspect.signature(getattr(owner, member))}"


if __name__ == "__main__":
    print(*describe(), sep="\n")

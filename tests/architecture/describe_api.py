"""Prints the public API, one fact per line, so that a change of it is a change of a file in review (`just api`)."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import lessonbank

BANKS = ("AsyncReasoningBank", "ReasoningBank")


def describe() -> Iterator[str]:
    """Every public name, then the signature of each public function and of each method of both banks."""
    names: list[str] = sorted(getattr(lessonbank, "__all__", ()))
    yield from (f"name {name}" for name in names)
    for name in names:
        value = getattr(lessonbank, name)
        if inspect.isfunction(value):
            yield f"function {name}{inspect.signature(value)}"
    for owner in BANKS:
        if owner in names:
            yield from members(getattr(lessonbank, owner))


def members(owner: type[Any], /) -> Iterator[str]:
    """Public methods and properties of a class, and how it is made."""
    for name in sorted(dir(owner)):
        value = inspect.getattr_static(owner, name)
        if isinstance(value, property) and not name.startswith("_"):
            yield f"property {owner.__name__}.{name}"
        elif name == "__init__" or (callable(getattr(owner, name)) and not name.startswith("_")):
            yield f"method {owner.__name__}.{name}{inspect.signature(getattr(owner, name))}"


if __name__ == "__main__":
    print(*describe(), sep="\n")

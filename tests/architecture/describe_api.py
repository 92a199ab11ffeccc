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
            yield from (f"method {owner}.{line}" for line in methods(getattr(lessonbank, owner)))


def methods(owner: type[Any], /) -> Iterator[str]:
    """Public attributes of a class, its way of being made and of being a context manager included."""
    for name in sorted(dir(owner)):
        value = inspect.getattr_static(owner, name)
        if name == "__init__" and inspect.isfunction(value):
            yield f"{name}{inspect.signature(value)}"
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"{name} (property)"
        elif callable(value) or isinstance(value, classmethod | staticmethod):
            yield f"{name}{inspect.signature(getattr(owner, name))}"
        else:
            yield name


if __name__ == "__main__":
    print(*describe(), sep="\n")

"""What a caller may hand to `connect`, checked before a file is made: one sentence for each wrong argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import isawaitable
from types import CoroutineType
from typing import Any, TypeVar, cast

from lessonbank._base.checks import argument_error, is_instance, safe_getattr
from lessonbank.contracts.ports import Judge
from lessonbank.errors import UsageError
from lessonbank.learning.judging import Abstaining

A = TypeVar("A")
R = TypeVar("R")
G = TypeVar("G")


def grouped(value: object, kind: type[G], name: str, /, *, short: Callable[[Any], G] | None = None) -> G:
    """The settings object of an argument of `connect`: itself, none, or what a string or number is short for.

    Raises:
        UsageError: something else.
    """
    if is_instance(value, kind):
        return value
    if value is None:
        return kind()
    if short is not None and (callable(value) or is_instance(value, (str, int, float))):
        return short(value)
    raise argument_error(f"{name}=", f"takes {kind.__name__}(…)", value)


def promised(
    part: Callable[[A], Awaitable[R]] | None, kind: type[R], /, *, name: str
) -> Callable[[A], CoroutineType[Any, Any, R]] | None:
    """A part of the caller's own that gives what it should, or says in one sentence that it does not.

    A function that is not async is refused: whatever it waits for would hold up every other task.
    """
    if part is None:
        return None

    async def held_to_it(argument: A, /) -> R:
        answer: object = part(argument)
        result = await cast("Awaitable[object]", answer) if isawaitable(answer) else None
        if not is_instance(result, kind):
            got = type(result if isawaitable(answer) else answer).__name__
            raise UsageError(f"{name}= takes an async function that returns {kind.__name__}; this one gave {got}")
        return result

    if safe_getattr(part, "asks_model") is False:
        setattr(held_to_it, "asks_model", False)  # noqa: B010 - a function has no such attribute by its type
    relabel = safe_getattr(part, "labelled")
    if callable(relabel):  # what `bank.scale(labels=)` asks of an extractor
        labelled = cast("Callable[[bool], Callable[[A], Awaitable[R]]]", relabel)

        def with_label(shown: bool, /) -> Callable[[A], CoroutineType[Any, Any, R]] | None:
            return promised(labelled(shown), kind, name=name)

        setattr(held_to_it, "labelled", with_label)  # noqa: B010 - a function has no such attribute by its type
    return held_to_it


def abstaining(judge: Judge, below: float, /) -> Judge:
    """The judge, silent where it is less sure than `below`."""
    return Abstaining(judge, below) if below else judge

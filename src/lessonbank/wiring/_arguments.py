"""What a caller may hand to `connect`, checked before a file is made: one sentence for each wrong argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from types import CoroutineType
from typing import Any, TypeVar, cast

from lessonbank._base.aio import promised_answer
from lessonbank._base.checks import argument_error, is_instance, safe_getattr
from lessonbank.contracts.ports import Consolidator, Judge
from lessonbank.contracts.records import Change, Experience
from lessonbank.contracts.records.entry import Entry
from lessonbank.learning.judging import Abstaining

A = TypeVar("A")
R = TypeVar("R")
G = TypeVar("G")


def grouped(value: object, group: type[G], name: str, /, *, short: Callable[[Any], G] | None = None) -> G:
    """The settings object of an argument of `connect`: itself, none, or what a string or number is short for.

    Raises:
        UsageError: something else.
    """
    if is_instance(value, group):
        return value
    if value is None:
        return group()
    if short is not None and (callable(value) or is_instance(value, (str, int, float))):
        return short(value)
    raise argument_error(f"{name}=", f"takes {group.__name__}(…)", value)


def promised(
    part: Callable[[A], Awaitable[R]] | None, record: type[R], /, *, name: str
) -> Callable[[A], CoroutineType[Any, Any, R]] | None:
    """A part of the caller's own that gives what it should, or says in one sentence that it does not.

    A function that is not async is refused: whatever it waits for would hold up every other task.
    """
    if part is None:
        return None

    async def held_to_it(argument: A, /) -> R:
        return await promised_answer(part, argument, f"{name}=", record.__name__, lambda a: is_instance(a, record))

    if safe_getattr(part, "asks_model") is False:
        setattr(held_to_it, "asks_model", False)  # noqa: B010 - a function has no such attribute by its type
    relabel = safe_getattr(part, "labelled")
    if callable(relabel):  # what `bank.scale(labels=)` asks of an extractor
        labelled = cast("Callable[[bool], Callable[[A], Awaitable[R]]]", relabel)
        again: Callable[[bool], object] = lambda shown: promised(labelled(shown), record, name=name)  # noqa: E731
        setattr(held_to_it, "labelled", again)  # noqa: B010 - a function has no such attribute by its type
    return held_to_it


def deciding(consolidator: Consolidator, /) -> Consolidator:
    """A consolidator of the caller's own that gives changes, or says in one sentence that it does not."""

    async def held_to_it(new: Experience, /) -> Sequence[Change]:
        return await promised_answer(consolidator, new, "consolidator=", "a list of changes", _are_changes)

    return held_to_it


def _are_changes(result: object) -> bool:
    changes = cast("tuple[object, ...]", result) if is_instance(result, (list, tuple)) else (None,)
    return all(is_instance(change, Entry) for change in changes)


def abstaining(judge: Judge, below: float, /) -> Judge:
    """The judge, silent where it is less sure than `below`."""
    return Abstaining(judge, below) if below else judge

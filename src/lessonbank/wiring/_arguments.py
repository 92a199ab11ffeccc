"""What a caller may hand to `connect`, checked before a file is made: one sentence for each wrong argument."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CoroutineType
from typing import Any, TypeVar, cast

from lessonbank._base.aio import promised_answer
from lessonbank._base.checks import argument_error, is_instance, safe_getattr
from lessonbank.contracts.ports import Vectors
from lessonbank.contracts.records import Experience, Found
from lessonbank.search._wrapper import RetrieverWrapper

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


@dataclass(frozen=True, slots=True)
class OwnRetriever(RetrieverWrapper):
    """A retriever of the caller's own that gives what it should, or says in one sentence that it does not."""

    @property
    def name(self) -> str:
        """The name of the inner retriever."""
        return self.inner.name

    async def __call__(self, task: str, /, *, scope: str, limit: int) -> Found:
        """What the inner retriever finds. Raises UsageError."""
        find = partial(self.inner, scope=scope, limit=limit)
        return await promised_answer(find, task, "retriever=", "Found", lambda a: is_instance(a, Found))

    async def index(self, experiences: Sequence[Experience], /) -> Mapping[str, Vectors]:
        """The vectors of the inner retriever. Raises UsageError."""
        make, what = self.inner.index, "a mapping from ids to vectors"
        return await promised_answer(make, experiences, "retriever.index", what, lambda a: issubclass(type(a), Mapping))

"""Lists what asks for a reviewer's key where a bank has reviewers, in this one place, and makes the views ask."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, TypeVar

V = TypeVar("V", bound=type)

APPROVED_ONLY: Final = frozenset({"lessons.quarantine", "lessons.retire"})
"""What asks only about a lesson that a person approved: to hide another one has to be quick."""
CALLS: Final = frozenset(
    {
        *("lessons.add", "lessons.edit", "lessons.narrow", "lessons.merge", "lessons.unmerge", "lessons.split"),
        *("lessons.approve", "lessons.restore", *APPROVED_ONLY),
        "runs.correct",
        "history.rollback",
        *("admin.import_", "admin.purge", "admin.forget", "admin.reindex", "admin.rebuild"),
        *("admin.add_writer", "admin.remove_writer", "admin.add_reviewer", "admin.remove_reviewer"),
        *("keys.add", "keys.rotate", "keys.remove"),
        "keep_runs",
        "restore",
    }
)
"""Calls of Python (`view.method`), of a server's keys (`keys.…`), the setting `keep_runs`, and `lessonbank.restore`."""


def asks(view: str, /) -> Callable[[V], V]:
    """Let each method of a view that is on the list ask for the key before it does anything.

    The view has its bank as `_bank`. `by=` or `approved_by=` of a call is the person whose key it has to be. A
    `preview=True` changes nothing, so it does not ask.
    """

    def decorate(made: V) -> V:
        for call in CALLS - APPROVED_ONLY:
            of, _, name = call.rpartition(".")
            if of == view:
                setattr(made, name, _asking(name, getattr(made, name)))
        return made

    return decorate


def _asking(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, **keywords: Any) -> Any:
        doing = method(self, *args, **keywords)  # nothing runs yet: only wrong arguments are a TypeError here
        try:
            if keywords.get("preview", False) is not True:
                await self._bank.check_reviewer(name, by=keywords.get("by", keywords.get("approved_by")))
        except BaseException:
            doing.close()
            raise
        return await doing

    return call

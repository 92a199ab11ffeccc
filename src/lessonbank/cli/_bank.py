"""Opens the bank that a command names, and warns where the scope that it names is empty."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from lessonbank._base.checks import short_path
from lessonbank.errors import NotAllowed, UsageError

from ._output import warn

if TYPE_CHECKING:
    from lessonbank import Lesson, ReasoningBank

LARGE: Final = 2_000
"""Lessons of a scope from which on it is not read whole to name topics."""


@contextmanager
def opened(bank: str, scope: str, /, *, make: bool = False, **settings: Any) -> Generator[ReasoningBank]:
    """The bank of a command, closed afterwards. Only with `make` it may be a new one: a mistyped path is an error.

    Raises:
        UsageError: memory is switched off, so that nothing could be read or kept.
    """
    import lessonbank

    if not make:
        needs_bank(bank)
    with lessonbank.connect(_place(bank), scope=scope, **settings) as memory:
        check_on(memory.settings)
        yield memory


def check_on(settings: Mapping[str, object], /) -> None:
    """Refuse a bank of which nothing can be read and in which nothing is kept. Raises UsageError."""
    if "off" in settings:
        raise UsageError("memory is switched off: unset LESSONBANK_OFF to use this command")


def _place(bank: str) -> Any:
    """What `connect` opens: a file in a folder that nobody may write to can still be read."""
    import lessonbank

    if "://" in bank or bank == ":memory:":
        return bank
    path = path_of(bank)
    locked = is_there(path) and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
    return lessonbank.File(path, read_only=True) if locked else bank


def needs_bank(bank: str, /, *, option: str = "--bank") -> None:
    """Refuse a file that is not there, which `option` names. Raises BadParameter."""
    if "://" not in bank and not is_there(path_of(bank)):
        raise typer.BadParameter(f"there is no bank at {short_path(bank)}", param_hint=option)


def is_server(bank: str, /) -> bool:
    """Whether `bank` is the address of a server, which has settings of its own."""
    return bank.startswith(("http://", "https://"))


def is_database(bank: str, /) -> bool:
    """Whether `bank` is the address of a database."""
    return bank.startswith(("postgresql://", "postgres://"))


def is_there(path: Path, /) -> bool:
    """Whether there is something at `path`. A name that no file can have names nothing."""
    try:
        return path.expanduser().exists()
    except (OSError, RuntimeError, ValueError):
        return False


def path_of(bank: str, /) -> Path:
    """The file that a bank's name means."""
    return Path(os.path.expanduser(bank.removeprefix("sqlite:")))  # noqa: PTH111 - the other raises without such a user


def warn_where_empty(memory: ReasoningBank, /) -> None:
    """Where the scope holds nothing, it is most likely mistyped: name the scopes that hold something."""
    if _holds(memory):
        return
    try:
        full = [scope for scope in memory.admin.scopes() if _holds(memory.scoped(scope))]
        others = f"; this bank has: {', '.join(full[:8]) or 'nothing yet'}"
    except NotAllowed:  # a server names a tenant's scopes to its admin only
        others = ""
    warn(f"there is nothing in scope {memory.scope}{others}")


def topics_of(memory: ReasoningBank, lessons: Sequence[Lesson], /, *, most: int = LARGE) -> dict[str, str]:
    """By id: the name of each topic of `lessons`. Where the scope has more than `most` lessons only these are asked."""
    from lessonbank.evidence.groups import topic_names, topics_named

    if not any(lesson.topic for lesson in lessons):
        return {}
    is_large = memory.admin.counts().lessons > most
    return topics_named(topic_names(lessons) if is_large else memory.lessons.topics())


def _holds(memory: ReasoningBank) -> bool:
    """Whether the scope has a run or a lesson: a recall alone may be that of a mistyped scope."""
    counts = memory.admin.counts()
    return bool(counts.trajectories or counts.lessons)

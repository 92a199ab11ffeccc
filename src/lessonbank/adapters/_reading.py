"""Reads what a host says of a run: without what nobody can read, and without what memory put into it."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, cast

from lessonbank.contracts.records import Trajectory
from lessonbank.errors import FormatError
from lessonbank.guard.quote import quoted
from lessonbank.text.messages import trajectory_from

log = logging.getLogger("lessonbank")


def run_from(source: object, /, *, task: str | None) -> Trajectory:
    """`trajectory_from`; a message that nobody can read, such as a call without a name, costs the run nothing else.

    Raises:
        FormatError: no message can be read, or nothing says the task.
    """
    try:
        return trajectory_from(source, task=task)
    except FormatError as error:
        fields: dict[str, Any] = {"messages": source, **(source if isinstance(source, dict) else {})}
        messages = cast("list[object]", fields["messages"]) if isinstance(fields["messages"], list) else []
        readable = [message for message in messages if _can_be_read(message)]
        if len(readable) in (0, len(messages)):
            raise
        log.warning("a run is kept without what cannot be read: %s", quoted(error))
        return trajectory_from({**fields, "messages": readable}, task=task)


def _can_be_read(message: object) -> bool:
    with suppress(FormatError):
        return bool(trajectory_from([message], task="?"))
    return False


def without_text(run: Trajectory, text: str, /) -> Trajectory:
    """A run without what memory put into it: what was shown is not learned back."""
    return Trajectory.model_validate(_cut(run.model_dump(), text)) if text.strip() else run


def _cut(value: object, text: str) -> object:
    if isinstance(value, str):
        return value.replace(text, "").strip() if text in value else value
    if isinstance(value, dict):
        return {key: _cut(inner, text) for key, inner in cast("dict[str, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_cut(inner, text) for inner in cast("list[object]", value)]
    return value
